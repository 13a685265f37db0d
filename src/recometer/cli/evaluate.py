"""``recometer evaluate``: evaluates models in files on interactions in files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from recometer.cli import _options as options
from recometer.cli._exit import usage_of
from recometer.cli._groups import Files, command
from recometer.cli._job import given_rules, named_by, protocol_of, reading, with_users
from recometer.cli._results import Flat, check_flat, groups_of
from recometer.data.paths import check_no_link
from recometer.data.storage import check_replaced, is_table
from recometer.errors import FileError
from recometer.evaluating.arguments import DEFAULT_METRICS
from recometer.evaluation import Evaluation, FoldedEvaluation
from recometer.evaluation import evaluate as run_evaluation
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


@command
def evaluate(
    data: options.DataOptions,
    model: options.ModelOptions,
    rules: options.RuleOptions,
    run: options.RunOptions,
    files: Files,
    metric: Metrics = None,
    protocol: options.ProtocolName = "recometer",
    by: options.By = None,
    by_items: options.ByItems = None,
    chance: Chance = False,
    out: Out = None,
    flat: Flat = None,
) -> None:
    """Evaluate models in files on interactions in files.

    Columns are found by common names (user_id, movieId, rating, ...) unless you name them. Options
    of models, --metrics, --rule and --ignore-label may be repeated. docs/command-line.md says more.
    """
    given = given_rules(rules)
    settled = protocol_of("--protocol", protocol, given)
    metrics = " ".join(metric or [DEFAULT_METRICS])
    with usage_of("--metrics"):
        # Report wrong names before reading any file.
        asked = parse_under(metrics, settled)
    rated = any(one.definition.record == "ratings" for one in asked)
    resolve_threads(run.threads)
    check_flat(flat, files)
    named = named_by(data, model, files)
    written = _Written(out, len(named.parts) if named.folds else 0, files)
    written.prepare([each.name for each in named.models if each.kind != "run" or not named.each])
    found: dict[str, list[Evaluation]] = {}
    read_metrics: AnyMetrics = metrics
    with reading(named, data, rules, run, rated=rated) as jobs:
        for fold, job in enumerate(jobs):
            of_fold = with_users(settled, protocol, given, job.models, job.inputs)
            if by_items is not None:
                items = job.inputs.item_groups(by_items, job.given["catalogue"])
                job.given["catalogue"] = items
                read_metrics = [*asked, *of_groups(asked, items.category_names)]
            for model_read, source in job.sources():
                with job.inputs.stated(model_read):
                    result = run_evaluation(
                        source,
                        job.test,
                        metrics=read_metrics,
                        protocol=of_fold,
                        seed=rules.seed,
                        chance=chance,
                        progress=job.progress,
                        **job.given,
                    )
                written.save(model_read.name, result, fold)
                found.setdefault(model_read.name, []).append(result)
        results = {
            name: pool(each, FoldedEvaluation) if named.folds else each[0]
            for name, each in found.items()
        }
        board = Leaderboard(results, with_users=run.per_user, groups=groups_of(by, results))
    if out is not None:
        run.note(written.finish(results))
    if flat is not None:
        board.flat(flat)
    output(board, run.form)


@dataclasses.dataclass(frozen=True)
class _Written:
    """Writes results; if there is a folder, saves each result in it immediately."""

    out: Path | None
    n_folds: int  # 0 without folds
    inputs: Iterable[str]

    def prepare(self, names: Sequence[str]) -> None:
        """Make the folders; raise an error if an input or a foreign file would be replaced.

        Names of runs in one file are only known once it is read, so `save` checks these.
        """
        if self.out is None:
            return
        paths = [self.out / SUMMARY]
        for name in names:
            paths += [self._path(name), *self._of_folds(name)]
        for folder in {path.parent for path in paths} - {self.out}:
            check_no_link(folder)
        check_replaced(paths, lambda path: is_summary(path) or is_table(path), self.inputs)
        for folder in dict.fromkeys(path.parent for path in paths):
            _make_folder(folder)

    def save(self, name: str, result: Evaluation, fold: int) -> None:
        """Save one result."""
        if self.out is None:
            return
        # The names of runs in one file come from a column.
        if Path(name).name != name:
            raise FileError(
                f"{name!r} cannot be the name of a file in {self.out}. Hint: rename it."
            )
        path = self._of_folds(name)[fold] if self.n_folds else self._path(name)
        check_replaced([path], is_table, self.inputs)
        result.save(path)

    def finish(self, results: Mapping[str, Evaluation]) -> str:
        """Write the files about all folds and all models, and return their names."""
        assert self.out is not None
        if self.n_folds:
            for name, result in results.items():
                result.save(self._path(name))
        write_text(self.out / SUMMARY, Leaderboard(results).to_csv() + "\n")
        names = ", ".join(f"{name}.parquet" for name in results)
        folds = f", the same in fold_0 to fold_{self.n_folds - 1}" if self.n_folds else ""
        return f"written: {self.out}: {names}{folds}, {SUMMARY}"

    def _path(self, name: str) -> Path:
        assert self.out is not None
        return self.out / f"{name}.parquet"

    def _of_folds(self, name: str) -> list[Path]:
        assert self.out is not None
        return [self.out / f"fold_{fold}" / f"{name}.parquet" for fold in range(self.n_folds)]


def is_summary(path: Path) -> bool:
    """Return whether a file is a summary that an evaluation has written."""
    head = (",".join(SUMMARY_FIELDS) + "\n").encode()
    try:
        with path.open("rb") as file:
            return file.read(len(head)) == head
    except OSError:
        return False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"--out {folder}: the folder cannot be made ({error.strerror}). "
            "Hint: name a folder, new or not."
        ) from error
