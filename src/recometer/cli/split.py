"""``recometer split``: train and test from interactions in a file."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from recometer import split as splits
from recometer.cli import _options as options
from recometer.cli._compositions import WHAT, WHO, complete, make_core, make_part, usages
from recometer.cli._folder import output_folder
from recometer.cli._inputs import Inputs
from recometer.cli._made import table_of_folds, table_of_split
from recometer.cli._stdin import StandardInput
from recometer.cli._tables import print_table
from recometer.errors import FileError
from recometer.split import saving
from recometer.split.what import Folding
from recometer.tasks import resolve_threads

CHOICE, FILTERS = "Who and what", "Filters"  # panels of the help, beside the shared ones


class Keep(str, enum.Enum):
    """Which of the rows of a pair of user and item remains."""

    first = "first"
    last = "last"
    sum = "sum"


class Seen(str, enum.Enum):
    """What the training data must know for an interaction to be tested."""

    users = "users"
    items = "items"
    both = "both"


class Untested(str, enum.Enum):
    """Where the interactions of users go who are not tested."""

    train = "train"
    apart = "apart"


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
        typer.Option(
            parser=output_folder,
            metavar="FOLDER",
            help="Write train.parquet, test.parquet, ... into this folder; of several folds, each "
            "into a folder in it.",
            rich_help_panel=options.OUTPUT,
        ),
    ],
    what: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help=f"What is held out of the interactions of those who are tested: "
            f"{usages(WHAT.values())}.",
            autocompletion=complete(WHAT),
            rich_help_panel=CHOICE,
        ),
    ] = None,
    who: Annotated[
        str,
        typer.Option(
            metavar="WHO",
            help=f"Who is tested: {usages(WHO.values())}.",
            autocompletion=complete(WHO),
            rich_help_panel=CHOICE,
        ),
    ] = "all",
    untested: Annotated[
        Untested,
        typer.Option(
            help="Where the interactions of the other users go: into train, or apart into "
            "remainder.parquet.",
            rich_help_panel=CHOICE,
        ),
    ] = Untested.train,
    min_train: Annotated[
        int,
        typer.Option(
            min=0,
            help="Only users are tested who keep so many interactions in train.",
            rich_help_panel=CHOICE,
        ),
    ] = 0,
    min_test: Annotated[
        int,
        typer.Option(
            min=0,
            help="Only users are tested who have so many interactions in test.",
            rich_help_panel=CHOICE,
        ),
    ] = 1,
    seed: Annotated[
        int, typer.Option(min=0, help="Of what is random.", rich_help_panel=CHOICE)
    ] = 0,
    from_value: Annotated[
        float | None,
        typer.Option(
            metavar="VALUE",
            help="Leave interactions of a smaller value out.",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    duplicates: Annotated[
        Keep | None,
        typer.Option(
            help="Of several rows of a user and an item, keep the first or the last, or the last "
            "with the sum of their values.",
            show_default="keep all",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    min_user: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Leave users with fewer interactions out.",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    min_item: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Leave items with fewer interactions out (both are counted once).",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    core: Annotated[
        str | None,
        typer.Option(
            metavar="K",
            help="Leave users and items with fewer interactions out until none is left: 5, or "
            "user=5,item=3.",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    seen: Annotated[
        Seen | None,
        typer.Option(
            help="Leave interactions out of test whose user, item, or either is not in the "
            "training data.",
            show_default="keep all",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    user: options.User = None,
    item: options.Item = None,
    value: options.Value = None,
    time: options.Time = None,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Split interactions into train and test: who is tested, and what of theirs is held out.

    All columns are kept. Filters apply in the order of this help, --seen after the split.
    Columns are found by their common names (user_id, movieId, timestamp, ...) unless they are
    given. TIME is a number as in the data, or a date such as 2024-05-31.

    Exit codes: 0 done, 1 a failure that is stated on standard error, 2 wrong usage.
    """
    if what is None:
        raise typer.BadParameter(f"it must be said: {usages(WHAT.values())}.", param_hint="--what")
    # --who and --what may name files, too: users=FILE
    read = [data, *(file for text in (who, what) for file in text.partition("=")[2].split(","))]
    filters = _filters(from_value, duplicates, min_user, min_item, core, seen)
    settings: dict[str, Any] = {
        "untested": untested.value,
        "min_train": min_train,
        "min_test": min_test,
        "seed": seed,
        "threads": resolve_threads(threads),
    }

    def note(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    with StandardInput(None) as stdin:
        inputs = Inputs(stdin, {"user": user, "item": item, "value": value, "time": time}, note)
        with inputs.stated(what="data"):
            held_out = make_part("--what", WHAT, what, lambda of: inputs.some_ids(data, of))
            tested = make_part("--who", WHO, who, lambda of: inputs.some_ids(data, of))
            several = isinstance(held_out, Folding), isinstance(tested, splits.UserFolds)
            if all(several):
                raise typer.BadParameter(f"--who {who} and --what {what} both make folds.")
            columns = inputs.columns_of(data)
            inputs.say_columns("data", data, columns)
            settings |= {"who": tested, "filters": filters, **(columns or {})}
            if any(several):
                made = splits.folds(stdin.path(data), held_out, **settings)
                folders = [out / f"fold_{number}" for number in range(len(made))]
                _check_folders(out, folders, read)
                table = table_of_folds(_saved(made, folders))
            else:
                _check_folders(out, [], read)
                one = splits.split(stdin.path(data), held_out, **settings)
                one.save(out)
                table = table_of_split(one, out)
    note(f"written: {out}")
    print_table(table)


def _filters(
    from_value: float | None,
    duplicates: Keep | None,
    min_user: int | None,
    min_item: int | None,
    core: str | None,
    seen: Seen | None,
) -> list[Any]:
    """Return the filters that were asked for, in the order in which they apply."""
    found: list[Any] = []
    if from_value is not None:
        found.append(splits.ValuesFrom(from_value))
    if duplicates is not None:
        found.append(splits.Duplicates(duplicates.value))
    if min_user is not None or min_item is not None:
        found.append(splits.MinCounts(user=min_user or 1, item=min_item or 1))
    if core is not None:
        found.append(make_core(core))
    if seen is not None:
        found.append(splits.SeenInTrain(users=seen is not Seen.items, items=seen is not Seen.users))
    return found


def _saved(folds: splits.Folds, folders: list[Path]) -> Iterator[splits.Split]:
    """Save one fold after the other."""
    for fold, folder in zip(folds, folders, strict=True):
        fold.save(folder)
        yield fold


def _check_folders(out: Path, folds: list[Path], inputs: list[str]) -> None:
    """Refuse a folder whose files would be lost, or whose split or folds would be mixed in."""
    if not out.is_dir():
        return
    for folder in folds or [out]:
        saving.check(folder, inputs)
    stale = {path.name for path in out.glob("fold_*")} - {folder.name for folder in folds}
    if folds and (out / "split.json").exists():
        stale.add("split.json")
    if stale:
        raise FileError(
            f"{out} holds another split already ({min(stale)}), which would be mixed with this "
            "one. Hint: name a new folder, or remove it."
        )
