"""Unknown users and items of test, and ids that look like positions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer.arrays import Array, Int64
from recometer.data import ids, sessions
from recometer.data.interactions import Interactions
from recometer.data.spelling import guess
from recometer.errors import InputError, brief, python_or_command, rule_text, warn
from recometer.evaluating.checks import BlockFacts
from recometer.protocol import Protocol
from recometer.sources.base import Kind, Source

KINDS: tuple[Kind, ...] = ("user", "item")
MANY = 0.1  # share of unknown users or relevant rows above which there is a warning
EXAMPLES = 3
ASKED = 1000  # unknown ids to search for another spelling
BY_CHANCE = 10  # with fewer users or items, ids may begin with 0 or 1 by chance


FindUnknown = Callable[[Kind], "Unknown"]


def there(data: Interactions, kind: Kind) -> tuple[Int64, Array | None]:
    """Return the positions of users or items with interactions, and all ids."""
    if kind == "user":
        return np.flatnonzero(np.diff(data.indptr)), data.user_ids
    return np.unique(data.items).astype(np.int64), data.item_ids


def missing(data: Interactions, kind: Kind, known: Array | None) -> Int64:
    """Return the positions of users or items with interactions whose ids are not `known`."""
    positions, its = there(data, kind)
    if known is None or its is None:
        return positions[:0]
    asked = its[positions]
    if kind == "user":
        asked = sessions.as_named_by(asked, known)
    found = ids.match(asked, known, f"{kind} ids of test", f"{kind} ids of the source")
    return positions[found < 0]


class Unknown(NamedTuple):
    """Examples of unknown ids, and the ids that the source has."""

    asked: Sequence[Any]
    known: Sequence[Any]
    side: str = "test"

    @classmethod
    def of(cls, asked: Array, known: Array | None, side: str = "test") -> Unknown:
        """Choose evenly spaced examples of the unknown ids."""
        chosen = np.linspace(0, len(asked) - 1, min(len(asked), ASKED)).astype(np.int64)
        return cls(asked[chosen].tolist(), [] if known is None else known.tolist(), side)

    @property
    def such(self) -> str:
        """A few unknown ids for a sentence, or an empty string."""
        return f", such as {_few(self.asked)}" if self.asked else ""

    @property
    def hint(self) -> str:
        """A hint about why ids are unknown: a different spelling, or examples from both sides."""
        if not self.asked or not self.known:
            return ""
        found = guess(self.asked, self.known)
        if found is None:
            return (
                f" Hint: are ids written the same way? Those of {self.side} are such as "
                f"{brief(self.asked[0])}, those of the source such as {brief(self.known[0])}."
            )
        return f" Hint: {found}. Write ids in the same way on both sides."


def _few(some: Sequence[Any]) -> str:
    return ", ".join(map(brief, some[:EXAMPLES]))


def find_unknown(source: Source, test: Interactions, kind: Kind) -> Unknown:
    """Return examples of users or items of test that the source does not know."""
    known, its = source.facts.known_ids(kind), ids_of(test, kind)
    if its is None:
        return Unknown([], [])
    return Unknown.of(its[missing(test, kind, known)], known)


def warn_of_unknown(
    source: Source,
    counts: Mapping[str, int],
    facts: BlockFacts,
    protocol: Protocol,
    find: FindUnknown,
) -> None:
    """Warn if more than a tenth of the users or relevant rows of test are unknown to the model.

    Users without training items may be unknown if the rule `cold_start` leaves them out.
    `find` returns examples; it is called only if there is a warning.
    """
    n_unknown, n_users, n_relevant = facts.n_unknown, facts.n_users, facts.n_relevant
    if n_unknown > MANY * n_users:
        found = find("user")
        left_out = protocol.no_list == "undefined" or protocol.users.startswith("known")
        effect = "are left out of the means" if left_out else "count as misses"
        warn(
            f"{n_unknown:,} of {n_users:,} users of test ({n_unknown / n_users:.0%}) "
            f"{source.facts.of_unknown} ({source.describe()}){found.such}, and {effect}."
            f"{found.hint}"
        )
    n_rows = counts.get("relevant_unranked", 0)
    if n_rows > MANY * n_relevant:
        found = find("item")
        effect = "left out of test" if protocol.unknown_items == "left_out" else "misses"
        warn(
            f"{n_rows:,} of {n_relevant:,} relevant rows of test ({n_rows / n_relevant:.0%}) have "
            f"items that are unknown to the model ({source.describe()}){found.such}, and are "
            f"{effect}.{found.hint}"
        )


def check_shifted(
    source: Source,
    test: Interactions | None,
    train: Interactions | None,
    protocol: Protocol,
    by_hand: Collection[str],
) -> None:
    """Refuse ids of a model that look like positions of the ids of test and train.

    Parameters
    ----------
    source, test, train, protocol
        `test` is None if the source contains the truth.
    by_hand
        The rules that the user set.

    Raises
    ------
    InputError
        If ids look like positions, unless the rule `shifted_ids` allows it.
    """
    data = [side for side in (test, train) if side is not None]
    said = [
        _shifted(source, kind, data, named)
        for kind in KINDS
        if (named := [its for side in data if (its := ids_of(side, kind)) is not None and len(its)])
    ]
    settle_shifted(said, protocol, by_hand)


def settle_shifted(said: Sequence[str], protocol: Protocol, by_hand: Collection[str]) -> None:
    """Raise for shifted ids, or warn if ``shifted_ids="kept"`` has no effect."""
    found = next(filter(None, said), "")
    if protocol.shifted_ids == "kept":
        if "shifted_ids" in by_hand and not found:
            warn(
                f"The rule {rule_text('shifted_ids', 'kept')} changes nothing here: no ids of the "
                "model look like positions."
            )
    elif found:
        raise InputError(found)


def _shifted(source: Source, kind: Kind, data: Sequence[Interactions], sides: list[Array]) -> str:
    """Return the message if ids of one side look like positions of the other, or "".

    `sides` are the ids in `data`, at least one array.
    """
    if any(side.dtype == object for side in sides):
        sides, known = _numbers_of_texts(source, kind, sides)
    else:
        known = None if _has(sides, 0) and not _positions(sides) else _from_zero(source, kind)
    if not sides or known is None:
        return ""
    ends = int(known.min()), int(known.max())
    if ends[1] - ends[0] + 1 != len(known):
        return ""
    if ends == (1, _positions(sides)):
        return _said_of_positions(source, kind, ends[1])
    if ends[0] != 0 or ends[1] == 0 or _has(sides, 0):  # a single id cannot be shifted
        return ""
    n_users: set[int] = set()
    if kind == "item":
        users = source.facts.known_ids("user")
        n_users = {one.n_users for one in data} | (set() if users is None else {len(users)})
    low, high = min(int(side[0]) for side in sides), max(int(side[-1]) for side in sides)
    return said_of_shifted(
        source, kind, len(known), (low, high), lambda number: _has(sides, number), n_users
    )


def _from_zero(source: Source, kind: Kind) -> Array | None:
    """Return the ids of a source if they are integers that begin at 0 or 1."""
    named = source.facts.arrays.get(f"{kind}_ids")
    if isinstance(named, np.ndarray) and (named.dtype == object or named.min(initial=2) > 1):
        return None  # `known_ids` returns some of these
    known = source.facts.known_ids(kind)
    numbers = known is not None and known.dtype.kind in "iu" and known.min(initial=2) in (0, 1)
    return known if numbers else None


def _has(sides: Sequence[Array], one: int | str) -> bool:
    """Return whether one of the sorted arrays has an id."""
    at = [int(np.searchsorted(side, one)) for side in sides]
    return any(i < len(side) and side[i] == one for i, side in zip(at, sides, strict=True))


def _positions(sides: Sequence[Array]) -> int:
    """Return n if the ids are 0 to n - 1 without gaps in one side, and n is large; otherwise 0."""
    n = max(int(side[-1]) for side in sides) + 1
    low = min(int(side[0]) for side in sides)
    dense = low == 0 and any(len(side) == n for side in sides)
    return n if dense and n >= BY_CHANCE else 0


def _numbers_of_texts(
    source: Source, kind: Kind, sides: Sequence[Array]
) -> tuple[list[Array], Array | None]:
    """Return the ids of all sides as numbers, if they are strings of whole numbers.

    Returns nothing unless all are plain whole numbers and "0" is on one side only.
    """
    if not all(ids.kind(side) == "str" and side[0][:1].isdecimal() for side in sides):
        return [], None
    known = source.facts.known_ids(kind)
    if known is None or not len(known) or ids.kind(known) != "str":
        return [], None
    if _has(sides, "0") == bool((known == "0").any()):
        return [], None
    numbers = [_whole_numbers(one) for one in (*sides, known)]
    found = [one for one in numbers if one is not None]
    return (found[:-1], found[-1]) if len(found) == len(numbers) else ([], None)


def _whole_numbers(texts: Array) -> Int64 | None:
    """Return sorted numbers, or None if a string is not a whole number as `str` writes it."""
    if not all(
        one.isdecimal() and one.isascii() and len(one) < 19 and (one[0] != "0" or one == "0")
        for one in texts
    ):
        return None
    return np.sort(np.fromiter(map(int, texts), np.int64, len(texts)))


def _said_of_positions(source: Source, kind: Kind, n: int) -> str:
    """Return the message for a model with ids 1 to n and data with 0 to n - 1."""
    return (
        f"The {kind}s of test and train are 0 to {n - 1:,}, but those of the source "
        f"({source.describe()}) are 1 to {n:,}: positions seem to stand for ids, so that each "
        f"{kind} would be taken for another. Hint: name the {kind}s of both sides by the same ids; "
        f"{rule_text('shifted_ids', 'kept')} says that the numbers are ids on both sides."
    )


def said_of_shifted(
    source: Source,
    kind: Kind,
    n: int,
    ends: tuple[int, int],
    has: Callable[[int], bool],
    n_users: set[int],
) -> str:
    """Return the message for a model with ids 0 to n - 1 that look like positions, if they do.

    Parameters
    ----------
    source, kind
    n
        The number of ids in the model, which are 0 to n - 1. Test and train have no 0.
    ends
        The lowest and the highest id of test and train together.
    has
        Whether test or train has an id.
    n_users
        For items, possible numbers of users: items of a graph are numbered after the users.
    """
    low, high = ends
    nodes = low in n_users and n <= high < low + n
    if not has(n) and not nodes:
        return ""
    found = (
        f"begin at {low:,}, which is the number of users, as nodes of a graph do"
        if nodes
        else f"have no {kind} 0, and have {kind} {n:,}"
    )
    offset = ", or item_offset=n_users for nodes of a graph" if nodes else ""
    by = python_or_command(f" ({kind}_ids=..., or ids[positions]{offset})", "")
    whose = "items of test and train" if nodes else "test and train"
    return (
        f"The {kind}s of the source ({source.describe()}) are 0 to {n - 1:,}, but {whose} {found}: "
        f"positions seem to stand for ids, so that each {kind} would be taken for another. Hint: "
        f"name the {kind}s by their ids, in the order of the positions{by}; "
        f"{rule_text('shifted_ids', 'kept')} says that the numbers are ids on both sides."
    )


def ids_of(data: Interactions, kind: Kind) -> Array | None:
    """Return the ids of the users or items of data."""
    return data.user_ids if kind == "user" else data.item_ids
