"""Metrics of the recommended lists themselves."""
