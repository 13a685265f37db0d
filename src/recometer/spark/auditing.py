"""audit on Spark: the checks of one machine on blocks of users, and checks of all rows together."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Bool, Int64
from recometer.auditing import sentences
from recometer.auditing.check import CHECKS
from recometer.auditing.findings import Finding
from recometer.auditing.result import Audit
from recometer.auditing.sentences import Sides
from recometer.data.columns import find_columns
from recometer.data.ids import as_ids
from recometer.data.interactions import Interactions as OneInteractions
from recometer.errors import DataWarning, InputError, InputTypeError
from recometer.protocol import Protocol, RelevantFrom
from recometer.spark import _frames
from recometer.spark._blocks import blocks
from recometer.spark._frames import Frame, IdKinds, Table, quoted
from recometer.spark._ids import parts_of
from recometer.spark._job import TEST, TRAIN
from recometer.spark.given import Interactions, with_columns
from recometer.spark.splitting import SparkSplit

EXAMPLES = 5
# Checks whose numbers are no sums over users; they are made of what Spark counts.
OF_ALL = ("unseen_items", "popularity_shift", "activity_shift")
DATES = ("timestamp", "timestamp_ntz", "date")


def audit(
    train: object,
    test: object = None,
    *,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    value: str | bool | None = None,
    time: str | bool | None = None,
    relevant_from: RelevantFrom = None,
    min_positives: int = 1,
    min_candidates: int = 2,
    partitions: int | None = None,
) -> Audit:
    """Look for leakage and other faults in a split into train and test; see `recometer.audit`.

    Parameters
    ----------
    train, test
        DataFrames, or `recometer.spark.Interactions`, which name their columns. Instead of both,
        you can pass a `SparkSplit` as `train`; its remainder counts as train.
    user, item, value, time
        Columns of both; by default those with common names. ``value=False`` and ``time=False`` say
        that there are none. With ``user=["user", "session"]`` every session counts as a user. A
        `SparkSplit` knows its columns.
    relevant_from, min_positives, min_candidates
        The rules of `evaluate` by which users are evaluated.
    partitions
        As in `recometer.spark.evaluate`.

    Returns
    -------
    recometer.auditing.Audit
        Has the same findings, with the same numbers, as `recometer.audit`. Times are compared as
        numbers, and dates as microseconds.

    Raises
    ------
    InputError
        If a side has no interactions.
    InputTypeError
        If an argument is not a DataFrame, or ids have different types.
    ColumnError
        If columns do not exist.
    """
    rules = Protocol(
        relevant_from=relevant_from, min_positives=min_positives, min_candidates=min_candidates
    )
    _frames.check_partitions(partitions)
    given: dict[str, Any] = {"user": user, "item": item, "value": value, "time": time}
    if test is None:
        train, test, given = _of_split(train, given)
    sides = _Both(_table(train, "train", given), _table(test, "test", given), rules, partitions)
    found = sides.findings()
    return Audit(
        findings=tuple(found), train=sides.described("train"), test=sides.described("test")
    )


def _of_split(split: object, given: dict[str, Any]) -> tuple[Frame, Frame, dict[str, Any]]:
    if not isinstance(split, SparkSplit):
        raise InputTypeError(
            f"An audit needs train and test, or a SparkSplit, found only {type(split).__name__}. "
            "Hint: rs.audit(train, test)."
        )
    option = next((option for option, name in given.items() if name is not None), None)
    if option is not None:
        raise InputError(f"{option}= was given, but a SparkSplit knows its columns. Hint: omit it.")
    train, columns = split.train, split.columns
    if split.remainder is not None:
        train = train.unionByName(split.remainder)
    named: dict[str, Any] = {"user": columns.user, "item": columns.item}
    given = {"value": columns.value or False, "time": columns.time or False}
    return Interactions(train, **named), Interactions(split.test, **named), given


def _table(data: object, what: str, given: dict[str, Any]) -> Table:
    of = with_columns(data, **{option: given.get(option) for option in ("user", "item")})
    frame = _frames.need_frame(of.frame, what)
    value = given["value"] if of.value is None else of.value
    columns = find_columns(
        frame.columns, user=of.user, item=of.item, value=value, time=given["time"]
    )
    named = dict(zip(("user", "session"), parts_of(columns.user), strict=False))
    return Table(what, frame, {**named, **dict(list(columns._asdict().items())[1:])})


@dataclasses.dataclass(frozen=True, eq=False)
class _SomeSides(Sides):
    """Train and test of some users, with the counts of their items over all users."""

    seen_items: Bool  # which items of test anybody has in train
    n_all_items: int

    @property
    def item_seen(self) -> Bool:
        """Which items of test have interactions in train."""
        return self.seen_items

    @property
    def candidates(self) -> Int64:
        """How many items of train and test together each user does not have in train."""
        return self.n_all_items - self.trained


@dataclasses.dataclass(frozen=True, eq=False)
class _Both:
    """Train and test on Spark."""

    train: Table
    test: Table
    rules: Protocol
    partitions: int | None

    @property
    def kinds(self) -> IdKinds:
        """The types as which users and items are read."""
        tables = (self.train, self.test)
        users = {table.what: _frames.kind_of(table, "user") for table in tables}
        items = {table.what: _frames.kind_of(table, "item") for table in tables}
        user, item = _frames.same_kind(users, "user"), _frames.same_kind(items, "item")
        if not self.test.has("session"):
            if self.train.has("session"):
                raise InputError(
                    "train has sessions of users, but test has none. Hint: "
                    "test=rs.Interactions(frame, user=['user', 'session']); or leave them out."
                )
            return IdKinds(user, item)
        known = {one.what: _frames.kind_of(one, "session") for one in tables if one.has("session")}
        return IdKinds(user, item, _frames.same_kind(known, "session"))

    def users(self, table: Table) -> list[str]:
        """Return the names of the columns that name a user of a side, in the form of all rows."""
        return ["u", "s"] if table.has("session") else ["u"]

    def described(self, side: str) -> str:
        """Return one line that describes a side."""
        table = self.train if side == "train" else self.test
        columns = ", ".join(filter(None, table.columns.values()))
        return f"DataFrame of Spark, columns {columns}"

    def findings(self) -> list[Finding]:
        """Return all findings, in their order."""
        kinds = self.kinds
        rows = [self._rows(self.train, TRAIN, kinds), self._rows(self.test, TEST, kinds)]
        pairs = _frames.together(rows).select(*self.users(self.test), "i", "t").distinct()
        items = self._counts(pairs, ["i"])
        users = self._counts(pairs, self.users(self.train))  # to whom sessions in test belong
        of_items, of_users = _histogram(items), _histogram(users)
        for name, side in (("train", 0), ("test", 1)):
            if not (of_items[side] * of_items[2]).sum():
                raise InputError(
                    f"{name} is empty: no interactions. Hint: check the split, and the column "
                    "of users."
                )
        found = self._of_users(rows, items, int(of_items[2].sum()))
        made = {
            "popularity_shift": sentences.of_items(*of_items),
            "activity_shift": sentences.of_users(*of_users),
            "unseen_items": self._unseen_items(items, of_items),
        }
        self._complete(found, rows, made)
        names = [check.__name__ for check in CHECKS]
        return [dataclasses.replace(made[name], name=name) for name in names]

    def _rows(self, table: Table, number: int, kinds: IdKinds) -> Frame:
        columns = {"i": table["item"]}
        if table.has("value"):
            columns["x"] = table["value"]
        if table.has("time"):
            columns |= {"y": _as_number(table), "y_type": self._type_of_times()}
        return _frames.rows(table, number, kinds, **columns)

    def _type_of_times(self) -> str:
        """Return a type that holds the times of both sides, and tells them apart as they do."""
        known = [
            _frames.type_of(table, "time").simpleString()
            for table in (self.train, self.test)
            if table.has("time")
        ]
        if "float" in known:
            return "float"
        return "bigint" if set(known) <= {*_frames.INTEGERS, *DATES} else "double"

    def _counts(self, pairs: Frame, by: list[str]) -> Frame:
        """Return how many pairs of train and of test each item or user has."""
        parts = [f"CAST(t = {number} AS bigint) AS n{number}" for number in (TRAIN, TEST)]
        summed = pairs.selectExpr(*by, *parts).groupBy(*by).sum(f"n{TRAIN}", f"n{TEST}")
        return summed.toDF(*by, "first", "second")

    def _unseen_items(self, items: Frame, counts: Sequence[Int64]) -> Finding:
        first, second, times = counts
        unseen = (first == 0) & (second > 0)
        rows = items.where("first = 0").orderBy("i").limit(EXAMPLES).select("i").collect()
        alike = ""
        if unseen.sum() and not ((first > 0) & (second > 0)).any():
            alike = sentences.compare_ids(*self._first_ids("item"))
        examples = tuple(row[0] for row in rows)
        total = int(times[second > 0].sum())
        return sentences.of_unseen_items(int(times[unseen].sum()), total, examples, alike)

    def _first_ids(self, option: str) -> list[Any]:
        """Return an id of test and one of train, each as an array."""
        found = []
        for table in (self.test, self.train):
            both = option == "user" and table.has("session")
            names = f"struct({table['user']}, {table['session']})" if both else table[option]
            first = table.frame.selectExpr(f"min({names})").collect()[0][0]
            found.append(as_ids([tuple(first) if both else first], f"{option} ids"))
        return found

    def _of_users(self, rows: list[Frame], items: Frame, n_items: int) -> list[dict[str, Any]]:
        """Return the findings of all blocks of users, as plain values."""
        test = rows[1].drop("p").join(items.selectExpr("i", "first AS p"), "i", "left")
        together = rows[0].unionByName(test.withColumn("p", test["p"].cast("double")))
        n = _frames.partitions_of(self.test.frame, self.partitions)
        ordered = _frames.partitioned(together, n)
        times, rules = self._times(rows), self.rules
        has = {
            one.what: (self.users(one), one.has("value"), one.has("time"))
            for one in (self.train, self.test)
        }

        def run(batches: Any) -> Iterator[Any]:
            import pyarrow as pa

            for table in blocks(batches):
                text = json.dumps(_checked(table, has, rules, times, n_items))
                yield pa.RecordBatch.from_arrays([pa.array([text])], ["found"])

        found = _frames.collected(ordered.mapInArrow(run, "found string"))
        return [one for row in found for one in json.loads(row[0])]

    def _times(self, rows: list[Frame]) -> tuple[Any, Any] | None:
        """Return the newest time of train and the oldest of test."""
        if not (self.train.has("time") and self.test.has("time")):
            return None
        ends = [one.selectExpr("min(y)", "max(y)").collect()[0] for one in rows]
        sentences.check_times((ends[0][0], ends[0][1]), (ends[1][0], ends[1][1]))
        by = [*self.users(self.test), "i"]
        oldest = rows[1].groupBy(*by).agg({"y": "max"}).selectExpr("min(`max(y)`)")
        return ends[0][1], oldest.collect()[0][0]

    def _complete(
        self, parts: list[dict[str, Any]], rows: list[Frame], made: dict[str, Finding]
    ) -> None:
        """Put the findings of blocks together, and say what depends on their numbers."""
        by_name: dict[str, list[dict[str, Any]]] = {}
        for one in parts:
            by_name.setdefault(one["name"], []).append(one)
        said: dict[str, Callable[[Finding], str]] = {
            "overlap": lambda one: sentences.on_overlap(one.statistics),
            "older_than_training": lambda one: sentences.on_newer(
                int(one.statistics["training_newer"]), self._n_train(rows)
            ),
            "unreachable": lambda one: sentences.on_unreachable(one.count or 0, one.total),
            "unseen_users": lambda one: sentences.on_unseen_users(
                sentences.compare_ids(*self._first_ids("user")) if one.count == one.total else ""
            ),
        }
        for name, own in by_name.items():
            finding = _joined(own)
            if name in said and finding.count:
                finding = dataclasses.replace(finding, sentence=said[name](finding))
            made[name] = finding

    def _n_train(self, rows: list[Frame]) -> int:
        return int(rows[0].select(*self.users(self.train), "i").distinct().count())


def _as_number(table: Table) -> str:
    """Return a column of times as a number: dates in microseconds."""
    kind, name = _frames.type_of(table, "time").simpleString(), table["time"]
    if kind in DATES:
        return f"unix_micros(CAST({name} AS timestamp))"
    if kind == "string":
        raise InputTypeError(
            f"Column {quoted(str(table.columns['time']))} of {table.what} holds times as texts. "
            "Hint: to_timestamp(...) makes times of them; time=False leaves them unchecked."
        )
    return name


def _histogram(counts: Frame) -> tuple[Int64, Int64, Int64]:
    """Return the pairs of counts that there are, and how often each is."""
    found = counts.groupBy("first", "second").count().collect()
    table = np.array([tuple(row) for row in found], np.int64).reshape(-1, 3)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    return table[:, 0], table[:, 1], table[:, 2]


def _checked(
    table: Any,
    has: dict[str, tuple[list[str], bool, bool]],
    rules: Protocol,
    times: tuple[Any, Any] | None,
    n_items: int,
) -> list[dict[str, Any]]:
    """Return what the checks find in a block of users, as plain values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        sides = _sides(table, has, rules, n_items)
    found = []
    for check in CHECKS:
        name = check.__name__
        if name in OF_ALL:
            continue
        if name == "older_than_training" and times is not None:
            one = sentences.older_than_training_among(sides, *times)
        else:
            one = check(sides)
        plain = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
        found.append({**plain, "name": name, "statistics": dict(one.statistics)})
    return found


