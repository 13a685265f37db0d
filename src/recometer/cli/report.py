"""``recometer report``: shows saved evaluations, models or scored pairs on a page."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from recometer.cli import _options as options
from recometer.cli._exit import known_name, usage_of
from recometer.cli._groups import Files, Reads, command
from recometer.cli._inputs import Inputs, check_stdin
from recometer.cli._job import named_by, reading
from recometer.cli._models import Model
from recometer.cli._results import groups_of, loaded, named_results, paths_of
from recometer.cli._text import note_unless
from recometer.cli.audit import audit_of
from recometer.comparison import compare
from recometer.data.files import column_names
from recometer.data.pipes import StandardInput
from recometer.data.storage import is_table
from recometer.errors import FileError, UnknownNameError, did_you_mean
from recometer.evaluation import Evaluation, evaluate
from recometer.metrics.conventions import parse_under
from recometer.protocol import Protocol
from recometer.report import Report
from recometer.report import report as make_report
from recometer.report.result import check_report, format_of
from recometer.sources.base import Source

COMPUTED = "ndcg@10 recall@1..10 hit@10"  # metrics of models without results
SCORED = "ndcg@{k} recall@1..{k} precision@{k} ap"  # metrics of scored pairs
K = 10  # the cut-off; lower if no user has this many rows
DATA = ("test", "train", "split", "user", "item", "value", "catalogue")
FORMATS = {"html": ".html", "markdown": ".md"}

Given = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME=]RESULT[,RESULT]...",
        help="Files that recometer evaluate --out wrote, or folders of them; several separated "
        "by commas are seeds of one model. With --score, one table of scored pairs.",
        show_default=False,
    ),
    Reads(paths_of),
]
Out = Annotated[
    Path | None,
    options.output_option(
        "--out",
        "-o",
        metavar="FILE",
        help="File to write: .html or .md.",
        show_default="report.html, report.md",
    ),
]
Form = Annotated[
    str | None,
    options.output_option(
        "--format",
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)}.",
        show_default="as the name of the file says, otherwise html",
    ),
]
Metrics = Annotated[
    list[str] | None,
    options.metrics_option(
        "Metrics of the report, which are computed if there are no results yet",
        f"all; of scored pairs {SCORED.format(k=K)}",
    ),
]
Scores = Annotated[
    list[str] | None,
    options.column_option(
        help="Column with the scores of a model, in a table of scored pairs. May be repeated: "
        "several columns are several models."
    ),
]
Show = Annotated[
    list[str] | None,
    options.output_option(
        metavar="ID", help="User whose lists are shown in addition to others. May be repeated."
    ),
]


@dataclasses.dataclass(frozen=True)
class Data:
    """Data for the lists of single users, and scored pairs."""

    test: options.Test = None
    train: options.Train = None
    split: options.Split = None
    format_in: options.FormatIn = None
    user: options.User = None
    item: options.Item = None
    value: options.Value = None
    score: Scores = None
    separator: options.Separator = None
    ignore_label: options.IgnoreLabel = None
    catalogue: options.CatalogueOption = None

    def options(self) -> options.DataOptions:
        """Return these options in the form of other commands."""
        shared = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del shared["score"]
        return options.DataOptions(**shared)


@dataclasses.dataclass(frozen=True)
class Models:
    """Models whose lists are shown. They are evaluated if there is no saved result."""

    run: options.Run = None
    factors: options.Factors = None
    baselines: options.Baselines = None


@dataclasses.dataclass(frozen=True)
class Page:
    """The appearance of the report."""

    out: Out = None
    form: Form = None
    title: Annotated[str | None, options.output_option(help="Title of the page.")] = None
    show: Show = None
    n_users: Annotated[
        int,
        options.output_option(
            min=1, help="Number of users to show who gain most, and who lose most."
        ),
    ] = 10
    depth: Annotated[
        int | None,
        options.output_option(
            min=1,
            help="Number of places to show of each list.",
            show_default="10; for scored pairs all, at most 50",
        ),
    ] = None
    item_to_item: Annotated[
        bool,
        options.output_option(
            "--item-to-item", help="Users are items for which similar items are recommended."
        ),
    ] = False

    def path(self) -> Path:
        """Return the path of the report, or raise an error if it is not possible."""
        if self.form is not None:
            known_name(self.form, FORMATS, "format ", "--format")
        path = self.out or Path("report").with_suffix(FORMATS[self.form or "html"])
        with usage_of("--out"):
            found = format_of(path)
        if self.form not in (None, found):
            raise typer.BadParameter(
                f"{path} is the name of another format than {self.form}.", param_hint="--format"
            )
        return path


@command
def report(
    files: Files,
    data: Data,
    models: Models,
    page: Page,
    results: Given = None,
    metrics: Metrics = None,
    primary: options.Primary = None,
    baseline: options.ComparedWith = None,
    allow: options.Allow = None,
    by: options.By = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Make a report: one HTML file, which opens without a network.

    The report shows saved evaluations, models (--run, --factors, --baselines, with --test), or a
    table of scored pairs (--score). If you give both saved evaluations and models of the same
    names, it also shows the lists of single users.
    """
    path = page.path()
    check_report(path, files)
    check_stdin(files, data.format_in)
    asked = " ".join(metrics) if metrics else None
    run = options.RunOptions(quiet=quiet, threads=threads)
    if data.score:
        _check_no_models(models)
        found, more = _of_scores(results or [], data, asked, run, files)
        first = str(next(iter(found.values()))[0].metrics[0])
        primary = primary or ([first] if asked is None and len(found) > 1 else None)
    else:
        if data.ignore_label:
            raise typer.BadParameter(
                "it names labels of scored pairs. Hint: --score names their column of scores.",
                param_hint="--ignore-label",
            )
        found, more = _of_results(results or [], data, models, asked, run, files)
    made = _make(found, asked, primary, baseline, allow or (), threads)
    title = page.title
    options_of = {"name": next(iter(found))} if len(found) == 1 else {}
    written: Report = make_report(
        made,
        path,
        title=title,
        groups=groups_of(by, {name: each[0] for name, each in found.items()}),
        users=page.show or (),
        n_users=page.n_users,
        depth=page.depth,
        item_to_item=page.item_to_item,
        seed=seed,
        threads=threads,
        **options_of,
        **more,
    )
    run.note(written.model.headline.verdict)
    run.note(f"written: {path}")


