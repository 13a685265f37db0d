"""The options that several commands take."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from recometer.cli._baselines import BASELINES
from recometer.cli._groups import Reads
from recometer.cli._models import FOLD, files_of_model
from recometer.cli._stdin import InputFormat
from recometer.cli._text import note_unless
from recometer.errors import InputError, did_you_mean
from recometer.evaluating.arguments import protocol_names
from recometer.metrics.registry import METRICS
from recometer.protocol import Protocol
from recometer.rendering import FORMATS

# An option in a panel of the help.
data_option, model_option, rule_option, output_option = (
    functools.partial(typer.Option, rich_help_panel=panel)
    for panel in ("Data", "Models", "Rules", "Output")
)
column_option = functools.partial(data_option, metavar="COLUMN")


def known_format(text: str) -> str:
    """Return a format of the output, if it is one."""
    if text not in FORMATS:
        raise typer.BadParameter(f"there is no format {text!r}. {did_you_mean(text, FORMATS)}")
    return text


def relevant_from(text: str) -> Any:
    """Return the rule `relevant_from` that a text stands for, if it is one."""
    declared = Protocol.declared["relevant_from"]
    value = declared.read(text)
    try:
        declared.check("relevant_from", value)
    except InputError as error:
        raise typer.BadParameter(str(error)) from None
    return float(value) if isinstance(value, int) else value


def check_no_format(form: str) -> None:
    """Raise if a format was requested for output that is not a table."""
    if form != "table":
        raise typer.BadParameter("it is for the list alone, without NAME.", param_hint="--format")


def output_folder(text: str) -> Path:
    """Return the folder that --out names."""
    if not text:
        raise typer.BadParameter("does not name a folder. Hint: . is the one that you are in.")
    return Path(text)


def complete_metrics(incomplete: str) -> list[str]:
    """Return the names that the last name of a list of metrics may become."""
    done, space, last = incomplete.rpartition(" ")
    return [done + space + name for name in METRICS if name.startswith(last)]


def metrics_option(help: str, default: str) -> Any:
    """Return the option --metrics of a command, whose help ends with that it may be repeated."""
    return typer.Option(
        "--metrics",
        "-m",
        metavar="METRICS",
        help=f"{help}. May be repeated.",
        autocompletion=complete_metrics,
        show_default=default,
    )


def complete_rules(incomplete: str) -> list[str]:
    """Return completions: the names of rules, or the values of the rule that is named."""
    name, equals, _ = incomplete.partition("=")
    if equals and name in Protocol.declared:
        found = [f"{name}={value}" for value in Protocol.declared[name].choices]
    else:
        found = [f"{name}=" for name, declared in Protocol.declared.items() if declared.says]
    return [each for each in found if each.startswith(incomplete)]


def complete_baselines(incomplete: str) -> list[str]:
    """Return the names that the last name of a list of baselines may become."""
    done, comma, last = incomplete.rpartition(",")
    return [done + comma + name for name in BASELINES if name.startswith(last)]


def one_of(known: Callable[[], list[str]]) -> Callable[[str], list[str]]:
    """Return a completion for one of some names."""
    return lambda incomplete: [name for name in known() if name.startswith(incomplete)]


Test = Annotated[
    str | None,
    data_option(
        metavar="FILE",
        help="Items that should have been recommended: Parquet, CSV, TSV, TREC qrels or a sparse "
        "matrix (.npz); - is standard input.",
    ),
    Reads(),
]
Split = Annotated[
    str | None,
    data_option(
        metavar="FOLDER",
        help="Folder of a split that recometer split made, instead of --test and --train; each "
        "of several folds is evaluated.",
    ),
    Reads(),
]
Train = Annotated[
    str | None,
    data_option(
        metavar="FILE",
        help="Interactions that the models were trained on and must not recommend again, in any "
        "format that --test takes.",
    ),
    Reads(),
]
User = Annotated[
    str | None,
    column_option(
        metavar="COLUMN[,COLUMN]",
        help="Column of the users, in files that have it. With the column of sessions or events "
        "as well (user,session), these are evaluated separately; train, and models that "
        "have only users, apply to all sessions of a user.",
    ),
]
Item = Annotated[str | None, column_option(help="Column of the items, in files that have it.")]
Value = Annotated[
    str | None, column_option(help="Column of ratings or counts; 'none' says that there is none.")
]
Time = Annotated[
    str | None, column_option(help="Column of the times; 'none' says that there is none.")
]
Score = Annotated[
    str | None,
    column_option(
        help="Column of the scores in runs, of which the highest is best; 'none' does "
        "not read scores."
    ),
]
Rank = Annotated[
    str | None,
    column_option(
        help="Column of the ranks in runs, of which the lowest is best; 'none' does not read ranks."
    ),
]
Separator = Annotated[
    str | None,
    data_option(
        metavar="CHARACTER",
        help="What stands between several items in one cell of a table, such as ';', or json for "
        "[1, 2]; none says that each cell is a single id.",
    ),
]
IgnoreLabel = Annotated[
    list[float] | None,
    data_option(
        metavar="LABEL",
        help="Label that marks padding, such as -100, in the truth of scored pairs: their rows "
        "are left out. May be repeated.",
    ),
]
CatalogueOption = Annotated[
    str | None,
    data_option(
        metavar="NUMBER|FILE",
        help="For runs, the number of items that could have been recommended, or a file of their "
        "ids. For metrics of lists, a table with a row per item.",
        show_default="unknown",
    ),
    Reads(),
]
Categories = Annotated[
    str | None,
    column_option(
        help="Column of the catalogue with the categories: lists, or texts such as Comedy|Drama.",
        show_default="categories, genres or tags",
    ),
]
Features = Annotated[
    str | None,
    data_option(
        metavar="COLUMN[,COLUMN...]",
        help="Column of the catalogue with lists of numbers, or columns of numbers, for ild@10.",
    ),
]
Propensity = Annotated[
    str | None,
    column_option(
        help="Column of the catalogue with the propensities of the items, for ips_recall@10."
    ),
]
Candidates = Annotated[
    str | None,
    data_option(
        metavar="FILE",
        help="Items that may be recommended: a table of users and items, or ids of items for all "
        "users (text with one per line, .npy, a column of a table).",
        show_default="the whole catalogue",
    ),
    Reads(),
]
Negatives = Annotated[
    str | None,
    data_option(
        metavar="FILE",
        help="Candidates of each user without the items of test, which are added: for files of "
        "sampled negatives.",
    ),
    Reads(),
]
Exclude = Annotated[
    str | None,
    data_option(metavar="FILE", help="Ids of items that must not be recommended to any user."),
    Reads(),
]
Run = Annotated[
    list[str] | None,
    model_option(
        metavar="[NAME=]FILE",
        help="Recommended lists: Parquet, CSV, TSV or a TREC run. With folds, "
        f"{FOLD} in the name stands for the fold's number.",
    ),
    Reads(files_of_model),
]
Each = Annotated[
    str | None,
    model_option(
        metavar="COLUMN",
        help="Column of a --run that tells several models apart; its values are their names.",
    ),
]
Pairs = Annotated[
    list[str] | None,
    model_option(
        metavar="[NAME=]FILE",
        help="Scored pairs of a user and an item, such as predicted ratings or a ranker's "
        "candidates: Parquet, CSV or TSV. Without --test, the same table contains the truth "
        "(--value names its column).",
    ),
    Reads(files_of_model),
]
Baselines = Annotated[
    list[str] | None,
    model_option(
        metavar="NAME[,NAME...]",
        help=f"Simple models that are fitted to train: {', '.join(BASELINES)}.",
        autocompletion=complete_baselines,
    ),
]
Factors = Annotated[
    list[str] | None,
    model_option(
        metavar="[NAME=]USERS,ITEMS|NPZ[,USER_IDS,ITEM_IDS]",
        help="Factor model: arrays in .npy files (with ids in a text file with one per line, in "
        ".npy or a table, or the word positions if ids count the rows from 0), Parquet files "
        "with ids and factors, or one archive (.npz) of arrays called user_factors, item_factors, "
        "user_ids and item_ids.",
    ),
    Reads(files_of_model),
]
Baseline = Annotated[
    str | None,
    model_option(
        metavar="NAME|FILE",
        help="Model that metrics of lists compare with (unexpectedness@10, overlap@10): one of "
        "this command, or a file of lists.",
    ),
    Reads(files_of_model),
]
RelevantFrom = Annotated[
    Any,
    rule_option(
        parser=relevant_from,
        metavar="VALUE|not_zero",
        help="Smallest value of an item in test that makes it relevant; or any value but 0.",
        show_default="above 0",
    ),
]
Form = Annotated[
    str,
    output_option(
        "--format",
        parser=known_format,
        metavar="FORMAT",
        help=f"Format of standard output: {', '.join(FORMATS)}.",
        autocompletion=one_of(lambda: list(FORMATS)),
    ),
]
FormatIn = Annotated[
    InputFormat | None,
    data_option(
        help="Format of standard input and of pipes, required where the name does not tell it.",
    ),
]
Depth = Annotated[
    int | None,
    rule_option(
        metavar="M",
        min=1,
        help="Use only the first M items of every list (trec_eval's -M).",
        show_default="whole lists",
    ),
]
Complete = Annotated[
    bool | None,
    rule_option(
        "--complete/--no-complete",
        help="Whether users of test without a list count as misses (trec_eval's -c), or are left "
        "out.",
        show_default="complete, except if there are only TREC runs",
    ),
]
Ties = Annotated[
    str | None,
    rule_option(
        metavar="RULE",
        help=f"Order of equal scores: {', '.join(Protocol.declared['ties'].choices)}.",
        autocompletion=one_of(lambda: list(Protocol.declared["ties"].choices)),
        show_default="expected",
    ),
]
Rule = Annotated[
    list[str] | None,
    rule_option(
        metavar="RULE=VALUE",
        help="Any other rule of the protocol, such as undefined=0. May be repeated.",
        autocompletion=complete_rules,
    ),
]
ProtocolName = Annotated[
    str,
    rule_option(
        metavar="NAME|FILE",
        help="Set of rules: its name, or a saved evaluation (.parquet) whose rules are used again.",
        autocompletion=one_of(protocol_names),
    ),
    Reads(),
]
Seed = Annotated[int, rule_option(min=0, help="Seed of everything that is random.")]
PerUser = Annotated[
    bool,
    output_option(
        "--per-user", help="Also print the values of every user (--format csv prints only these)."
    ),
]
By = Annotated[
    str | None,
    output_option(
        metavar="activity|popularity|[COLUMN=]FILE",
        help="Also show groups of users: by the number of their training items, by the "
        "popularity of these items, or by a column of a table with a row per user (--format "
        "csv prints only the groups).",
    ),
    Reads(files_of_model),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of threads.", show_default="all processors"),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Write only warnings and errors to standard error.")
]


@dataclasses.dataclass(frozen=True)
class DataOptions:
    """What is tested on, and how it is read."""

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
    """What is evaluated, and what it is compared with."""

    run: Run = None
    each: Each = None
    factors: Factors = None
    pairs: Pairs = None
    baselines: Baselines = None
    baseline: Baseline = None


@dataclasses.dataclass(frozen=True)
class RuleOptions:
    """What the numbers depend on, beside the protocol."""

    relevant_from: RelevantFrom = None
    depth: Depth = None
    complete: Complete = None
    ties: Ties = None
    rule: Rule = None
    seed: Seed = 0


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """What changes no number."""

    form: Form = "table"
    per_user: PerUser = False
    threads: Threads = None
    quiet: Quiet = False

    def note(self, text: str) -> None:
        """Say something beside the result, on standard error."""
        note_unless(self.quiet)(text)
