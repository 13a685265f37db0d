"""Lists of items with groups, and the attention that each place in a list receives."""

from __future__ import annotations

import math

LISTS = {"ann": ["a", "b", "c"], "bob": ["b"], "cat": ["d", "a"]}
TEST = {"ann": ["b", "d"], "bob": ["a"], "cat": ["a"]}
GROUPS = {"a": "big", "b": "big", "c": "small", "d": "small", "e": "small"}
DISCOUNTS = {
    "log": lambda place: 1 / math.log2(place + 1),
    "geometric": lambda place: 0.5 ** (place - 1),
    "none": lambda place: 1.0,
}
