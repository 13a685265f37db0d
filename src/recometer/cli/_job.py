"""What evaluate and why read: the data, the models, and what stands beside them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from recometer.cli._folder import data_of
from recometer.cli._groups import Files
from recometer.cli._inputs import (
    NONE,
    Inputs,
    Model,
    baseline_of,
    catalogue_columns,
    check_stdin,
    models,
)
from recometer.cli._options import DataOptions, ModelOptions, RuleOptions, RunOptions
from recometer.cli._stdin import StandardInput
from recometer.data.interactions import Interactions
from recometer.sources.base import Source
from recometer.tasks import resolve_threads


@dataclasses.dataclass(frozen=True)
class Named:
    """What the options name, before a file is read."""

    data: Sequence[str]  # the files of test, and of train if there is one
    models: Sequence[Model]
    baseline: Model | None
    columns: dict[str, str | None]  # as `Inputs` takes them
    catalogue_columns: dict[str, str | list[str]]


@dataclasses.dataclass(frozen=True)
class Job:
    """The data that were read, and how to read the models."""

    inputs: Inputs
    test: Interactions
    given: dict[str, Any]  # arguments of `recometer.evaluate` beside source and test
    depth: int | None  # where lists are cut

    def source(self, model: Model) -> Source:
        """Read a model."""
        return self.inputs.source(model, self.test, self.depth)


def named_by(data: DataOptions, model: ModelOptions, files: Files) -> Named:
    """Return what options name, and refuse those that do not go together."""
    test, train, known = data_of(data.test, data.train, data.split)
    named = models(model.run or [], model.factors or [])
    columns = {name: getattr(data, name) for name in ("user", "item", "value", "score", "rank")}
    columns |= {name: column for name, column in known.items() if columns.get(name) is None}
    check_stdin(files, data.format_in)
    if data.rank not in (None, NONE) and data.score not in (None, NONE):
        raise typer.BadParameter("--rank and --score: name the one to rank by.")
    return Named(
        [test] if train is None else [test, train],
        named,
        baseline_of(model.baseline, named),
        columns,
        catalogue_columns(data.catalogue, data.categories, data.features, data.propensity),
    )


@contextlib.contextmanager
def reading(
    named: Named, data: DataOptions, rules: RuleOptions, options: RunOptions
) -> Iterator[Job]:
    """Read the data, for as long as files of standard input are kept."""
    files = [path for model in named.models for path in model.paths if path]
    with StandardInput(data.format_in) as stdin:
        inputs = Inputs(stdin, named.columns, options.note)
        inputs.check_columns([*named.data, *files])
        test, train = inputs.both(*named.data, *[None][: 2 - len(named.data)])
        catalogue = inputs.catalogue(data.catalogue, test, named.catalogue_columns)
        other = named.baseline
        given = {
            "train": train,
            "catalogue": catalogue,
            "baseline": None if other is None else inputs.source(other, test, rules.depth),
            "threads": resolve_threads(options.threads),
        }
        yield Job(inputs, test, given, rules.depth)
