"""The options that several commands share."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from recometer.cli._messages import check_name
from recometer.cli._models import BASELINES, FOLD
from recometer.data.pipes import InputFormat
from recometer.errors import InputError
from recometer.protocol import Protocol
from recometer.rendering import FORMATS

# Functions that declare options, each in its own help panel.
data_option, model_option, rule_option, output_option = (
    functools.partial(typer.Option, rich_help_panel=panel)
    for panel in ("Data", "Models", "Rules", "Output")
)
column_option = functools.partial(data_option, metavar="COLUMN")
or_none = functools.partial(data_option, parser=lambda text: False if text == "none" else text)


def relevant_from(text: str) -> Any:
    """Parse a value of the rule `relevant_from`."""
    declared = Protocol.declared["relevant_from"]
    value = declared.read(text)
    try:
        declared.check("relevant_from", value)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return float(value) if isinstance(value, int) else value


def output_folder(text: str) -> Path:
    """Return the folder that --out names, or raise an error if the name is empty."""
    if not text:
        raise typer.BadParameter("does not name a folder. Hint: . is the current folder.")
    return Path(text)


def metrics_option(help: str, default: str) -> Any:
    """Declare the --metrics option of a command."""
    return typer.Option(
        "--metrics",
        "-m",
        metavar="METRICS",
        help=f"{help}. May be repeated.",
        show_default=default,
    )


Test = Annotated[
    str | None,
    data_option(
        metavar="FILE",
        help="What should have been recommended: Parquet, CSV, TSV, TREC qrels, .npz, or - "
        "(standard input).",
    ),
]
Train = Annotated[
    str | None, data_option(metavar="FILE", help="What must not be recommended again.")
]
FormatIn = Annotated[
    InputFormat | None,
    data_option(
        metavar="FORMAT", help=f"Format of standard input and pipes: {', '.join(InputFormat)}."
    ),
]
User = Annotated[str | None, column_option(help="Column of users, or USER,SESSION.")]
Item = Annotated[str | None, column_option(help="Column of items.")]
# The value "none" of these options is parsed as False.
Value = Annotated[Any, or_none(metavar="COLUMN", help="Column of ratings or counts, or none.")]
Time = Annotated[Any, or_none(metavar="COLUMN", help="Column of times, or none.")]
Separator = Annotated[
    Any, or_none(metavar="CHAR", help="Separates items in a cell: ';', json, none.")
]
RelevantFrom = Annotated[
    Any,
    rule_option(
        parser=relevant_from,
        metavar="VALUE",
        help="Smallest relevant value, or not_zero. [default: above 0]",
    ),
]
ProtocolName = Annotated[
    str,
    rule_option(
        metavar="NAME|FILE",
        help="Rules of a convention, or of a saved evaluation.",
    ),
]
Seed = Annotated[int, rule_option(metavar="N", min=0, help="Seed for random numbers.")]
Form = Annotated[
    str,
    output_option(
        "--format",
        parser=lambda text: check_name(text, FORMATS, "format "),
        metavar="FORMAT",
        help=f"Format of standard output: {', '.join(FORMATS)}.",
    ),
]
ReportPath = Annotated[
    Path | None,
    output_option(
        "--report", metavar="FILE", help="Also write a report to this file: .html or .md."
    ),
]
PerUser = Annotated[bool, output_option("--per-user", help="Also print every user's values.")]
By = Annotated[
    str | None,
    output_option(
        metavar="GROUPS",
        help="Also show groups of users: activity, popularity, or [COLUMN=]FILE.",
    ),
]
Threads = Annotated[
    int | None, output_option(metavar="N", min=1, help="Maximum number of threads. [default: all]")
]
Quiet = Annotated[bool, output_option("--quiet", "-q", help="Print only warnings and errors.")]


# Options of the commands that compare models.
ComparedWith = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model that all others are compared with.",
        show_default="every pair is compared",
    ),
]


@dataclasses.dataclass(frozen=True)
class ComparingOptions:
    """The options for comparing saved evaluations."""

    baseline: ComparedWith = None
    primary: Annotated[
        list[str] | None,
        rule_option(
            metavar="METRICS",
            help="Metrics that decide which model is best. p-values are adjusted for the number of "
            "comparisons on them, and reports focus on the first. May be repeated.",
            show_default="all",
        ),
    ] = None
    allow: Annotated[
        list[str] | None,
        rule_option(
            metavar="NAME",
            help="What may differ between evaluations: test, train, candidates, exclude, protocol, "
            "or a rule. May be repeated.",
        ),
    ] = None
    paired: Annotated[
        bool,
        rule_option(
            "--paired/--unpaired",
            help="Whether the models have the same users. Groups of different users, as in an A/B "
            "test, are compared by Welch's t test, and their sizes are checked.",
        ),
    ] = True
    ratio: Annotated[
        str | None,
        rule_option(
            metavar="SHARES",
            help="Planned sizes of the groups with --unpaired, for instance 9:1.",
            show_default="equal",
        ),
    ] = None

    def arguments(self, metrics: list[str] | None) -> dict[str, Any]:
        """Return the metrics and the options that are set, as arguments of `recometer.compare`."""
        return {
            name: " ".join(value) if isinstance(value, list) else value
            for name, value in {"metrics": metrics, **vars(self)}.items()
            if value is not None and value != []
        }


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """The options that name the data and determine how they are read."""

    test: Test = None
    train: Train = None
    split: Annotated[
        str | None, data_option(metavar="FOLDER", help="Folder made by recometer split.")
    ] = None
    format_in: FormatIn = None
    user: User = None
    item: Item = None
    value: Value = None
    score: Annotated[Any, or_none(metavar="COLUMN", help="Column of scores in runs, or none.")] = (
        None
    )
    rank: Annotated[Any, or_none(metavar="COLUMN", help="Column of ranks in runs, or none.")] = None
    separator: Separator = None
    catalogue: Annotated[
        str | None,
        data_option(metavar="N|FILE", help="Items: their number, ids or table."),
    ] = None
    categories: Annotated[str | None, column_option(help="Column of the items' categories.")] = None
    features: Annotated[str | None, column_option(help="Columns of the items' features.")] = None
    propensity: Annotated[str | None, column_option(help="Column of the items' propensities.")] = (
        None
    )
    candidates: Annotated[
        str | None, data_option(metavar="FILE", help="Items that may be recommended.")
    ] = None
    negatives: Annotated[
        str | None, data_option(metavar="FILE", help="Candidates without the test items.")
    ] = None
    exclude: Annotated[
        str | None, data_option(metavar="FILE", help="Items that must not be recommended.")
    ] = None


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """The options that name the models to evaluate."""

    run: Annotated[
        list[str] | None,
        model_option(
            metavar="[NAME=]FILE",
            help=f"Lists: Parquet, CSV, TSV, TREC; {FOLD} is a number.",
        ),
    ] = None
    answers: Annotated[
        list[str] | None,
        model_option(
            metavar="[NAME=]FILE",
            help="Answers of a language model, with titles from --catalogue: Parquet, CSV, TSV.",
        ),
    ] = None
    factors: Annotated[
        list[str] | None,
        model_option(
            metavar="[NAME=]FILES",
            help="USERS,ITEMS[,USER_IDS,ITEM_IDS]: .npy (ids: .txt, .npy, a table, or the word "
            "positions), or .parquet with both; or an archive .npz.",
        ),
    ] = None
    pairs: Annotated[
        list[str] | None,
        model_option(metavar="[NAME=]FILE", help="Scored pairs, with their labels or with --test."),
    ] = None
    baselines: Annotated[
        list[str] | None,
        model_option(
            metavar="NAME,...",
            help=f"Simple models, fitted to --train: {', '.join(BASELINES)}.",
        ),
    ] = None


Baseline = Annotated[
    str | None,
    model_option(
        metavar="NAME|FILE", help="Model that unexpectedness@10 and overlap@10 compare with."
    ),
]


@dataclasses.dataclass(frozen=True)
class RuleOptions:
    """The options that set the seed and override rules of the protocol."""

    relevant_from: RelevantFrom = None
    depth: Annotated[
        int | None,
        rule_option(metavar="M", min=1, help="Cut lists (trec_eval's -M)."),
    ] = None
    complete: Annotated[
        bool | None,
        rule_option(
            "--complete/--no-complete",
            help="Count users without a list as misses (-c). [default: not in TREC runs]",
            show_default=False,
        ),
    ] = None
    ties: Annotated[
        str | None,
        rule_option(
            metavar="RULE",
            help="Order of equal scores. [default: expected]",
        ),
    ] = None
    rule: Annotated[
        list[str] | None,
        rule_option(
            metavar="RULE=VALUE",
            help="Another rule; recometer rules lists them.",
        ),
    ] = None
    seed: Seed = 0


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """The options that have no effect on the numbers."""

    form: Form = "table"
    per_user: PerUser = False
    threads: Threads = None
    quiet: Quiet = False
