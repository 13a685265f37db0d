"""Checks of the output of a model before it is evaluated, and of this installation."""

from recometer.checking.preflight import Preflight, check

__all__ = ["Preflight", "check"]
