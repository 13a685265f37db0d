"""Factors whose items are too many to travel: blocks of users beside blocks of items.

    test, item factors ──> scores of judged items ──┐
    users, train ───────────────────────────────────┼─> user block x item block ──> counts, added up
    item factors, in the order of their ids ────────┘

The judged items' scores come first; each block of items then says how many of its items lie above
them, and Spark adds the counts up. No step holds more than a block of users and a piece of items.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from recometer.spark import _frames
from recometer.spark._blocks import blocks
from recometer.spark._counting import EXCLUDED, ITEM, JUDGED, USER, Counting
from recometer.spark._frames import Frame, IdKinds, Table
from recometer.spark._job import SOURCE

MOST_BLOCKS = 1_000
DRAWN_PER_BLOCK = 50  # ids, of which the limits of blocks are taken
ROWS_OF_FACTORS = 2**15  # of users and judged items, with the factors of each


@dataclasses.dataclass(frozen=True, eq=False)
class Blocked:
    """What is counted in blocks.

    Attributes
    ----------
    users, items
        The factors.
    test, train
        What is judged, and what leaves the ranking. None excludes nothing.
    kinds
        As what ids are read.
    sessions
        Whether each session of a user has items of train of its own, and is counted as a user.
    how
        What runs on the executors.
    limits
        The lowest ids of all blocks of items but the first, ascending: in which block an item is
        follows from its id alone, however often Spark computes it.
    n_user_blocks
        Each block of users meets each block of items once.
    """

    users: Table
    items: Table
    test: Table
    train: Table | None
    kinds: IdKinds
    sessions: bool
    how: Counting
    limits: tuple[Any, ...]
    n_user_blocks: int

    def known(self) -> Frame:
        """Return the items that have factors."""
        return self._item_factors().selectExpr("i", "1 AS known").distinct()

    def counts(self) -> Frame:
        """Return, in the form of all rows, the counts of judged items, and a row per known user."""
        found = self._beside().groupBy("u", "i").agg({"x": "sum", "y": "sum", "p": "sum"})
        sums = ("i", "`sum(x)` AS x", "`sum(y)` AS y", "`sum(p)` AS p")
        user, session = _parts_of_key() if self.sessions else ("u", "NULL")
        named = found.selectExpr(f"{user} AS u", f"{session} AS session", *sums)
        table = Table("counts", named, {"user": "u", "session": "session"})
        return _frames.rows(table, SOURCE, self.kinds, i="i", x="x", y="y", p="p")

    def _item_factors(self) -> Frame:
        items = self.items
        bias = f"CAST({items['bias']} AS double)" if items.has("bias") else "CAST(NULL AS double)"
        return items.frame.selectExpr(
            f"CAST({items['item']} AS {self.kinds.item}) AS i",
            f"CAST({items['vector']} AS {self._array}) AS f",
            f"{bias} AS b",
        )

    def _user_factors(self) -> Frame:
        users = self.users
        bias = f"CAST({users['bias']} AS double)" if users.has("bias") else "CAST(NULL AS double)"
        rows = users.frame.selectExpr(
            f"CAST({users['user']} AS {self.kinds.user}) AS u",
            f"CAST({users['vector']} AS {self._array}) AS f",
            f"{bias} AS x",
        )
        if not self.sessions:
            return rows.join(self._pairs(self.test).select("u").distinct(), "u", "left_semi")
        of = f"CAST({self.test['user']} AS {self.kinds.user}) AS whose"
        named = self.test.frame.selectExpr(of, f"{self._user(self.test)} AS u").distinct()
        return rows.withColumnRenamed("u", "whose").join(named, "whose").select("u", "f", "x")

    def _pairs(self, table: Table) -> Frame:
        return table.frame.selectExpr(
            f"{self._user(table)} AS u", f"CAST({table['item']} AS {self.kinds.item}) AS i"
        ).distinct()

    def _user(self, table: Table) -> str:
        """Return what names a user, or a session of one as a text."""
        user = f"CAST({table['user']} AS {self.kinds.user})"
        if not self.sessions:
            return user
        text = f"CAST({user} AS string)"
        session = f"CAST({table['session']} AS {self.kinds.session})"
        return f"concat(CAST(char_length({text}) AS string), ':', {text}, {session})"

    @property
    def _array(self) -> str:
        return f"array<{'float' if self.how.dtype == 'float32' else 'double'}>"

    def _block(self) -> str:
        """Return the block of the item ``i``: how many limits are not above its id."""
        return f"{place_among(self.limits, 'i')} AS s"

    def _scores(self) -> Frame:
        """Return the scores of the judged items: u, i, x."""
        judged = self._pairs(self.test)
        if self.train is not None:
            judged = judged.join(self._pairs(self.train), ["u", "i"], "left_anti")
        rows = judged.join(self._item_factors(), "i").selectExpr(
            "u", f"CAST({JUDGED} AS tinyint) AS t", "i", "f", "b"
        )
        users = self._user_factors().selectExpr(
            "u",
            f"CAST({USER} AS tinyint) AS t",
            f"CAST(NULL AS {self.kinds.item}) AS i",
            "f",
            "CAST(NULL AS double) AS b",
        )
        together = rows.unionByName(users).repartition(self.n_user_blocks, "u")
        how = self.how

        def run(batches: Any) -> Any:
            return how.score(blocks(batches, ROWS_OF_FACTORS))

        return together.sortWithinPartitions("u", "t", "i").mapInArrow(run, how.schema())

    def _beside(self) -> Frame:
        """Put each block of users beside each block of items; return counts of each."""
        items, block = self._item_factors(), self._block()
        n_item_blocks = len(self.limits) + 1
        group = f"pmod(hash(u), {self.n_user_blocks}) AS g"
        every = f"explode(sequence(0, {n_item_blocks - 1})) AS s"
        parts = [
            _part(self._user_factors(), USER, self, g=group, s=every, u="u", f="f", x="x"),
            _part(self._scores(), JUDGED, self, g=group, s=every, u="u", i="i", x="x"),
        ]
        if self.train is not None:
            train = self._pairs(self.train)
            parts.append(_part(train, EXCLUDED, self, g=group, s=block, u="u", i="i"))
        groups = f"explode(sequence(0, {self.n_user_blocks - 1})) AS g"
        parts.append(_part(items, ITEM, self, g=groups, s=block, i="i", f="f", b="b"))
        n = self.n_user_blocks * n_item_blocks
        spread = _frames.together(parts).repartition(n, "g", "s")
        ordered = spread.sortWithinPartitions("g", "s", "t", "u", "i")
        how = self.how

        def run(batches: Any) -> Any:
            return how.count(batches)

        return ordered.mapInArrow(run, how.schema())


def _parts_of_key() -> tuple[str, str]:
    """Return the user and the session that a text names: the length of the user comes first."""
    length = "substring_index(u, ':', 1)"
    begin = f"char_length({length}) + 2"
    user = f"substring(u, {begin}, CAST({length} AS int))"
    return user, f"substring(u, {begin} + CAST({length} AS int))"


def _part(frame: Frame, number: int, of: Blocked, **columns: str) -> Frame:
    """Return rows of one kind with all columns; those that are not given are NULL, or empty."""
    types = {"u": of.how.user, "i": of.kinds.item, "x": "double", "f": of._array, "b": "double"}
    nothing = {name: f"CAST(NULL AS {kind}) AS {name}" for name, kind in types.items()}
    nothing["f"] = f"CAST(array() AS {of._array}) AS f"  # see `_frames.rows`
    chosen = {**nothing, **columns}
    return frame.selectExpr(f"CAST({number} AS tinyint) AS t", *chosen.values())


def literal(name: Any) -> str:
    """Return an id as SQL has it."""
    return str(name) if isinstance(name, int) else f"CAST(X'{name.encode().hex()}' AS string)"


def place_among(limits: Sequence[Any], column: str) -> str:
    """Return, as SQL, how many limits are not above the id in a column."""
    if not limits:
        return "0"
    values = ", ".join(map(literal, limits))
    return f"size(filter(array({values}), limit -> limit <= {column}))"


def limits_of(frame: Frame, column: str, n_ids: int, n_blocks: int) -> tuple[Any, ...]:
    """Return ids of a column that cut it into about this number of blocks of similar size."""
    share = DRAWN_PER_BLOCK * n_blocks / n_ids
    named = frame.select(column)
    drawn = named if share >= 1 else named.sample(share, seed=0)
    found = sorted({row[column] for row in drawn.collect() if row[column] is not None})
    step = max(1, -(-len(found) // n_blocks))
    return tuple(found[step::step])


def blocks_of(size: int, closure: int, n_items: int) -> int:
    """Return the number of blocks of items, each small enough for a closure."""
    return max(1, min(math.ceil(size / max(closure, 1)), n_items, MOST_BLOCKS))
