"""Splits of interactions into train and test."""

from recometer.split.holdout import holdout_fraction

__all__ = ["holdout_fraction"]
