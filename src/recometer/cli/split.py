"""The command ``recometer split``, which splits a file of interactions into train and test."""

from __future__ import annotations

import dataclasses
import datetime
import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from recometer import split as splits
from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._inputs import Inputs, check_stdin
from recometer.cli._messages import note_unless
from recometer.data.paths import check_no_link
from recometer.data.pipes import StandardInput
from recometer.errors import FileError, InputError, did_you_mean
from recometer.rendering import output
from recometer.split import Folds, Split, saving
from recometer.split.choices import Folding
from recometer.split.filters import Filter, SeenInTrain
from recometer.tasks import resolve_threads

Read = Callable[[str], Any]


@dataclasses.dataclass(frozen=True)
class Part:
    """A way to choose users or interactions, with its command-line syntax and its meaning.

    `read` converts the values, and each function in `options` converts the value of an option.
    `make` takes the converted values and options.
    """

    make: Callable[..., Any]
    usage: str
    meaning: str = ""
    read: Read = str
    # The functions that convert option values, keyed by the name of the option.
    options: Mapping[str, Read] = dataclasses.field(default_factory=dict)


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _time(text: str) -> int | float | str:
    """Return a time as a number if possible, or as the string itself, which may be a date."""
    try:
        return _number(text)
    except ValueError:
        return text


def _span(text: str) -> int | float | datetime.timedelta:
    match = re.fullmatch(r"(\d+)(d|h|min)", text)
    if match is None:
        return _number(text)
    unit = {"d": "days", "h": "hours", "min": "minutes"}[match[2]]
    return datetime.timedelta(**{unit: int(match[1])})


def _cold_items(text: str) -> Any:
    """Make `ColdItems` from a share of the items, or from the path of an ID file."""
    try:
        share = float(text)
    except ValueError:
        return splits.ColdItems(items=Path(text))
    return splits.ColdItems(share)


PER_USER = {"yes": True, "no": False}
WHO = {
    "all": Part(splits.AllUsers, "all", "everyone"),
    "fraction": Part(splits.UsersFraction, "fraction=0.1", "a random share of the users", float),
    "number": Part(splits.UsersNumber, "number=1000", "this number of users, drawn at random", int),
    "users": Part(splits.GivenUsers, "users=FILE", "the users whose ids are in a file", Path),
    "after": Part(
        splits.ActiveAfter, "after=TIME", "users with interactions at that time or later", _time
    ),
    "folds": Part(splits.UserFolds, "folds=5", "all users, each in one of the folds", int),
}
WHAT = {
    "last": Part(splits.Last, "last=1", "this number of each user's last interactions", int),
    "last_fraction": Part(
        splits.LastFraction,
        "last_fraction=0.2",
        "the last interactions of each user, in this proportion",
        float,
    ),
    "leave_one_out": Part(
        splits.LeaveOneOut,
        "leave_one_out[=random]",
        "the last interaction, or a random one, of each user who has at least two",
    ),
    "fraction": Part(
        splits.Fraction,
        "fraction=0.2[,per_user=no]",
        "a random share of each user's interactions, or of all interactions",
        float,
        {"per_user": PER_USER.__getitem__},
    ),
    "number": Part(
        splits.Number, "number=5", "this number of each user's interactions, drawn at random", int
    ),
    "after": Part(
        splits.After,
        "after=TIME[,until=TIME][,since=TIME]",
        "all interactions from a time on",
        _time,
        {"until": _time, "since": _time},
    ),
    "after_share": Part(
        lambda share: splits.After(share=share),
        "after_share=0.8",
        "all interactions after the first share of them",
        float,
    ),
    "windows": Part(
        lambda *times, **options: splits.Windows(times, **options),
        "windows=TIME,TIME,...[,until=TIME][,length=30d]",
        "one window of time after the other",
        _time,
        {"until": _time, "length": _span},
    ),
    "folds": Part(splits.KFold, "folds=5", "every interaction, in one of the folds", int),
    "cold_items": Part(
        lambda items: items,
        "cold_items=0.1 or cold_items=FILE",
        "all interactions with a random share of the items, or with those in a file",
        _cold_items,
    ),
}
CORE = Part(splits.KCore, "5 or user=5,item=3", read=int, options={"user": int, "item": int})


def make_part(option: str, parts: Mapping[str, Part], text: str) -> Any:
    """Make a `who` or a `what` from ``NAME``, ``NAME=VALUE`` or ``NAME=VALUE,OPTION=VALUE``.

    `parts` is `WHO` or `WHAT`, and `option` is the option that errors name.
    """
    name, equals, settings = text.partition("=")
    if name not in parts:
        raise typer.BadParameter(
            f"there is no {name!r}. {did_you_mean(name, parts)} Their syntax: "
            f"{usages(parts.values())}.",
            param_hint=option,
        )
    return make(option, parts[name], text, settings if equals else None)


