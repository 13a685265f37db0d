"""The functions `split` and `folds`, which divide interactions into training and test data."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from recometer.arrays import Array, Bool, UInt8
from recometer.data.numbers import seed_of
from recometer.errors import InputError, InputTypeError, python_or_command, warn
from recometer.split.checks import NoTestUsersError, check_whole
from recometer.split.choices import (
    AllUsers,
    Folding,
    Held,
    UserFolds,
    What,
    Who,
)
from recometer.split.data import open_data
from recometer.split.filters import Filter, SeenInTrain
from recometer.split.result import Folds, Split, SplitProtocol
from recometer.tasks import resolve_threads, waiting

# The meaning of the arguments `who`, `what` and `filters` of a split, with an example of each.
PARTS = {
    "what": ("what is held out", "rm.split.Last(1)"),
    "who": ("who is tested", "rm.split.UsersFraction(0.1)"),
    "filters": ("what is left out, or several", "rm.split.KCore(5), or () for none"),
}
TRAIN, TEST, REMAINDER, LEFT_OUT = range(4)


def split(
    data: object,
    what: What,
    *,
    who: Who = AllUsers(),  # noqa: B008  # frozen
    filters: Filter | SeenInTrain | Iterable[Filter | SeenInTrain] = (),
    untested: Literal["train", "apart"] = "train",
    min_train: int = 0,
    min_test: int = 1,
    seed: int = 0,
    threads: int | None = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    value: object = None,
    time: object = None,
) -> Split:
    """Split interactions into training and test data by holding out interactions of tested users.

    ``rm.split(...)`` and ``rm.split.split(...)`` are the same.

    The parts have the same type as the data. The parts of a data frame (Polars, pandas or pyarrow)
    keep all of its columns and the order of its rows. A Parquet file (or a folder of Parquet files,
    or a pattern such as ``"ratings/part-*.parquet"``) becomes lazy Polars frames, which read the
    file again when needed; `Split.save` writes them piece by piece. `Interactions.of` reads
    everything else, and each part is then an `Interactions` with all users and items.

    Parameters
    ----------
    data
        The interactions, in any form that `Interactions.of` accepts.
    what
        The interactions to hold out: `Last`, `LastFraction`, `LeaveOneOut`, `Fraction`, `Number`,
        `After` or `ColdItems`.
    who
        The users to test: `AllUsers`, `UsersFraction`, `UsersNumber`, `GivenUsers` or
        `ActiveAfter`.
    filters
        The filters that leave out interactions: `KCore`, `MinCounts`, `Duplicates` and `ValuesFrom`
        apply before the split, one after the other, and `SeenInTrain` applies after it.
    untested
        The part that gets the interactions of untested users: ``"train"``, or ``"apart"`` for
        `remainder`, as in strong generalisation.
    min_train, min_test : int
        The minimum numbers of interactions that a tested user must have in the training data and in
        the test data.
    seed : int
        The seed of all random draws. Different seeds lead to different splits.
    threads : int, optional
        The maximum number of threads, which does not affect the result. None uses all processors.
    user, item, value, time
        The columns of the data, as in `Interactions.of`.

    Returns
    -------
    Split

    Raises
    ------
    NoTestUsersError
        If no user can be tested (an `InputError`).
    InputError
        If the data lack times or values that are needed, if ids are unknown, or if numbers are out
        of range.
    InputTypeError
        If `what`, `who` or a filter has the wrong type.
    ColumnError, FileError
        If `Interactions.of` raises one of these errors for the data.

    Warns
    -----
    DataWarning
        If the training data and the remainder are both empty.

    Examples
    --------
    >>> import polars as pl, recometer as rm
    >>> data = pl.DataFrame({
    ...     "user_id": ["ann", "ann", "ann", "bob", "bob"],
    ...     "item_id": ["book", "film", "song", "film", "game"],
    ...     "day": [1, 3, 2, 1, 2],
    ... })
    >>> made = rm.split(data, rm.split.Last(1), time="day")
    >>> made.test.rows()
    [('ann', 'film', 3), ('bob', 'game', 2)]
    """
    check_one_split(what, who, "rm.split.folds")
    columns = {"user": user, "item": item, "value": value, "time": time}
    with waiting("Splitting"):
        work = _Work(data, columns, filters, untested, min_train, min_test, seed, threads)
        check_kind(what, What, "what")
        check_kind(who, Who, "who")
        return work.split(who, what, what.held(work.table, work.seed, work.threads), None)


def folds(
    data: object,
    what: What | Folding,
    *,
    who: Who | UserFolds = AllUsers(),  # noqa: B008  # frozen
    filters: Filter | SeenInTrain | Iterable[Filter | SeenInTrain] = (),
    untested: Literal["train", "apart"] = "train",
    min_train: int = 0,
    min_test: int = 1,
    seed: int = 0,
    threads: int | None = None,
    user: str | Sequence[str] | None = None,
    item: str | None = None,
    value: object = None,
    time: object = None,
) -> Folds:
    """Split interactions several times: by cross-validation, or by successive time windows.

    Parameters
    ----------
    what
        `KFold` or `Windows`, or, if `who` makes the folds, anything that `split` accepts.
    who
        `UserFolds`, or, if `what` makes the folds, anything that `split` accepts.

    All other parameters are the same as for `split`.

    Returns
    -------
    Folds
        The splits, each of which is made when you access it.

    Raises
    ------
    InputTypeError
        If neither `what` nor `who` makes folds, or both do.

    Making a fold raises the same errors as `split`.
    """
    n = number_of_folds(what, who)
    columns = {"user": user, "item": item, "value": value, "time": time}
    work = _Work(data, columns, filters, untested, min_train, min_test, seed, threads)
    check_kind(what, (What, Folding), "what")
    check_kind(who, (Who, UserFolds), "who")

    def make() -> Iterator[Split]:
        for number, (part, held) in enumerate(work.each_fold(who, what)):
            yield work.split(part, what, held, number, who)

    return Folds(make, n)


def parts_of_some_users(
    data: object,
    what: What | Folding,
    *,
    who: Who | UserFolds,
    columns: dict[str, Any],
    fold: int | None = None,
    **settings: Any,
) -> UInt8:
    """Split data that contain only some of the users; return the part of each row (uint8 [n_rows]).

    The parts are `TRAIN`, `TEST`, `REMAINDER` and `LEFT_OUT`, as in `split` or in one `fold` of
    `folds` over the data of all users. `settings` are untested, min_train, min_test and seed.
    Unlike in `split`, it is not an error if no user is tested.
    """
    work = _Work(data, columns, (), **settings, threads=1)
    if fold is None:
        assert isinstance(who, Who)
        assert isinstance(what, What)
        held = what.held(work.table, work.seed, 1)
    else:
        who, held = next(itertools.islice(work.each_fold(who, what), fold, None))
    return work.parts(who, held, what.for_everybody)[1]


class _Work:
    """The filtered data and the settings, which all folds share."""

    def __init__(
        self,
        data: object,
        columns: dict[str, Any],
        filters: Any,
        untested: str,
        min_train: int,
        min_test: int,
        seed: int,
        threads: int | None,
    ) -> None:
        check_untested(untested)
        check_whole("min_train", min_train)
        check_whole("min_test", min_test)
        self.untested, self.min_train, self.min_test = untested, min_train, min_test
        self.seed, self.threads = seed_of(seed), resolve_threads(threads)
        several = isinstance(filters, Iterable) and not isinstance(filters, str)
        self.filters = list(filters) if several else [filters]
        for part in self.filters:
            check_kind(part, (Filter, SeenInTrain), "filters")
        self.after = [part for part in self.filters if isinstance(part, SeenInTrain)]
        self.container = open_data(data, columns)
        self.table = self.container.table
        self.rows: Bool | None = None  # mask of the remaining rows; None if no row was left out
        self.values: Array | None = None  # the values of all rows, if a filter changed any
        self.removed: dict[str, int] = {}  # the number of rows that each filter left out
        for part in self.filters:
            if isinstance(part, Filter):
                self._leave_out(part)

    def _leave_out(self, part: Filter) -> None:
        kept = part.kept(self.table, self.threads)
        if kept.values is not None:
            self.table = self.table.with_values(kept.values)
            if self.values is None:
                self.values = self.container.table.values.copy()  # type: ignore[union-attr]
            self.values[slice(None) if self.rows is None else self.rows] = kept.values
        n_gone = self.table.n - int(np.count_nonzero(kept.rows))
        self.removed[repr(part)] = self.removed.get(repr(part), 0) + n_gone
        if not n_gone:
            return
        self.table = self.table.select(kept.rows)
        if self.rows is None:
            self.rows = kept.rows
        else:
            self.rows = self.rows.copy()  # the lazy table still uses the old array
            self.rows[self.rows] = kept.rows

    def each_fold(self, who: Who | UserFolds, what: What | Folding) -> Iterator[tuple[Who, Held]]:
        """Yield the users to test, and the rows that may be held out, for each fold."""
        if isinstance(what, Folding):
            assert isinstance(who, Who)
            for held in what.folds(self.table, self.seed, self.threads):
                yield who, held
        else:
            assert isinstance(who, UserFolds)
            held = what.held(self.table, self.seed, self.threads)
            for part in who.parts(self.table, self.seed):
                yield part, held

    def split(
        self,
        who: Who,
        what: What | Folding,
        held: Held,
        fold: int | None,
        who_argument: Who | UserFolds | None = None,
    ) -> Split:
        table, removed = self.table, dict(self.removed)
        tested, parts = self.parts(who, held, what.for_everybody)
        for part in self.after:
            unseen = part.unseen(table, parts == TEST, parts == TRAIN, parts == REMAINDER)
            parts[unseen] = LEFT_OUT
            removed[repr(part)] = removed.get(repr(part), 0) + int(np.count_nonzero(unseen))
        n_test = int(np.count_nonzero(parts == TEST))
        who_argument, prefix = who_argument or who, "" if fold is None else f"Fold {fold}: "
        self._check(n_test, tested, who_argument, what, prefix, removed)

        def users() -> Array:
            present = tested
            if self.min_test or present is None:
                present = np.zeros(table.users.n, dtype=bool)
                present[table.users.codes[parts == TEST]] = True
            return table.users.ids_of(np.flatnonzero(present & (table.users.counts > 0)))

        counts = self._counts(parts)
        if not counts["train"] + counts["remainder"]:
            self._warn_of_no_train(who_argument, what, prefix)
        data = self._divided(parts)
        protocol = SplitProtocol(
            who=repr(who_argument),
            what=repr(what),
            filters=tuple(map(repr, self.filters)),
            untested=self.untested,
            min_train=self.min_train,
            min_test=self.min_test,
            seed=self.seed,
            fold=fold,
            counts=counts,
            removed=removed,
        )
        return Split(
            train=data["train"],
            test=data["test"],
            remainder=data.get("remainder"),
            protocol=protocol,
            columns=self.container.columns,
            find_users=users,
        )

    def _counts(self, parts: UInt8) -> dict[str, int]:
        """Count the rows of each part, and the rows that are in no part (``left_out``)."""
        counts = {
            "train": len(parts) - int(np.count_nonzero(parts)),  # TRAIN is 0
            "test": int(np.count_nonzero(parts == TEST)),
            "remainder": int(np.count_nonzero(parts == REMAINDER)),
        }
        if self.untested != "apart":
            counts["remainder"] = 0
        return {**counts, "left_out": self.container.table.n - sum(counts.values())}

    def _divided(self, parts: UInt8) -> dict[str, Any]:
        """Divide the data into parts, keyed by their names in `Split`."""
        if self.rows is not None:
            of_rows, parts = parts, np.full(self.container.table.n, LEFT_OUT, dtype=np.uint8)
            parts[self.rows] = of_rows
        names = {TRAIN: "train", TEST: "test"}
        if self.untested == "apart":
            names[REMAINDER] = "remainder"
        return {name: self.container.take(parts, part, self.values) for part, name in names.items()}

    def parts(self, who: Who, held: Held, for_everybody: bool) -> tuple[Bool | None, UInt8]:
        """Return a mask of the tested users (None for all who have rows), and each row's part."""
        users = self.table.users
        eligible = None
        # Untested users go to the remainder.
        sets_apart = self.untested == "apart" and self.min_test > 0
        if who.counts_users or self.min_train > 0 or self.min_test > 1 or sets_apart:
            n_test = np.bincount(users.codes[held.test], minlength=users.n)
            n_train = users.counts - n_test
            if held.left_out is not None:
                n_train = n_train - np.bincount(users.codes[held.left_out], minlength=users.n)
            eligible = (n_test >= self.min_test) & (n_train >= self.min_train) & (users.counts > 0)
        tested = who.tested(self.table, eligible, self.seed)
        if tested is None:
            tested = eligible
        elif eligible is not None:
            tested = tested & eligible
        # True in `held` becomes 1, which is TEST, and False becomes 0, which is TRAIN.
        if tested is None:
            parts = held.test.view(np.uint8)  # `held` is not used after this
        else:
            is_tested = tested[users.codes]
            parts = (held.test & is_tested).view(np.uint8)
            if self.untested == "apart":
                parts[~is_tested] = REMAINDER
            if for_everybody:
                parts[held.test & ~is_tested] = LEFT_OUT
        if held.left_out is not None:
            parts[held.left_out] = LEFT_OUT
        return tested, parts

    def _check(
        self,
        n_test: int,
        tested: Bool | None,
        who: object,
        what: object,
        prefix: str,
        removed: dict[str, int],
    ) -> None:
        if n_test if self.min_test else tested is None or tested.any():
            return
        if not self.table.n:
            counts = {str(part): self.removed.get(repr(part)) for part in self.filters}
            removals = "".join(f", {name} left out {n:,}" for name, n in counts.items() if n)
            raise NoTestUsersError(
                f"{prefix}no user can be tested: the data have {self.container.table.n:,} "
                f"interactions{removals}. Hint: "
                + ("loosen the filters." if removals else "are these the right data?")
            )
        unseen = "".join(f"; {part} left out {removed[repr(part)]:,}" for part in self.after)
        rules = python_or_command(
            f"who={who!r}, what={what!r}, min_train={self.min_train}, min_test={self.min_test}",
            f"{getattr(who, 'option', who)}, {getattr(what, 'option', what)}, "
            f"--min-train {self.min_train}, "
            f"--min-test {self.min_test}",
        )
        raise NoTestUsersError(
            f"{prefix}no user can be tested: none of the {self.table.n:,} interactions that the "
            f"filters leave is held out for testing by {rules}{unseen}. Hint: loosen one of them."
        )

    def _warn_of_no_train(self, who: object, what: object, prefix: str) -> None:
        filters = f", filters={list(self.filters)}" if self.filters else ""
        settings = python_or_command(f"what={what!r}, who={who!r}{filters}", "--what and --who")
        warn_of_no_train(prefix, settings, self.container.table.n)


