"""Drop-in for pytrec_eval, with RelevanceEvaluator, file readers, and aggregation."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from recometer import _kernel, ragged
from recometer.arrays import Float64, Int64, UInt64
from recometer.compat import _shared
from recometer.compat._shared import convention_of, evaluated, ids_of, unknown, values_of
from recometer.errors import InputError
from recometer.ranks import Ranks, UserFlag
from recometer.sources.lists import Lists

__all__ = [
    "RelevanceEvaluator",
    "compute_aggregated_measure",
    "parse_qrel",
    "parse_run",
    "supported_measures",
    "supported_nicknames",
]

Qrels = Mapping[str, Mapping[str, int]]
Run = Mapping[str, Mapping[str, float]]

AT = "_{k}"
OURS = [entry.name for entry in convention_of("trec_eval").entries if not entry.from_source]
AT_CUTOFFS = {name.removesuffix(AT) for name in OURS if name.endswith(AT)}
WITHOUT = {name for name in OURS if not name.endswith(AT) and name != "Rprec_mult_1.00"}
# A measure with the prefix gm_ is the logarithm of another; set_map is the product of two others.
DERIVED = {"gm_map": ("map",), "gm_bpref": ("bpref",), "set_map": ("set_P", "set_recall")}
COUNTS = {"num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret"}
QRELS, RUN = '{"q1": {"d1": 1}}', '{"q1": {"d1": 0.5}}'  # messages show these examples
LEAST = 0.00001  # smaller values are replaced by this one before their logarithm is taken
CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
FIRST_CUTOFFS: dict[str, tuple[int, ...]] = {"success": (1, 5, 10)}
MOST_TIED = 2**18  # `judged_ranks` searches for tied documents in runs of at most this total length
Single = npt.NDArray[np.float32]

supported_measures = frozenset(AT_CUTOFFS | WITHOUT | COUNTS | set(DERIVED))
supported_nicknames = {
    "set": frozenset({"set_P", "set_recall", "set_F", "set_map", "set_relative_P"})
    | {"num_q", "num_ret", "num_rel", "num_rel_ret"},
}


class RelevanceEvaluator:
    """Evaluates runs query by query, like ``pytrec_eval.RelevanceEvaluator``.

    `measures` are names from `supported_measures` or `supported_nicknames`. Cut-offs follow a dot
    or an underscore (``"ndcg_cut.10,100"``, ``"P_5"``); a measure without cut-offs gets trec_eval's
    default cut-offs. Unknown names raise an UnknownNameError (a ValueError). Documents are relevant
    if their grade is at least `relevance_level`.

    Examples
    --------
    >>> from recometer.compat.pytrec_eval import RelevanceEvaluator
    >>> evaluator = RelevanceEvaluator({"q1": {"d1": 1, "d2": 0}}, {"map", "ndcg_cut.5"})
    >>> evaluator.evaluate({"q1": {"d1": 0.5, "d2": 1.5}})
    {'q1': {'map': 0.5, 'ndcg_cut_5': 0.6309297535714575}}
    """

    def __init__(
        self,
        query_relevance: Qrels,
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        _shared.dict_of_dicts("query_relevance", query_relevance, QRELS)
        grades = [grade for judged in query_relevance.values() for grade in judged.values()]
        _shared.array_of_numbers("Relevance", grades)
        self.query_relevance = {
            query: judged for query, judged in query_relevance.items() if judged
        }
        self.measures = _expanded(_shared.members_of("measures", measures, str))
        self.relevance_level = _shared.whole_number("relevance_level", relevance_level)
        self.judged_docs_only = bool(judged_docs_only_flag)

    def evaluate(self, scores: Run) -> dict[str, dict[str, float]]:
        """Return every measure for each query that is in both the qrels and the run.

        Documents with equal scores are ranked in descending order of their ids.
        """
        _shared.dict_of_dicts("The run", scores, RUN)
        queries = [query for query in scores if query in self.query_relevance]
        run = {query: scores[query] for query in queries}
        if self.judged_docs_only:
            run = {
                query: {d: score for d, score in of.items() if self._is_judged(query, d)}
                for query, of in run.items()
            }
        columns = self._counts(run)
        needed = {part for name in self.measures for part in DERIVED.get(name, (name,))}
        names = sorted(needed - COUNTS)
        filled = {query: of for query, of in run.items() if of}
        if names and filled:
            columns |= self._values(names, filled)
        for name in names:  # without documents, there are no values yet
            columns.setdefault(name, {})
        for name in self.measures & DERIVED.keys():
            columns[name] = _derived(name, columns, queries)
        order = sorted(self.measures)
        values = [[columns[name].get(query, 0.0) for query in queries] for name in order]
        rows = list(zip(*values, strict=True)) if order else [()] * len(queries)
        return {
            query: dict(zip(order, row, strict=True))
            for query, row in zip(queries, rows, strict=True)
        }

    def _is_judged(self, query: str, document: str) -> bool:
        """Return whether a document was judged, which means that its grade is at least 0."""
        return self.query_relevance[query].get(document, -1) >= 0

    def _values(self, names: Sequence[str], run: Run) -> dict[str, dict[str, float]]:
        ranks, values = judged_ranks(run, self.query_relevance), {}
        if ranks is None:
            lists, test = Lists(run), {query: self._judged(query) for query in run}
        # NDCG is computed from the grades, whatever the relevance level.
        levels = {name: 1 if name.startswith("ndcg") else self.relevance_level for name in names}
        for level in set(levels.values()):
            of_level, queries = [name for name in names if levels[name] == level], [*run]
            result: Any
            if ranks is None:
                result = evaluated("trec_eval", lists, test, of_level, relevant_from=float(level))
                queries = ids_of(result)
            else:
                relevant = ranks.gain >= level
                n_relevant = np.diff(ragged.offsets(relevant, ranks.indptr))
                graded = dataclasses.replace(ranks, relevant=relevant, n_relevant=n_relevant)
                result = values_of("trec_eval", graded, of_level, relevant_from=float(level))
            for name in of_level:
                values[name] = dict(zip(queries, result[name].tolist(), strict=True))
        return values

    def _judged(self, query: str) -> dict[str, int]:
        """Return the grades of a query's judged documents, or 0 for all if none was judged."""
        grades = self.query_relevance[query]
        return {d: grade for d, grade in grades.items() if grade >= 0} or dict.fromkeys(grades, 0)

    def _counts(self, run: Run) -> dict[str, dict[str, float]]:
        columns: dict[str, dict[str, float]] = {}
        names = self.measures & COUNTS
        for query, documents in run.items() if names else ():
            judged, level = self.query_relevance[query], self.relevance_level
            relevant = {document for document, grade in judged.items() if grade >= level}
            nonrelevant = {document for document, grade in judged.items() if 0 <= grade < level}
            numbers = {
                "num_q": 1,
                "num_ret": len(documents),
                "num_rel": len(relevant),
                "num_rel_ret": len(relevant & documents.keys()),
                "num_nonrel_judged_ret": len(nonrelevant & documents.keys()),
            }
            for name in names:
                columns.setdefault(name, {})[query] = float(numbers[name])
        return columns


