"""Options that several commands take."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from recometer.cli._exit import known_name
from recometer.cli._groups import Reads
from recometer.cli._models import BASELINES, FOLD, files_of_model
from recometer.cli._text import note_unless
from recometer.data.pipes import InputFormat
from recometer.errors import InputError
from recometer.evaluating.arguments import protocol_names
from recometer.metrics.registry import METRICS
from recometer.protocol import Protocol
from recometer.rendering import FORMATS, Table, output

# An option in a panel of the help.
data_option, model_option, rule_option, output_option = (
    functools.partial(typer.Option, rich_help_panel=panel)
    for panel in ("Data", "Models", "Rules", "Output")
)
column_option = functools.partial(data_option, metavar="COLUMN")


def relevant_from(text: str) -> Any:
    """Read a value of the rule `relevant_from`."""
    declared = Protocol.declared["relevant_from"]
    value = declared.read(text)
    try:
        declared.check("relevant_from", value)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return float(value) if isinstance(value, int) else value


def name_to_explain(help: str, complete: Callable[[str], list[str]]) -> Any:
    """Return the argument NAME of a command that lists all names or explains one."""
    return typer.Argument(metavar="[NAME]", help=help, autocompletion=complete, show_default=False)


def list_or_explain(
    name: str | None, form: str, overview: Callable[[], Table], explain: Callable[[str], None]
) -> None:
    """Print the table of all names if none is given, and explain a given one."""
    if name is None:
        output(overview(), form, folded=False)
    elif form != "table":
        raise typer.BadParameter("it is for the list alone, without NAME.", param_hint="--format")
    else:
        explain(name)


def output_folder(text: str) -> Path:
    """Return the folder that --out names."""
    if not text:
        raise typer.BadParameter("does not name a folder. Hint: . is the one that you are in.")
    return Path(text)


def complete_metrics(incomplete: str) -> list[str]:
    """Complete the last name in a list of metrics."""
    done, space, last = incomplete.rpartition(" ")
    return [done + space + name for name in METRICS if name.startswith(last)]


def metrics_option(help: str, default: str) -> Any:
    """Return the option --metrics of a command."""
    return typer.Option(
        "--metrics",
        "-m",
        metavar="METRICS",
        help=f"{help}. May be repeated.",
        autocompletion=complete_metrics,
        show_default=default,
    )


def complete_rules(incomplete: str) -> list[str]:
    """Complete the name of a rule, or the value of the rule that was named."""
    name, equals, _ = incomplete.partition("=")
    if equals and name in Protocol.declared:
        found = [f"{name}={value}" for value in Protocol.declared[name].choices]
    else:
        found = [f"{name}=" for name, declared in Protocol.declared.items() if declared.says]
    return [each for each in found if each.startswith(incomplete)]


def complete_baselines(incomplete: str) -> list[str]:
    """Complete the last name in a list of baselines."""
    done, comma, last = incomplete.rpartition(",")
    return [done + comma + name for name in BASELINES if name.startswith(last)]


def one_of(known: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    """Return a function that completes one of these names."""
    return lambda incomplete: [name for name in known() if name.startswith(incomplete)]


def may_differ() -> list[str]:
    """Return what `--allow` of a comparison takes."""
    from recometer.comparing.alike import MAY_DIFFER

    return list(MAY_DIFFER)


Test = Annotated[
    str | None,
    data_option(
        metavar="FILE",
        help="What should have been recommended: Parquet, CSV, TSV, TREC qrels, .npz, or - "
        "(standard input).",
    ),
    Reads(),
]
Train = Annotated[
    str | None,
    data_option(metavar="FILE", help="What must not be recommended again."),
    Reads(),
]
Split = Annotated[
    str | None,
    data_option(metavar="FOLDER", help="Folder made by recometer split."),
    Reads(),
]
FormatIn = Annotated[
    InputFormat | None,
    data_option(
        metavar="FORMAT", help=f"Format of standard input and pipes: {', '.join(InputFormat)}."
    ),
]
User = Annotated[
    str | None,
    column_option(help="Column of users, or USER,SESSION."),
]
Item = Annotated[str | None, column_option(help="Column of items.")]
Value = Annotated[str | None, column_option(help="Column of ratings or counts, or none.")]
Time = Annotated[str | None, column_option(help="Column of times, or none.")]
Score = Annotated[str | None, column_option(help="Column of scores in runs, or none.")]
Rank = Annotated[str | None, column_option(help="Column of ranks in runs, or none.")]
Separator = Annotated[
    str | None,
    data_option(metavar="CHAR", help="Separates items in a cell: ';', json, none."),
]
IgnoreLabel = Annotated[
    list[float] | None,
    data_option(metavar="LABEL", help="Label of padding in --pairs, such as -100."),
]
CatalogueOption = Annotated[
    str | None,
    data_option(metavar="N|FILE", help="Items: their number, ids or table."),
    Reads(),
]
Categories = Annotated[
    str | None,
    column_option(help="Column of the items' categories."),
]
Features = Annotated[str | None, column_option(help="Columns of the items' features.")]
Propensity = Annotated[str | None, column_option(help="Column of the items' propensities.")]
Candidates = Annotated[
    str | None,
    data_option(metavar="FILE", help="Items that may be recommended."),
    Reads(),
]
Negatives = Annotated[
    str | None,
    data_option(metavar="FILE", help="Candidates without the test items."),
    Reads(),
]
Exclude = Annotated[
    str | None,
    data_option(metavar="FILE", help="Items that must not be recommended."),
    Reads(),
]
Run = Annotated[
    list[str] | None,
    model_option(
        metavar="[NAME=]FILE",
        help=f"Lists: Parquet, CSV, TSV, TREC; {FOLD} is a number.",
    ),
    Reads(files_of_model),
]
Answers = Annotated[
    list[str] | None,
    model_option(
        metavar="[NAME=]FILE",
        help="Answers of a language model, with titles of --catalogue: Parquet, CSV, TSV.",
    ),
    Reads(files_of_model),
]
Each = Annotated[
    str | None,
    model_option(metavar="COLUMN", help="Column that names the models of a --run."),
]
Pairs = Annotated[
    list[str] | None,
    model_option(metavar="[NAME=]FILE", help="Scored pairs, with their truth or with --test."),
    Reads(files_of_model),
]
Baselines = Annotated[
    list[str] | None,
    model_option(
        metavar="NAME,...",
        help=f"Simple models, fitted to train: {', '.join(BASELINES)}.",
        autocompletion=complete_baselines,
    ),
]
Factors = Annotated[
    list[str] | None,
    model_option(
        metavar="[NAME=]FILES",
        help="USERS,ITEMS[,USER_IDS,ITEM_IDS]: .npy (ids: .txt, .npy, a table, or the word "
        "positions), or .parquet with both; or an archive .npz.",
    ),
    Reads(files_of_model),
]
Baseline = Annotated[
    str | None,
    model_option(
        metavar="NAME|FILE", help="Model that unexpectedness@10 and overlap@10 compare with."
    ),
    Reads(files_of_model),
]
RelevantFrom = Annotated[
    Any,
    rule_option(
        parser=relevant_from,
        metavar="VALUE",
        help="Least relevant value, or not_zero. [default: above 0]",
    ),
]
Form = Annotated[
    str,
    output_option(
        "--format",
        parser=lambda text: known_name(text, FORMATS, "format "),
        metavar="FORMAT",
        help=f"Format of standard output: {', '.join(FORMATS)}.",
        autocompletion=one_of(lambda: list(FORMATS)),
    ),
]
Depth = Annotated[
    int | None,
    rule_option(metavar="M", min=1, help="Cut lists (trec_eval's -M)."),
]
Complete = Annotated[
    bool | None,
    rule_option(
        "--complete/--no-complete",
        help="Count users without a list as misses (-c). [default: not in TREC runs]",
        show_default=False,
    ),
]
Ties = Annotated[
    str | None,
    rule_option(
        metavar="RULE",
        help="Order of equal scores. [default: expected]",
        autocompletion=one_of(lambda: list(Protocol.declared["ties"].choices)),
    ),
]
Rule = Annotated[
    list[str] | None,
    rule_option(
        metavar="RULE=VALUE",
        help="Another rule; recometer rules lists them.",
        autocompletion=complete_rules,
    ),
]
ProtocolName = Annotated[
    str,
    rule_option(
        metavar="NAME|FILE",
        help="Rules of a convention, or of a saved evaluation.",
        autocompletion=one_of(protocol_names),
    ),
    Reads(),
]
Seed = Annotated[int, rule_option(metavar="N", min=0, help="Seed of random numbers.")]
PerUser = Annotated[bool, output_option("--per-user", help="Also print the values of every user.")]
By = Annotated[
    str | None,
    output_option(
        metavar="GROUPS",
        help="Also show groups of users: activity, popularity, or [COLUMN=]FILE.",
    ),
    Reads(files_of_model),
]
ByItems = Annotated[
    str | None,
    output_option(
        metavar="GROUPS",
        help="Also restrict metrics to groups of items: [COLUMN=]FILE.",
    ),
    Reads(files_of_model),
]
Threads = Annotated[
    int | None,
    output_option(metavar="N", min=1, help="Maximum number of threads. [default: all]"),
]
Quiet = Annotated[bool, output_option("--quiet", "-q", help="Print only warnings and errors.")]


# Options of commands that compare models
ComparedWith = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The model that all others are compared with.",
        show_default="every pair is compared",
    ),
]
Primary = Annotated[
    list[str] | None,
    rule_option(
        metavar="METRICS",
        help="Metrics that decide. p-values are adjusted over all comparisons by these, and a "
        "report is about the first. May be repeated.",
        show_default="all",
    ),
]
Allow = Annotated[
    list[str] | None,
    rule_option(
        metavar="NAME",
        help="What may differ between evaluations: test, train, candidates, exclude, protocol, or "
        "a rule. May be repeated.",
        autocompletion=one_of(may_differ),
    ),
]


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """The data, and how to read them."""

    test: Test = None
    train: Train = None
    split: Split = None
    format_in: FormatIn = None
    user: User = None
    item: Item = None
    value: Value = None
    score: Score = None
    rank: Rank = None
    separator: Separator = None
    ignore_label: IgnoreLabel = None
    catalogue: CatalogueOption = None
    categories: Categories = None
    features: Features = None
    propensity: Propensity = None
    candidates: Candidates = None
    negatives: Negatives = None
    exclude: Exclude = None


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """The models, and the baseline for list metrics."""

    run: Run = None
    answers: Answers = None
    each: Each = None
    factors: Factors = None
    pairs: Pairs = None
    baselines: Baselines = None
    baseline: Baseline = None


@dataclasses.dataclass(frozen=True)
class RuleOptions:
    """Rules that replace those of the protocol, and the seed."""

    relevant_from: RelevantFrom = None
    depth: Depth = None
    complete: Complete = None
    ties: Ties = None
    rule: Rule = None
    seed: Seed = 0


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Options that do not change any number."""

    form: Form = "table"
    per_user: PerUser = False
    threads: Threads = None
    quiet: Quiet = False

    def note(self, text: str) -> None:
        """Print a note to standard error."""
        note_unless(self.quiet)(text)
