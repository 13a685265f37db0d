"""Whether the output of a model is fit to be evaluated, and whether this installation computes."""

from recometer.checking.preflight import check
from recometer.checking.result import Preflight

__all__ = ["Preflight", "check"]