def _make(
    found: Mapping[str, Sequence[Evaluation]],
    metrics: str | None,
    primary: Sequence[str] | None,
    baseline: str | None,
    allow: Sequence[str],
    threads: int | None,
) -> Any:
    """Return the comparison of several models, or the evaluation of a single model."""
    if len(found) > 1:
        return compare(
            {name: each[0] if len(each) == 1 else each for name, each in found.items()},
            baseline=baseline,
            metrics=metrics,
            primary=" ".join(primary) if primary else None,
            allow=" ".join(allow) if allow else (),
            threads=threads,
        )
    several = {"--baseline": baseline, "--primary": primary, "--allow": allow}
    for option, value in several.items():
        if value:
            raise typer.BadParameter("it needs several models.", param_hint=option)
    (each,) = found.values()
    _check_shown(each[0], metrics)
    if len(each) > 1:
        raise typer.BadParameter(
            "several results of a single model are not shown: name a second model.",
            param_hint="RESULT",
        )
    return each[0]


def _check_shown(result: Evaluation, metrics: str | None) -> None:
    """Raise an error if --metrics leaves out metrics of a single evaluation, which shows all."""
    if metrics is None:
        return
    with usage_of("--metrics"):
        asked = {str(result.known_metric(one)) for one in parse_under(metrics, result.protocol)}
    left_out = [str(one) for one in result.metrics if str(one) not in asked]
    if left_out:
        raise typer.BadParameter(
            f"a single evaluation is shown with all of its metrics, also {', '.join(left_out)}. "
            "Hint: leave it out; recometer evaluate --metrics evaluates others.",
            param_hint="--metrics",
        )


def _of_results(
    results: Sequence[str],
    data: Data,
    models: Models,
    metrics: str | None,
    run: options.RunOptions,
    files: Files,
) -> tuple[dict[str, list[Evaluation]], dict[str, Any]]:
    """Return the evaluations of each model, and the data for its lists."""
    _check_saved(results)
    found = {
        name: [loaded(path) for path in paths]
        for name, paths in named_results(results, several=True).items()
    }
    if not (models.run or models.factors or models.baselines):
        if not found:
            raise typer.BadParameter(
                "there is nothing to report. Hint: name saved evaluations, or models by --run.",
                param_hint="RESULT",
            )
        return found, _audited(data, run)
    known, inputs = _read_models(data, models, run, files)
    for name, source in known.items():
        if name not in found:
            _check_evaluable(name, found)
            with usage_of("--metrics"):
                asked = parse_under(metrics or COMPUTED, Protocol())
            found[name] = [evaluate(source, metrics=asked, progress=False, **inputs)]
    return found, {"lists": known, **inputs}


