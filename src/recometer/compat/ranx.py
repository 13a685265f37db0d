"""Drop-in for ranx, with `evaluate`, and with `Qrels` and `Run` for dicts or data frames."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recometer.compat import _shared
from recometer.compat._shared import convention_of, evaluated, ids_of, unknown
from recometer.data.files import read_qrels, read_run
from recometer.data.frames import is_frame, open_frame
from recometer.data.interactions import Interactions
from recometer.data.numbers import flag
from recometer.data.paths import as_path
from recometer.errors import InputError, InputTypeError
from recometer.sources.lists import Lists

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Qrels", "Run", "evaluate"]

LEVEL = re.compile(r"(.*)-l(\d+)")
PERSISTENCE = re.compile(r"rbp[.@](\d+)")


class _Queries:
    """A dict of dicts, or a data frame, with a grade or score for each document of a query."""

    _from_file: Callable[[Any], Any]
    _kind = ""

    def __init__(self, data: Any = None, name: str | None = None) -> None:
        self.name = name
        self._columns = ("q_id", "doc_id", "score")
        self._data = {} if data is None else data
        self._cache: dict[str, Any] = {}  # results that the next evaluation reuses
        if not isinstance(self._data, Mapping) and not is_frame(self._data):
            raise InputTypeError(
                f"{type(self).__name__} takes a dict of dicts or a data frame, but got "
                f"{type(data).__name__}. Hint: {type(self).__name__}.from_file reads a file."
            )

    @classmethod
    def from_dict(cls, d: Mapping[str, Mapping[str, float]], name: str | None = None) -> Self:
        """Read a dict of dicts."""
        return cls(d, name)

    @classmethod
    def from_df(
        cls,
        df: Any,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        name: str | None = None,
    ) -> Self:
        """Read a data frame from any library; the arguments ending in ``_col`` name its columns."""
        queries = cls(df, name)
        queries._columns = (q_id_col, doc_id_col, score_col)
        return queries

    @classmethod
    def from_file(cls, path: str, name: str | None = None) -> Self:
        """Read a TREC file, gzipped or not."""
        frame = cls._from_file(as_path(path, cls._kind))
        score = "value" if cls._kind == "qrels" else "score"
        return cls.from_df(frame, "user", "item", score, name)

    def keys(self) -> list[str]:
        """Return the ids of the queries in ascending order."""
        if "keys" not in self._cache:
            queries: Any = self._data
            if not isinstance(self._data, Mapping):
                _, read = open_frame(self._data)
                queries = set(np.asarray(read([self._columns[0]])[0]).tolist())
            try:
                self._cache["keys"] = sorted(queries)
            except TypeError as error:
                raise InputTypeError(
                    f"The query ids cannot be sorted ({error}). Hint: convert them all to strings."
                ) from None
        keys: list[str] = self._cache["keys"]
        return keys

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return each document's grade or score, keyed by query and document."""
        if isinstance(self._data, Mapping):
            return {query: dict(documents) for query, documents in self._data.items()}
        _, read = open_frame(self._data)
        documents: dict[str, dict[str, Any]] = {}
        columns = (np.asarray(column).tolist() for column in read(list(self._columns)))
        for query, document, number in zip(*columns, strict=True):
            documents.setdefault(query, {})[document] = number
        return documents

    def read(self, kind: Any, value: str) -> Any:
        """Read the data with `kind`; `value` is its argument for the column of grades or scores."""
        if value not in self._cache:
            options = {}
            if not isinstance(self._data, Mapping):
                options = dict(zip(("user", "item", value), self._columns, strict=True))
            self._cache[value] = kind(self._data, **options)
        return self._cache[value]

    def __len__(self) -> int:
        return len(self.keys())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self):,} queries>"


class Qrels(_Queries):
    """The grades of documents, as integers; documents with a grade of at least 1 are relevant.

    Parameters
    ----------
    data : dict of str to (dict of str to int), or data frame
        The grades, keyed by query and document, or a data frame from any library with the columns
        ``q_id``, ``doc_id`` and ``score``; use `from_df` for other names.
    name : str, optional
    """

    _from_file, _kind = staticmethod(read_qrels), "qrels"


class Run(_Queries):
    """The retrieved documents with their scores; the highest score is best.

    The parameters are those of `Qrels`. After `evaluate`, `scores` contains each metric's values,
    keyed by query; `mean_scores` and `std_scores` contain their means and standard deviations.
    """

    _from_file, _kind = staticmethod(read_run), "a run"

    def __init__(self, run: Any = None, name: str | None = None) -> None:
        super().__init__(run, name)
        self.scores: dict[str, dict[str, float]] = defaultdict(dict)
        self.mean_scores: dict[str, float] = {}
        self.std_scores: dict[str, float] = {}


