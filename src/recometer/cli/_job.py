"""Read the data and models for the commands evaluate, check, why and report."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

import recometer as rm
from recometer.cli._groups import Files
from recometer.cli._inputs import Inputs, check_stdin
from recometer.cli._messages import note_unless, usage_of
from recometer.cli._models import FOLD, Model, baseline_of, fit_baseline, models
from recometer.cli._options import DataOptions, ModelOptions, RuleOptions, RunOptions
from recometer.data.interactions import Interactions
from recometer.data.pipes import StandardInput
from recometer.errors import FileError, InputError, did_you_mean, warn
from recometer.metrics.conventions import as_listed, named_protocol, protocol_names
from recometer.metrics.names import Metrics
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.tasks import resolve_threads

if TYPE_CHECKING:
    from recometer.sources.base import Source
    from recometer.split import Split


class Part(NamedTuple):
    """The paths of the test file, the training file and the folder of their split, if any."""

    test: str | None
    train: str | None
    split: Path | None = None


def load_split(folder: str) -> Split:
    """Read a split; raise an error if it has several folds."""
    if _folds(folder):
        raise FileError(
            f"{folder} contains several folds. Hint: name one of them: {Path(folder) / 'fold_0'}."
        )
    from recometer.split import Split

    return Split.load(folder)


def parts_of(data: DataOptions) -> list[Part]:
    """Return the test and training files: those that options name, or those of a split's folds."""
    if data.split is None:
        return [Part(data.test, data.train)]
    if data.test is not None or data.train is not None:
        raise typer.BadParameter(
            "--split already provides test and train. Hint: leave out --test and --train."
        )
    splits = _folds(data.split) or [Path(data.split)]
    return [Part(str(path / "test.parquet"), str(path / "train.parquet"), path) for path in splits]


def _folds(folder: str) -> list[Path]:
    """Return the fold folders in `folder`, in ascending order; there may be none."""
    folders = (Path(folder) / f"fold_{number}" for number in itertools.count())
    return list(itertools.takewhile(Path.is_dir, folders))