def make(option: str, part: Part, text: str, settings: str | None) -> Any:
    """Make the object that `part` describes from the comma-separated values in `settings`.

    Errors quote `text`, which is the full value of the `option` on the command line.
    """
    values: list[Any] = []
    options: dict[str, Any] = {}
    piece = text
    try:
        for piece in [] if settings is None else settings.split(","):
            name, equals, value = piece.partition("=")
            if not equals:
                values.append(part.read(piece))
            elif name in options:
                raise ValueError
            else:
                options[name] = part.options[name](value)
        inspect.signature(part.make).bind(*values, **options)
        return with_option(part.make(*values, **options), f"{option} {text}")
    except (InputError, KeyError, TypeError, ValueError) as error:
        why = f"{piece!r} is not recognised"
        if isinstance(error, InputError):
            why = str(error).rstrip(".")
        raise typer.BadParameter(
            f"{text!r}: {why}. Usage: {part.usage}.", param_hint=option
        ) from error


def with_option(part: Any, option: str) -> Any:
    """Mark a part of a split so that messages refer to it by its command-line option."""
    object.__setattr__(part, "option", option)  # needed because parts are frozen dataclasses
    return part


def usages(parts: Iterable[Part]) -> str:
    """Return the syntax and the meaning of each part, as text."""
    return "; ".join(f"{part.usage} ({part.meaning})" for part in parts)


# Only this command has these help panels.
choice_option = functools.partial(typer.Option, rich_help_panel="Who and what")
filter_option = functools.partial(typer.Option, rich_help_panel="Filters")


@dataclasses.dataclass(frozen=True)
class Choice:
    """The options that select users to test and interactions to hold out."""

    what: Annotated[
        str | None,
        choice_option(
            metavar="WHAT",
            help=f"Which interactions of the tested users are held out: {usages(WHAT.values())}.",
        ),
    ] = None
    who: Annotated[
        str,
        choice_option(
            metavar="WHO",
            help=f"Which users are tested: {usages(WHO.values())}.",
        ),
    ] = "all"
    untested: Annotated[
        Literal["train", "apart"],
        choice_option(
            help="Where to put the interactions of users who are not tested: train, or "
            "remainder.parquet."
        ),
    ] = "train"
    min_train: Annotated[
        int,
        choice_option(
            min=0,
            help="Test only users who keep at least this number of interactions in the training "
            "data.",
        ),
    ] = 0
    min_test: Annotated[
        int,
        choice_option(
            min=0,
            help="Test only users who have at least this number of interactions in the test data.",
        ),
    ] = 1
    seed: Annotated[int, choice_option(min=0, help="Seed for all random choices.")] = 0


@dataclasses.dataclass(frozen=True)
class Filters:
    """The options for filters, in the order in which they are applied."""

    from_value: Annotated[
        float | None,
        filter_option(metavar="VALUE", help="Leave out interactions with a smaller value."),
    ] = None
    duplicates: Annotated[
        Literal["first", "last", "sum"] | None,
        filter_option(
            help="If several rows have the same user and item, keep the first, the last, or the "
            "last with the sum of their values.",
            show_default="keep all",
        ),
    ] = None
    min_user: Annotated[
        int | None,
        filter_option(metavar="N", min=1, help="Leave out users with fewer interactions."),
    ] = None
    min_item: Annotated[
        int | None,
        filter_option(
            metavar="N",
            min=1,
            help="Leave out items with fewer interactions (both filters count only once, unlike "
            "--core).",
        ),
    ] = None
    core: Annotated[
        str | None,
        filter_option(
            metavar="K",
            help="Leave out users and items with fewer interactions, repeatedly, until all have "
            "enough: 5, or user=5,item=3.",
        ),
    ] = None
    seen: Annotated[
        Literal["users", "items", "both"] | None,
        filter_option(
            help="Leave out test interactions whose user, whose item, or either of them is not in "
            "the training data.",
            show_default="keep all",
        ),
    ] = None

    def build(self) -> list[Filter | SeenInTrain]:
        """Make the filters that the options request."""
        parts: list[Filter | SeenInTrain] = []
        if self.from_value is not None:
            values = splits.ValuesFrom(self.from_value)
            parts.append(with_option(values, f"--from-value {self.from_value:g}"))
        if self.duplicates is not None:
            duplicates = splits.Duplicates(self.duplicates)
            parts.append(with_option(duplicates, f"--duplicates {self.duplicates}"))
        if self.min_user or self.min_item:
            least = {"user": self.min_user or 1, "item": self.min_item or 1}
            texts = [f"--min-{side} {number}" for side, number in least.items() if number > 1]
            parts.append(with_option(splits.MinCounts(**least), " ".join(texts)))
        if self.core is not None:
            parts.append(make("--core", CORE, self.core, self.core))
        if self.seen is not None:
            seen = splits.SeenInTrain(users=self.seen != "items", items=self.seen != "users")
            parts.append(with_option(seen, f"--seen {self.seen}"))
        return parts


