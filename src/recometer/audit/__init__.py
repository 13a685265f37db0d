"""What is wrong with a split, and what it does to the result."""

from recometer.audit.check import LEAKAGE, audit
from recometer.audit.result import Audit, Finding

__all__ = ["LEAKAGE", "Audit", "Finding", "audit"]