def _audited(data: Data, run: options.RunOptions) -> dict[str, Any]:
    """Audit test and train if only these are named."""
    given = {name for name in DATA if getattr(data, name) is not None}
    if not given:
        return {}
    saved = given == {"split"}
    if not saved and (not {"test", "train"} <= given or given & {"split", "catalogue"}):
        raise typer.BadParameter(
            "it has no effect without models. Hint: --run NAME=FILE with the names of the results; "
            "or only --split, or --test and --train, which are audited.",
            param_hint=", ".join(f"--{name}" for name in DATA if name in given),
        )
    columns = {"user": data.user, "item": data.item, "value": data.value, "time": None}
    with StandardInput(data.format_in) as stdin:
        inputs = Inputs(stdin, columns, note_unless(saved or run.quiet), data.separator)
        return {"audit": audit_of(inputs, data.split, data.train, data.test)}


def _check_saved(results: Sequence[str]) -> None:
    for path in (path for text in results for path in paths_of(text)):
        if Path(path).is_file() and not is_table(Path(path)):
            raise FileError(
                f"{path} is not a saved evaluation. Hint: recometer evaluate --out writes them; "
                "in a table of scored pairs, --score COLUMN names the scores."
            )


def _check_evaluable(name: str, found: Mapping[str, Sequence[Evaluation]]) -> None:
    """Raise an error if only some models have a saved result, since metrics could differ."""
    saved = [one for one, each in found.items() if each[0].inputs_kept is None]
    if saved:
        raise typer.BadParameter(
            f"there is no result of {name!r}, but of {', '.join(saved)}. Hint: models have the "
            "names of their results, NAME=FILE.",
            param_hint="--run",
        )


def _read_models(
    data: Data, models: Models, run: options.RunOptions, files: Files
) -> tuple[dict[str, Source], dict[str, Any]]:
    """Read the models that options name, with test and train."""
    wanted = options.ModelOptions(
        run=models.run, factors=models.factors, baselines=models.baselines
    )
    read = data.options()
    named = named_by(read, wanted, files)
    if named.folds:
        raise typer.BadParameter(
            "lists are shown for one fold. Hint: --split FOLDER/fold_0.", param_hint="--split"
        )
    with reading(named, read, options.RuleOptions(), run, rated=False) as jobs:
        (job,) = jobs
        known = {model.name: source for model, source in job.sources()}
        inputs = {"test": job.test, "train": job.train}
        inputs["catalogue"] = job.given.get("catalogue")
    return known, {name: value for name, value in inputs.items() if value is not None}


def _of_scores(
    results: Sequence[str], data: Data, metrics: str | None, run: options.RunOptions, files: Files
) -> tuple[dict[str, list[Evaluation]], dict[str, Any]]:
    """Read the catalogue, and evaluate scored pairs, with each score column as a model."""
    if len(results) != 1:
        raise typer.BadParameter(
            "it reads columns of one table of scored pairs: name one file.", param_hint="--score"
        )
    for name in ("test", "train", "split"):
        if getattr(data, name) is not None:
            raise typer.BadParameter(
                "a table of scored pairs has the truth in a column of its own.",
                param_hint=f"--{name}",
            )
    (path,) = results
    found: dict[str, list[Evaluation]] = {}
    more: dict[str, Any] = {}
    with usage_of("--metrics"):
        asked = None if metrics is None else parse_under(metrics, Protocol())
    for column in _columns(path, data.score or []):
        catalogue = None if found else data.catalogue
        read = dataclasses.replace(data.options(), score=column, catalogue=catalogue)
        named = named_by(read, options.ModelOptions(pairs=[path]), files)
        named = dataclasses.replace(named, models=[Model(column, "pairs", [path])])
        with reading(named, read, options.RuleOptions(), run, rated=False) as jobs:
            (job,) = jobs
            _, source = job.only("shown")
        wanted = asked or parse_under(SCORED.format(k=_most_rows(source)), Protocol())
        found[column] = [evaluate(source, metrics=wanted, progress=False)]
        if job.given["catalogue"] is not None:
            more["catalogue"] = job.given["catalogue"]
    return found, more


def _check_no_models(models: Models) -> None:
    for field in dataclasses.fields(models):
        if getattr(models, field.name):
            raise typer.BadParameter(
                "a table of scored pairs has the scores of its models in its columns. Hint: "
                "--score names them; a report without --score shows other models.",
                param_hint=f"--{field.name}",
            )


def _most_rows(source: Source) -> int:
    """Return the largest number of rows of a user, at most `K`."""
    truth = source.facts.truth
    return K if truth is None else max(min(int(np.diff(truth.indptr).max(initial=1)), K), 1)


def _columns(path: str, asked: Sequence[str]) -> list[str]:
    """Return the requested columns, ignoring case."""
    names = column_names(path)
    found = []
    for one in asked:
        alike = [name for name in names if name.lower() == one.lower()]
        if one not in names and len(alike) != 1:
            raise UnknownNameError(
                f"--score {one}: {path} has no such column. {did_you_mean(one, names)}"
            )
        found.append(one if one in names else alike[0])
    return list(dict.fromkeys(found))
