"""Every value recorded from another library is reproduced under that library's metric name."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import re
import warnings
from typing import Any

import numpy as np
import pytest
from convention_cases import Ask, Cases, Record, ask_for, load, mini, number, of_lists
from convention_numbers import convention_of, printed_values

import recometer as rm
from recometer.metrics import METRICS

pytestmark = pytest.mark.shared
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "conventions.md"

# The kinds of list metrics; tests/metrics/listed/test_conventions.py tests their formulas.
OF_LISTS = (
    "coverage", "novelty", "ild", "serendipity", "arp", "gini", "entropy", "tail", "diversity",
    "personalization", "unexpectedness", "ils",
)  # fmt: skip
NO_METRIC = ("all", "env")
# These libraries order the items of user u6 arbitrarily: this user has constant scores, for which
# torch.topk may return a different order in each call.
ARBITRARY = {("recbole", "matrix"): "u6", ("torchmetrics", "matrix"): "u6"}

UNSTABLE = "unstable: the sort leaves the order of equal scores undefined"
NOISE = "unstable: equal scores are ordered by random noise"
MEMORY = "defect: the library prints uninitialised memory"
ACCIDENT = (
    "unstable: the place of a NaN or infinite score depends on how the sort happens to compare it"
)
PAIRS = "derived from the source code; the denominator counts one pair too many"
LAST_OF_TIES = (
    "derived from the source code; a tied item counts as below all the others in its group"
)
MINUS = (
    "recometer reads -inf in a matrix as 'not a candidate', whereas the library reads it as a score"
)
NO_CASE = "the case is not described"
REPLAY = ("Precision", "Recall", "HitRate", "MRR", "MAP", "NDCG", "RocAuc")
# Records that cannot be reproduced. Each entry contains the library, the beginning of the call, the
# beginning of the source, and the reason.
EXCEPTIONS = (
    ("pytrec_eval", "map", "mini:empty", "a dict without a value was printed"),
    ("pytrec_eval", "recip_rank", "mini:nan_", ACCIDENT),
    ("ir_measures", "RR@5", "mini:nan_", ACCIDENT),
    ("implicit", "", "mini:nan_", ACCIDENT),
    ("implicit", "", "mini:inf_score", ACCIDENT),
    *(("replay", f"{name} [dict]", "mini:nan_", ACCIDENT) for name in REPLAY),
    ("torchmetrics", "retrieval_normalized_dcg", "mini:nan_", "defect: NaN last, elsewhere first"),
    ("torchmetrics", "retrieval_fall_out", "mini:inf_score", MINUS),
    ("cornac", "AUC", "mini:nan_pos", "defect: NaN is above all in rankings, below in the AUC"),
    ("cornac", "AUC", "mini:inf_score", MINUS),
    ("recbole", "gauc", "mini:nan_score", "defect: NaN gives an AUC of 3"),
    ("ranx", "mrr", "mini:ties40", UNSTABLE),
    ("recometrics", "RR noise=True", "mini:ties", NOISE),
    ("recometrics", "P@K noise=True", "mini:tiesb", NOISE),
    ("recometrics", "RR@K noise=True", "mini:tiesb", NOISE),
    ("recometrics", "NDCG@K noise=True", "mini:tiesb", NOISE),
    ("recometrics", "ROC_AUC noise=True", "mini:tiesb", NOISE),
    ("recometrics", "PR_AUC noise=True", "mini:tiesb", NOISE),
    ("recometrics", "RR noise=False", "mini:ties40", UNSTABLE),
    ("recometrics", "Hit@K requested alone", "", MEMORY),
    ("recometrics", "RR@K requested alone", "", MEMORY),
    ("implicit", "map, K=", "mini:ties40", UNSTABLE),
    ("implicit", "precision, stored zero", "", NO_CASE),
    ("recommenders", "r_precision_at_k", "full", "the mean over nobody, for a user alone"),
    ("torchmetrics", "", "mini:ties", UNSTABLE),
    ("torchmetrics", "retrieval_auroc", "mini:allties6", UNSTABLE),
    ("rexmex", "classification.hit_rate", "", "no metric of rankings"),
    ("recpack", "", "mini:ties", UNSTABLE),
    ("recpack", "", "mini:allties6", UNSTABLE),
    ("recpack", "PercentileRanking", "", "a definition of its own"),
    ("recbole", "MRR (torch.topk)", "", UNSTABLE),
    ("recbole", "mrr@3", "mini:allties6", UNSTABLE),
    ("recbole", "ndcg@3", "mini:allties6", UNSTABLE),
    ("cornac", "ranking_eval MRR, u7 only", "", "the lowest score is not quite the lowest"),
    ("rectools", "MeanInvUserFreq", "mini:unseen", NO_CASE),
    ("rexmex", "novelty (lists >= k only)", "", "there is no list of that length"),
    ("elliot", "LAUC", "", PAIRS),
    ("elliot", "AUC", "", PAIRS),
    ("elliot", "GAUC", "", PAIRS),
    ("lightfm", "", "", LAST_OF_TIES),
)  # fmt: skip
# Records that result from defects, and whose input is therefore rejected under defects=True. A key
# consists of the library, the call, the source and k; the value describes what the library counts
# by mistake.
AGAIN = "item 0 again at every place beyond the last item"
IRREPRODUCIBLE = {
    ("implicit", "ranking_metrics_at_k['precision']", "matrix", 25): AGAIN,
    ("implicit", "ranking_metrics_at_k['map']", "matrix", 25): AGAIN,
    ("implicit", "ranking_metrics_at_k['ndcg']", "matrix", 25): AGAIN,
    ("implicit", "precision, 5 items, K=10, positive=[0]", "mini:k_gt_items", 10): AGAIN,
    ("implicit", "map, 5 items, K=10, positive=[0]", "mini:k_gt_items", 10): AGAIN,
    ("implicit", "ndcg, 5 items, K=10, positive=[0]", "mini:k_gt_items", 10): AGAIN,
    (
        "pyg",
        "LinkPredHitRatio, user1 list padded with -1, user0 positive = max id",
        "mini:pad_minus1",
        3,
    ): "the padding as the last item of the user before",
    ("recommenders", "ndcg_at_k", "mini:dup_list", 5): "repeated rows more often than once",
    ("recommenders", "ndcg_at_k", "mini:dup_truth", 5): "repeated rows more often than once",
}


@pytest.fixture(scope="module")
def records() -> list[Record]:
    all_records: list[Record] = load("results.json")["records"]
    return all_records


@pytest.fixture(scope="module")
def outcome(records: list[Record]) -> Outcome:
    return Outcome.of(records)


def has_value(record: Record) -> bool:
    """Return whether the library printed a number, either as the mean or for a user."""
    values = [record["mean"], *(record["per_user"] or {}).values()]
    return any(number(value) is not None for value in values)


def has_number(record: Record) -> bool:
    """Return whether the library printed anything other than NaN."""
    values = [number(value) for value in (record["mean"], *(record["per_user"] or {}).values())]
    return any(value is not None and not np.isnan(value) for value in values)


def kind(record: Record) -> str:
    """Classify a record by how it was obtained, or by the kind of metric."""
    if record["metric"] in NO_METRIC or not has_value(record):
        return "error"
    if not record["executed"]:
        return "read"  # this value was derived from the library's source code
    if record["metric"] in OF_LISTS:
        return "list"
    return "probe" if record["source"].startswith("mini:") else "accuracy"


def blocking_defect(record: Record) -> str | None:
    """Return the library defect that makes a record irreproducible, if any."""
    return IRREPRODUCIBLE.get((record["library"], record["impl"], record["source"], record["k"]))


def exception(record: Record) -> str | None:
    """Return why a record cannot be reproduced, or None if it can."""
    for library, call, source, reason in EXCEPTIONS:
        if (
            record["library"] == library
            and record["impl"].startswith(call)
            and record["source"].startswith(source)
        ):
            return reason
    return None


@dataclasses.dataclass
class Outcome:
    """The number of reproduced records by kind and library, and what is wrong with the rest."""

    covered: collections.Counter[tuple[str, str]]
    known: collections.Counter[tuple[str, str]]
    failures: list[str]
    refused: list[str]  # the error messages for records with defects
    # For each comparison with a number that a library printed, the convention and the metric's
    # name.
    compared: set[tuple[str, str]]

    @classmethod
    def of(cls, records: list[Record]) -> Outcome:
        cases, outcome = Cases(), cls(collections.Counter(), collections.Counter(), [], [], set())
        evaluations = evaluate_all(cases, records)
        for record in records:
            sort = kind(record)
            if sort == "error":
                continue
            key = (sort, record["library"])
            wrong = outcome.check(cases, evaluations, record)
            reason = exception(record)
            if blocking_defect(record) is not None:
                outcome.known[key] += 1
                outcome.refused.append(str(wrong))
                continue
            if wrong is None or reason is None or not reason.startswith(("defect", "unstable")):
                outcome.known[key] += 1
            if wrong is None:
                outcome.covered[key] += 1
            elif reason is None:
                call = f"{record['library']} {record['impl']} {record['source']} k={record['k']}"
                outcome.failures.append(f"{call}: {wrong}")
        return outcome

    def check(
        self, cases: Cases, evaluations: dict[tuple[Any, ...], rm.Evaluation], record: Record
    ) -> str | None:
        """Compare a record with recometer's value; return the difference, or None if they agree."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.errors.DataWarning)
            try:
                if kind(record) == "list":
                    result = of_lists(cases, record)
                elif blocking_defect(record) is not None and record["source"] == "matrix":
                    ask = ask_for(record)
                    assert ask is not None
                    return str(cases.evaluate(ask, [ask.metric]))
                elif record["source"].startswith("mini:"):
                    result = mini(cases, record)
                else:
                    result = evaluation_of(evaluations, record)
                if result is None:
                    return "there is no call of a metric that is known"
                wrong = difference(record, *result)
                if wrong is None and record["executed"]:
                    self.compared.add((result[0].protocol.name, result[1]))
                return wrong
            except rm.RecometerError as error:
                if "so there is nothing to measure" in str(error) and not has_number(record):
                    return None
                return f"{type(error).__name__}: {error}"


