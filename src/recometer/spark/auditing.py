"""audit on Spark: the checks of one machine on blocks of users, and checks of all rows together."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from recometer.arrays import Bool, Int64
from recometer.auditing import sentences
from recometer.auditing.check import CHECKS
from recometer.auditing.findings import Finding
from recometer.auditing.result import Audit
from recometer.auditing.sentences import Sides
from recometer.data.columns import find_columns, single_names
from recometer.data.ids import as_ids
from recometer.data.interactions import Interactions as OneInteractions
from recometer.errors import DataWarning, InputError, InputTypeError
from recometer.protocol import Protocol, RelevantFrom
from recometer.spark.block import blocks, unnested
from recometer.spark.sources import Interactions, with_columns
from recometer.spark.splitting import SparkSplit
from recometer.spark.tables import (
    INTEGERS,
    Frame,
    Table,
    acted,
    check_partitions,
    gathered,
    kinds_of,
    need_frame,
)

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

    The findings and their numbers are those of `recometer.audit`. Times are compared as numbers,
    and dates as microseconds.

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

    Raises
    ------
    InputError, InputTypeError, ColumnError
        If a side has no interactions, is no DataFrame, lacks columns, or has ids of another type.
    """
    rules = Protocol(
        relevant_from=relevant_from, min_positives=min_positives, min_candidates=min_candidates
    )
    check_partitions(partitions)
    given: dict[str, Any] = {"user": user, "item": item, "value": value, "time": time}
    if test is None:
        train, test, given = _of_split(train, given)
    tables = {"train": _table(train, "train", given), "test": _table(test, "test", given)}
    described = [
        f"DataFrame of Spark, columns {', '.join(filter(None, one.columns.values()))}"
        for one in tables.values()
    ]
    found = _Both(tables, rules, partitions).findings()
    return Audit(findings=tuple(found), train=described[0], test=described[1])


