"""Ids of models as test has them: texts in one file may be numbers in another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array
from recometer.cli._factors import known_ids, like
from recometer.data import sessions, trec
from recometer.data.columns import REQUIRED
from recometer.data.files import in_memory, open_file
from recometer.data.interactions import Interactions
from recometer.sources.lists import Lists

if TYPE_CHECKING:
    import polars as pl

ORDERS = ("rank", "score")  # columns that runs are ranked by, or neither


def alike(lists: Lists, test: Interactions | None) -> bool:
    """Return whether ids are of the same kinds, as far as both have any."""
    arrays = lists.arrays()
    pairs = [(arrays[f"{what}_ids"], known_ids(test, what)) for what in REQUIRED]
    return all(same_kinds(given, known) for given, known in pairs)


def same_kinds(given: object, known: Array | None) -> bool:
    """Return whether ids are of the same kinds, as far as both have any."""
    if not isinstance(given, np.ndarray) or known is None or not len(given) or not len(known):
        return True
    return sessions.kinds(given) == sessions.kinds(sessions.as_named_by(known, given))


def lists_like(file: Path, wanted: Mapping[str, object], test: Interactions | None) -> Lists:
    """Read lists once more, with ids such as test has: TREC's are texts, others may be numbers."""
    if wanted:
        found, fetch = open_file(file, wanted)
        columns = {option: in_memory(fetch(option)) for option, name in found.items() if name}
    else:
        columns = trec.read_run(file).to_dict()
    make_alike(columns, test)
    return Lists(pl_frame(columns), **named_alike(columns))


def make_alike(columns: dict[str, Any], test: Interactions | None) -> None:
    """Let ids be texts or numbers, as those of test are."""
    for what in REQUIRED:
        columns[what] = like(columns[what], known_ids(test, what))


def named_alike(columns: Mapping[str, object]) -> dict[str, Any]:
    """Return the options of `Lists` for columns that are called by what they hold."""
    given: dict[str, Any] = {name: name if name in columns else False for name in ORDERS}
    if given["rank"]:
        given["score"] = False
    return {**{what: what for what in REQUIRED}, **given}


def pl_frame(columns: Mapping[str, Any]) -> pl.DataFrame:
    """Return a data frame of some columns."""
    import polars as pl

    return pl.DataFrame(columns)
