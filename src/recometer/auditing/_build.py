"""Findings in rows, users and items of test; `audit` gives them the names of their checks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from recometer.arrays import Bool
from recometer.auditing._sides import EXAMPLES, Sides
from recometer.auditing.findings import Finding, Level, counted


def of_rows(
    sides: Sides,
    chosen: Bool,
    what: str,
    level: Level,
    found: str,
    clear: str,
    among: Bool | None = None,
    statistics: Mapping[str, float] | None = None,
) -> Finding:
    """Return what was found in some rows of test, bool [len(test)], of all or of those `among`.

    The sentence is `found` if there are such rows, and `clear` if there are none.
    """
    total = len(chosen) if among is None else int(np.count_nonzero(among))
    rows = np.flatnonzero(chosen)
    few = rows[:EXAMPLES]
    users = sides.examples(sides.user[few], sides.test.user_ids)
    examples = zip(users, sides.examples(sides.test.items[few], sides.test.item_ids), strict=True)
    return counted(len(rows), total, tuple(examples), what, level, found, clear, statistics)


def of_users(
    sides: Sides, chosen: Bool, what: str, level: Level, found: str, clear: str
) -> Finding:
    """Return what was found in some users of test, bool [test.n_users]."""
    users = np.flatnonzero(chosen)
    examples = sides.examples(users, sides.test.user_ids)
    total = int(np.count_nonzero(sides.tested))
    return counted(len(users), total, examples, what, level, found, clear)
