"""What the options of the command line name: models, and interactions in files."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import typer

from recometer.arrays import Array
from recometer.cli._factors import USAGE, like, read_factors, read_ids
from recometer.cli._stdin import InputFormat, StandardInput, is_stdin, is_stream
from recometer.cli._text import Note
from recometer.data import ids, trec
from recometer.data.catalogue import Catalogue
from recometer.data.columns import Columns, choose_columns, common_names
from recometer.data.files import (
    EXTENSIONS,
    column_names,
    in_memory,
    integers,
    open_file,
    read_columns,
    read_file,
)
from recometer.data.interactions import Interactions, read_interactions
from recometer.errors import ColumnError, FileError, InputError, RecometerError, did_you_mean
from recometer.sources.base import Source
from recometer.sources.cut import Cut
from recometer.sources.lists import Lists


@dataclasses.dataclass(frozen=True)
class Model:
    """A model that the command line names, and its files: one of lists, or those of factors."""

    name: str
    paths: Sequence[str]

    @property
    def is_run(self) -> bool:
        """Whether it is a file of lists."""
        return len(self.paths) == 1


def models(runs: Sequence[str], factors: Sequence[str]) -> list[Model]:
    """Read the options that name models; refuse none, two of one name, a wrong number of files."""
    found = []
    for text in runs:
        name, path = split_name(text, "--run")
        if not path:
            raise typer.BadParameter(f"{text!r} names no file.", param_hint="--run")
        found.append(Model(name or stem(path), [path]))
    for text in factors:
        name, files = split_name(text, "--factors")
        paths = files.split(",")
        if len(paths) not in (2, 4) or not (paths[0] and paths[1]):
            raise typer.BadParameter(f"{text!r} is not [NAME=]{USAGE}.", param_hint="--factors")
        found.append(Model(name or "factors", paths))
    if not found:
        raise typer.BadParameter("there is no model to evaluate. Hint: --run or --factors.")
    names = [model.name for model in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise typer.BadParameter(f"two models are called {twice!r}. Hint: write NAME=FILE.")
    return found


def baseline_of(text: str | None, named: Sequence[Model]) -> Model | None:
    """Return the model that others are compared with: one of them, or a file of lists."""
    if text is None:
        return None
    found = next((model for model in named if model.name == text), None)
    path = split_name(text, "--baseline")[1]
    if found is None and not is_stdin(path) and not os.path.exists(path):
        names = ", ".join(repr(model.name) for model in named)
        raise FileError(
            f"--baseline {text}: there is no such file, and no such model. Hint: the models are "
            f"{names}."
        )
    return found or models([text], [])[0]


def catalogue_columns(
    catalogue: str | None, categories: str | None, features: str | None, propensity: str | None
) -> dict[str, str | list[str]]:
    """Return the columns of the catalogue that were named, as `Catalogue` takes them."""
    named: dict[str, str | list[str] | None] = {"categories": categories, "propensity": propensity}
    parts = [] if features is None else features.split(",")
    named["features"] = parts if len(parts) > 1 else features
    found = {option: columns for option, columns in named.items() if columns is not None}
    for option in found:
        if catalogue is None or catalogue.isdecimal():
            raise typer.BadParameter(
                f"names a column of the items' table. Hint: --catalogue FILE --{option} COLUMN.",
                param_hint=f"--{option}",
            )
    return found


def check_stdin(paths: Sequence[str], form: InputFormat | None = None) -> None:
    """Raise if standard input is named twice, or a format where every file has a name."""
    if sum(map(is_stdin, paths)) > 1:
        raise typer.BadParameter("standard input (-) can be read only once.")
    if form is not None and not any(map(is_stream, paths)):
        raise typer.BadParameter(
            "only goes with standard input (-) and pipes: the name of a file tells its format.",
            param_hint="--format-in",
        )


def split_name(text: str, option: str) -> tuple[str, str]:
    """Split ``NAME=FILES``; the name is empty where there is none."""
    name, equals, files = text.partition("=")
    if not equals or "/" in name or os.sep in name:
        return "", text
    if not name:
        raise typer.BadParameter(f"{text!r} has no name before '='.", param_hint=option)
    return name, files


def stem(path: str) -> str:
    """Return the name of a file without its extension."""
    if is_stream(path):
        return "stdin" if is_stdin(path) else "pipe"
    name = Path(path).name
    extension = next((e for e in EXTENSIONS if name.lower().endswith(e)), "")
    return name[: len(name) - len(extension)] or name


NONE = "none"  # what is asked for in place of a column that should not be read
OPTIONAL = ("value", "time")  # columns that may be none
ORDERS = ("rank", "score")  # columns that runs are ranked by, or neither

# A hint of `evaluate` that speaks of an argument, and what it means on the command line.
NAMED_BY_IDS = "give the source the ids that test has: user_ids=..."
WRITTEN_ALIKE = "are users written alike in both?"
RUN_HINT = "does --user name the users' column, and are users written alike in both files?"
FACTORS_HINT = "add files of ids: --factors NAME=USERS,ITEMS,USER_IDS,ITEM_IDS."


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Reads files, by the columns that were asked for or have common names; notes what it found.

    `columns` has the one that was asked for, or None, by ``"user"``, ``"item"``, ``"value"``,
    ``"time"``, ``"score"`` and ``"rank"``, as far as the command reads them. A file without it is
    read by its common names (not for ``"value"`` and ``"time"``): test, train and models may call
    them differently.
    """

    stdin: StandardInput
    columns: Mapping[str, str | None]
    note: Note

    @contextlib.contextmanager
    def stated(self, model: Model | None = None, *, what: str = "") -> Iterator[None]:
        """Let errors and warnings say whose they are, in the words of the command line.

        A model's name stands before both, `what` before warnings: other errors name their file.
        """
        what = what if model is None else model.name
        try:
            with warnings.catch_warnings():
                if what:
                    warnings.showwarning = _naming(what, warnings.showwarning)
                yield
        except RecometerError as error:
            message = self.stdin.named(str(error))
            if model is not None:
                hint = RUN_HINT if model.is_run else FACTORS_HINT
                for ours in (NAMED_BY_IDS, WRITTEN_ALIKE):
                    message = message.replace(ours, hint)
                message = f"{model.name}: {message}"
            raise type(error)(message) from error

    def check_columns(self, paths: Iterable[str]) -> None:
        """Raise if a column that was asked for is in none of the files."""
        asked = {
            option: name
            for option, name in self.columns.items()
            if option not in OPTIONAL and not (option in ORDERS and name == NONE)
        }
        if not any(asked.values()):
            return
        with self.stated():
            tables = [path for path in map(self.stdin.path, paths) if _is_table(path)]
            names = {name: None for path in tables for name in column_names(path)}
            for option, name in asked.items():
                if name is not None and name not in names:
                    raise ColumnError(
                        f"--{option} {name}: no file has such a column. {did_you_mean(name, names)}"
                    )

    def interactions(
        self,
        what: str,
        path: str,
        *,
        value: bool,
        time: bool = False,
        test: Interactions | None = None,
    ) -> Interactions:
        """Read interactions, values and times as asked; their ids are alike those of test."""
        file = self.stdin.path(path)
        with self.stated(what=what):
            kind = trec.kind_of(file)
            if kind == "run":
                raise FileError(
                    f"{file} is a TREC run, which says what was recommended. Hint: --run "
                    f"evaluates it; --{what} takes qrels, with four fields."
                )
            if kind == "qrels":
                self._say(what, file, "TREC qrels")
                found, frame = Columns("user", "item", "value", None), trec.read_qrels(file)
            else:
                asked_value = self.columns["value"] if value else NONE
                asked_time = self.columns["time"] if time else NONE
                found, frame = read_file(
                    file,
                    **self._present(file, "user", "item"),
                    value=False if asked_value == NONE else asked_value,
                    time=False if asked_time == NONE else asked_time,
                )
                self._say(what, file, found._asdict())
            if test is not None:
                frame = frame.with_columns(
                    like(frame[found.user], test.user_ids), like(frame[found.item], test.item_ids)
                )
            data = read_interactions(
                frame,
                str(file),
                user=found.user,
                item=found.item,
                value=found.value or False,
                time=found.time or False,
            )
            if not len(data):
                raise InputError(f"{file} has no rows. Hint: every row is one interaction.")
        return data

    def both(self, test: str, train: str | None) -> tuple[Interactions, Interactions | None]:
        """Read test and train."""
        data = self.interactions("test", test, value=True)
        if train is None:
            return data, None
        return data, self.interactions("train", train, value=False, test=data)

    def columns_of(self, path: str) -> dict[str, Any] | None:
        """Find the columns of a file that is split: options of `split`; None: TREC qrels."""
        file = self.stdin.path(path)
        if trec.kind_of(file) is not None:
            return None
        asked = {
            option: False if option in OPTIONAL and name == NONE else name
            for option, name in self.columns.items()
        }
        try:
            found = choose_columns(column_names(file), asked)
        except ColumnError as error:
            raise ColumnError(f"{file}: {error}") from None
        return {option: name or False for option, name in found.items()}

    def say_columns(self, what: str, path: str, found: Mapping[str, Any] | None) -> None:
        """Say in which columns of a file what was found."""
        self._say(what, self.stdin.path(path), "TREC qrels" if found is None else found)

    def some_ids(self, path: str, what: str) -> Array:
        """Return an id of a user or an item in a file, if there is one."""
        columns = self.columns_of(path)
        if columns is None:
            return np.array(["a topic or a document"], dtype=object)
        file, name = self.stdin.path(path), columns[what]
        column = read_columns(file, [name])[name]
        typed = column if file.name.lower().endswith(".parquet") else integers(column)
        return ids.as_ids(typed.head(1), f"{what} ids of {file}")

    def source(self, model: Model, test: Interactions, depth: int | None) -> Source:
        """Read a model, and cut its lists if that was asked for."""
        with self.stated(model):
            source = (
                self._lists(model, test)
                if model.is_run
                else read_factors(
                    self._paths(model),
                    test,
                    lambda text: self.note(self.stdin.named(text)),
                    self.columns,
                )
            )
        return source if depth is None else Cut(source, depth)

    def is_trec(self, model: Model) -> bool:
        """Tell whether a model is a TREC run."""
        with self.stated(model):
            return model.is_run and trec.kind_of(self.stdin.path(model.paths[0])) == "run"

    def catalogue(
        self, text: str | None, test: Interactions, columns: Mapping[str, str | list[str]]
    ) -> object:
        """Read the number of items, a table with a row per item, or a file with their ids."""
        if text is None or text.isdecimal():
            return None if text is None else int(text)
        with self.stated():
            file = self.stdin.path(text)
            if _is_table(file):
                asked = self._present(file, "item")["item"]
                if asked is not None or common_names("item", column_names(file)):
                    found = Catalogue(file, item=asked, **columns)
                    self.note(f"catalogue: {self.stdin.named(str(file))} ({found.describe()})")
                    return found
            if columns:
                raise InputError(
                    f"{text} is no table with a column of item ids, so it has no columns for "
                    f"{', '.join(f'--{option}' for option in columns)}. Hint: --item names it."
                )
            return read_ids(file, "item", self.columns["item"], test.item_ids)

    def _paths(self, model: Model) -> list[str]:
        """Return the files of a factor model; those that are not given stay empty."""
        return [path and str(self.stdin.path(path)) for path in model.paths]

    def _lists(self, model: Model, test: Interactions) -> Lists:
        file = self.stdin.path(model.paths[0])
        wanted: dict[str, Any] = {}
        if trec.kind_of(file) is not None:
            lists = Lists(file)
            self._say(model.name, file, "TREC run")
        else:
            wanted |= self._present(file, "user", "item", *ORDERS)
            for option, other in (ORDERS, ORDERS[::-1]):
                if self.columns[option] == NONE:
                    wanted[option] = False
                elif wanted[option] is not None:
                    wanted[other] = False
            lists = Lists(file, **wanted)
            found = choose_columns(column_names(file), wanted)
            if found["rank"] is not None:
                found["score"] = None
            by_rows = found["rank"] is None and found["score"] is None
            self._say(model.name, file, found, ", in the order of the rows" if by_rows else "")
        return lists if _alike(lists, test) else _lists_like(file, wanted, test)

    def _present(self, file: Path, *options: str) -> dict[str, str | None]:
        """Return the columns that were asked for, as far as the file has them."""
        names = column_names(file)
        asked = {option: self.columns[option] for option in options}
        return {option: name if name in names else None for option, name in asked.items()}

    def _say(
        self, what: str, file: Path, found: str | Mapping[str, str | None], more: str = ""
    ) -> None:
        if not isinstance(found, str):
            found = ", ".join(f"{option} {name!r}" for option, name in found.items() if name)
        self.note(f"{what}: {self.stdin.named(str(file))} ({found}{more})")


