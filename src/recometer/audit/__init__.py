"""What is wrong with a split, and what it does to the result."""

from recometer.audit.check import audit
from recometer.audit.result import Audit, Finding

__all__ = ["Audit", "Finding", "audit"]
