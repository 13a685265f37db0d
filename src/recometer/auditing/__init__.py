"""Audits find faults in a split into train and test, and describe their effects."""

from recometer.auditing.check import LEAKAGE, Audit, audit
from recometer.auditing.findings import Finding

__all__ = ["LEAKAGE", "Audit", "Finding", "audit"]
