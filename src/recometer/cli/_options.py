"""The options that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from recometer.cli._formats import Format

DATA, MODELS, RULES, OUTPUT = "Data", "Models", "Rules", "Output"  # panels of the help

Test = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What should have been recommended: Parquet, CSV, TSV or TREC qrels; - is "
        "standard input.",
        rich_help_panel=DATA,
    ),
]
Split = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Or test and train of a split that recometer split made.",
        rich_help_panel=DATA,
    ),
]
Train = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="What models learnt from and must not recommend again, likewise.",
        rich_help_panel=DATA,
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of the users, where it exists.", rich_help_panel=DATA
    ),
]
Item = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Column of the items, where it exists.", rich_help_panel=DATA
    ),
]
Value = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of ratings or counts; 'none': there is none.",
        rich_help_panel=DATA,
    ),
]
Time = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the times; 'none': there is none.",
        rich_help_panel=DATA,
    ),
]
Score = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the scores in runs: the highest is best; none: not read.",
        rich_help_panel=DATA,
    ),
]
Rank = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the ranks in runs: the lowest is best; none: not read.",
        rich_help_panel=DATA,
    ),
]
CatalogueOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|FILE",
        help="For runs: how many items could have been recommended, or a file of their ids. "
        "For metrics of lists: a table with a row per item.",
        show_default="unknown",
        rich_help_panel=DATA,
    ),
]
Categories = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the catalogue: lists, or texts such as Comedy|Drama.",
        show_default="categories, genres or tags",
        rich_help_panel=DATA,
    ),
]
Features = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN[,COLUMN...]",
        help="Column of the catalogue with lists of numbers, or columns of numbers (ild@10).",
        rich_help_panel=DATA,
    ),
]
Propensity = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the catalogue with the items' propensities (ips_recall@10).",
        rich_help_panel=DATA,
    ),
]
Run = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]FILE",
        help="Recommended lists: Parquet, CSV, TSV or a TREC run.",
        rich_help_panel=MODELS,
    ),
]
Factors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]USERS,ITEMS[,USER_IDS,ITEM_IDS]",
        help="A factor model: arrays in .npy files (ids: a text file with one per line, "
        ".npy, a table, or the word positions: they count the rows from 0), or Parquet files "
        "with ids and factors.",
        rich_help_panel=MODELS,
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="What metrics of lists compare with (unexpectedness@10, overlap@10): a model of "
        "this command, or a file of lists.",
        rich_help_panel=MODELS,
    ),
]
RelevantFrom = Annotated[
    float | None,
    typer.Option(
        metavar="VALUE",
        help="An item of test is relevant from this value on.",
        show_default="any but 0",
        rich_help_panel=RULES,
    ),
]
Form = Annotated[
    Format, typer.Option("--format", help="Of standard output.", rich_help_panel=OUTPUT)
]
Threads = Annotated[
    int | None, typer.Option(min=1, help="At most so many.", show_default="all processors")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Only warnings and errors on standard error.")
]
