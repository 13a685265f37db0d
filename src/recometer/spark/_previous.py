"""Lists that another user's item fills, by the rule ``short_lists="previous_user"``.

The users before and after a user may be on other machines. Spark finds the last item of all, the
users for whom it is relevant, and who comes after each of them. Only the last item, and for each
range of users whether it is relevant for the last of them, reach the driver.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from recometer.evaluating.asked import counts_listed
from recometer.metrics.conventions import asked_of_source
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.spark import _frames
from recometer.spark._frames import Frame, IdKinds, Table
from recometer.spark._sources import Given

USERS_PER_RANGE = 2**20
MOST_RANGES = 1_000
LAST_ID = 2**63 - 1


def is_asked(metrics: list[Metric], protocol: Protocol, source: Given) -> bool:
    """Tell whether lists are filled by what the user before has."""
    of_ranks = [one for one in metrics if one.definition.record != "lists"]
    rule = asked_of_source(of_ranks, protocol).short_lists
    return rule == "previous_user" and source.kind in ("lists", "arrays")


@dataclasses.dataclass(frozen=True, eq=False)
class Previous:
    """Who comes before whom, and what the lists and test have.

    Attributes
    ----------
    test
        The table of test.
    listed
        The rows of lists, in the form of all rows.
    of_arrays
        Whether each of these is a whole list.
    kinds
        As what ids are read.
    protocol
        With what the source replaces.
    metrics
        Those that are asked for.
    """

    test: Table
    listed: Frame
    of_arrays: bool
    kinds: IdKinds
    protocol: Protocol
    metrics: list[Metric]

    def filled(self) -> Frame:
        """Return the users whose lists end with an item that counts as relevant: u, and s."""
        relevant = self._relevant()
        last = max(self._last_listed(), _largest(relevant, "i"), key=_order)
        if last is None:
            return relevant.select(*self._user)
        having = relevant.where(f"i = {_frames.literal(last)}").select(*self._user)
        if self.kinds.user == "bigint" and not self._has_sessions:  # a row of a matrix each
            return having.where(f"u < {LAST_ID}").selectExpr("u + 1 AS u")
        return self._after(having)

    @property
    def _has_sessions(self) -> bool:
        return self.test.has("session")

    @property
    def _named(self) -> list[str]:
        """What names users in test, as SQL texts."""
        return list(_frames.users_of(self.test, self.kinds).values())

    @property
    def _user(self) -> list[str]:
        return ["u", "s"] if self._has_sessions else ["u"]

    def _relevant(self) -> Frame:
        """Return the pairs of test that are relevant, each once: u, s and i."""
        table, rules = self.test, [rules_of(one, self.protocol) for one in self.metrics]
        item = f"CAST({table['item']} AS {self.kinds.item}) AS i"
        by, columns = [*self._user, "i"], [*self._named, item]
        least = self.protocol.relevant_from
        if not table.has("value"):
            every = table.frame.selectExpr(*columns).distinct()
            return every if least is None or least <= 1 else every.where("false")
        each = any(one.repeated_test != "once" for one in rules)
        rows = table.frame.selectExpr(*columns, f"CAST({table['value']} AS double) AS x")
        pairs = rows.groupBy(*by).agg({"x": "avg" if each else "sum"}).toDF(*by, "x")
        wanted = "x != 0" if least is None else f"x >= CAST('{float(least)!r}' AS double)"
        return pairs.where(wanted).select(*by)

    def _last_listed(self) -> Any:
        """Return the largest id of a listed item, None if there is none."""
        if not self.of_arrays:
            return _largest(self.listed, "i")
        of_structs = "struct" in self.listed.schema["f"].dataType.simpleString()
        items = "array_max(f.i)" if of_structs else "array_max(f)"
        return _largest(self.listed.selectExpr(f"{items} AS i"), "i")

    def _after(self, having: Frame) -> Frame:
        """Return the users who come after those given, in the order of the ids of all."""
        user = self._user
        every = self._users(having)
        n_users = max(int(every.count()), 1)
        n_ranges = min(-(-n_users // USERS_PER_RANGE), MOST_RANGES)
        limits = _frames.limits_of(every, "u", n_users, n_ranges)
        own = every.selectExpr("*", f"{_frames.place_among(limits, 'u')} AS g")
        last = own.selectExpr(
            "g", "h", f"row_number() OVER (PARTITION BY g ORDER BY {_descending(user)}) AS n"
        )
        ends = sorted((row["g"], row["h"]) for row in last.where("n = 1").collect())
        begins = [str(g) for (g, _), (_, before) in zip(ends[1:], ends, strict=False) if before]
        first = f"g IN ({', '.join(begins)})" if begins else "false"
        before = f"lag(h) OVER (PARTITION BY g ORDER BY {', '.join(user)})"
        found = own.selectExpr(*user, f"coalesce({before}, {first}) AS h")
        return found.where("h").select(*user)

    def _users(self, having: Frame) -> Frame:
        """Return all users who count, and whether they are among those given: u, s and h."""
        user = self._user
        every = [
            self.test.frame.selectExpr(*self._named, "false AS h"),
            having.selectExpr("*", "true AS h"),
        ]
        if counts_listed(self.metrics, self.protocol):
            listed = self.listed.where("size(f) > 0") if self.of_arrays else self.listed
            every.append(listed.selectExpr(*user, "false AS h"))
        return _frames.together(every).groupBy(*user).agg({"h": "max"}).toDF(*user, "h")


def _largest(frame: Frame, column: str) -> Any:
    return frame.agg({column: "max"}).collect()[0][0]


def _order(name: Any) -> Any:
    """Sort None first."""
    return (0,) if name is None else (1, name)


def _descending(names: list[str]) -> str:
    return ", ".join(f"{name} DESC" for name in names)
