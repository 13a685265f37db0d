"""Computes values from records, and the reason for each undefined value."""