def evaluation_of(
    evaluations: dict[tuple[Any, ...], rm.Evaluation], record: Record
) -> tuple[Any, ...] | None:
    """Return a record's evaluation, its metric, and the evaluation with the rules for single users.

    The second evaluation corresponds to calling the library separately for each user.
    """
    ask = ask_for(record)
    if ask is None or not has_metric(ask):
        return None
    return evaluations[ask.call], ask.metric, evaluations[user_by_user(ask).call]


def has_metric(ask: Ask) -> bool:
    """Return whether the convention or recometer has a metric with exactly this name."""
    convention = convention_of(ask.protocol)
    if convention.entry(ask.metric)[0] is None and re.split("[@(]", ask.metric)[0] not in METRICS:
        return False
    try:
        convention.parse(ask.metric)
    except rm.RecometerError:
        return False
    return True


def user_by_user(ask: Ask) -> Ask:
    """Return the call that corresponds to calling the library separately for each user."""
    rules = tuple((dict(ask.rules) | dict(ask.alone)).items())
    return dataclasses.replace(ask, rules=rules)


def evaluate_all(cases: Cases, records: list[Record]) -> dict[tuple[Any, ...], rm.Evaluation]:
    """Evaluate all records; metrics with the same arguments share an evaluation."""
    calls: dict[tuple[Any, ...], tuple[Ask, dict[str, None]]] = {}
    for record in records:
        if kind(record) in ("accuracy", "read") and blocking_defect(record) is None:
            ask = ask_for(record)
            if ask is not None and has_metric(ask):
                for call in (ask, user_by_user(ask)):
                    calls.setdefault(call.call, (call, {}))[1][call.metric] = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.errors.DataWarning)
        return {call: cases.evaluate(ask, list(names)) for call, (ask, names) in calls.items()}


