"""The command ``recometer report``, which shows saved evaluations or models on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from recometer.auditing import audit
from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._job import load_split, reading
from recometer.cli._messages import note_unless, usage_of
from recometer.cli._results import check_page, groups_of, loaded_results
from recometer.comparison import Comparison, compare
from recometer.evaluation import Evaluation
from recometer.metrics.conventions import parse_under
from recometer.protocol import Protocol

COMPUTED = "ndcg@10 recall@1..10 hit@10"  # the default for models without results


@command
def report(
    files: Files,
    data: options.DataOptions,
    models: options.ModelOptions,
    comparing: options.ComparingOptions,
    results: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=]RESULT[,RESULT]...",
            help="Files that recometer evaluate --out wrote, or folders of them. Files separated "
            "by commas are runs of one model with different seeds.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path,
        options.output_option(
            "--out", "-o", metavar="FILE", help="File to write: .html, or .md for Markdown."
        ),
    ] = Path("report.html"),
    title: Annotated[str | None, options.output_option(help="Title of the page.")] = None,
    show: Annotated[
        list[str] | None,
        options.output_option(
            metavar="ID", help="User whose lists are also shown. May be repeated."
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        options.metrics_option(
            "Metrics of the report", f"all; for models without results {COMPUTED}"
        ),
    ] = None,
    by: options.By = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Make a report: a single HTML file that works offline.

    The report shows saved evaluations, or models (--run, --factors, ..., with --test). If you give
    both saved evaluations and models with the same names, it also shows individual users' lists.
    """
    check_page(out, "--out", files)
    run = options.RunOptions(quiet=quiet, threads=threads)
    evaluations = loaded_results(results or [])
    inputs: dict[str, Any] = {}
    if models != options.ModelOptions():
        protocol, saved = Protocol(), ", ".join(evaluations)
        with usage_of("--metrics"):
            parsed = [] if saved else parse_under(" ".join(metrics or [COMPUTED]), protocol)
        rules = options.RuleOptions(seed=seed)
        with reading(data, models, rules, run, files, metrics=parsed) as work:
            if work.n_folds:
                raise typer.BadParameter(
                    "lists are shown for one fold. Hint: --split FOLDER/fold_0.",
                    param_hint="--split",
                )
            job = next(work.jobs)
            sources = {model.name: job.read(model) for model in job.models}
            protocol = job.settled(protocol, protocol.name, {})
            for model in job.models if not saved else ():
                source = sources[model.name]
                evaluation = job.evaluate(model, source, parsed, protocol, progress=False)
                evaluations[model.name] = [evaluation]
        unsaved = next((name for name in sources if name not in evaluations), None)
        if unsaved is not None:  # do not evaluate: the metrics might differ from the saved ones
            raise typer.BadParameter(
                f"there is no result for {unsaved!r}, only for {saved}. Hint: name each model like "
                "its result, NAME=FILE.",
                param_hint="--run",
            )
        inputs = {"lists": sources, "test": job.test, **job.arguments}
        metrics = metrics if saved else None
    elif not evaluations:
        raise typer.BadParameter(
            "there is nothing to report. Hint: name saved evaluations, or models with --run.",
            param_hint="RESULT",
        )
    elif data != options.DataOptions():
        if data != options.DataOptions(split=data.split):
            raise typer.BadParameter(
                "it has no effect without models. Hint: pass --run NAME=FILE with the names of the "
                "results; or only --split, which is audited.",
                param_hint=", ".join(
                    f"--{n}" for n, value in vars(data).items() if value is not None
                ),
            )
        assert data.split is not None
        inputs = {"audit": audit(load_split(data.split))}
    settings = comparing.arguments(metrics)
    result: Comparison | Evaluation
    if len(evaluations) > 1:
        result = compare(evaluations, threads=threads, **settings)
    else:
        ((name, (result, *more)),) = evaluations.items()
        inputs["name"] = name
        settings["unpaired"] = not settings.pop("paired")
        for option, value in {**settings, "RESULT": more}.items():
            if value:
                raise typer.BadParameter(
                    "it needs several models: a single evaluation is shown with all of its "
                    "metrics.",
                    param_hint=option if option.isupper() else f"--{option}",
                )
    page = result.report(
        out,
        title=title,
        groups=groups_of(by, {name: evaluation for name, (evaluation, *_) in evaluations.items()}),
        users=show or (),
        seed=seed,
        **{"threads": threads, **inputs},
    )
    note_unless(run.quiet)(page.model.headline.verdict)
    note_unless(run.quiet)(f"written: {out}")
