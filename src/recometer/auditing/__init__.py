"""What is wrong with a split, and what it does to the result."""

from recometer.auditing.check import LEAKAGE, audit
from recometer.auditing.findings import Finding
from recometer.auditing.result import Audit

__all__ = ["LEAKAGE", "Audit", "Finding", "audit"]
