"""Checks on a model's output before it is evaluated, and on this installation."""