def _naming(what: str, show: Callable[..., None]) -> Callable[..., None]:
    """Return a function that shows warnings with a name in front."""

    def show_named(message: Warning | str, *where: Any) -> None:
        show(f"{what}: {message}", *where)

    return show_named


def _alike(lists: Lists, test: Interactions) -> bool:
    """Tell whether ids are of the same kinds, as far as both have any."""
    arrays = lists.arrays()
    pairs = [(arrays[name], getattr(test, name)) for name in ("user_ids", "item_ids")]
    return all(
        not len(given) or not len(known) or ids.kind(given) == ids.kind(known)
        for given, known in pairs
        if isinstance(given, np.ndarray) and known is not None
    )


def _lists_like(file: Path, wanted: Mapping[str, object], test: Interactions) -> Lists:
    """Read lists once more, with ids such as test has: TREC's are texts, others may be numbers."""
    import polars as pl

    if wanted:
        found, fetch = open_file(file, wanted)
        columns = {option: in_memory(fetch(option)) for option, name in found.items() if name}
    else:
        columns = trec.read_run(file).to_dict()
    columns["user"] = like(columns["user"], test.user_ids)
    columns["item"] = like(columns["item"], test.item_ids)
    given: dict[str, Any] = {name: name if name in columns else False for name in ("rank", "score")}
    if given["rank"]:
        given["score"] = False
    return Lists(pl.DataFrame(columns), user="user", item="item", **given)


def _is_table(path: Path) -> bool:
    return path.name.lower().endswith(EXTENSIONS)