def difference(record: Record, result: Any, metric: str, by_user: Any = None) -> str | None:
    """Return how an evaluation differs from a record, or None if it does not."""
    library = record["library"]
    convention = convention_of("trec_eval" if library == "pytrec_eval" else library)
    tolerance = 1e-6 if convention.float32 else 1e-9
    by_user = result if by_user is None else by_user
    if record["impl"] == "ExposureGini":
        tolerance = 1e-7  # the records of this metric have fewer digits
    users = by_user.user_ids.tolist()
    # A metric over all users has no values per user.
    ours = dict(zip(users, by_user.values.get(metric, np.full(len(users), np.nan)), strict=True))
    arbitrary = ARBITRARY.get((record["library"], record["source"]))
    for user, value in (record["per_user"] or {}).items():
        theirs = number(value)
        if theirs is None or user == arbitrary or metric not in by_user.values:
            continue
        if user not in ours:
            return f"{user}: nothing, not {theirs}"
        if not np.isclose(ours[user], theirs, rtol=0, atol=tolerance, equal_nan=True):
            return f"{user}: {ours[user]}, not {theirs}"
    theirs = number(record["mean"])
    if theirs is None:
        return None
    mean = result.mean()[metric]
    if np.isclose(mean, theirs, rtol=0, atol=tolerance, equal_nan=True):
        return None
    if arbitrary is not None:
        # Together with the other users' values, the mean implies a value for the user whose items
        # are ordered arbitrarily, and this value must be between 0 and 1.
        n_users = next(row.counted for row in result.summary() if row.metric == metric)
        own_value = dict(zip(result.user_ids.tolist(), result[metric].tolist(), strict=True))[
            arbitrary
        ]
        implied = (theirs - mean) * n_users + own_value
        if -tolerance * n_users <= implied <= 1 + tolerance * n_users:
            return None
    return f"mean: {mean}, not {theirs}"


def test_every_reproducible_record_is_reproduced(outcome: Outcome) -> None:
    assert not outcome.failures, "\n".join(outcome.failures)


