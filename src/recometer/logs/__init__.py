"""Logged impressions: how good another policy would have been, from a log with propensities."""

from recometer.logs.impressions import Impressions
from recometer.logs.sums import UserSums
from recometer.logs.values import PolicyComparison, PolicyValues

__all__ = ["Impressions", "PolicyComparison", "PolicyValues", "UserSums"]
