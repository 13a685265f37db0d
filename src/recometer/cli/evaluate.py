"""``recometer evaluate``: evaluates models on test interactions, all read from files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from recometer.cli import _options as options
from recometer.cli._exit import usage_of
from recometer.cli._groups import Files, Reads, command
from recometer.cli._job import Work, given_rules, protocol_of, reading
from recometer.cli._results import Flat, check_flat, groups_of
from recometer.data.paths import check_no_link
from recometer.data.storage import check_replaced, is_table
from recometer.errors import FileError
from recometer.evaluating.arguments import DEFAULT_METRICS
from recometer.evaluation import Evaluation, FoldedEvaluation
from recometer.leaderboard import SUMMARY_FIELDS, Leaderboard
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import Metrics as AnyMetrics
from recometer.metrics.names import of_groups
from recometer.rendering import output, write_text
from recometer.results.folds import pool
from recometer.tasks import resolve_threads

SUMMARY = "summary.csv"

Metrics = Annotated[
    list[str] | None,
    options.metrics_option(
        "Such as 'ndcg@10 recall@5,10 ap@1..10'; recometer metrics lists all",
        DEFAULT_METRICS,
    ),
]
Out = Annotated[
    Path | None,
    options.output_option(
        parser=options.output_folder,
        metavar="FOLDER",
        help="Write NAME.parquet and summary.csv.",
    ),
]
Chance = Annotated[
    bool,
    options.rule_option(
        "--chance",
        help="Add the expected value of a random order.",
    ),
]


ByItems = Annotated[
    str | None,
    options.output_option(
        metavar="GROUPS", help="Also restrict metrics to groups of items: [COLUMN=]FILE."
    ),
    Reads(options.files_of_model),
]


@command
def evaluate(
    data: options.DataOptions,
    model: options.ModelOptions,
    rules: options.RuleOptions,
    run: options.RunOptions,
    files: Files,
    baseline: options.Baseline = None,
    metric: Metrics = None,
    protocol: options.ProtocolName = "recometer",
    by: options.By = None,
    by_items: ByItems = None,
    chance: Chance = False,
    out: Out = None,
    flat: Flat = None,
) -> None:
    """Evaluate models on interactions; both are read from files.

    Columns are found by common names (user_id, movieId, rating, ...) unless you name them. Options
    of models, --metrics and --rule may be repeated. docs/command-line.md says more.
    """
    rules_by_name = given_rules(rules)
    named_protocol = protocol_of("--protocol", protocol, rules_by_name)
    metrics: AnyMetrics = " ".join(metric or [DEFAULT_METRICS])
    with usage_of("--metrics"):
        parsed = parse_under(metrics, named_protocol)  # report wrong names before reading any file
    resolve_threads(run.threads)
    check_flat(flat, files)
    of_folds: dict[str, list[Evaluation]] = {}
    with reading(data, model, rules, run, files, metrics=parsed, baseline=baseline) as work:
        paths = {} if out is None else _prepare(out, work, files)
        for fold, job in enumerate(work.jobs):
            settled = job.settled(named_protocol, protocol, rules_by_name)
            if by_items is not None:
                items = job.inputs.item_groups(by_items, job.arguments["catalogue"])
                job.arguments["catalogue"] = items
                metrics = [*parsed, *of_groups(parsed, items.category_names)]
            for read_model, source in job.sources():
                result = job.evaluate(read_model, source, metrics, settled, chance=chance)
                of_folds.setdefault(read_model.name, []).append(result)
                if out is not None:
                    result.save(paths[read_model.name][fold])
        results = {
            name: pool(each, FoldedEvaluation) if work.n_folds else each[0]
            for name, each in of_folds.items()
        }
        board = Leaderboard(results, with_users=run.per_user, groups=groups_of(by, results))
    if out is not None:
        for name, result in results.items() if work.n_folds else ():
            result.save(paths[name][-1])
        write_text(out / SUMMARY, Leaderboard(results).to_csv() + "\n")
        names = ", ".join(f"{name}.parquet" for name in results)
        folds = f", the same in fold_0 to fold_{fold}" if work.n_folds else ""
        run.note(f"written: {out}: {names}{folds}, {SUMMARY}")
    if flat is not None:
        board.flat(flat)
    output(board, run.form)


def _prepare(out: Path, work: Work, inputs: Iterable[str]) -> dict[str, list[Path]]:
    """Make the folders of results, and return the paths for each model, the pooled one last.

    Raise an error if an input or a foreign file would be replaced.
    """
    folders = [*(out / f"fold_{fold}" for fold in range(work.n_folds)), out]
    for folder in folders[:-1]:
        check_no_link(folder)
    paths = {
        model.name: [folder / f"{model.name}.parquet" for folder in folders]
        for model in work.models
    }
    written = [out / SUMMARY, *itertools.chain.from_iterable(paths.values())]
    check_replaced(written, lambda path: is_summary(path) or is_table(path), inputs)
    for folder in reversed(folders):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"--out {folder}: the folder cannot be made ({error.strerror}). "
                "Hint: name a folder, new or not."
            ) from error
    return paths


def is_summary(path: Path) -> bool:
    """Return whether a file is a summary that an evaluation has written."""
    head = (",".join(SUMMARY_FIELDS) + "\n").encode()
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False