@command
def split(
    data: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Interactions: Parquet, CSV, TSV or TREC qrels; - is standard input.",
        ),
    ],
    out: Annotated[
        Path,
        options.output_option(
            parser=options.output_folder,
            metavar="FOLDER",
            help="Write train.parquet, test.parquet, ... into this folder or, if there are several "
            "folds, into a subfolder for each.",
        ),
    ],
    choice: Choice,
    filters: Filters,
    files: Files,
    format_in: options.FormatIn = None,
    user: options.User = None,
    item: options.Item = None,
    value: options.Value = None,
    time: options.Time = None,
    form: options.Form = "table",
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Split interactions into training and test data.

    --who selects the users to test, and --what selects which of their interactions to hold out. All
    columns are kept. Filters are applied in the order listed here, except --seen, which is applied
    after the split. Columns are found by their common names (user_id, movieId, timestamp, ...)
    unless you name them. TIME is a number as in the data, or a date such as 2024-05-31.
    """
    if choice.what is None:
        raise typer.BadParameter(f"it is required: {usages(WHAT.values())}.", param_hint="--what")
    check_stdin(files, format_in)
    parts = filters.build()
    held_out = make_part("--what", WHAT, choice.what)
    tested = make_part("--who", WHO, choice.who)
    several = isinstance(held_out, Folding), isinstance(tested, splits.UserFolds)
    if all(several):
        raise typer.BadParameter(f"--who {choice.who} and --what {choice.what} both make folds.")
    settings: dict[str, Any] = {
        "who": tested,
        "untested": choice.untested,
        "min_train": choice.min_train,
        "min_test": choice.min_test,
        "seed": choice.seed,
        "threads": resolve_threads(threads),
        "filters": parts,
    }
    note = note_unless(quiet)
    with StandardInput(format_in) as stdin:
        inputs = Inputs(stdin, {"user": user, "item": item, "value": value, "time": time}, note)
        with inputs.error_context(label="data"):
            settings |= inputs.columns_of(data)
            path = stdin.path(data)
            result: Folds | Split
            if any(several):
                folds = splits.folds(path, held_out, **settings)
                folders = [out / f"fold_{number}" for number in range(len(folds))]
                _check_folders(out, folders, files)
                result = Folds(lambda: _saved(folds, folders), len(folders))
            else:
                _check_folders(out, [], files)
                splits.split(path, held_out, **settings).save(out)
                result = Split.load(out)  # fast, because Parquet files store their row counts
            table = result.table()
    note(f"written: {out}")
    words = {repr(rule): str(rule.option) for rule in parts}
    output(dataclasses.replace(table, notes=_in_options(table.notes, choice, words)), form)


def _in_options(notes: Sequence[str], choice: Choice, filters: Mapping[str, str]) -> list[str]:
    """Replace the Python calls in notes with the equivalent command-line options."""
    defaults = Choice()
    settings = {
        field.name: value
        for field in dataclasses.fields(choice)
        if (value := getattr(choice, field.name)) != getattr(defaults, field.name)
        or field.name in ("who", "seed")
    }
    words = [f"--{name.replace('_', '-')} {value}" for name, value in settings.items()]
    made_by = f"made by: {' '.join([*words, *filters.values()])}"
    translated = []
    for note in notes:
        for rule, option in filters.items():
            note = note.replace(f"left out by {rule}:", f"left out by {option}:")
        translated.append(made_by if note.startswith("made by: ") else note)
    return translated


def _saved(folds: Folds, folders: list[Path]) -> Iterator[Split]:
    """Save the folds one by one, and yield each fold after saving it."""
    for fold, folder in zip(folds, folders, strict=True):
        fold.save(folder)
        yield fold


def _check_folders(out: Path, folds: list[Path], inputs: Iterable[str]) -> None:
    """Raise an error if saving would replace other files, or mix the split with another one."""
    if not out.is_dir():
        return
    for folder in folds:
        check_no_link(folder)
    for folder in folds or [out]:
        saving.check(folder, inputs)
    stale = {path.name for path in out.glob("fold_*")} - {folder.name for folder in folds}
    if folds and (out / "split.json").exists():
        stale.add("split.json")
    if stale:
        raise FileError(
            f"{out} already contains another split ({min(stale)}), which would be mixed with this "
            "one. Hint: name a new folder, or remove it."
        )
