"""What runs where the users are: a block of users, evaluated by the engine of one machine."""

from __future__ import annotations

import dataclasses
import pickle
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from recometer.arrays import Array
from recometer.data.interactions import Interactions, in_either
from recometer.data.sessions import split_pairs
from recometer.errors import DataWarning, InputError, RecometerError
from recometer.evaluating.arguments import Arguments
from recometer.evaluating.case import Case
from recometer.evaluating.chance import knows_chance
from recometer.evaluating.part import Part, measure
from recometer.evaluating.records import find_records
from recometer.evaluating.requirements import requirements_of
from recometer.evaluating.sides import Sides, as_brought, as_counted
from recometer.evaluating.unknown import KINDS, ids_of
from recometer.measuring.listed import ListedUsers
from recometer.metrics.registry import Metric, rules_of
from recometer.sources.base import Source
from recometer.sources.candidates import Candidates, Negatives
from recometer.sources.factors import Factors
from recometer.sources.lists import Lists
from recometer.sources.pairs import Pairs
from recometer.spark.tables import LIMIT, MOST_ROWS, IdKinds, biases, ids, too_many_rows, vectors

ASKED = ("metrics", "protocol", "exclude", "catalogue", "seed", "chance", "popularity")
USERS = ("n_relevant", "n_candidates", "n_excluded", "depth", "flags")
LETTERS = {"u": "user", "i": "item", "s": "session"}
# What metrics with one value for all users, or for their rows, read.
OF_ALL = ("over_users", "list_data", "over_rows", "rated")
CELLS = ("note", "users", "items")  # of what a job returns
CELL_USERS = 2**20  # whose values are one cell, at most
BLOCK_BYTES = 2**24  # of the rows of a block of users, as Arrow has them


