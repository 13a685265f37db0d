"""Guesses how two data sets spell the same ids differently, for hints in messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from recometer.errors import brief

INVISIBLE = "\ufeff\u200b\u00a0"  # byte order marks and other invisible characters
FEWEST = 0.1  # the smallest share of the unmatched ids that a guess must explain


def _without_blanks(text: str) -> str:
    return text.strip().strip(INVISIBLE).strip()


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _without_zeros(text: str) -> str:
    return text.lstrip("0") or text[-1:]


def _without_decimals(text: str) -> str:
    integer, point, decimals = text.partition(".")
    return integer if point and integer and not decimals.strip("0") else text


# Differences by name, each with the function that removes it from an id.
DIFFERENCES: Mapping[str, Callable[[str], str]] = {
    "leading or trailing blanks": _without_blanks,
    "letter case": str.casefold,
    "the Unicode form (NFC or NFD)": _composed,
    "leading zeros": _without_zeros,
    "a decimal point (1.0 for 1)": _without_decimals,
}
CASES = (str.lower, str.upper, str.capitalize, str.title)


def guess(unmatched: Sequence[Any], candidates: Iterable[Any]) -> str | None:
    """Return a hint on how the other side may spell ids that have no match.

    Parameters
    ----------
    unmatched
        Some ids that are not in `candidates`, all of one kind: strings, or pairs with a string.
    candidates
        All ids of the other side.

    Returns
    -------
    str or None
        None unless one difference, or all `DIFFERENCES` together, explain at least a tenth of the
        ids in `unmatched`.
    """
    if not unmatched or not _has_text(unmatched[0]):
        return None
    candidates = list(candidates)
    best, best_count = None, FEWEST * len(unmatched)
    for changes in [[change] for change in DIFFERENCES.values()] + [[*DIFFERENCES.values()]]:
        by_plain = {_changed(other, changes): other for other in candidates}
        pairs = [(id_, by_plain.get(_changed(id_, changes))) for id_ in unmatched]
        explained = [(id_, other) for id_, other in pairs if other is not None]
        if len(explained) > best_count or (
            best is None and explained and len(explained) >= best_count
        ):
            best, best_count = explained[0], len(explained)
    if best is None:
        return None
    names = " and ".join(_differences(*best))
    return f"{brief(best[0])} may be {brief(best[1])}, written differently: {names}"


def variants(text: str, length: int) -> list[str]:
    """Return other spellings of a string; `length` is the length of an id on the other side."""
    spellings = [change(text) for change in (*DIFFERENCES.values(), *CASES)]
    spellings += [unicodedata.normalize("NFD", text), text.zfill(length), f"{text}.0"]
    spellings += [f"{text} ", f" {text}"]
    return [spelling for spelling in dict.fromkeys(spellings) if spelling != text]


def _has_text(id_: Any) -> bool:
    return isinstance(id_, str) or (isinstance(id_, tuple) and any(map(_has_text, id_)))


def _changed(id_: Any, changes: Iterable[Callable[[str], str]]) -> Any:
    """Apply changes to an id, or to each part that is a string if the id is a pair."""
    if isinstance(id_, tuple):
        return tuple(_changed(part, changes) for part in id_)
    if isinstance(id_, str):
        for change in changes:
            id_ = change(id_)
    return id_


def _differences(id_: Any, other: Any) -> list[str]:
    """Name the differences between two ids that are equal after removing all `DIFFERENCES`."""
    names = []
    for name, change in DIFFERENCES.items():
        other_changes = [c for c in DIFFERENCES.values() if c is not change]
        if _changed(id_, other_changes) != _changed(other, other_changes):
            names.append(name)
    return names or [*DIFFERENCES]
