"""Audit a train-test split: find its faults, and describe their effects."""

from recometer.auditing.check import Audit, audit
from recometer.auditing.checks import LEAKAGE
from recometer.auditing.findings import Finding

__all__ = ["LEAKAGE", "Audit", "Finding", "audit"]
