"""Metrics of rankings: formulas over tie groups."""