def _derived(
    name: str, columns: Mapping[str, Mapping[str, float]], queries: Sequence[str]
) -> dict[str, float]:
    parts = [columns[part] for part in DERIVED[name]]
    values = [math.prod(part.get(query, 0.0) for part in parts) for query in queries]
    if name.startswith("gm_"):
        values = [math.log(max(value, LEAST)) for value in values]
    return dict(zip(queries, values, strict=True))


def _expanded(measures: Iterable[str]) -> frozenset[str]:
    """Replace nicknames by their measures, and cut-off lists by one name for each cut-off."""
    names: set[str] = set()
    with_cutoffs: dict[str, set[int]] = {}
    parts = {part for name in measures for part in supported_nicknames.get(name, [name])}
    for measure in parts:
        base, numbers = _split(measure)
        if base in AT_CUTOFFS:
            with_cutoffs.setdefault(base, set()).update(numbers)
        else:
            names.add(base)
    for base, cutoffs in with_cutoffs.items():
        for k in cutoffs or FIRST_CUTOFFS.get(base, CUTOFFS):
            names.add(f"{base}_{k}")
    return frozenset(names)


def _split(measure: str) -> tuple[str, list[int]]:
    if measure in supported_measures:
        return measure, []
    match = re.fullmatch(r"(\w+?)[._](\d+(?:,\d+)*)", measure)
    if match is None or match[1] not in AT_CUTOFFS:
        names = supported_measures | supported_nicknames.keys()
        raise unknown("pytrec_eval", "measure", measure, sorted(names))
    return match[1], [int(number) for number in match[2].split(",")]


def compute_aggregated_measure(measure: str, values: Sequence[float]) -> float:
    """Aggregate the values of a measure over queries.

    Counts (``num_``) are added up. For geometric means (``gm_``), the values are logarithms, and
    the result is the exponential of their mean. For other measures, the result is the mean.
    """
    array = np.atleast_1d(_shared.array_of_numbers("values", values))
    if str(measure).startswith("num_"):
        return float(array.sum())
    mean = float(array.mean()) if len(array) else np.nan
    return float(np.exp(mean)) if str(measure).startswith("gm_") else mean


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read the lines of a TREC run, with the fields query, Q0, document, rank, score and name."""
    return _parse(f_run, n_fields=6, value=4, kind=float)


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read the lines of TREC qrels, with the fields query, iteration, document and relevance."""
    return _parse(f_qrel, n_fields=4, value=3, kind=int)


