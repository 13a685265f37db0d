"""``recometer evaluate``: models in files, against interactions in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from recometer.cli import _options as options
from recometer.cli._exit import usage_of
from recometer.cli._groups import Files, command
from recometer.cli._inputs import Model
from recometer.cli._job import named_by, reading
from recometer.cli._rules import given_rules, protocol_of, with_users
from recometer.data.storage import check_replaced, is_table
from recometer.errors import FileError
from recometer.evaluate import DEFAULT_METRICS
from recometer.evaluate import evaluate as run_evaluation
from recometer.metrics.conventions import parse_under
from recometer.rendering import output, write_text
from recometer.results.evaluation import Evaluation
from recometer.results.leaderboard import SUMMARY_FIELDS, Leaderboard
from recometer.tasks import resolve_threads

SUMMARY = "summary.csv"

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metrics",
        "-m",
        metavar="METRICS",
        help="For instance: 'ndcg@10 recall@5,10,50 ap@1..10'. May be repeated. See: recometer "
        "metrics.",
        autocompletion=options.complete_metrics,
        show_default=DEFAULT_METRICS,
    ),
]
Out = Annotated[
    Path | None,
    options.output_option(
        parser=options.output_folder,
        metavar="FOLDER",
        help="Write NAME.parquet for each model and summary.csv into this folder.",
    ),
]


Chance = Annotated[
    bool,
    options.rule_option(
        "--chance",
        help="Add what a random order of the same candidates would score, exactly: the mean over "
        "all orders.",
    ),
]


@command
def evaluate(
    data: options.DataOptions,
    model: options.ModelOptions,
    rules: options.RuleOptions,
    run: options.RunOptions,
    files: Files,
    metric: Metrics = None,
    protocol: options.ProtocolName = "recometer",
    chance: Chance = False,
    out: Out = None,
) -> None:
    """Evaluate models in files against interactions in files.

    Columns are found by their common names (user_id, movieId, rating, ...) unless they are
    given; what was found is said on standard error. Items that a user has in train are not
    ranked for that user. --run and --factors may be repeated.
    """
    given = given_rules(rules)
    settled = protocol_of("--protocol", protocol, given)
    metrics = " ".join(metric or [DEFAULT_METRICS])
    with usage_of("--metrics"):
        parse_under(metrics, settled)  # a wrong name should not wait for the files
    resolve_threads(run.threads)
    named = named_by(data, model, files)
    if out is not None:
        _check_out(out, named.models, files)
        _make_folder(out)
    results: dict[str, Evaluation] = {}
    with reading(named, data, rules, run) as job:
        settled = with_users(settled, protocol, given, named.models, job.inputs)
        for each in named.models:
            source = job.source(each)
            with job.inputs.stated(each):
                results[each.name] = run_evaluation(
                    source,
                    job.test,
                    metrics=metrics,
                    protocol=settled,
                    seed=rules.seed,
                    chance=chance,
                    progress=False if run.quiet else None,
                    **job.given,
                )
            if out is not None:
                results[each.name].save(out / f"{each.name}.parquet")
    if out is not None:
        write_text(out / SUMMARY, Leaderboard(results).to_csv() + "\n")
        run.note(f"written: {out}: {', '.join(f'{name}.parquet' for name in results)}, {SUMMARY}")
    output(Leaderboard(results, with_users=run.per_user), run.form)


def is_summary(path: Path) -> bool:
    """Tell whether a file is a summary that an evaluation has written."""
    head = (",".join(SUMMARY_FIELDS) + "\n").encode()
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def _check_out(out: Path, named: Sequence[Model], inputs: Iterable[str]) -> None:
    """Raise if an output would replace an input, or what recometer did not write."""
    paths = [*(out / f"{model.name}.parquet" for model in named), out / SUMMARY]
    check_replaced(paths, lambda path: is_summary(path) or is_table(path), inputs)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"--out {folder}: the folder cannot be made ({error.strerror}). "
            "Hint: name a folder, new or not."
        ) from error