def test_records_with_defects_are_rejected(outcome: Outcome, records: list[Record]) -> None:
    assert len(outcome.refused) == len(IRREPRODUCIBLE)
    for error in outcome.refused:
        assert re.match(r"InputError: \S+: defects=True is refused for users with", error)


def test_exceptions_are_few_and_documented(outcome: Outcome, records: list[Record]) -> None:
    total, covered = collections.Counter[str](), collections.Counter[str]()
    for counts, totals in ((outcome.known, total), (outcome.covered, covered)):
        for (sort, _), count in counts.items():
            totals[sort] += count
    print_table(outcome)
    n_read = sum(kind(record) == "read" for record in records)
    n_run = sum(kind(record) not in ("error", "read") for record in records)
    reproduced = sum(covered.values()) - covered["read"]
    printed_page = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    assert f"printed {n_run:,} numbers" in printed_page
    assert f"reproduces {reproduced:,} of them. The other {n_run - reproduced} are" in printed_page
    assert f"Of the {n_read} numbers derived by reading their" in printed_page
    assert f"source, {covered['read']} are reproduced" in printed_page
    read = total.pop("read"), covered.pop("read")
    assert read[1] >= 0.85 * read[0]
    assert covered["accuracy"] >= 0.99 * total["accuracy"]
    assert sum(covered.values()) >= 0.97 * sum(total.values())


def test_no_exception_is_outdated(records: list[Record]) -> None:
    """Each exception must still apply to a record."""
    outdated = [
        exception
        for exception in EXCEPTIONS
        if not any(
            record["library"] == exception[0]
            and record["impl"].startswith(exception[1])
            and record["source"].startswith(exception[2])
            for record in records
        )
    ]
    assert not outdated


def print_table(outcome: Outcome) -> None:
    """Print the number of reproduced records for each library; ``pytest -s`` shows the table."""
    for sort, library in sorted(outcome.known):
        counts = outcome.covered[sort, library], outcome.known[sort, library]
        print(f"{sort:9} {library:14} {counts[0]:5} of {counts[1]:5}")


def test_every_library_has_a_convention(records: list[Record]) -> None:
    libraries = {record["library"] for record in records}
    names = {convention.name for convention in rm.conventions()}
    assert libraries <= names


def test_every_advertised_name_was_compared(outcome: Outcome) -> None:
    """Each metric was compared with a number that the library printed, or a note says why not."""
    compared = outcome.compared | {
        (convention, metric) for convention, _, numbers in printed_values() for metric in numbers
    }
    names: dict[str, set[str]] = collections.defaultdict(set)
    for convention, metric in compared:
        entry, _ = convention_of(convention).entry(metric)
        if entry is not None:
            names[convention].add(entry.name)
    by_name = {item.name: convention_of(item.name) for item in rm.conventions()}
    for convention in by_name.values():
        # If a convention inherits everything, its records are those of its parent.
        for other_convention in by_name.values():
            if other_convention.entries == convention.entries and not convention.protocol.differing(
                other_convention.protocol
            ):
                names[convention.name] |= names[other_convention.name]
    uncompared = {
        f"{convention.name}: {entry.name}"
        for convention in by_name.values()
        for entry in convention.entries
        if (entry.name in names[convention.name]) == entry.from_source
    }
    assert not uncompared, (
        "Hint: add what the library prints to tests/metrics/convention_numbers.toml; or name it in "
        "'read' of conventions.toml, where it cannot be run (and no longer where it was compared)."
    )


def test_dots_in_names_of_trec_eval_are_read_as_underscores() -> None:
    lists = rm.Lists({"q": [f"d{number}" for number in range(12)]})
    arguments: dict[str, Any] = {"protocol": "trec_eval", "progress": False}
    dots = rm.evaluate(
        lists, {"q": ["d1", "d7"]}, metrics="ndcg_cut.10 P.5 map_cut.5,10", **arguments
    )
    names_of_options = "ndcg_cut_10 P_5 map_cut_5 map_cut_10"
    assert (
        dots.mean()
        == rm.evaluate(lists, {"q": ["d1", "d7"]}, metrics=names_of_options, **arguments).mean()
    )
    assert " ".join(dots.mean()) == names_of_options


@pytest.mark.parametrize("name", ["RecBole", "RECBOLE", "trec-eval", "Sentence Transformers"])
def test_names_of_libraries_ignore_case(name: str) -> None:
    lists = rm.Lists({"q": ["a", "b"]})
    plain = name.lower().replace("-", "_").replace(" ", "_")
    result = rm.evaluate(lists, {"q": ["b"]}, metrics="ap@2", protocol=name)
    assert (
        result.protocol == rm.evaluate(lists, {"q": ["b"]}, metrics="ap@2", protocol=plain).protocol
    )
    assert result.protocol.name == plain