def warn_of_no_train(prefix: str, settings: object, n_rows: int) -> None:
    """Warn that the training data are empty; `settings` are what the split depends on."""
    warn(
        f"{prefix}the training data are empty: with {settings}, none of the {n_rows:,} "
        "interactions is left there. Hint: hold out less; or, in a split by time, use a later time."
    )


def check_one_split(what: object, who: object, folds: str) -> None:
    """Raise an error if the arguments make several splits, for which `folds` must be called."""
    if isinstance(what, Folding) or isinstance(who, UserFolds):
        raise InputTypeError(
            f"{what if isinstance(what, Folding) else who!r} makes several splits. Hint: "
            f"{folds}(...) returns them."
        )


def number_of_folds(what: object, who: object) -> int:
    """Return the number of folds that either `what` or `who` makes, or raise an error."""
    if isinstance(what, Folding) and not isinstance(who, UserFolds):
        return len(what)
    if isinstance(who, UserFolds) and not isinstance(what, Folding):
        return len(who)
    raise InputTypeError(
        f"Either what or who must make the folds, found what={what!r} and who={who!r}. Hint: "
        "what=KFold(5) or Windows(times), or who=UserFolds(5)."
    )


def check_kind(part: object, kinds: Any, name: str) -> None:
    """Raise an error unless an argument of `split` is an instance of `kinds`.

    `name` is the name of the argument: ``"what"``, ``"who"`` or ``"filters"``.
    """
    if isinstance(part, kinds):
        return
    meaning, example = PARTS[name]
    hint = f"for instance {example}"
    if isinstance(part, type) and issubclass(part, kinds):
        hint = f"call it: {part.__name__}(...)"
    raise InputTypeError(
        f"{name}={part!r} cannot be used here: {name}= takes an object from recometer.split that "
        f"defines {meaning}. Hint: {hint}."
    )


def check_untested(untested: object) -> None:
    """Raise an error unless `untested` is one of its two values."""
    if untested not in ("train", "apart"):
        raise InputError(f"untested={untested!r} must be 'train' or 'apart'.")
