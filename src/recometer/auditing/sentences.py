"""What findings say, for those who count otherwise than in arrays."""

from recometer.auditing._evaluable import (
    compare_ids,
    of_unseen_items,
    on_unreachable,
    on_unseen_users,
)
from recometer.auditing._leakage import older_than_training_among, on_newer, on_overlap
from recometer.auditing._shifts import of_items, of_users
from recometer.auditing._sides import Sides, check_times

__all__ = [
    "Sides",
    "check_times",
    "compare_ids",
    "of_items",
    "of_unseen_items",
    "of_users",
    "older_than_training_among",
    "on_newer",
    "on_overlap",
    "on_unreachable",
    "on_unseen_users",
]
