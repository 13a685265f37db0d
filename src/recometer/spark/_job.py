"""What runs where the users are: from Arrow batches to the values of users, and their sums.

A `Job` travels to the executors with the function that Spark calls there.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.data.combined import in_either
from recometer.data.interactions import Interactions
from recometer.data.sessions import split_pairs
from recometer.errors import DataWarning, InputError, RecometerError
from recometer.evaluating.asked import Asked, counts_listed
from recometer.evaluating.checks import KnownUsers
from recometer.evaluating.inputs import Inputs
from recometer.evaluating.making import measure
from recometer.evaluating.records import Records, find_records
from recometer.evaluating.truth import Truth, as_counted
from recometer.evaluating.unknown import KINDS, ids_of
from recometer.metrics.adding_up import Summed
from recometer.sources.base import Source
from recometer.sources.candidates import Candidates, Negatives
from recometer.spark import _across
from recometer.spark._blocks import blocks
from recometer.spark._columns import split
from recometer.spark._outputs import Output
from recometer.spark._packing import AT_ONCE
from recometer.spark._sums import Sums, metric_sums
from recometer.spark._whole import item_rows, over_users, summed

if TYPE_CHECKING:
    from collections.abc import Iterable

# The numbers of the tables among the rows of a user.
TEST, TRAIN, SOURCE, CANDIDATES, BASELINE, PLACES = range(6)
NUMBERS = {"test": TEST, "train": TRAIN, "candidates": CANDIDATES}
ASKED = ("metrics", "protocol", "exclude", "catalogue", "seed", "chance", "popularity")
OF_ALL = ("k", "i", "x", "h", "o")  # numbers of items, and of predictions
BESIDE = ("sums", "error")  # of a partition: its sums, or what was wrong there
USERS = ("n_relevant", "n_candidates", "n_excluded", "depth", "flags")


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """What is done with a block of users.

    Attributes
    ----------
    output, baseline
        The output of the model, and of another one that it is compared with, if there is one.
    options
        What is known of the columns: the types of ids (as `IdKinds`), the ``names`` of the tables
        for messages, the ``sessions``, and ``every`` metric: their rules say which users count.
    values
        Which of the tables of test, train and candidates have values.
    brings_truth
        Whether the truth is in the pairs.
    given
        Fields of `Asked` that are the same for all users (`ASKED`); ``candidates`` that travel;
        and ``settled``, the protocol with what the source replaces.
    """

    output: Output
    baseline: Output | None
    options: Mapping[str, Any]
    values: Mapping[str, bool]
    brings_truth: bool
    given: Mapping[str, Any]

    def run(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return the rows of all users of a partition, and a row with their sums."""
        found: list[Sums] = []
        try:
            for table in self.blocks(batches):
                done = self._block(table)
                if done is not None:
                    yield from done[0]
                    found.append(done[1])
                    if len(found) == AT_ONCE:
                        found = [Sums.together(found)]
        except RecometerError as error:
            # As a row: Spark would run the task again, and bury the message in its own.
            yield self._closing(error=f"{type(error).__name__}:{error}")
            return
        if found:
            yield self._closing(sums=Sums.together(found).to_bytes())

    def blocks(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Put batches together, and cut them where users end."""
        return blocks(batches, arrays="f" if self.output.kind == "arrays" else None)

    def measured(self, table: Any) -> tuple[Inputs, Records, Mapping[str, Any]] | None:
        """Measure the users of a block; None if there are none."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the whole may be otherwise
            given = self.inputs(table)
            if not given.truth.test.n_users:
                return None
            records = find_records(given)
            return given, records, measure(given, records)

    def _block(self, table: Any) -> tuple[list[Any], Sums] | None:
        found = self.measured(table)
        if found is None:
            return None
        given, records, measured = found
        batches, whole = [self._rows(given, measured, records)], {}
        if over_users(given.truth.metrics):
            data = measured["list_data"]
            whole = summed(given.truth.metrics, data, given.protocol)
            own = dict(zip("kix", item_rows(given.truth.metrics, data, whole), strict=True))
            batches.append(self._batch(len(own["k"]), own))
        counted = _across.rows_of(given.truth.metrics, measured.get("rated"))
        if counted is not None:
            batches.append(self._batch(len(counted["k"]), counted))
        return batches, self._sums(given, measured, records, whole)

    def inputs(self, table: Any) -> Inputs:
        """Return what the users of a block are evaluated with."""
        parts = split(table, BASELINE + 1)
        self._check_ids(parts)
        source = self.output.source(parts[SOURCE], self._user(SOURCE))
        train = None
        if "train" in self.values:
            train = self._interactions(parts[TRAIN], "train")
        own = source.test() if self.brings_truth else None
        test = own if own is not None else self._interactions(parts[TEST], "test")
        candidates = self.given["candidates"]
        if "candidates" in self.values:
            own_sets = self._interactions(parts[CANDIDATES], "candidates")
            negatives = isinstance(candidates, Negatives)
            candidates = in_either(own_sets, test) if negatives else own_sets
        asked = Asked(
            **{name: self.given[name] for name in ASKED},
            train=train,
            baseline=self._baseline(parts[BASELINE]),
            threads=1,
            progress=False,
            as_given={},
            some_users=True,
        )
        every = self.options["every"]
        counted = as_counted(test, every, asked.protocol)
        if counts_listed(every, asked.protocol) and (listed := source.listed_users()) is not None:
            counted = counted.with_users(listed)
        chosen = candidates if isinstance(candidates, Candidates) else None
        truth = Truth(asked, test, counted, chosen, asked.metrics)
        return Inputs(source, truth, self.given["settled"], self.brings_truth)

    def _check_ids(self, parts: list[Any]) -> None:
        """Refuse rows without a user or an item."""
        listed, other = (
            "ui" if one is not None and one.names_items else "u"
            for one in (self.output, self.baseline)
        )
        called = {"u": "user", "i": "item", "s": "session"}
        columns_of = {TEST: "ui", TRAIN: "ui", SOURCE: listed, CANDIDATES: "ui", BASELINE: other}
        for number, columns in columns_of.items():
            for name in columns + ("s" if number in self.sessions else ""):
                if parts[number][name].null_count:
                    what, which = self.options["names"][number], called[name]
                    raise InputError(
                        f"{what} has rows in which the {which} is missing. Hint: drop them: "
                        "frame.dropna()."
                    )

    def _interactions(self, table: Any, what: str) -> Interactions:
        value, user = "x" if self.values[what] else False, self._user(NUMBERS[what])
        columns = table.select([*user, *(["i", "x"] if value else ["i"])])
        named = user if len(user) > 1 else user[0]
        return Interactions.of(columns, user=named, item="i", value=value, time=False)

    def _baseline(self, table: Any) -> Source | None:
        """Return the other model's output, whose arrays have a column of their own."""
        if self.baseline is None:
            return None
        own = table.drop_columns(["f"]).rename_columns({"b": "f"})
        return self.baseline.source(own, self._user(BASELINE))

    @property
    def sessions(self) -> frozenset[int]:
        """The numbers of the tables that have sessions of users."""
        found: frozenset[int] = self.options["sessions"]
        return found

    def _user(self, number: int) -> list[str]:
        """Return the columns that name a user in one of the tables."""
        return ["u", "s"] if number in self.sessions else ["u"]

    def _rows(self, given: Inputs, measured: Mapping[str, Any], records: Any) -> Any:
        """Return a row per user: values, reasons, and what else is known."""
        found: dict[str, Any] = {"u": given.truth.test.user_ids}
        if TEST in self.sessions:
            found |= dict(zip("us", split_pairs(found["u"]), strict=True))
        for number, metric in enumerate(given.truth.metrics):
            name = str(metric)
            found[f"m{number}"] = measured["values"].get(name)
            found[f"r{number}"] = measured["reasons"][name].astype(np.int8)
            found[f"c{number}"] = measured.get("chance", {}).get(name)
        found |= {name: getattr(records.users, name).astype(np.int64) for name in USERS}
        return self._batch(given.truth.test.n_users, found)

    def _closing(self, sums: bytes | None = None, error: str | None = None) -> Any:
        """Return the row of a partition, beside those of its users."""
        return self._batch(1, {"sums": [sums], "error": [error]})

    def of_metrics(self, names: Sequence[str]) -> Job:
        """Return the same job for some of the metrics alone, and without chance."""
        every = self.given["metrics"]
        metrics = tuple(metric for metric in every if str(metric) in names)
        return dataclasses.replace(self, given={**self.given, "metrics": metrics, "chance": False})

    def _batch(self, n_rows: int, given: Mapping[str, Any]) -> Any:
        """Return rows with some columns, the others being missing."""
        import pyarrow as pa

        names, ids_as = self._names(), {"bigint": pa.int64(), "string": pa.string()}
        types = {"u": ids_as[self.options["user"]], "i": ids_as[self.options["item"]]}
        types["s"] = ids_as.get(self.options["session"], pa.int64())
        types |= {"sums": pa.binary(), "error": pa.string(), "k": pa.int32()}
        types |= dict.fromkeys("ho", pa.int64())
        types |= {name: pa.int8() for name in names if name.startswith("r")}
        types |= dict.fromkeys(USERS, pa.int64())
        columns = []
        for name in names:
            kind = types.get(name, pa.float64())
            own = given.get(name)
            columns.append(pa.nulls(n_rows, kind) if own is None else pa.array(own, kind))
        return pa.RecordBatch.from_arrays(columns, names)

    def _names(self) -> list[str]:
        letters = "mrc" if self.given["chance"] else "mr"
        each = [f"{letter}{n}" for n in range(len(self.given["metrics"])) for letter in letters]
        user = ["u", "s"] if TEST in self.sessions else ["u"]
        return [*user, *each, *USERS, *BESIDE, *self._of_all()]

    def _of_all(self) -> list[str]:
        """Return the columns of numbers of items, and of predictions, where metrics need them."""
        metrics = self.given["metrics"]
        of_items = ("k", "i", "x") if over_users(metrics) else ()
        of_pairs = _across.COLUMNS if _across.about_pairs(metrics) else ()
        return list(dict.fromkeys((*of_items, *of_pairs)))

    def schema(self) -> str:
        """Return the schema of the rows, as Spark reads it."""
        types = {"u": self.options["user"], "s": self.options["session"]}
        types |= {"sums": "binary", "error": "string"}
        types |= {"k": "int", "i": self.options["item"], "x": "double"}
        types |= dict.fromkeys((*USERS, "h", "o"), "bigint")
        first = {"m": "double", "c": "double", "r": "tinyint"}
        return ", ".join(f"{name} {types.get(name) or first[name[0]]}" for name in self._names())

    def _sums(
        self,
        given: Inputs,
        measured: Mapping[str, Any],
        records: Any,
        whole: Mapping[str, Summed],
    ) -> Sums:
        users = records.users._asdict()
        known = KnownUsers.of(users["flags"], users["n_relevant"], [])
        facts = {"known": known.n_known, "judged": known.n_judged, "unusable": known.n_unusable}
        facts["relevant"] = int(users["n_relevant"].sum())
        largest: dict[str, float] = {}
        if "rated" in measured:
            facts["rated"] = measured["rated"].size
        if records.ranks is not None:
            facts["early"] = int(np.count_nonzero(records.ranks.ends_early))
            largest["depth"] = float(records.ranks.depth.max(initial=0))
            largest["n_candidates"] = float(records.ranks.n_candidates.max(initial=0))
            facts["any_cutoff"] = int(records.ranks.any_cutoff)
        if records.lists is not None:
            largest["listed"] = float(records.lists.lengths.max(initial=0))
            if records.baseline is not None:
                facts["compared"] = int(np.count_nonzero(records.baseline.known))
            largest["places"] = float(records.lists.depth)
            if records.lists.n_catalogue is not None:
                largest["catalogue"] = float(records.lists.n_catalogue)
                largest["less_catalogue"] = -largest["catalogue"]
        gains = given.truth.test.values
        if gains is not None and len(gains):
            facts["negative"] = int(given.truth.negative_gains)
            facts["not_binary"] = int(np.count_nonzero((gains != 0) & (gains != 1)))
            largest |= {"gain": float(gains.max()), "less": float(-gains.min())}
        sides = [side for side in (given.truth.given, given.asked.train) if side is not None]
        for kind in KINDS:
            each = [ids_of(side, kind) for side in sides[self.brings_truth :]]
            if any(named is not None and 0 in named for named in each):
                facts[f"zero {kind}"] = 1
        named = given.truth.test.user_ids
        if TEST in self.sessions and named is not None:
            facts["people"] = len(np.unique(split_pairs(named)[0]))
        metrics = {
            str(metric): metric_sums(
                metric,
                given.asked.protocol,
                measured["values"].get(str(metric)),
                measured["reasons"][str(metric)],
                measured.get("chance", {}).get(str(metric)),
                users,
                measured.get("rated"),
                whole[str(metric)].totals if str(metric) in whole else np.zeros(0),
            )
            for metric in given.truth.metrics
        }
        return Sums(
            given.truth.test.n_users,
            len(given.truth.test),
            facts,
            {**records.counts, **given.truth.settled},
            largest,
            [] if named is None else named[:3].tolist(),
            metrics,
        )