def _sides(
    table: Any, has: dict[str, tuple[list[str], bool, bool]], rules: Protocol, n_items: int
) -> _SomeSides:
    """Return train and test of a block of users."""
    import pyarrow.compute as pc

    found = {}
    for name, number in (("train", TRAIN), ("test", TEST)):
        user, value, time = has[name]
        rows = table.filter(pc.equal(table["t"], number))
        columns = [*user, "i", *(["x"] if value else []), *(["y"] if time else [])]
        found[name] = OneInteractions.of(
            rows.select(columns),
            user=user if len(user) > 1 else "u",
            item="i",
            value="x" if value else False,
            time="y" if time else False,
        )
        if name == "test":
            known = rows.filter(pc.greater(rows["p"], 0))["i"].unique().to_pylist()
    sides = Sides.of_some_users(found["train"], found["test"], rules)
    ids = found["test"].item_ids
    there = set(known)
    seen = np.array([one in there for one in ids.tolist()] if ids is not None else [], bool)
    return _SomeSides(sides.train, sides.test, sides.users, sides.items, rules, seen, n_items)


def _joined(parts: list[dict[str, Any]]) -> Finding:
    """Put the findings of one check together."""
    counts = [one["count"] for one in parts]
    total = sum(one["total"] for one in parts)
    # A sentence, where anything was found, is one of those that found something.
    best = max(parts, key=lambda one: one["count"] or 0)
    examples = sorted(_tuples(one) for part in parts for one in part["examples"])
    statistics: dict[str, float] = {}
    for part in parts:
        for name, number in part["statistics"].items():
            statistics[name] = statistics.get(name, 0) + number
    return Finding(
        **{
            **best,
            "count": None if None in counts else sum(counts),
            "total": total,
            "examples": tuple(examples[:EXAMPLES]),
            "statistics": statistics,
        }
    )


def _tuples(example: Any) -> Any:
    """Return an id, or a tuple of ids that JSON made a list of."""
    return tuple(map(_tuples, example)) if isinstance(example, list) else example