@dataclasses.dataclass(frozen=True, eq=False)
class Output:
    """The output of a model: a source of one machine for each block; see `sources.Given`."""

    kind: str
    options: Mapping[str, Any]
    called: Mapping[str, str]  # the fields x and y of a row, by the names of their columns
    items: tuple[Array, Array, Array | None] | None = None  # ids, factors and biases
    every_item: Array | None = None  # of all users, where something is drawn that depends on them

    def source(self, table: Any, user: list[str]) -> Source:
        """Return the source of some users, of their rows; `user` are the columns that name one."""
        if self.items is not None:
            item_ids, factors, item_bias = self.items
            own = vectors(table["f"].combine_chunks(), factors.shape[1], "user_factors")
            bias = biases(table["x"], factors.dtype) if "x" in table.column_names else None
            return Factors(
                own.astype(factors.dtype, copy=False),
                factors,
                user_bias=bias,
                item_bias=item_bias,
                user_ids=ids(table["u"]),
                item_ids=item_ids,
            )
        table = _listed(table, user) if self.kind == "arrays" else renamed(table, self.called)
        score, truth = (self.called.get(name, name) for name in "xy")
        names = self.options.keys() & {"threshold", "depth"}
        options = {"every_item": self.every_item, **{name: self.options[name] for name in names}}
        options |= {"user": user if len(user) > 1 else user[0], "item": "i"}
        if self.kind == "pairs":
            of = self.options["truth"]
            options |= {"score": score, **({} if of is None else {of: truth})}
            return Pairs.of_some_users(table, **options)
        by = self.options["by"]
        options |= {name: score if by == name else False for name in ("rank", "score")}
        return Lists.of_some_users(table, **options)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """What is done with a partition."""

    outputs: Mapping[str, Output]  # "source", and perhaps "baseline"
    kinds: IdKinds
    names: Mapping[str, str]  # the tables that there are, and what messages call them
    sessions: frozenset[str]  # which of them have sessions of users
    valued: Mapping[str, str]  # which of them have values, and the names of these columns
    every: tuple[Metric, ...]  # as they were asked for: their rules say which users count
    lists: bool  # whether all users are one block, and the driver gets what `OF_ALL` says
    settled: Any  # the protocol with what the source replaces
    candidates: Any  # those that travel
    given: Mapping[str, Any]  # fields of `Asked` that are the same for all users

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Return the values of users, and of each block a note of what it adds to the whole.

        Tables travel as bytes, so that Spark has few cells to convert; see `packed`.
        """
        try:
            for table in blocks(batches, 2**62 if self.lists else BLOCK_BYTES):
                yield from self._block(table)
        except RecometerError as error:
            # As a row: Spark would run the task again, and bury the message in its own.
            yield row(note=pickle.dumps({"error": {type(error).__name__: str(error)}}))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that are measured."""
        found: tuple[Metric, ...] = self.given["metrics"]
        return found

    @property
    def over_users(self) -> dict[int, Metric]:
        """Those that have one value for all users, by their number."""
        return {n: one for n, one in enumerate(self.metrics) if one.definition.over_users}

    @property
    def by_chance(self) -> dict[int, Metric]:
        """Those whose value for a random order is measured, by their number."""
        every = self.metrics if self.given["chance"] else ()
        return {number: one for number, one in enumerate(every) if knows_chance(one)}

    @property
    def brings_truth(self) -> bool:
        """Whether the truth is in the pairs."""
        return "test" not in self.names

    def _block(self, table: Any) -> Iterator[Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the whole may be otherwise
            given = self._inputs(table)
            if not given.sides.test.n_users:
                return
            part = measure(given, find_records(given))
        note, items = self._note(given, part), None
        if self.lists:
            note["lists"] = {name: getattr(part, name) for name in OF_ALL}
            n_rows = part.rated.size if part.rated is not None else 0
            if part.lists is not None:
                n_rows += part.lists.items.size
            if n_rows > LIMIT:
                raise InputError(
                    f"lists=True would bring {n_rows:,} rows to the driver, more than {LIMIT:,}. "
                    "Hint: leave it out; or evaluate a sample of the users."
                )
        elif self.over_users:
            items = packed(self._of_items(given, part.list_data, note))
        yield row(note=pickle.dumps(note), items=items)
        users = self._rows(given, part)
        for begin in range(0, users.num_rows, CELL_USERS):
            yield row(users=packed(users.slice(begin, CELL_USERS)))

    def _inputs(self, table: Any) -> Case:
        """Return what the users of a block are evaluated with."""
        parts = {name: unnested(table, name, what) for name, what in self.names.items()}
        sources = {
            name: one.source(parts[name], self._user(name)) for name, one in self.outputs.items()
        }
        source, protocol = sources["source"], self.given["protocol"]
        train = self._interactions(parts, "train") if "train" in parts else None
        own = source.facts.truth if self.brings_truth else self._interactions(parts, "test")
        assert own is not None
        chosen = self.candidates
        if "candidates" in parts:
            sets = self._interactions(parts, "candidates")
            chosen = in_either(sets, own) if isinstance(chosen, Negatives) else sets
        asked = Arguments(
            **{name: self.given[name] for name in ASKED},
            train=train,
            baseline=sources.get("baseline"),
            threads=1,
            progress=False,
            as_given={},
            some_users=True,
        )
        test = (as_brought if self.brings_truth else as_counted)(own, self.every, protocol)
        listed = source.facts.listed
        if listed is not None and requirements_of(self.every, protocol).listed_users:
            test = test.with_users(listed())
        candidates = chosen if isinstance(chosen, Candidates) else None
        sides = Sides(asked, own, test, candidates, asked.metrics)
        return Case(source, sides, self.settled, self.brings_truth)

    def _interactions(self, parts: Mapping[str, Any], name: str) -> Interactions:
        user, value = self._user(name), self.valued.get(name)
        table = renamed(parts[name], {} if value is None else {"x": value})
        columns = table.select([*user, "i", *([] if value is None else [value])])
        named = user if len(user) > 1 else user[0]
        return Interactions.of(columns, user=named, item="i", value=value or False, time=False)

    def _user(self, name: str) -> list[str]:
        """Return the columns that name a user in one of the tables."""
        return ["u", "s"] if name in self.sessions else ["u"]

    def _rows(self, given: Case, part: Part) -> Any:
        """Return a row per user: values, reasons, and what else is known."""
        found: dict[str, Any] = {"u": given.sides.test.user_ids}
        if self.kinds.session is not None:
            found |= dict(zip("us", split_pairs(found["u"]), strict=True))
        for number, metric in enumerate(self.metrics):
            name = str(metric)
            found[f"m{number}"] = part.values.get(name)
            found[f"r{number}"] = part.reasons[name].astype(np.int8)
            found[f"c{number}"] = part.chance.get(name)
        found |= {name: getattr(part.users, name).astype(np.int32) for name in USERS}
        return _table(self.columns, found)

    def _of_items(self, given: Case, data: Any, note: dict[str, Any]) -> Any:
        """Return a row per metric k and item i, with its number x; other totals are in the note."""
        named = np.zeros(0, np.int64) if data.lists.item_ids is None else data.lists.item_ids
        listed, k, i, x = ListedUsers(data), [np.zeros(0, np.int32)], [named[:0]], [np.zeros(0)]
        for number, metric in self.over_users.items():
            summed = listed.add_up(metric, rules_of(metric, given.protocol))
            note["totals"][str(metric)] = np.asarray(summed.totals, np.float64)
            if summed.items is not None:
                some = np.flatnonzero(summed.items)
                k.append(np.full(len(some), number, np.int32))
                i.append(named[some])
                x.append(summed.items[some])
        columns = (np.concatenate(one) for one in (k, i, x))
        return _table(self.columns_of_items, dict(zip("kix", columns, strict=True)))

    def _note(self, given: Case, part: Part) -> dict[str, Any]:
        """Return what the users of a block add to the whole; see `evaluation._together`."""
        sides, lists = given.sides, part.lists
        test = sides.test
        sums = {"negative": int(sides.negative_gains)}
        if test.values is not None:
            sums["not binary"] = int(np.count_nonzero((test.values != 0) & (test.values != 1)))
        most: dict[str, float] = {"value": test.value_range[1]}
        if lists is not None and lists.n_catalogue is not None:
            most |= {"catalogue": lists.n_catalogue, "less catalogue": -lists.n_catalogue}
        data = [side for side in (sides.given, given.sides.arguments.train) if side is not None]
        least: dict[str, int | None] = {}
        for kind in KINDS:
            own = [ids_of(side, kind) for side in data[self.brings_truth :]]
            least |= {f"data {kind}": _least(own)}
            least |= {f"source {kind}": _least([given.source.facts.known_ids(kind)])}
        return {
            "facts": {"facts": [part.facts]},
            "sums": sums,
            "counts": {**part.counts, **sides.settled},
            "most": most,
            "least": {name: low for name, low in least.items() if low is not None},
            "totals": {},
            "users": {"few": [] if test.user_ids is None else test.user_ids[:3].tolist()},
        }

    @property
    def columns(self) -> dict[str, str]:
        """The columns of what is known of users, with their Spark types."""
        found = {"u": self.kinds.user}
        if self.kinds.session is not None:
            found["s"] = self.kinds.session
        for number in range(len(self.metrics)):
            if number not in self.over_users:
                found[f"m{number}"] = "double"
            found[f"r{number}"] = "tinyint"
            if number in self.by_chance:
                found[f"c{number}"] = "double"
        return found | dict.fromkeys(USERS, "int")

    @property
    def columns_of_items(self) -> dict[str, str]:
        """The columns of numbers by metric and item, with their Spark types."""
        return {"k": "int", "i": self.kinds.item, "x": "double"}


def _table(types: Mapping[str, str], columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    names = {"bigint": "int64", "int": "int32", "tinyint": "int8"}
    kinds = {name: pa.type_for_alias(names.get(kind, kind)) for name, kind in types.items()}
    return pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()})