def _parse(lines: Iterable[str], n_fields: int, value: int, kind: type) -> dict[str, Any]:
    table: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(_shared.members_of("The file", lines, str), 1):
        fields = line.split()
        if len(fields) != n_fields:
            raise InputError(f"Line {number} has {len(fields)} fields, but must have {n_fields}.")
        query, document = fields[0], fields[2]
        if document in table.setdefault(query, {}):
            raise InputError(f"Line {number}: {document!r} occurs twice for query {query!r}.")
        try:
            table[query][document] = kind(fields[value])
        except ValueError:
            noun = "a whole number" if kind is int else "a number"
            raise InputError(
                f"Line {number}: {fields[value]!r} must be {noun}, in field {value + 1}."
            ) from None
    return table


def judged_ranks(run: Run, judged: Qrels) -> Ranks | None:
    """Rank the judged documents, or return None if the run does not meet the requirements.

    Ids must be strings, and scores must be finite with few ties. A grade below 0 means that a
    document was not judged. Such documents are left out, unless the qrels of the query contain no
    other documents. Every document counts as relevant.
    """
    lists, truths = list(run.values()), [judged[query] for query in run]
    try:
        "".join(itertools.chain(run, *lists, *truths))  # faster than checking each id
        for scores_of_query in lists:
            sum(scores_of_query.values())  # unlike NumPy, raises an error for strings
    except TypeError:
        return None
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    first = ragged.indptr_of(lengths)
    flat = itertools.chain.from_iterable(documents.values() for documents in lists)
    scores = _single(np.fromiter(flat, np.float64, int(first[-1])))
    if not np.isfinite(scores).all():
        return None
    keys = _keys(ragged.users_of(first), scores)
    indptr, documents, gain, judged_scores = _judgements(lists, truths)
    user, rows = ragged.users_of(indptr), np.flatnonzero(~np.isnan(judged_scores))
    keys_of_rows, in_order = _keys(user[rows], judged_scores[rows]), keys.copy()
    for begin, end in itertools.pairwise(first.tolist()):  # much faster than a single sort
        in_order[begin:end].sort()
    above, tied, before = (np.full(len(user), number) for number in (-1, 0, 0))
    left, right = (in_order.searchsorted(keys_of_rows, side) for side in ("left", "right"))
    above[rows], tied[rows] = left - first[user[rows]], right - left - 1
    several = np.flatnonzero(tied[rows])
    if lengths[user[rows[several]]].sum() > MOST_TIED:
        return None
    for row, key in zip(rows[several].tolist(), keys_of_rows[several], strict=True):
        query, document = int(user[row]), documents[row]
        equal = (keys[first[query] : first[query + 1]] == key).tolist()
        equal_documents = itertools.compress(lists[query], equal)
        before[row] = sum(other < document for other in equal_documents)
    order = np.empty(len(above), np.int64)
    _kernel.best_first(indptr, above, before, order)
    return Ranks(
        indptr=indptr,
        item=order - indptr[user],
        above=above[order],
        tied=tied[order],
        before=before[order],
        gain=gain[order],
        relevant=np.ones(len(order), dtype=bool),
        n_relevant=np.diff(indptr),
        n_candidates=np.full(len(run), -1),
        n_excluded=np.zeros(len(run), np.int64),
        depth=lengths,
        flags=np.full(len(run), UserFlag.KNOWN, np.uint32),
    )


def _judgements(
    lists: Sequence[Mapping[str, float]], truths: Sequence[Mapping[str, int]]
) -> tuple[Int64, list[str], Float64, Single]:
    """Return the judged documents of each query.

    The result contains the offsets of the queries, and the ids, grades and scores of the
    documents. A score is NaN if the document is not in the run.
    """
    grades, scores = (
        np.array([*itertools.chain.from_iterable(column)], np.float64)
        for column in (
            (truth.values() for truth in truths),
            (map(of.get, truth) for of, truth in zip(lists, truths, strict=True)),
        )
    )
    indptr = ragged.indptr_of(np.fromiter(map(len, truths), np.int64, len(truths)))
    user, judged = ragged.users_of(indptr), grades >= 0
    selected = judged | (np.bincount(user[judged], minlength=len(truths)) == 0)[user]
    documents = [*itertools.compress(itertools.chain.from_iterable(truths), selected.tolist())]
    gain = np.where(judged, grades, 0.0)[selected]
    return ragged.offsets(selected, indptr), documents, gain, _single(scores[selected])


def _single(scores: Float64) -> Single:
    """Round scores to single precision, in which trec_eval compares them."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32)


def _keys(user: Int64, scores: Single) -> UInt64:
    """Return integers that sort by user, and within each user by descending score."""
    bits = (np.float32(0) - scores).view(np.uint32)  # 0 and -0 become equal
    # Floats sort like their bits once all bits of negative floats are inverted and the sign bit of
    # all other floats is set.
    bits = np.where(bits >> 31, ~bits, bits | np.uint32(2**31))
    return (user.astype(np.uint64) << np.uint64(32)) | bits
