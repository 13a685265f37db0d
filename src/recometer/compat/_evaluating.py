"""Evaluates under another library's convention, without warnings; shared by drop-ins."""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from recometer.arrays import Float64
from recometer.errors import DataWarning, UnknownNameError, did_you_mean
from recometer.evaluating.finish import measured
from recometer.evaluation import Evaluation, evaluate
from recometer.evaluator import Evaluator
from recometer.metrics.conventions import Convention, find
from recometer.sources.base import Source


def convention_of(name: str) -> Convention:
    """Return the convention of this name."""
    convention = find(name)
    assert convention is not None
    return convention


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress warnings about the data, because the original libraries do not warn either."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


def evaluated(
    convention: str,
    source: Source,
    test: object,
    metrics: Iterable[str],
    *,
    threads: int | None = 1,
    **given: Any,
) -> Evaluation:
    """Evaluate as a library does, including its defects.

    Like the library, a drop-in never warns, and never checks whether ids look like positions.
    """
    given.setdefault("defects", True)
    given.setdefault("shifted_ids", "kept")
    with quiet():
        return evaluate(
            source,
            test,
            metrics=list(metrics),
            protocol=convention,
            threads=threads,
            progress=False,
            **given,
        )


def values_of(
    convention: str, source: Source, metrics: Iterable[str], **rules: Any
) -> dict[str, Float64]:
    """Return only the values of each user, for a source that contains the truth.

    This works like `evaluated` with one thread, but only parses names and rules once, because there
    may be many batches.
    """
    rules.setdefault("defects", True)
    evaluator = _evaluator(convention, tuple(sorted(metrics)), tuple(sorted(rules.items())))
    with quiet():
        return dict(measured(evaluator.case(source)).values)


@functools.lru_cache(maxsize=64)
def _evaluator(
    convention: str, metrics: tuple[str, ...], rules: tuple[tuple[str, Any], ...]
) -> Evaluator:
    """Return an evaluator without data."""
    options: dict[str, Any] = {"threads": 1, "progress": False, **dict(rules)}
    return Evaluator(metrics=[*metrics], protocol=convention, **options)


def ids_of(result: Evaluation) -> list[Any]:
    """Return the ids of the users, or their positions."""
    return [*range(len(result))] if result.user_ids is None else result.user_ids.tolist()


def tensor(value: Any) -> Any:
    """Return a float32 tensor, or a NumPy number or array if torch is not imported."""
    torch = sys.modules.get("torch")
    return np.float32(value) if torch is None else torch.as_tensor(np.float32(value))


def unknown(library: str, what: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that the drop-in (and perhaps the library) does not have."""
    return UnknownNameError(
        f"The drop-in for {library} has no {what} {name!r}. {did_you_mean(str(name), list(known))}"
    )
