"""Read data and models for evaluate, check, why and report."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from recometer.cli._exit import usage_of
from recometer.cli._groups import Files
from recometer.cli._inputs import NONE, Inputs, catalogue_columns, check_stdin
from recometer.cli._models import FOLD, Model, baseline_of, fit_baseline, models
from recometer.cli._options import DataOptions, ModelOptions, RuleOptions, RunOptions
from recometer.data.interactions import Interactions
from recometer.data.pipes import StandardInput
from recometer.errors import FileError, did_you_mean, warn
from recometer.evaluating.arguments import as_listed, named_protocol, protocol_names
from recometer.evaluation import Evaluation, evaluate, load
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.sources.base import Source
from recometer.sources.candidates import Negatives
from recometer.sources.truncated import Cut
from recometer.tasks import resolve_threads

if TYPE_CHECKING:
    from recometer.split import Split


class Part(NamedTuple):
    """The files of test and train, one of which may be missing, and the folder of a split."""

    test: str | None
    train: str | None
    split: Path | None = None


def load_split(folder: str) -> Split:
    """Read a split, which must not have several folds."""
    if _folds(folder):
        raise FileError(f"{folder} holds folds. Hint: name one of them: {Path(folder) / 'fold_0'}.")
    from recometer.split import Split

    return Split.load(folder)


def parts_of(
    test: str | None, train: str | None, folder: str | None, *, needs_test: bool
) -> tuple[list[Part], dict[str, str]]:
    """Return the named files of test and train, or the files and columns of a split.

    For folds, return the files of each fold.
    """
    if folder is None:
        if test is None and needs_test:
            raise typer.BadParameter("there is nothing to test on. Hint: --test or --split.")
        return [Part(test, train)], {}
    if test is not None or train is not None:
        raise typer.BadParameter("--split has test and train already. Hint: leave them out.")
    splits = _folds(folder) or [Path(folder)]
    columns = [_columns(one) for one in splits]
    files = ((str(one / "test.parquet"), str(one / "train.parquet"), one) for one in splits)
    return [Part(*each) for each in files], columns[0]


def _columns(folder: Path) -> dict[str, str]:
    """Return the names of the columns of a saved split: ``{"user": ...}``."""
    found = load_split(str(folder)).columns
    return {} if found is None else {name: n or NONE for name, n in found._asdict().items()}


def _folds(folder: str) -> list[Path]:
    """Return the folders of the folds in a folder, in order."""
    every = (Path(folder) / f"fold_{number}" for number in itertools.count())
    return list(itertools.takewhile(Path.is_dir, every))


@dataclasses.dataclass(frozen=True)
class Named:
    """The files, models and columns that options name, before any file is read."""

    parts: Sequence[Part]  # files of test and train: one pair, or a pair per fold
    folds: bool
    models: Sequence[Model]
    baseline: Model | None
    columns: dict[str, str | None]  # as `Inputs` takes them
    catalogue_columns: dict[str, str | list[str]]


@dataclasses.dataclass(frozen=True)
class Job:
    """The data of one fold or of all data, after reading, and how to read the models."""

    inputs: Inputs
    named: Named
    models: Sequence[Model]
    test: Interactions | None  # None if the models contain the truth
    train: Interactions | None
    given: dict[str, Any]  # other arguments of `recometer.evaluate`
    rules: RuleOptions
    rated: bool  # whether a metric reads true ratings
    progress: bool | None  # as `recometer.evaluate` takes it

    def sources(self) -> Iterator[tuple[Model, Source]]:
        """Read one model after the other."""
        for model in self.models:
            yield model, self._read(model)

    def evaluate(
        self, model: Model, source: Source, metrics: Metrics, protocol: Protocol, **more: Any
    ) -> Evaluation:
        """Evaluate a model; `more` are other arguments of `recometer.evaluate`."""
        options: dict[str, Any] = {"seed": self.rules.seed, "progress": self.progress}
        options |= {**self.given, **more}
        with self.inputs.stated(model):
            return evaluate(source, self.test, metrics=metrics, protocol=protocol, **options)

    def _read(self, model: Model) -> Source:
        if model.kind == "answers":
            return self.inputs.answers(model, self.given["catalogue"], self.rules.depth)
        with self.inputs.stated(model):
            if model.kind == "baseline":
                assert self.train is not None
                return fit_baseline(model.name, self.train, self.rules.seed, self.progress)
            source = self.inputs.source(model, self.test, self.rated)
            return source if self.rules.depth is None else Cut(source, self.rules.depth)


def named_by(
    data: DataOptions, options: ModelOptions, files: Files, baseline: str | None = None
) -> Named:
    """Return what the options name; raise an error if options contradict each other."""
    with_truth = options == ModelOptions(pairs=options.pairs) and options.pairs is not None
    parts, columns_of_split = parts_of(data.test, data.train, data.split, needs_test=not with_truth)
    named = models(vars(options), data.format_in)
    columns = {name: getattr(data, name) for name in ("user", "item", "value", "score", "rank")}
    for name, column in columns_of_split.items():
        if columns.get(name) is None:
            columns[name] = column
    check_stdin(files, data.format_in)
    _check_together(data, named, parts)
    return Named(
        parts,
        len(parts) > 1,
        named,
        baseline_of(baseline, named),
        columns,
        catalogue_columns(data.catalogue, data.categories, data.features, data.propensity),
    )


def named_alone(
    data: DataOptions, model: ModelOptions, files: Files, done: str, baseline: str | None = None
) -> Named:
    """As `named_by`, but require a single model, and no folds.

    The error for several models says that one model is `done` at a time.
    """
    named = named_by(data, model, files, baseline)
    if len(named.models) != 1 or named.folds:
        what, hint = "model", ""
        if named.folds:
            what, hint = "fold", f" Hint: --split {data.split}/fold_0."
        raise typer.BadParameter(f"one {what} is {done} at a time.{hint}", param_hint="--run")
    return named


def _check_together(data: DataOptions, named: Sequence[Model], parts: Sequence[Part]) -> None:
    """Raise an error if options contradict each other."""
    kinds = {model.kind for model in named}
    if data.rank not in (None, NONE) and data.score not in (None, NONE):
        raise typer.BadParameter("--rank and --score: name the one to rank by.")
    if data.candidates is not None and data.negatives is not None:
        raise typer.BadParameter(
            "--candidates has all items that may be recommended, --negatives all except the "
            "items of test: give one of them."
        )
    if "baseline" in kinds and parts[0].train is None:
        raise typer.BadParameter(
            "they are fitted to --train, which is missing.", param_hint="--baselines"
        )
    if len(parts) > 1:
        alike = [each.name for each in named if each.paths and FOLD not in "".join(each.paths)]
        if alike:
            raise typer.BadParameter(
                f"{alike[0]} has the same files in every fold. Hint: {FOLD} in the name of a file "
                f"stands for the number of the fold, such as --run als=als_{FOLD}.parquet."
            )
    elif any(FOLD in path for each in named for path in each.paths):
        raise typer.BadParameter(
            f"{FOLD} stands for the number of a fold, but there are no folds. Hint: --split "
            "FOLDER, to which recometer split wrote folds."
        )


@contextlib.contextmanager
def reading(
    named: Named, data: DataOptions, rules: RuleOptions, options: RunOptions, *, rated: bool
) -> Iterator[Iterator[Job]]:
    """Read the data, fold by fold, and delete copies of standard input at the end."""
    with StandardInput(data.format_in) as stdin:
        yield _jobs(named, data, rules, options, stdin, rated)


def _jobs(
    named: Named,
    data: DataOptions,
    rules: RuleOptions,
    options: RunOptions,
    stdin: StandardInput,
    rated: bool,
) -> Iterator[Job]:
    inputs = Inputs(stdin, named.columns, options.note, data.separator)
    for fold, part in enumerate(named.parts):
        of_fold = [model.in_fold(fold) for model in named.models]
        paths = [path for model in of_fold for path in model.paths if path]
        inputs.check_columns([*filter(None, (part.test, part.train)), *paths])
        other = None if named.baseline is None else named.baseline.in_fold(fold)
        with _locked(part.split):
            test, train = inputs.both(part.test, part.train)
        given = {
            "train": train,
            "candidates": inputs.candidates("candidates", data.candidates, test),
            "exclude": inputs.candidates("exclude", data.exclude, test),
            "catalogue": inputs.catalogue(data.catalogue, test, named.catalogue_columns),
            "threads": resolve_threads(options.threads),
        }
        if data.negatives is not None:
            given["candidates"] = Negatives(inputs.candidates("negatives", data.negatives, test))
        progress = False if options.quiet else None
        job = Job(inputs, named, of_fold, test, train, given, rules, rated, progress)
        if other is not None:
            ((_, given["baseline"]),) = dataclasses.replace(job, models=[other]).sources()
        yield job


def _locked(split: Path | None) -> contextlib.AbstractContextManager[None]:
    """Lock the folder of a split, if there is one."""
    if split is None:
        return contextlib.nullcontext()
    from recometer.split.saving import alone

    return alone(split)


def given_rules(options: RuleOptions) -> dict[str, Any]:
    """Return the rules that are set by options, by name."""
    users = None if options.complete is None else "test" if options.complete else "known"
    own = {"ties": options.ties, "relevant_from": options.relevant_from, "users": users}
    rules: dict[str, Any] = {name: rule for name, rule in own.items() if rule is not None}
    for text in options.rule or []:
        name, equals, rule = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not RULE=VALUE.", param_hint="--rule")
        if name in rules:
            raise typer.BadParameter(f"the rule {name!r} is given twice.", param_hint="--rule")
        declared = Protocol.declared.get(name)
        rules[name] = rule if declared is None else declared.read(rule)
    return rules


def protocol_of(option: str, name: str, rules: dict[str, Any]) -> Protocol:
    """Return the protocol that an option names, with some rules replaced."""
    if as_listed(name) in protocol_names():
        found = named_protocol(name)
    elif name.endswith(".parquet"):
        found = load(name).protocol
    else:
        raise typer.BadParameter(
            f"there is no protocol {name!r}. {did_you_mean(name, protocol_names())} Or name a "
            "saved evaluation (.parquet).",
            param_hint=option,
        )
    with usage_of("--rule"):
        return found.replace(**rules)


def with_users(
    protocol: Protocol, name: str, rules: dict[str, Any], named: Sequence[Model], inputs: Inputs
) -> Protocol:
    """Return the protocol with one rule `users` for all models, so that means are comparable."""
    if name != Protocol().name or "users" in rules:
        return protocol
    runs = [model.name for model in named if inputs.is_trec(model)]
    if len(runs) == len(named):
        return protocol.replace(users="known")
    if runs:
        warn(
            f"{', '.join(runs)}: because other models are not TREC runs, topics without a list "
            "count as misses. Hint: --complete confirms this, and --no-complete leaves them out "
            "for all models."
        )
    return protocol.replace(users="test")
