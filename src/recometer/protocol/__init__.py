"""The rules that a number depends on."""

from recometer.protocol.declaring import STEPS, Number, Rule, rule, ruled
from recometer.protocol.rules import Protocol, TieRule

__all__ = ["STEPS", "Number", "Protocol", "Rule", "TieRule", "rule", "ruled"]
