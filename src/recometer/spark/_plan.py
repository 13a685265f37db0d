"""What is evaluated on Spark, read from the arguments: what is refused, and what runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from recometer import errors
from recometer.arrays import Array
from recometer.data.catalogue import Catalogue
from recometer.errors import InputError, warn
from recometer.evaluating.asked import counts_listed
from recometer.evaluating.checks import (
    check_known,
    check_not_empty,
    check_overlaps,
    no_list,
    warn_below_relevant,
    warn_beyond_lists,
    warn_beyond_rows,
)
from recometer.evaluating.truth import is_uniform, rows_stay, warn_of_zeros, warning_of
from recometer.evaluating.unknown import say_unknown
from recometer.measuring import corrections
from recometer.measuring.reasons import Reason
from recometer.measuring.settling import COUNT_EACH
from recometer.measuring.side_data import (
    Popularity,
    check_side_data,
    needed_by,
    warn_of_propensity,
)
from recometer.metrics.largest_gain import left_to_test, with_largest_gain
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.sources.candidates import (
    Items,
    Negatives,
    SampledCandidates,
    check_sets,
    read_items,
)
from recometer.spark import _frames, _rows, _whole
from recometer.spark import given as given_module
from recometer.spark._columns import ids
from recometer.spark._frames import Frame, IdKinds, Table, users_of
from recometer.spark._job import BASELINE, NUMBERS, SOURCE, TEST, Job
from recometer.spark._outputs import Output
from recometer.spark._sources import Given, check_travels, every_item, item_sizes
from recometer.spark._sources import read_items as read_item_factors
from recometer.spark._sums import Sums
from recometer.spark._unknown import check_shifted, find_unknown


def n_offered(
    source: Given,
    tables: Mapping[str, Table],
    candidates: object,
    exclude: Items | None,
    kinds: IdKinds,
    *,
    listed: bool,
) -> int | None:
    """Count the items that could have been recommended to any user of test.

    If each user has a set of candidates, these are the items in the sets; otherwise, for pairs, the
    items in these. As on one machine, items that the source does not know do not count.

    Parameters
    ----------
    source, tables, exclude
        As in a `Plan`.
    candidates
        What was given, or a list of `Items` for all users.
    kinds
        As what ids are read.
    listed
        Whether users with a list count, whom test need not have.

    Returns
    -------
    int, or None if every block of users knows the number
    """
    own_sets = "candidates" in tables
    if not own_sets and source.kind != "pairs":
        return None
    known = _items(source, kinds)
    found: Frame = known
    if own_sets:
        test = tables.get("test", source.table)
        users = [test, source.table] if listed and known is None else [test]
        found = _in_sets(tables["candidates"], users, kinds)
        if isinstance(candidates, Negatives):
            found = found.union(_pairs_of(test, kinds).select("i")).distinct()
        if known is not None:
            found = found.join(known, "i", "left_semi")
    elif isinstance(candidates, Items):
        found = known.join(_given(known, candidates.ids, kinds), "i", "left_semi")
    if exclude is not None:
        found = found.join(_given(found, exclude.ids, kinds), "i", "left_anti")
    return int(found.count())


def _items(source: Given, kinds: IdKinds) -> Frame:
    """Return the items that a source knows, each once; None for lists, which may have any."""
    table = source.items if source.items is not None else source.table
    if source.items is None and source.kind != "pairs":
        return None
    return table.frame.selectExpr(f"CAST({table['item']} AS {kinds.item}) AS i").distinct()


def _in_sets(sets: Table, users: Sequence[Table], kinds: IdKinds) -> Frame:
    """Return the items in the sets of the users of some tables."""
    by = ["u", "s"] if all(one.has("session") for one in (sets, *users)) else ["u"]
    each = [one.frame.selectExpr(*users_of(one, kinds).values()).select(*by) for one in users]
    found = _pairs_of(sets, kinds).join(_frames.together(each).distinct(), by, "left_semi")
    return found.select("i").distinct()


def _pairs_of(table: Table, kinds: IdKinds) -> Frame:
    item = f"CAST({table['item']} AS {kinds.item}) AS i"
    return table.frame.selectExpr(*users_of(table, kinds).values(), item)


def _given(frame: Frame, ids: Array, kinds: IdKinds) -> Frame:
    """Return ids that are on this machine as a DataFrame."""
    rows = [(one,) for one in ids.tolist()]
    return frame.sparkSession.createDataFrame(rows, f"i {kinds.item}")


def tables_of(found: Given, test: object, train: object, candidates: object) -> dict[str, Table]:
    """Return the tables of test, train and candidates that there are."""
    tables = {}
    if test is not None:
        tables["test"] = given_module.read(test, "test")
    elif found.options.get("truth") is None:
        raise InputError(
            f"There is no test, and the source ({found.like.describe()}) has no truth of its own. "
            "Hint: evaluate(source, test)."
        )
    if test is not None and found.options.get("truth") is not None:
        raise InputError(
            f"test was given, but the source ({found.like.describe()}) brings the truth itself. "
            "Hint: leave test out, or give Pairs relevance=False, rating=False."
        )
    if train is not None:
        tables["train"] = given_module.read(train, "train")
    sets = candidates.items if isinstance(candidates, Negatives) else candidates
    if isinstance(sets, given_module.Interactions) or _frames.is_frame(sets):
        tables["candidates"] = given_module.read(sets, "candidates")
    elif isinstance(candidates, Negatives):
        raise errors.InputTypeError("Negatives on Spark take a DataFrame with a set for each user.")
    return tables


@dataclasses.dataclass(frozen=True, eq=False)
class Plan:
    """What is evaluated, read from the arguments."""

    source: Given
    tables: Mapping[str, Table]
    protocol: Protocol
    stated: Protocol
    metrics: list[Metric]
    catalogue: Catalogue | None
    candidates: object
    exclude: Items | None
    closure: int
    baseline: Given | None = None

    @property
    def outputs(self) -> dict[str, Given]:
        """The source, and the baseline where a metric reads it."""
        found = {"source": self.source}
        if self.baseline is not None and "baseline" in needed_by(self.metrics):
            found["baseline"] = self.baseline
        return found

    @property
    def of_users(self) -> Table:
        """The table that says who is evaluated."""
        return self.tables.get("test", self.source.table)

    @property
    def chosen(self) -> object:
        """What candidates travel with the job."""
        given = self.candidates
        if given is None or isinstance(given, SampledCandidates):
            return given
        if "candidates" in self.tables:
            return given if isinstance(given, Negatives) else None
        return read_items(given, "candidates")

    def check(self) -> None:
        """Refuse arguments that Spark does not support."""
        uniform = True if "candidates" in self.tables else is_uniform(self.chosen)  # type: ignore[arg-type]
        corrections.check(self.metrics, self.protocol, uniform)
        check_side_data(
            needed_by(self.metrics),
            train=self.tables.get("train"),
            baseline=self.baseline,
            catalogue=self.catalogue,
        )
        warn_of_propensity(self.metrics, self.catalogue)
        for metric in self.metrics:
            _rows.check(metric)
            _whole.check(metric)

    def kinds(self) -> IdKinds:
        """Return as what users and items are read, alike in all tables."""
        users = {name: _frames.kind_of(table, "user") for name, table in self.tables.items()}
        items = {name: _frames.kind_of(table, "item") for name, table in self.tables.items()}
        for name, one in self.outputs.items():
            prefix = "" if name == "source" else f"{name}: "
            users |= {f"{prefix}{what}": kind for what, kind in one.id_kinds("user").items()}
            items |= {f"{prefix}{what}": kind for what, kind in one.id_kinds("item").items()}
        sessions = {
            table.what: _frames.kind_of(table, "session")
            for table in (*self.tables.values(), *(one.table for one in self.outputs.values()))
            if table.has("session")
        }
        return IdKinds(
            _frames.same_kind(users, "user"),
            _frames.same_kind(items, "item"),
            _frames.same_kind(sessions, "session") if sessions else None,
        )

    def n_offered(self) -> int | None:
        """Return how many items could have been recommended; None if blocks of users know it."""
        if "catalogue" not in needed_by(_whole.over_users(self.metrics)):
            return None
        given = self.chosen if isinstance(self.chosen, Items) else self.candidates
        how = self.source, self.tables, given, self.exclude, self.kinds()
        return n_offered(*how, listed=counts_listed(self.metrics, self.protocol))

    def job(self, seed: int, chance: bool) -> Job:
        """Return what runs on the executors."""
        kinds, found = self.kinds(), self.source
        options = {**kinds._asdict(), "sessions": self._with_sessions()}
        options["names"] = ("test", "train", found.table.what, "candidates", "baseline")
        options["every"] = tuple(self.metrics)
        outputs = {name: self._output(one, kinds) for name, one in self.outputs.items()}
        truth = found.options.get("truth")
        metrics = with_largest_gain(self.metrics, self._largest_gain(kinds))
        given = {
            "metrics": tuple(metrics),
            "protocol": self.stated,
            "settled": self.protocol,
            "seed": seed,
            "chance": chance,
            "exclude": self.exclude,
            "catalogue": self.catalogue,
            "candidates": self.chosen,
            "popularity": self._popularity(kinds),
        }
        values = {name: table.has("value") for name, table in self.tables.items()}
        other = outputs.get("baseline")
        return Job(outputs["source"], other, options, values, truth is not None, given)

    def _output(self, found: Given, kinds: IdKinds) -> Output:
        """Return what is made of a source where the users are."""
        if self._draws_items(found):
            # The items of pairs are those of test, too.
            others = [] if found.kind == "pairs" else [*self.tables.values()]
            every = every_item(found, others, kinds, self.closure)
            return Output(found.kind, {**found.options, "every_item": every}, None)
        if found.items is None:
            return Output(found.kind, found.options, None)
        sizes = item_sizes(found.items)
        if sizes.n_bytes <= self.closure:
            items = read_item_factors(found.items, kinds.item, found.options["array"])
            return Output(found.kind, found.options, items)
        where = "" if found is self.source else " in baseline="
        raise InputError(
            f"The factors of {sizes.n_items:,} items{where} take {sizes.n_bytes / 1e6:,.1f} MB, "
            f"more than closure={self.closure / 1e6:,.1f} MB. Hint: a larger closure=, such as "
            "'1GB', if each task has the memory for a copy; or rs.Lists of what the model "
            "recommends."
        )

    def _with_sessions(self) -> frozenset[int]:
        """Return the numbers of the tables that have sessions of users.

        Raises
        ------
        InputError
            If there are some, but test has none.
        """
        tables = {NUMBERS[name]: table for name, table in self.tables.items()}
        tables[SOURCE] = self.source.table
        if "baseline" in self.outputs:
            tables[BASELINE] = self.outputs["baseline"].table
        found = frozenset(number for number, table in tables.items() if table.has("session"))
        if TEST not in tables and SOURCE in found:
            found |= {TEST}
        if found and TEST not in found:
            raise InputError(
                f"{tables[min(found)].what} has sessions of users, but test has none. Hint: "
                "test=rs.Interactions(frame, user=['user', 'session']); or leave them out."
            )
        return found

    def _given(self, name: str, kinds: IdKinds) -> Frame:
        """Return the rows of test, train or candidates in one form."""
        table = self.tables[name]
        columns = {"i": table["item"], "f_type": self.source.array_type(kinds)}
        if table.has("value"):
            columns["x"] = table["value"]
        return _frames.rows(table, NUMBERS[name], kinds, **columns)

    def rows(self, kinds: IdKinds) -> list[Frame]:
        """Return the rows of all tables in one form."""
        found = [self.source.rows(kinds, SOURCE)]
        array = self.source.array_type(kinds)
        found += [self._given(name, kinds) for name in NUMBERS if name in self.tables]
        other = self.outputs.get("baseline")
        return found if other is None else _with_baseline(found, other, kinds, array)

    def _largest_gain(self, kinds: IdKinds) -> float:
        """Return the largest value of test where a metric is about it; 1 otherwise."""
        if not any(map(left_to_test, self.metrics)):
            return 1.0
        table, value = self.of_users, "value"
        if "test" not in self.tables:
            value = str(self.source.options["truth"])
        if not table.has(value):
            return 1.0
        each = any(rules_of(one, self.protocol).repeated_test in COUNT_EACH for one in self.metrics)
        stays = "test" not in self.tables and rows_stay(self.metrics, self.protocol)
        how = "avg" if each else "sum"
        if stays or self.protocol.repeated_test == "largest":
            how = "max"
        user = users_of(table, kinds)
        rows = table.frame.selectExpr(
            *user.values(), f"{table['item']} AS i", f"CAST({table[value]} AS double) AS x"
        )
        per_pair = rows.where("x IS NOT NULL").groupBy(*user, "i").agg({"x": how})
        finite = per_pair.toDF(*user, "i", "x").where("abs(x) < double('infinity')")
        largest = finite.agg({"x": "max"}).collect()[0][0]
        return float(largest or 0.0) if largest and largest > 0 else 1.0

    def _popularity(self, kinds: IdKinds) -> Popularity | None:
        """Return how many users of train have each item, where it is read."""
        drawn = isinstance(self.candidates, SampledCandidates) and self.candidates.by != "uniform"
        reads = drawn or "train" in needed_by(self.metrics)
        if not reads or "train" not in self.tables:
            return None
        table = self.tables["train"]
        user = users_of(table, kinds)
        rows = table.frame.selectExpr(
            *user.values(), f"CAST({table['item']} AS {kinds.item}) AS i"
        ).distinct()
        found = rows.groupBy("i").count()
        check_travels(found, "The popularity of", self.closure)
        counted = found.toArrow()
        named = ids(counted["i"])
        order = np.argsort(named, kind="stable")
        users = counted["count"].to_numpy()[order]
        n_users = rows.select(*user).distinct().count()
        return Popularity(named[order], users, int(n_users), int(users.sum()))

    def _draws_items(self, found: Given) -> bool:
        """Tell whether something is drawn that depends on which items there are.

        These are the places of tied items that test does not judge; and candidates of pairs, since
        those of lists are drawn from the catalogue. Factors name all items.
        """
        if found.items is not None:
            return False
        listed = any(one.definition.record == "lists" for one in self.metrics)
        drawn = found.kind == "pairs" and isinstance(self.candidates, SampledCandidates)
        return drawn or (listed and self.protocol.ties == "random")

    def check_sums(self, sums: Sums) -> None:
        """Refuse and warn of faults that the sums reveal, as on one machine."""
        like, facts, largest = self.source.like, sums.facts, sums.largest
        check_not_empty(sums.n_users, sums.n_rows)
        kinds = self.kinds()
        check_shifted(self.source, self.tables, kinds, self.stated, facts)
        check_known(sums.known_users(), like, self.stated)
        find = find_unknown(self.source, self.of_users, kinds)
        totals = sums.n_users, facts["relevant"]
        say_unknown(like, sums.counts, *totals, self.protocol, find)
        of_ranks = [one for one in self.metrics if one.definition.record != "lists"]
        of_lists = [one for one in self.metrics if one.definition.record == "lists"]
        if self.candidates is not None:
            check_sets(sums.counts.get("users_without_candidates", 0), facts["known"])
        warn_of_zeros(sums.counts.get("train_zeros", 0), self.protocol)
        check_overlaps(sums.counts, facts["relevant"], sums.n_rows, self.candidates)
        if facts.get("early"):
            warn_beyond_lists(int(largest["depth"]), of_ranks)
        warn_below_relevant(sums.counts.get("users_below_relevant", 0), sums.n_users)
        if facts.get("any_cutoff"):
            warn_beyond_rows(int(largest["n_candidates"]), like, of_ranks)
        if facts.get("compared") == 0 and "baseline" in self.outputs:
            raise no_list(self.outputs["baseline"].like.describe())
        if of_lists:
            warn_beyond_lists(int(largest["listed"]), of_lists)
        _check_defined(sums)

    def counts(self, sums: Sums) -> dict[str, int]:
        """Return what the rules settled; what is not a sum over users is counted here."""
        found = dict(sums.counts)
        if found.get("items_unknown"):
            found["items_unknown"] = self._unknown_items()
        return found

    def _unknown_items(self) -> int:
        """Count the items of test that the source does not know."""
        kinds, table = self.kinds(), self.of_users
        known = self.source.items if self.source.items is not None else self.source.table

        def pairs(of: Table) -> Frame:
            item = f"CAST({of['item']} AS {kinds.item}) AS i"
            return of.frame.selectExpr(*users_of(of, kinds).values(), item)

        rows, train = pairs(table), self.tables.get("train")
        if train is not None and self.source.like.removes_train(self.protocol):
            rows = rows.join(pairs(train), [*users_of(train, kinds), "i"], "left_anti")
        there = known.frame.selectExpr(f"CAST({known['item']} AS {kinds.item}) AS i")
        return int(rows.select("i").distinct().join(there, "i", "left_anti").count())

    def described(self, sums: Sums) -> dict[str, dict[str, Any]]:
        """Return a description of each argument."""
        found: dict[str, dict[str, Any]] = {"source": {"description": self.source.like.describe()}}
        rows = f"{sums.n_users:,} users, {sums.n_rows:,} interactions"
        found["test"] = {"description": f"DataFrame of Spark, {rows}"}
        for name in ("train", "candidates"):
            if name in self.tables:
                columns = filter(None, self.tables[name].columns.values())
                found[name] = {"description": f"DataFrame of Spark, columns {', '.join(columns)}"}
        if self.chosen is not None and "candidates" not in found:
            found["candidates"] = {"description": repr(self.chosen)}
        if "candidates" in self.tables or isinstance(self.candidates, SampledCandidates):
            of_sets = self.candidates if isinstance(self.candidates, SampledCandidates) else None
            found["candidates"]["warning"] = warning_of(of_sets, self.protocol)
        if self.baseline is not None:
            found["baseline"] = {"description": self.baseline.like.describe()}
        if self.exclude is not None:
            found["exclude"] = {"description": repr(self.exclude)}
        if self.catalogue is not None:
            found["catalogue"] = {"description": self.catalogue.describe()}
        return found


def _with_baseline(
    rows: Sequence[Frame], baseline: Given, kinds: IdKinds, array: str
) -> list[Frame]:
    """Return all rows, and those of a baseline, whose arrays are in a column of their own."""
    own = baseline.array_type(kinds)
    others = [one.selectExpr("*", f"CAST(array() AS {own}) AS b") for one in rows]
    found = baseline.rows(kinds, BASELINE).withColumnRenamed("f", "b")
    return [*others, found.selectExpr("*", f"CAST(array() AS {array}) AS f")]


def _check_defined(sums: Sums) -> None:
    """Warn of metrics that no user has a value for, and say why."""
    alike: dict[str, list[str]] = {}
    for name, one in sums.metrics.items():
        counts = one.reasons[1:]
        if one.reasons[0] or one.cells.n:
            continue
        sentences = {reason.value: reason.sentence for reason in Reason}
        codes = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)] + 1
        why = [sentences[code] for code in codes.tolist()]
        alike.setdefault("; or ".join(why), []).append(name)
    for reason, names in alike.items():
        warn(f"{', '.join(names)}: undefined for all {sums.n_users:,} users: {reason}.")
