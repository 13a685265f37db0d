"""Guesses how two data sets spell the same ids differently, for hints in messages."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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
    whole, point, decimals = text.partition(".")
    return whole if point and whole and not decimals.strip("0") else text


# Differences by name, each with the function that removes it from an id.
DIFFERENCES: Mapping[str, Callable[[str], str]] = {
    "blanks at the ends": _without_blanks,
    "letter case": str.casefold,
    "the Unicode form (NFC or NFD)": _composed,
    "leading zeros": _without_zeros,
    "a decimal point (1.0 for 1)": _without_decimals,
}
CASES = (str.lower, str.upper, str.capitalize, str.title)


class Guess(NamedTuple):
    """An id from one side, and how the other side seems to spell it."""

    asked: Any
    known: Any
    differences: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{brief(self.asked)} may be {brief(self.known)}, written differently: "
            f"{' and '.join(self.differences)}"
        )


def guess(asked: Sequence[Any], known: Iterable[Any]) -> Guess | None:
    """Guess how the other side spells ids that have no match.

    Parameters
    ----------
    asked
        Some ids that are not in `known`, all of the same kind: strings, or pairs with a string.
    known
        All ids of the other side.

    Returns
    -------
    Guess or None
        None unless one difference, or all `DIFFERENCES` together, explain at least a tenth of the
        ids in `asked`.
    """
    if not asked or not _has_text(asked[0]):
        return None
    known = list(known)
    best, most = None, FEWEST * len(asked)
    for changes in [[one] for one in DIFFERENCES.values()] + [[*DIFFERENCES.values()]]:
        found = {_changed(one, changes): one for one in known}
        pairs = [(one, found.get(_changed(one, changes))) for one in asked]
        explained = [(one, other) for one, other in pairs if other is not None]
        if len(explained) > most or (best is None and explained and len(explained) >= most):
            best, most = explained[0], len(explained)
    if best is None:
        return None
    one, other = best
    return Guess(one, other, _differences(one, other))


def plain(one: Any) -> Any:
    """Remove all `DIFFERENCES` from an id, in each part that is a string."""
    return _changed(one, DIFFERENCES.values())


def variants(text: str, length: int) -> list[str]:
    """Return other spellings of a string; `length` is the length of an id on the other side."""
    found = [one(text) for one in (*DIFFERENCES.values(), *CASES)]
    found += [unicodedata.normalize("NFD", text), text.zfill(length), f"{text}.0"]
    found += [f"{text} ", f" {text}"]
    return [one for one in dict.fromkeys(found) if one != text]


def _has_text(one: Any) -> bool:
    return isinstance(one, str) or (isinstance(one, tuple) and any(map(_has_text, one)))


def _changed(one: Any, changes: Iterable[Callable[[str], str]]) -> Any:
    """Remove some differences from an id, in each part that is a string."""
    if isinstance(one, tuple):
        return tuple(_changed(part, changes) for part in one)
    if isinstance(one, str):
        for change in changes:
            one = change(one)
    return one


def _differences(one: Any, other: Any) -> tuple[str, ...]:
    """Name the differences between two ids that are equal after removing all `DIFFERENCES`."""
    found = []
    for name, change in DIFFERENCES.items():
        others = [each for each in DIFFERENCES.values() if each is not change]
        if _changed(one, others) != _changed(other, others):
            found.append(name)
    return tuple(found) or tuple(DIFFERENCES)
