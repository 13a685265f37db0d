"""Models as they are named on the command line, before any file is read."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from recometer.cli._messages import check_name
from recometer.data.factor_files import is_archive
from recometer.data.files import EXTENSIONS
from recometer.data.interactions import Interactions
from recometer.data.pipes import InputFormat, is_stdin, is_stream, needs_format
from recometer.errors import FileError

if TYPE_CHECKING:
    from recometer.sources.base import Source

Kind = Literal["run", "answers", "factors", "pairs", "baseline"]
BASELINES = ("random", "popular", "knn", "svd", "ease")
FOLD = "{fold}"  # this string in a file name stands for the number of the fold

OF_RUNS = (".run", ".trec", ".txt")  # common extensions of TREC runs
USAGE = "USERS,ITEMS[,USER_IDS,ITEM_IDS] or NPZ[,USER_IDS,ITEM_IDS]"


@dataclasses.dataclass(frozen=True)
class Model:
    """A model named on the command line. Its kind is the name of the option that was used."""

    name: str
    kind: Kind
    paths: Sequence[str] = ()  # several files for factors, none for a baseline, otherwise one

    def in_fold(self, fold: int) -> Model:
        """Return the same model with the files of one fold."""
        return dataclasses.replace(
            self, paths=[path.replace(FOLD, str(fold)) for path in self.paths]
        )


def models(options: Mapping[str, Any], form: InputFormat | None) -> list[Model]:
    """Return the models that options name.

    The function raises an error if there are no models, if two models have the same name, or if the
    number of files is wrong. `form` is the format of pipes, whose names do not reveal it.
    """
    all_models = [
        *_of_one_file(options, "run"),
        *_of_one_file(options, "answers"),
        *_of_factors(options["factors"] or [], form),
        *_of_one_file(options, "pairs"),
        *_of_baselines(options["baselines"] or []),
    ]
    if not all_models:
        raise typer.BadParameter(
            "there is no model to evaluate. Hint: --run, --answers, --factors, --pairs or "
            "--baselines."
        )
    names = [model.name for model in all_models]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise typer.BadParameter(f"two models are called {repeated!r}. Hint: write NAME=FILE.")
    return all_models


def _of_one_file(options: Mapping[str, Any], kind: Kind) -> Iterator[Model]:
    for text in options[kind] or []:
        name, path = split_name(text, f"--{kind}")
        if not path:
            raise typer.BadParameter(f"{text!r} names no file.", param_hint=f"--{kind}")
        yield Model(name or stem(path), kind, [path])


def _of_factors(texts: Sequence[str], form: InputFormat | None) -> Iterator[Model]:
    for text in texts:
        name, files = split_name(text, "--factors")
        paths = files.split(",")
        piped = form is InputFormat.npz and needs_format(paths[0])
        archive = piped or is_archive(paths[0])
        needed = 1 if archive else 2
        if len(paths) not in (needed, needed + 2) or not all(paths[:needed]):
            nameless = form is None and needs_format(paths[0])
            hint = " Hint: --format-in npz, if it is an archive." if nameless else ""
            raise typer.BadParameter(
                f"{text!r} is not [NAME=]{USAGE}.{hint}", param_hint="--factors"
            )
        yield Model(name or (stem(paths[0]) if archive else "factors"), "factors", paths)


def _of_baselines(texts: Sequence[str]) -> Iterator[Model]:
    for name in (part.strip() for text in texts for part in text.split(",")):
        yield Model(check_name(name, BASELINES, "baseline ", "--baselines"), "baseline")


def baseline_of(text: str | None, models: Sequence[Model]) -> Model | None:
    """Return the model whose lists are the baseline: a named model, or a file of lists."""
    if text is None:
        return None
    model = next((model for model in models if model.name == text), None)
    path = split_name(text, "--baseline")[1]
    if model is None and not is_stdin(path) and not os.path.exists(path) and FOLD not in path:
        names = ", ".join(repr(model.name) for model in models)
        raise FileError(
            f"--baseline {text}: there is no such file, and no such model. Hint: the models are "
            f"{names}."
        )
    return model or next(_of_one_file({"run": [text]}, "run"))


def split_name(text: str, option: str) -> tuple[str, str]:
    """Split ``NAME=FILES`` into its parts; the name is empty if there is none."""
    name, equals, files = text.partition("=")
    if not equals or "/" in name or os.sep in name:
        return "", text
    if not name:
        raise typer.BadParameter(f"{text!r} has no name before '='.", param_hint=option)
    return name, files


def stem(path: str) -> str:
    """Return the name of a file without its extension, for use as a model's name."""
    if is_stream(path):
        return "stdin" if is_stdin(path) else "pipe"
    name = Path(path).name
    ends = (*EXTENSIONS, ".npz", *(f"{end}{zipped}" for end in OF_RUNS for zipped in ("", ".gz")))
    extension = next((e for e in ends if name.lower().endswith(e)), "")
    return name[: len(name) - len(extension)] or name


def fit_baseline(name: str, train: Interactions, seed: int, progress: bool | None) -> Source:
    """Fit a simple model to the training data, with the defaults of `recometer.baselines`."""
    from recometer import baselines  # imported only here, because most evaluations do not need it

    fits: dict[str, Callable[[], Source]] = {
        "random": lambda: baselines.random_ranking(train, seed=seed),
        "popular": lambda: baselines.most_popular(train),
        "knn": lambda: baselines.item_knn(train, progress=progress),
        "svd": lambda: baselines.truncated_svd(train, seed=seed, progress=progress),
        "ease": lambda: baselines.ease(train, progress=progress),
    }
    return fits[name]()
