"""Whether the output of a model is fit to be evaluated, and whether this installation computes."""

from recometer.checking.preflight import Preflight, check

__all__ = ["Preflight", "check"]