def _columns(data: DataOptions, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the columns that options name; a saved split supplies those that no option names."""
    columns = {name: getattr(data, name) for name in ("user", "item", "value", "score", "rank")}
    for folder in (part.split for part in parts if part.split is not None):
        of_split = load_split(str(folder)).columns
        for name, column in ({} if of_split is None else of_split._asdict()).items():
            if columns.get(name) is None:
                columns[name] = column or False
    return columns


@dataclasses.dataclass(frozen=True)
class Job:
    """The models to read, and the data of one fold (all the data if there are no folds)."""

    inputs: Inputs
    models: Sequence[Model]
    test: Interactions | None  # None if the models contain the labels
    train: Interactions | None
    arguments: dict[str, Any]  # additional arguments of `recometer.evaluate`
    rules: RuleOptions
    rated: bool  # whether a metric reads true ratings
    progress: bool | None  # the argument `progress` of `recometer.evaluate`

    def evaluate(
        self, model: Model, source: Source, metrics: Metrics, protocol: Protocol, **more: Any
    ) -> rm.Evaluation:
        """Evaluate a model; `more` is passed on to `recometer.evaluate`."""
        options: dict[str, Any] = {"seed": self.rules.seed, "progress": self.progress}
        options |= {**self.arguments, **more}
        with self.inputs.error_context(model):
            return rm.evaluate(source, self.test, metrics=metrics, protocol=protocol, **options)

    def settled(self, protocol: Protocol, name: str, rules: Mapping[str, Any]) -> Protocol:
        """Return a protocol with one `users` rule for all models, so that means are comparable."""
        if name != Protocol().name or "users" in rules:
            return protocol
        runs = [model.name for model in self.models if self.inputs.is_trec(model)]
        if len(runs) == len(self.models):
            return protocol.replace(users="known")
        if runs:
            warn(
                f"{', '.join(runs)}: because other models are not TREC runs, topics without a list "
                "count as misses. Hint: --complete confirms this, and --no-complete leaves them "
                "out for all models."
            )
        return protocol.replace(users="test")

    def read(self, model: Model) -> Source:
        """Read or fit a model."""
        if model.kind == "answers":
            return self.inputs.answers(model, self.arguments["catalogue"], self.rules.depth)
        with self.inputs.error_context(model):
            if model.kind == "baseline":
                assert self.train is not None
                return fit_baseline(model.name, self.train, self.rules.seed, self.progress)
            source = self.inputs.source(model, self.test, self.rated)
            if self.rules.depth is None:
                return source
            if not isinstance(source, rm.Lists):
                raise InputError(
                    f"--depth cuts lists, but this model is read as {type(source).__name__}. Hint: "
                    "leave it out; cut-offs are part of the names of metrics, as in ndcg@10."
                )
            return source.cut_at(self.rules.depth)


def _of_catalogue(data: DataOptions) -> dict[str, str | list[str]]:
    """Return the catalogue columns that options name, as arguments of `Catalogue`."""
    names = ("categories", "features", "propensity")
    columns = {name: column for name in names if (column := getattr(data, name)) is not None}
    for option in columns:
        if data.catalogue is None or data.catalogue.isdecimal():
            raise typer.BadParameter(
                f"names a column of the table of items. Hint: --catalogue FILE --{option} COLUMN.",
                param_hint=f"--{option}",
            )
    if "," in columns.get("features", ""):
        columns["features"] = columns["features"].split(",")
    return columns


def _check_together(data: DataOptions, models: Sequence[Model], parts: Sequence[Part]) -> None:
    """Raise an error if options contradict each other."""
    kinds = {model.kind for model in models}
    if data.rank and data.score:
        raise typer.BadParameter(
            "--rank and --score cannot be combined. Name only the column to rank by."
        )
    if data.candidates is not None and data.negatives is not None:
        raise typer.BadParameter(
            "--candidates lists all items that may be recommended; --negatives omits the test "
            "items. Give only one."
        )
    if "baseline" in kinds and parts[0].train is None:
        raise typer.BadParameter(
            "they are fitted to --train, which is missing.", param_hint="--baselines"
        )
    if len(parts) > 1:
        fixed = [model.name for model in models if model.paths and FOLD not in "".join(model.paths)]
        if fixed:
            raise typer.BadParameter(
                f"{fixed[0]} has the same files in every fold. Hint: {FOLD} in a file name stands "
                f"for the number of the fold, as in --run als=als_{FOLD}.parquet."
            )
    elif any(FOLD in path for model in models for path in model.paths):
        raise typer.BadParameter(
            f"{FOLD} stands for the number of a fold, but there are no folds. Hint: --split "
            "FOLDER, to which recometer split wrote folds."
        )


class Work(NamedTuple):
    """The models that options name, and one job per fold, which is created lazily."""

    models: Sequence[Model]
    n_folds: int  # the number of folds, or 0 if there are none
    jobs: Iterator[Job]

    def only_model(self, participle: str) -> tuple[Job, Model, Source]:
        """Read the only model, or raise an error if there are several models or folds.

        The error message uses `participle` as its participle, for instance ``"checked"``.
        """
        if self.n_folds or len(self.models) > 1:
            noun, hint = "model", ""
            if self.n_folds:
                noun, hint = "fold", " Hint: --split FOLDER/fold_0."
            raise typer.BadParameter(
                f"only one {noun} can be {participle} at a time.{hint}", param_hint="--run"
            )
        job = next(self.jobs)
        return job, job.models[0], job.read(job.models[0])


@contextlib.contextmanager
def reading(
    data: DataOptions,
    model: ModelOptions,
    rules: RuleOptions,
    options: RunOptions,
    files: Files,
    *,
    metrics: Iterable[Metric] = (),
    baseline: str | None = None,
) -> Iterator[Work]:
    """Check the options for models and data, and yield the models and the jobs that read the files.

    Copies of standard input are deleted at the end of the block.
    """
    parts = parts_of(data)
    with_truth = model.pairs is not None and model == ModelOptions(pairs=model.pairs)
    if parts[0].test is None and not with_truth:
        raise typer.BadParameter("there is nothing to test on. Hint: --test or --split.")
    columns = _columns(data, parts)
    all_models = models(vars(model), data.format_in)
    check_stdin(files, data.format_in)
    _check_together(data, all_models, parts)
    other = baseline_of(baseline, all_models)
    of_catalogue = _of_catalogue(data)
    rated = any(metric.definition.record == "ratings" for metric in metrics)

    def read(fold: int, part: Part) -> Job:
        of_fold = [entry.in_fold(fold) for entry in all_models]
        paths = [path for entry in of_fold for path in entry.paths if path]
        inputs.check_columns([*filter(None, (part.test, part.train)), *paths])
        test = train = None
        lock: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if part.split is not None:
            from recometer.split.saving import locked

            lock = locked(part.split)
        with lock:
            if part.test is not None:
                test = inputs.interactions("test", part.test, value=True)
            if part.train is not None:
                train = inputs.interactions("train", part.train, value=True, test=test)
        arguments = {
            "train": train,
            "candidates": inputs.candidates("candidates", data.candidates, test),
            "exclude": inputs.candidates("exclude", data.exclude, test),
            "catalogue": inputs.catalogue(data.catalogue, test, of_catalogue),
            "threads": resolve_threads(options.threads),
        }
        if data.negatives is not None:
            negatives = inputs.candidates("negatives", data.negatives, test)
            arguments["candidates"] = rm.Negatives(negatives)
        progress = False if options.quiet else None
        job = Job(inputs, of_fold, test, train, arguments, rules, rated, progress)
        if other is not None:
            arguments["baseline"] = job.read(other.in_fold(fold))
        return job

    with StandardInput(data.format_in) as stdin:
        inputs = Inputs(stdin, columns, note_unless(options.quiet), data.separator)
        n_folds = len(parts) if len(parts) > 1 else 0
        yield Work(all_models, n_folds, itertools.starmap(read, enumerate(parts)))


def option_rules(options: RuleOptions) -> dict[str, Any]:
    """Return the rules that options set, keyed by name."""
    users = None if options.complete is None else "test" if options.complete else "known"
    shortcuts = {"ties": options.ties, "relevant_from": options.relevant_from, "users": users}
    rules: dict[str, Any] = {name: rule for name, rule in shortcuts.items() if rule is not None}
    for text in options.rule or []:
        name, equals, rule = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not RULE=VALUE.", param_hint="--rule")
        if name in rules:
            raise typer.BadParameter(f"the rule {name!r} is set twice.", param_hint="--rule")
        declared = Protocol.declared.get(name)
        rules[name] = rule if declared is None else declared.read(rule)
    return rules


def protocol_of(option: str, name: str, rules: dict[str, Any]) -> Protocol:
    """Return the protocol that an option names, with `rules` applied to it."""
    if as_listed(name) in protocol_names():
        protocol = named_protocol(name)
    elif name.endswith(".parquet"):
        protocol = rm.load(name).protocol
    else:
        raise typer.BadParameter(
            f"there is no protocol {name!r}. {did_you_mean(name, protocol_names())} Or name a "
            "saved evaluation (.parquet).",
            param_hint=option,
        )
    with usage_of("--rule"):
        return protocol.replace(**rules)
