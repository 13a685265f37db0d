"""What is wrong with a split, and what it does to the result."""

from recometer.auditing.check import LEAKAGE, Audit, audit
from recometer.auditing.findings import Finding

__all__ = ["LEAKAGE", "Audit", "Finding", "audit"]
