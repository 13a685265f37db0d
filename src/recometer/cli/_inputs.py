"""Read the files that options name: interactions, models and items."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import recometer as rm
from recometer.cli._messages import Note
from recometer.cli._models import Model, split_name
from recometer.data import files
from recometer.data.array_files import open_sparse
from recometer.data.catalogue import Catalogue
from recometer.data.columns import (
    REQUIRED,
    ColumnPair,
    Columns,
    choose_columns,
    common_names,
    single_names,
)
from recometer.data.factor_files import adapt, frame_like, ids_of_test, read_ids, same_kinds
from recometer.data.files import (
    EXTENSIONS,
    column_names,
    in_memory,
    open_file,
    read_file,
)
from recometer.data.interactions import Interactions, read_interactions
from recometer.data.pipes import InputFormat, StandardInput, is_stdin, needs_format
from recometer.errors import (
    ColumnError,
    FileError,
    InputError,
    RecometerError,
    did_you_mean,
    naming,
)

if TYPE_CHECKING:
    from recometer.sources.base import Source


def check_stdin(paths: Sequence[str], form: InputFormat | None) -> None:
    """Raise an error if several inputs are "-", or if --format-in is missing or superfluous."""
    if sum(map(is_stdin, paths)) > 1:
        raise typer.BadParameter("standard input (-) can be read only once.")
    nameless = next(filter(needs_format, paths), None)
    if form is None and nameless is not None:
        raise typer.BadParameter(
            f"it is required, because the format of {nameless} cannot be inferred: "
            f"{', '.join(InputFormat)}.",
            param_hint="--format-in",
        )
    if form is not None and nameless is None:
        raise typer.BadParameter(
            "it applies only to standard input (-) and pipes; a file's name shows its format.",
            param_hint="--format-in",
        )


OPTIONAL = ("value", "time")  # columns that need not be in every file
ORDERS = ("rank", "score")  # the columns by which a run may be ordered


@dataclasses.dataclass(frozen=True)
class Inputs:
    """A file reader that finds columns by the names in the options or by common names.

    The keys of `columns` are the kinds of columns that the command reads: any of ``"user"``,
    ``"item"``, ``"value"``, ``"time"``, ``"score"`` and ``"rank"``. Each kind is mapped to a column
    name, to None (search for common names) or to False (no column). If a file does not have the
    named column, the reader tries common names (except for ``"value"`` and ``"time"``), because
    test data, training data and models may use different names.
    """

    stdin: StandardInput
    columns: Mapping[str, Any]
    note: Note
    separator: Any = None  # the separator between items in a cell, or False

    def __post_init__(self) -> None:
        user = self.columns.get("user")
        if user is not None and "," in user:
            pair = ColumnPair.of([part.strip() for part in user.split(",")])
            object.__setattr__(self, "columns", {**self.columns, "user": pair})

    @property
    def columns_without_session(self) -> dict[str, Any]:
        """`columns` for files without sessions: the user column replaces the user-session pair."""
        user = self.columns.get("user")
        return {**self.columns, "user": user.parts[0] if isinstance(user, ColumnPair) else user}

    @contextlib.contextmanager
    def error_context(self, model: Model | None = None, *, label: str = "") -> Iterator[None]:
        """In the block's errors and warnings, name the model and refer to pipes as the user did.

        Without a model, warnings begin with `label`, but errors do not, because they already name
        the file.
        """
        name = label if model is None else model.name
        try:
            with naming(name, errors=model is not None):
                yield
        except RecometerError as error:
            raise type(error)(self.stdin.restore_names(str(error))) from error

    def check_columns(self, paths: Iterable[str]) -> None:
        """Raise an error if the user named a column that none of the files has."""
        columns = {
            option: name for option, name in self.columns.items() if name and option not in OPTIONAL
        }
        if not columns:
            return
        with self.error_context():
            tables = [path for path in map(self.stdin.path, paths) if _is_table(path)]
            names = {name: None for path in tables for name in column_names(path)}
            for option, name in columns.items():
                for part in single_names([name]):
                    if part not in names:
                        raise ColumnError(
                            f"--{option} {part}: no file has such a column. "
                            f"{did_you_mean(part, names)}"
                        )

    def interactions(
        self,
        option: str,
        path: str,
        *,
        value: bool,
        time: bool = False,
        test: Interactions | None = None,
    ) -> Interactions:
        """Read interactions, and convert their ids to the types of the test ids."""
        file = self.stdin.path(path)
        with self.error_context(label=option):
            if file.name.lower().endswith(".npz"):
                self._say(option, file, "a matrix: users and items are positions")
                data = read_interactions(open_sparse(file), str(file))
                return data if value else dataclasses.replace(data, values=None)
            kind = files.kind_of(file)
            if kind == "run":
                raise FileError(
                    f"{file} is a TREC run, which contains recommendations. Hint: pass it as "
                    f"--run; --{option} takes qrels, with four fields."
                )
            if kind == "qrels":
                self._say(option, file, "TREC qrels")
                names, frame = Columns("user", "item", "value", None), files.read_qrels(file)
            else:
                columns: dict[str, Any] = self._present(file, "user", "item")
                columns["value"] = self.columns["value"] if value else False
                columns["time"] = self.columns["time"] if time else False
                if option == "train":
                    # Training interactions apply to all of a user's sessions.
                    if isinstance(columns["user"], ColumnPair):
                        columns["user"] = columns["user"].parts[0]
                    if value:  # some of the files may lack this column
                        columns |= self._present(file, "value")
                names, frame = read_file(file, **columns)
                self._say(option, file, names._asdict())
            if test is not None:
                frame = frame.with_columns(
                    adapt(frame[names.user], test.user_ids), adapt(frame[names.item], test.item_ids)
                )
            data = read_interactions(
                frame,
                str(file),
                user=names.user,
                item=names.item,
                value=names.value or False,
                time=names.time or False,
                separator=self.separator,
            )
            if not len(data):
                raise InputError(f"{file} has no rows. Hint: every row is one interaction.")
        return data

    def candidates(self, option: str, path: str | None, test: Interactions | None) -> object:
        """Read the items in the file that an option names, either per user or for all users."""
        if path is None:
            return None
        file = self.stdin.path(path)
        with self.error_context(label=option):
            has_users = (
                self._has_column(file, "user")
                if _is_table(file)
                else files.kind_of(file) == "qrels"
            )
            if option != "exclude" and has_users:
                return self.interactions(option, path, value=False, test=test)
            ids = read_ids(file, "item", self.columns["item"], ids_of_test(test, "item"))
            self.note(f"{option}: {self.stdin.restore_names(str(file))} (items for all users)")
        return ids

    def _has_column(self, file: Path, kind: str) -> bool:
        """Return whether a table has a column of this kind, ``"user"`` or ``"item"``."""
        names = column_names(file)
        return self.columns_without_session[kind] in names or bool(common_names(kind, names))

    def columns_of(self, path: str) -> dict[str, Any]:
        """Print the columns of the file to split, and return them as arguments of `split`."""
        file = self.stdin.path(path)
        if files.kind_of(file) is not None:
            self._say("data", file, "TREC qrels")
            return {}
        try:
            names = choose_columns(column_names(file), self.columns)
        except ColumnError as error:
            raise ColumnError(f"{file}: {error}") from None
        self._say("data", file, names)
        return {option: name or False for option, name in names.items()}

    def source(self, model: Model, test: Interactions | None, rated: bool) -> Source:
        """Read a model; `rated` says whether the labels of scored pairs are ratings."""
        if model.kind == "factors":
            return rm.Factors.from_files(
                *(path and str(self.stdin.path(path)) for path in model.paths),
                test=test,
                user=self.columns_without_session["user"],
                item=self.columns["item"],
                note=lambda text: self.note(self.stdin.restore_names(text)),
            )
        file = self.stdin.path(model.paths[0])
        if model.kind == "run":
            return self._lists(model, file, test)
        return self._pairs(model, file, test, rated)

    def answers(self, model: Model, catalogue: object, depth: int | None) -> rm.Lists:
        """Read lists that a language model wrote, and cut them off at `depth` unless it is None."""
        with self.error_context(model):
            if not isinstance(catalogue, Catalogue):
                raise InputError(
                    "--answers needs the titles of the items. Hint: --catalogue FILE, a table with "
                    "a column of ids and one of titles."
                )
            file = self.stdin.path(model.paths[0])
            user = self._present(file, "user")["user"]
            lists = rm.Lists.from_text(file, catalogue, user=user, depth=depth)
            self._say(model.name, file, lists.columns)
        return lists

    def is_trec(self, model: Model) -> bool:
        """Return whether a model is a TREC run."""
        with self.error_context(model):
            return model.kind == "run" and files.kind_of(self.stdin.path(model.paths[0])) == "run"

    def catalogue(
        self, text: str | None, test: Interactions | None, columns: Mapping[str, str | list[str]]
    ) -> object:
        """Read the catalogue: a number of items, a table with a row per item, or an ID file."""
        if text is None or text.isdecimal():
            return None if text is None else int(text)
        with self.error_context():
            file = self.stdin.path(text)
            if _is_table(file) and self._has_column(file, "item"):
                item = self._present(file, "item")["item"]
                table = Catalogue(file, item=item, **columns)
                self.note(f"catalogue: {self.stdin.restore_names(str(file))} ({table.describe()})")
                return table
            if columns:
                raise InputError(
                    f"{text} is not a table with a column of item ids, so it has no columns for "
                    f"{', '.join(f'--{option}' for option in columns)}. Hint: name that column "
                    "with --item."
                )
            return read_ids(file, "item", self.columns["item"], ids_of_test(test, "item"))

    def item_groups(self, text: str, catalogue: object) -> Catalogue:
        """Read ``[COLUMN=]FILE`` as a catalogue whose categories are the groups of items."""
        column, path = split_name(text, "--by-items")
        with self.error_context():
            file = self.stdin.path(path)
            item_column = self._present(file, "item")["item"]
            with naming(f"--by-items {path}"):
                return Catalogue.of_groups(file, catalogue, column=column or None, item=item_column)

    def _lists(self, model: Model, file: Path, test: Interactions | None) -> rm.Lists:
        """Read recommendation lists, and convert their ids to the types of the test ids."""
        trec = files.kind_of(file) is not None
        options: dict[str, Any] = {}
        if not trec:
            options |= self._present(file, "user", "item", *ORDERS)
            for option, other in (ORDERS, ORDERS[::-1]):
                if options[option]:
                    options[other] = False
        separator = None if trec else self.separator
        lists = rm.Lists(file, **options, separator=separator)
        if trec:
            self._say(model.name, file, "TREC run")
        else:
            names = choose_columns(column_names(file), options)
            if names["rank"] is not None:
                names["score"] = None
            by_rows = names["rank"] is None and names["score"] is None
            self._say(model.name, file, names, ", in the order of the rows" if by_rows else "")
        ids = lists.facts.arrays
        if all(same_kinds(ids[f"{kind}_ids"], ids_of_test(test, kind)) for kind in REQUIRED):
            return lists
        columns = files.read_run(file).to_dict() if trec else open_columns(file, options)[1]
        orders: dict[str, Any] = {name: name in columns and name for name in ORDERS}
        if orders["rank"]:
            orders["score"] = False
        frame = frame_like(columns, test)
        return rm.Lists(frame, user="user", item="item", **orders, separator=separator)

    def _pairs(self, model: Model, file: Path, test: Interactions | None, rated: bool) -> rm.Pairs:
        """Read scored pairs and, if there are no test data, their labels."""
        if not _is_table(file):
            raise FileError(
                f"{file} is not a table. Hint: --pairs reads Parquet, CSV and TSV with a row per "
                "user and item."
            )
        options: dict[str, Any] = {**self._present(file, "user", "item", "score")}
        truth = False if test is not None else self.columns["value"]
        kinds = ("rating", "relevance") if rated else ("relevance", "rating")
        options |= dict.fromkeys(kinds, None if truth is None else False)
        if truth:
            options[kinds[0]] = truth
        # A rating is a label here, so it must not be taken for the score, even if no other column
        # qualifies.
        if not (options["score"] or common_names("score", column_names(file), fallback=False)):
            raise ColumnError(f"{file}: no column holds the scores. Hint: name it with --score.")
        names, columns = open_columns(file, options)
        if test is None and not any(names[kind] for kind in kinds):
            raise ColumnError(
                f"{file}: no column holds the labels. Hint: name it with --value, or pass --test "
                "FILE."
            )
        if all(names[kind] for kind in kinds):
            raise ColumnError(
                f"{file}: the columns {names[kinds[0]]!r} and {names[kinds[1]]!r} could both hold "
                "the labels. Hint: name the right one with --value."
            )
        frame = frame_like(columns, test)
        self._say(model.name, file, names)
        truths: dict[str, Any] = {
            option: option if option in columns else False for option in kinds
        }
        return rm.Pairs(frame, user="user", item="item", score="score", **truths)

    def _present(self, file: Path, *options: str) -> dict[str, Any]:
        """Return the named columns that the file has, and None for those that it lacks.

        If the file has a user column but no session column, the user column is returned. False
        stays False.
        """
        names = column_names(file)
        columns: dict[str, Any] = {}
        for option in options:
            columns[option] = None
            for name in (self.columns_without_session[option], self.columns[option]):
                if name is False or (name and all(part in names for part in single_names([name]))):
                    columns[option] = name
        return columns

    def _say(
        self, label: str, file: Path, content: str | Mapping[str, str | None], more: str = ""
    ) -> None:
        text = content
        if not isinstance(content, str):
            text = ", ".join(f"{option} {name!r}" for option, name in content.items() if name)
        self.note(f"{label}: {self.stdin.restore_names(str(file))} ({text}{more})")


def _is_table(path: Path) -> bool:
    return path.name.lower().endswith(EXTENSIONS)


def open_columns(
    file: Path, options: Mapping[str, object]
) -> tuple[Mapping[str, str | None], dict[str, Any]]:
    """Find the wanted columns, and return their names and their contents, keyed by option."""
    names, fetch = open_file(file, options)
    return names, {option: in_memory(fetch(option)) for option, name in names.items() if name}
