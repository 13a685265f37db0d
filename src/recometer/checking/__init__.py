"""Checks of the output of a model before it is evaluated, and of this installation."""