def evaluate(
    qrels: Any,
    run: Any,
    metrics: Sequence[str] | str,
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
) -> Any:
    """Compute metrics of a run, like ``ranx.evaluate``.

    `qrels` and `run` are a `Qrels` and a `Run`, or anything from which these can be made, including
    ranx's own objects. Queries are matched by id. If the ids differ, `make_comparable` counts
    queries that are missing from the run as empty, and leaves out queries that are missing from the
    qrels; without it, the function raises an InputError. ``threads=0`` uses all processors.

    Returns
    -------
    float, array or dict
        For one metric, its mean, or ``{"mean": ..., "std": ...}`` if `return_std` is True. If
        `return_mean` is False, an array of the queries' values (float64 [n_queries]), in ascending
        order of query id. For several metrics, a dict with one of these results for each metric.

    Examples
    --------
    >>> from recometer.compat.ranx import evaluate
    >>> qrels = {"q1": {"d1": 1, "d2": 3}}
    >>> round(float(evaluate(qrels, {"q1": {"d1": 0.9, "d7": 0.5, "d2": 0.1}}, "ndcg@3")), 4)
    0.6885
    """
    truth, ranking = _as(Qrels, qrels), _as(Run, run)
    queries = truth.keys()
    _check_keys(set(queries), set(ranking.keys()), make_comparable)
    names = [metrics] if isinstance(metrics, str) else _shared.members_of("metrics", metrics, str)
    return_mean = flag("return_mean", return_mean)
    return_std = flag("return_std", return_std)
    threads = _shared.whole_number("threads", threads, 0)
    columns: dict[str, dict[str, float]] = {name: {} for name in names}
    test, lists = truth.read(Interactions.of, "value"), _lists(ranking, queries)
    largest = 1.0 if test.values is None else max(1.0, float(test.values.max(initial=1.0)))
    meanings = {name: _meaning(name, largest) for name in names}
    for level in {meaning.level for meaning in meanings.values()}:
        if lists is None:
            break
        of_level = {name: meaning for name, meaning in meanings.items() if meaning.level == level}
        graded = _from_level(test, level)
        names_at_level = {meaning.name for meaning in of_level.values()}
        result = evaluated("ranx", lists, graded, names_at_level, threads=threads or None)
        for name, meaning in of_level.items():
            values_of_queries = (result[meaning.name] * meaning.factor).tolist()
            columns[name] = dict(zip(ids_of(result), values_of_queries, strict=True))
    values = {
        name: np.array([column.get(query, 0.0) for query in queries])
        for name, column in columns.items()
    }
    if isinstance(run, Run) and save_results_in_run:
        for name, column in values.items():
            run.mean_scores[name] = float(np.mean(column))
            if return_std and return_mean:
                run.std_scores[name] = float(np.std(column))
            run.scores[name].update(zip(queries, column.tolist(), strict=True))
    summaries: dict[str, Any] = dict(values)
    for name, column in values.items() if return_mean else ():
        mean = np.mean(column)
        summaries[name] = {"mean": mean, "std": np.std(column)} if return_std else mean
    return summaries[names[0]] if len(names) == 1 else summaries


def _as(kind: type[Any], data: Any) -> Any:
    """Convert data to `kind`, which is `Qrels` or `Run`."""
    if isinstance(data, kind):
        return data
    module = type(data).__module__.split(".")[0]
    return kind(data.to_dict() if module == "ranx" else data)


def _lists(run: Run, queries: Collection[str]) -> Lists | None:
    """Return the lists of a run, or None if the run has no documents for any of the queries."""
    if isinstance(run._data, Mapping):
        present = any(run._data.get(query) for query in queries)
    else:
        present = not set(run.keys()).isdisjoint(queries)
    return run.read(Lists, "score") if present else None


def _check_keys(qrels: set[str], run: set[str], make_comparable: bool) -> None:
    if flag("make_comparable", make_comparable) or qrels == run:
        return
    differing = sorted(qrels ^ run)
    raise InputError(
        f"{len(differing):,} queries are only in qrels or only in run (the first: "
        f"{differing[0]!r}). Hint: make_comparable=True counts queries without a run as empty, and "
        "leaves those without qrels out."
    )


class _Meaning(NamedTuple):
    """A metric's name in the convention, its lowest relevant grade, and a factor for its values."""

    name: str
    level: int
    factor: float = 1.0


def _meaning(name: str, largest: float) -> _Meaning:
    """Translate ranx's name for a metric; `largest` is the largest grade in the qrels."""
    plain, level = name, 1
    if match := LEVEL.fullmatch(name):
        plain, level = match[1], int(match[2])
        if level < 1:
            raise InputError(f"The level of {name!r} must be at least 1.")
    if rbp := PERSISTENCE.fullmatch(plain):  # ranx multiplies by the grades
        return _Meaning(f"rbp(p=0.{rbp[1]},graded,max_gain={largest})", level, largest)
    convention = convention_of("ranx")
    if convention.entry(plain)[0] is None:
        raise unknown("ranx", "metric", name, convention.names)
    return _Meaning(plain, level)


def _from_level(test: Interactions, level: int) -> Interactions:
    """Set grades below a level to 0, so that the documents are judged but not relevant."""
    if level == 1 or test.values is None:
        return test
    return dataclasses.replace(test, values=np.where(test.values >= level, test.values, 0.0))
