"""The command ``recometer evaluate``, which evaluates models on test interactions in files."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import recometer as rm
from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._job import Work, option_rules, protocol_of, reading
from recometer.cli._messages import note_unless, usage_of
from recometer.cli._results import groups_of
from recometer.data.paths import check_no_link
from recometer.data.storage import DAMAGED, check_replaced, is_table
from recometer.errors import FileError, InputError
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import DEFAULT_METRICS, of_groups
from recometer.metrics.names import Metrics as AnyMetrics
from recometer.rendering import output
from recometer.results.flat import FlatName
from recometer.tasks import resolve_threads

Metrics = Annotated[
    list[str] | None,
    options.metrics_option(
        "Such as 'ndcg@10 recall@5,10 ap@1..10'; recometer metrics lists all",
        DEFAULT_METRICS,
    ),
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
    by_items: Annotated[
        str | None,
        options.output_option(
            metavar="GROUPS", help="Also restrict metrics to groups of items: [COLUMN=]FILE."
        ),
    ] = None,
    chance: Annotated[
        bool,
        options.rule_option(
            "--chance",
            help="Add the expected value of a random order.",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        options.output_option(
            parser=options.output_folder,
            metavar="FOLDER",
            help="Write NAME.parquet for each model.",
        ),
    ] = None,
    flat: Annotated[
        Path | None,
        options.output_option(
            metavar="FILE",
            help="Also write means and intervals as flat JSON, for experiment trackers.",
        ),
    ] = None,
) -> None:
    """Evaluate models on interactions; both are read from files.

    Columns are found by common names (user_id, movieId, rating, ...) unless you name them. Model
    options, --metrics and --rule may be repeated. See docs/command-line.md for details.
    """
    rules_by_name = option_rules(rules)
    named_protocol = protocol_of("--protocol", protocol, rules_by_name)
    metrics: AnyMetrics = " ".join(metric or [DEFAULT_METRICS])
    with usage_of("--metrics"):
        parsed = parse_under(
            metrics, named_protocol
        )  # reject unknown names before any file is read
    resolve_threads(run.threads)
    if flat is not None:
        check_replaced([flat], _is_flat, files)
    of_folds: dict[str, list[rm.Evaluation]] = {}
    with reading(data, model, rules, run, files, metrics=parsed, baseline=baseline) as work:
        paths = {} if out is None else _prepare(out, work, files)
        for fold, job in enumerate(work.jobs):
            settled = job.settled(named_protocol, protocol, rules_by_name)
            if by_items is not None:
                items = job.inputs.item_groups(by_items, job.arguments["catalogue"])
                job.arguments["catalogue"] = items
                metrics = [*parsed, *of_groups(parsed, items.category_names)]
            for entry in job.models:
                result = job.evaluate(entry, job.read(entry), metrics, settled, chance=chance)
                of_folds.setdefault(entry.name, []).append(result)
                if out is not None:
                    result.save(paths[entry.name][fold])
        from recometer.evaluation import FoldedEvaluation
        from recometer.results.folds import pool

        results = {
            name: pool(folds, FoldedEvaluation) if work.n_folds else folds[0]
            for name, folds in of_folds.items()
        }
        board = rm.Leaderboard(results, with_users=run.per_user, groups=groups_of(by, results))
    if out is not None:
        for name, result in results.items() if work.n_folds else ():
            result.save(paths[name][-1])
        names = ", ".join(f"{name}.parquet" for name in results)
        folds = f", the same in fold_0 to fold_{fold}" if work.n_folds else ""
        note_unless(run.quiet)(f"written: {out}: {names}{folds}")
    if flat is not None:
        board.flat(flat)
    output(board, run.form)


def _prepare(out: Path, work: Work, inputs: Iterable[str]) -> dict[str, list[Path]]:
    """Make the result folders, and return the paths of each model's results per fold and overall.

    The function raises an error if the results would replace an input, or a file of another kind.
    """
    folders = [*(out / f"fold_{fold}" for fold in range(work.n_folds)), out]
    for folder in folders[:-1]:
        check_no_link(folder)
    paths = {
        model.name: [folder / f"{model.name}.parquet" for folder in folders]
        for model in work.models
    }
    check_replaced(itertools.chain.from_iterable(paths.values()), is_table, inputs)
    for folder in reversed(folders):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(
                f"--out {folder}: the folder cannot be created ({error.strerror}). Hint: name a "
                "new or an existing folder."
            ) from error
    return paths


def _is_flat(path: Path) -> bool:
    """Return whether a file is flat JSON, as written by --flat."""
    try:
        content = json.loads(path.read_bytes())
        return isinstance(content, dict) and all(FlatName.read(name) for name in content)
    except (OSError, InputError, *DAMAGED):
        return False