def row(**cells: bytes | None) -> Any:
    """Return a row of what a job returns: some of `CELLS`."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {name: pa.array([cells.get(name)], pa.binary()) for name in CELLS}
    )


def packed(table: Any) -> bytes:
    """Return an Arrow table as bytes, which `unpacked` reads."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(cells: Iterable[Any]) -> Iterator[Any]:
    """Return the tables of cells of an Arrow column."""
    import pyarrow as pa

    for cell in cells:
        yield pa.ipc.open_stream(cell.as_buffer()).read_all()


def blocks(batches: Iterable[Any], block_bytes: int = BLOCK_BYTES) -> Iterator[Any]:
    """Make tables of about this size from batches of users, cut between users."""
    import pyarrow as pa

    waiting: list[Any] = []
    size = 0
    for batch in batches:
        check_rows(batch)
        step = max(1, batch.num_rows * block_bytes // max(batch.nbytes, 1))
        for begin in range(0, batch.num_rows, step):
            waiting.append(batch.slice(begin, step))
            size += waiting[-1].nbytes
            if size >= block_bytes:
                yield pa.Table.from_batches(waiting)
                waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def check_rows(batch: Any) -> None:
    """Refuse a user with more rows than `gathered` brings together."""
    many = batch.column("many").drop_null()
    if len(many):
        user = batch.column("u").filter(batch.column("many").is_valid())[0].as_py()
        raise too_many_rows(user, many[0].as_py(), f"{MOST_ROWS:,} rows of a user are the limit.")


def renamed(table: Any, names: Mapping[str, str]) -> Any:
    """Return a table with the columns as messages should call them."""
    return table.rename_columns([names.get(name, name) for name in table.column_names])


def unnested(table: Any, name: str, what: str) -> Any:
    """Return the rows of one table, named `what`; a missing user, session or item is refused."""
    import pyarrow as pa
    import pyarrow.compute as pc

    cells = table[name].combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(cells), 0).to_numpy(zero_copy_only=False)
    rows = cells.flatten()
    columns = {"u": table["u"].take(pa.array(np.repeat(np.arange(len(cells)), lengths)))}
    columns |= dict(zip([field.name for field in rows.type], rows.flatten(), strict=True))
    for letter, called in LETTERS.items():
        if letter in columns and columns[letter].null_count:
            raise InputError(
                f"{what} has rows in which the {called} is missing. Hint: drop them: "
                "frame.dropna()."
            )
    return pa.table(columns)


def _listed(table: Any, user: list[str]) -> Any:
    """Return a row per user with lists of items, and of their scores where there are some."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lists = table["f"].combine_chunks()
    flat = lists.flatten()
    cells = {"i": flat}
    if pa.types.is_struct(flat.type):
        cells = dict(zip([field.name for field in flat.type], flat.flatten(), strict=True))
    if cells["i"].null_count:
        raise InputError(
            "Lists has arrays in which an item is missing. Hint: drop it: filter(items, item -> "
            "item IS NOT NULL)."
        )
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
    columns = {name: pa.ListArray.from_arrays(offsets, cell) for name, cell in cells.items()}
    return pa.table({**{name: table[name] for name in user}, **columns})


def _least(sides: list[Array | None]) -> int | None:
    """Return the least id; of texts, 0 or 1 where one of them is written so."""
    known = [one for one in sides if one is not None and len(one)]
    if any(one.dtype == object for one in known):
        return next((n for n in (0, 1) if any((one == str(n)).any() for one in known)), None)
    return min((int(one.min()) for one in known), default=None)