def _of_split(split: object, given: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
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
    frame = need_frame(of.frame, what)
    value = given["value"] if of.value is None else of.value
    columns = find_columns(
        frame.columns, user=of.user, item=of.item, value=value, time=given["time"]
    )
    named = dict(zip(("user", "session"), single_names([columns.user]), strict=False))
    return Table(what, frame, {**columns._asdict(), **named})


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


class _Both:
    """Train and test on Spark."""

    def __init__(self, tables: Mapping[str, Table], rules: Protocol, n: int | None) -> None:
        self.tables, self.rules, self.partitions = tables, rules, n
        train, test = tables.values()
        if train.has("session") and not test.has("session"):
            raise InputError(
                "train has sessions of users, but test has none. Hint: "
                "test=rs.Interactions(frame, user=['user', 'session']); or leave them out."
            )
        items = {name: one.kind_of("item") for name, one in tables.items()}
        self.kinds = kinds_of([test, train] if test.has("session") else [train, test], items)
        known = [one.type_of("time").simpleString() for one in (train, test) if one.has("time")]
        self.of_times = "bigint" if {*known} <= {*INTEGERS, *DATES} else "double"
        if "float" in known:  # a type that tells times apart as both sides do
            self.of_times = "float"

    def users(self, name: str) -> list[str]:
        """Return the names of the columns that name a user of a side."""
        return ["u", "s"] if self.tables[name].has("session") else ["u"]

    def findings(self) -> list[Finding]:
        """Return all findings, in their order."""
        rows = {name: self._rows(one) for name, one in self.tables.items()}
        columns = self.users("test")
        each = [
            one.selectExpr(*(c if c in one.columns else f"NULL AS {c}" for c in columns), "i")
            .selectExpr("*", f"'{name}' AS t")
            for name, one in rows.items()
        ]  # fmt: skip
        pairs = each[0].unionByName(each[1]).distinct()
        items = _counts(pairs, ["i"])
        users = _counts(pairs, self.users("train"))  # to whom sessions in test belong
        of_items, of_users = _histogram(items), _histogram(users)
        for name, side in (("train", 0), ("test", 1)):
            if not (of_items[side] * of_items[2]).sum():
                raise InputError(
                    f"{name} is empty: no interactions. Hint: check the split, and the column "
                    "of users."
                )
        made = {
            "popularity_shift": sentences.of_items(*of_items),
            "activity_shift": sentences.of_users(*of_users),
            "unseen_items": self._unseen_items(items, of_items),
        }
        parts = self._of_users(rows, items, int(of_items[2].sum()))
        made |= self._put_together(parts, rows["train"])
        names = [check.__name__ for check in CHECKS]
        return [dataclasses.replace(made[name], name=name) for name in names]

    def _rows(self, table: Table) -> Frame:
        """Return the rows of a side: u, perhaps s, i, and x and y where it has values and times."""
        columns = [*table.users(self.kinds), f"CAST({table['item']} AS {self.kinds.item}) AS i"]
        if table.has("value"):
            columns.append(f"{table.number('value', 'values')} AS x")
        if table.has("time"):
            kind, time = table.type_of("time").simpleString(), table["time"]
            if kind == "string":
                raise InputTypeError(
                    f"Column {time} of {table.what} holds times as texts. Hint: to_timestamp(...) "
                    "makes times of them; time=False leaves them unchecked."
                )
            if kind in DATES:
                time = f"unix_micros(CAST({time} AS timestamp))"
            columns.append(f"CAST({time} AS {self.of_times}) AS y")
        return table.frame.selectExpr(*columns)

    def _unseen_items(self, items: Frame, counts: Sequence[Int64]) -> Finding:
        first, second, times = counts
        unseen = (first == 0) & (second > 0)
        few = items.where("first = 0").orderBy("i").limit(EXAMPLES).select("i")
        alike = ""
        if unseen.sum() and not ((first > 0) & (second > 0)).any():
            alike = sentences.compare_ids(*self._first_ids("item"))
        examples = tuple(row[0] for row in acted(few.collect))
        total = int(times[second > 0].sum())
        return sentences.of_unseen_items(int(times[unseen].sum()), total, examples, alike)

    def _first_ids(self, option: str) -> list[Any]:
        """Return an id of test and one of train, each as an array."""
        found = []
        for table in (self.tables["test"], self.tables["train"]):
            both = option == "user" and table.has("session")
            names = f"struct({table['user']}, {table['session']})" if both else table[option]
            first = acted(table.frame.selectExpr(f"min({names})").collect)[0][0]
            found.append(as_ids([tuple(first) if both else first], f"{option} ids"))
        return found

    def _of_users(
        self, rows: Mapping[str, Frame], items: Frame, n_items: int
    ) -> list[dict[str, Any]]:
        """Return the findings of all blocks of users, as plain values."""
        seen = items.selectExpr("i", "first > 0 AS p")
        cells = {}
        for name, one in rows.items():
            frame = one.join(seen, "i", "left") if name == "test" else one
            struct = ", ".join(f"'{column}', {column}" for column in frame.columns if column != "u")
            cells[name] = frame.selectExpr("u", f"named_struct({struct}) AS c")
        times, rules = self._times(rows), self.rules
        users = {name: self.users(name) for name in rows}

        def run(batches: Any) -> Iterator[Any]:
            import pyarrow as pa

            for table in blocks(batches):
                text = json.dumps(_checked(table, users, rules, times, n_items))
                yield pa.RecordBatch.from_arrays([pa.array([text])], ["found"])

        found = gathered(cells, self.partitions).mapInArrow(run, "found string")
        return [one for row in acted(found.collect) for one in json.loads(row[0])]

    def _times(self, rows: Mapping[str, Frame]) -> tuple[Any, Any] | None:
        """Return the newest time of train and the oldest of test."""
        if not all(one.has("time") for one in self.tables.values()):
            return None
        ends = {
            name: acted(one.selectExpr("min(y)", "max(y)").collect)[0] for name, one in rows.items()
        }
        sentences.check_times(*((one[0], one[1]) for one in ends.values()))
        newest = rows["test"].groupBy(*self.users("test"), "i").agg({"y": "max"})
        return ends["train"][1], acted(newest.selectExpr("min(`max(y)`)").collect)[0][0]

    def _put_together(self, parts: list[dict[str, Any]], train: Frame) -> dict[str, Finding]:
        """Put the findings of blocks together, and say what depends on their numbers."""
        by_name: dict[str, list[dict[str, Any]]] = {}
        for one in parts:
            by_name.setdefault(one["name"], []).append(one)
        said: dict[str, Callable[[Finding], str]] = {
            "overlap": lambda one: sentences.on_overlap(one.statistics),
            "older_than_training": lambda one: sentences.on_newer(
                int(one.statistics["training_newer"]),
                int(acted(train.select(*self.users("train"), "i").distinct().count)),
            ),
            "unreachable": lambda one: sentences.on_unreachable(one.count or 0, one.total),
            "unseen_users": lambda one: sentences.on_unseen_users(
                sentences.compare_ids(*self._first_ids("user")) if one.count == one.total else ""
            ),
        }
        made = {}
        for name, own in by_name.items():
            finding = _joined(own)
            if name in said and finding.count:
                finding = dataclasses.replace(finding, sentence=said[name](finding))
            made[name] = finding
        return made


def _counts(pairs: Frame, by: list[str]) -> Frame:
    """Return how many pairs of train and of test each item or user has."""
    parts = [f"CAST(t = '{name}' AS bigint) AS {name}" for name in ("train", "test")]
    summed = pairs.selectExpr(*by, *parts).groupBy(*by).sum("train", "test")
    return summed.toDF(*by, "first", "second")


def _histogram(counts: Frame) -> tuple[Int64, Int64, Int64]:
    """Return the pairs of counts that there are, and how often each is."""
    found = acted(counts.groupBy("first", "second").count().collect)
    table = np.array([tuple(row) for row in found], np.int64).reshape(-1, 3)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    return table[:, 0], table[:, 1], table[:, 2]


def _checked(
    block: Any, users: Mapping[str, list[str]], rules: Protocol, times: Any, n_items: int
) -> list[dict[str, Any]]:
    """Return what the checks find in a block of users, as plain values."""
    data, seen = {}, np.zeros(0, bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name, user in users.items():
            rows = unnested(block, name, name)
            columns: dict[str, Any] = {"user": user if len(user) > 1 else "u", "item": "i"}
            more = {"value": "x", "time": "y"}
            columns |= {k: c if c in rows.column_names else False for k, c in more.items()}
            read = [c for c in rows.column_names if c != "p"]
            data[name] = OneInteractions.of(rows.select(read), **columns)
            named = data[name].item_ids
            if name == "test" and named is not None:
                there = {*rows.filter(rows["p"])["i"].to_pylist()}
                seen = np.array([one in there for one in named.tolist()], bool)
        both = Sides.of_some_users(data["train"], data["test"], rules)
    sides = _SomeSides(both.train, both.test, both.users, both.items, rules, seen, n_items)
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


def _joined(parts: list[dict[str, Any]]) -> Finding:
    """Put the findings of one check together."""
    counts = [one["count"] for one in parts]
    # A sentence, where anything was found, is one of those that found something.
    best = max(parts, key=lambda one: one["count"] or 0)
    statistics: dict[str, float] = {}
    for name, number in (pair for part in parts for pair in part["statistics"].items()):
        statistics[name] = statistics.get(name, 0) + number
    whole = {
        "count": None if None in counts else sum(counts),
        "total": sum(one["total"] for one in parts),
        "examples": tuple(sorted(_tuples(one) for p in parts for one in p["examples"])[:EXAMPLES]),
        "statistics": statistics,
    }
    return Finding(**{**best, **whole})


def _tuples(example: Any) -> Any:
    """Return an id, or a tuple of ids that JSON made a list of."""
    return tuple(map(_tuples, example)) if isinstance(example, list) else example
