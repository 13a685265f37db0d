"""Estimate how good another policy would have been, from logged impressions with propensities."""

from recometer.logs.impressions import Impressions
from recometer.logs.values import PolicyValues, UserSums

__all__ = ["Impressions", "PolicyValues", "UserSums"]
