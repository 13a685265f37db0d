"""Audits: faults of a split into train and test, and their effects on the result."""

from recometer.auditing.check import LEAKAGE, Audit, audit
from recometer.auditing.findings import Finding

__all__ = ["LEAKAGE", "Audit", "Finding", "audit"]
