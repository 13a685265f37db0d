"""Compute values from records, and give the reason for each undefined value."""
