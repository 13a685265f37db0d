"""Logged impressions: how good another policy would have been, from a log with propensities."""

from recometer.logs.impressions import Impressions
from recometer.logs.sums import UserSums
from recometer.logs.values import PolicyValues

__all__ = ["Impressions", "PolicyValues", "UserSums"]
