"""The rules that a number depends on."""

from recometer.protocol.declaring import STEPS, Number, Rule, rule, ruled
from recometer.protocol.rules import Protocol, RelevantFrom, RepeatedTest, Rules, TieRule

__all__ = [
    "STEPS", "Number", "Protocol", "RelevantFrom", "RepeatedTest", "Rule", "Rules", "TieRule",
    "rule", "ruled",
]  # fmt: skip
