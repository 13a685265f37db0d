"""Recorded calls to other libraries, and the calls to recometer that must reproduce their results.

A record contains the output of another library for one of the shared cases. An `Ask` describes the
call to `recometer.evaluate` that must return the same value.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from shared import SHARED

import recometer as rm

FOLDER = SHARED / "conventions"

Record = Mapping[str, Any]


def load(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def number(value: Any) -> float | None:
    """Convert a recorded value to a number; return None if it is not numeric."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    special = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    return special.get(value)


@dataclasses.dataclass(frozen=True)
class Ask:
    """A call to `evaluate`.

    `source` and `test` name data that `Cases` creates.
    """

    protocol: str
    metric: str
    source: str
    test: str = "judged"
    rules: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    # If the library was called separately for each user, these rules replace those in `rules`.
    alone: tuple[tuple[str, Any], ...] = ()

    @property
    def call(self) -> tuple[Any, ...]:
        """All arguments except the metric; calls that share them are combined into one."""
        return (self.protocol, self.source, self.test, self.rules, self.options)


class Cases:
    """The cases in `shared/conventions`, as sources and test sets."""

    def __init__(self) -> None:
        content = load("cases.json")
        self.users: dict[str, dict[str, Any]] = content["users"]
        self.mini: dict[str, dict[str, Any]] = content["mini"]
        self.n_items: int = content["n_items"]
        items = range(self.n_items)
        self.called: set[tuple[Any, ...]] = set()
        self.features = np.array([content["item_features"][str(item)] for item in items], float)
        kinds = [content["item_category"][str(item)] for item in items]
        self.categories = np.eye(max(kinds) + 1, dtype=bool)[kinds]

    def train(self) -> dict[str, list[int]]:
        return {user: facts["train"] for user, facts in self.users.items()}

    def in_train(self) -> np.ndarray[Any, Any]:
        """Return item features: column u is 1 for the training items of user u, and 0 otherwise."""
        table = np.zeros((self.n_items, len(self.users)))
        for column, items in enumerate(self.train().values()):
            table[items, column] = 1
        return table

    def test(self, kind: str) -> dict[str, dict[Any, float]]:
        """Return the test rows of each user.

        `kind` selects rows and users: "judged" selects all rows, and leaves out users without rows;
        "positive" selects rows above 0, and leaves out users without such rows; "alone" selects
        rows above 0 and keeps all users; and "rated" selects all rows and keeps all users.
        """
        kind, _, minus = kind.partition(" without ")
        text = kind.endswith(" as text")
        kind = kind.removesuffix(" as text")
        rows_of_users = {}
        binary = kind.endswith("binary")
        kind = kind.removesuffix("binary").strip() or "judged"
        for user, facts in self.users.items():
            rows = {int(item): float(g) for item, g in (facts["test"] or {}).items()}
            if kind in ("positive", "alone"):
                rows = {item: g for item, g in rows.items() if g > 0}
            if user in minus.split() or (not rows and kind in ("judged", "positive")):
                continue
            rows_of_users[user] = {
                str(item) if text else item: min(g, 1.0) if binary else g
                for item, g in rows.items()
            }
        return rows_of_users

    def lists(self, kind: str) -> dict[str, dict[Any, float]]:
        text = kind.endswith(" as text")
        depth = 10 if kind.startswith("top10") else None
        lists_of_users = {}
        for user, facts in self.users.items():
            ranking = facts["ranking"][:depth]
            if ranking:
                lists_of_users[user] = {
                    str(item) if text else item: (20 - place) / 20
                    for place, item in enumerate(ranking)
                }
        return lists_of_users

    def scores(self, kind: str) -> rm.Scores:
        matrix = np.array([facts["score_row"] for facts in self.users.values()])
        items = np.arange(self.n_items)
        if kind == "matrix unseen":
            matrix, items = matrix[:, :-1], items[:-1]
        if kind == "matrix padded":
            matrix[:, -1] = matrix[:, :-1].min(axis=1)
        return rm.Scores(matrix, user_ids=list(self.users), item_ids=items)

    def predictions(self) -> rm.Pairs:
        """Return pairs whose ratings are the test values, and whose predictions are the scores."""
        rows = [
            (user, item, gain, self.users[user]["score_row"][item])
            for user, of_user in self.test("rated").items()
            for item, gain in of_user.items()
        ]
        frame = pl.DataFrame(rows, ["user", "item", "rating", "score"], orient="row")
        return rm.Pairs(frame, rating="rating", score="score")

    def evaluate(self, ask: Ask, metrics: list[str]) -> rm.Evaluation:
        if ask.source == "predictions":
            return rm.evaluate(self.predictions(), metrics=metrics, protocol=ask.protocol)
        test = self.test(ask.test)
        options: dict[str, Any] = dict(ask.options)
        if ask.source.startswith("matrix"):
            source: Any = self.scores(ask.source)
            options["train"] = self.train()
        else:
            depth = ask.source.partition(" cut ")[2]
            source = rm.Lists(self.lists(ask.source), depth=int(depth) if depth else None)
        return rm.evaluate(
            source, test, metrics=metrics, protocol=ask.protocol, **options, **dict(ask.rules)
        )


def ask_for(record: Record) -> Ask | None:
    """Return the call that should reproduce a record, or None if no call can."""
    library = record["library"]
    return LIBRARIES[library](record) if library in LIBRARIES else None


def _at(name: str, record: Record) -> str:
    return name if record["k"] is None or record["k"] == -1 else f"{name}@{record['k']}"


def _trec_eval(record: Record) -> Ask | None:
    return Ask("trec_eval", record["impl"], f"{record['source']} as text", "judged as text")


def _ir_measures(record: Record) -> Ask | None:
    source, test = f"{record['source']} as text", "judged as text"
    return Ask("ir_measures", record["impl"], source, test)


def _ranx(record: Record) -> Ask | None:
    return Ask("ranx", record["impl"], record["source"])


SKLEARN = {
    "ndcg_score(k)": "ndcg_score",
    "dcg_score(k)": "dcg_score",
    "auc(precision_recall_curve) trapezoid": "auc(precision_recall_curve)",
    "label_ranking_average_precision_score": "label_ranking_average_precision_score",
}


def _sklearn(record: Record) -> Ask | None:
    name = SKLEARN.get(record["impl"], record["impl"])
    return Ask("sklearn", _at(name, record), "matrix")


def _recometrics(record: Record) -> Ask | None:
    name = record["impl"].split()[0].replace("@K", "")
    rules: tuple[tuple[str, Any], ...] = ()
    if "cumulative=True" in record["impl"] and name == "NDCG":
        # recometrics leaves out users with fewer candidates than the largest k.
        name, rules = "NDCG(cumulative=True)", (("defects", True), ("min_candidates", 10))
    if "min_pos_test=4" in record["impl"]:
        rules = (("defects", True), ("min_positives", 4))
    return Ask("recometrics", f"{name}@{record['k']}", "matrix", "alone", rules)


def _implicit(record: Record) -> Ask | None:
    name = record["impl"].split("'")[1]
    return Ask("implicit", _at(name, record), "matrix", "positive", (("defects", True),))


def _rectools(record: Record) -> Ask | None:
    options: tuple[tuple[str, Any], ...] = ()
    rules: tuple[tuple[str, Any], ...] = ()
    if record["metric"] in ("accuracy", "mcc"):
        options, rules = (("catalogue", 20),), (("defects", True),)
    name = _at(record["impl"], record)
    return Ask("rectools", name, record["source"], rules=rules, options=options)


def _replay(record: Record) -> Ask | None:
    name, _, kind = record["impl"].partition(" [")
    protocol = {"dict]": "replay", "dict, empty users dropped]": "replay"}.get(
        kind, f"replay_{kind[:-1]}"
    )
    rules = (("users", "relevant"),) if "dropped" in kind else ()
    return Ask(protocol, _at(name, record), record["source"], rules=rules)


LENSKIT = "lenskit_2025"  # the version whose values were recorded


def _lenskit(record: Record) -> Ask | None:
    name = (
        record["impl"].removeprefix("RunAnalysis ").split(" list")[0].removesuffix(".measure_list")
    )
    return Ask(LENSKIT, _at(name, record), record["source"], "alone")


TORCHMETRICS = re.compile(r"(\w+)(?:\(top_k, empty_target_action=(\w+)\))?")


def _torchmetrics(record: Record) -> Ask | None:
    name, action = record["impl"], "neg"
    if "empty_target_action" in name:
        match = TORCHMETRICS.fullmatch(name)
        assert match
        name, action = match[1], match[2]
    empty = {"neg": 0.0, "pos": 1.0, "skip": "undefined"}[action]
    rules: tuple[tuple[str, Any], ...] = () if action == "neg" else (("no_relevant", empty),)
    # For RetrievalFallOut, empty_target_action affects only users without irrelevant items, and the
    # cases have no such users.
    if name == "RetrievalFallOut":
        return Ask("torchmetrics", _at(name, record), record["source"], "binary")
    test = "judged" if record["relevance"] == "graded" else "binary"
    # The functions that evaluate a single user have no empty_target_action argument.
    alone = (("no_relevant", 0.0),)
    return Ask("torchmetrics", _at(name, record), record["source"], test, rules, alone=alone)


def _pyg(record: Record) -> Ask | None:
    name = record["impl"].replace("(weighted)", "(weighted=True)")
    return Ask("pyg", _at(name, record), record["source"], "alone")


def _evidently(record: Record) -> Ask | None:
    name, _, rest = record["impl"].partition("(")
    includes_all_users = "no_feedback_users=True" in rest
    rules: tuple[tuple[str, Any], ...] = (("defects", True),)
    if includes_all_users:
        rules += (("users", "listed"),)
    test = "alone" if record["relevance"] == "graded" else "alone binary"
    alone = (("users", "listed"),)
    return Ask("evidently", _at(name, record), record["source"], test, rules, alone=alone)


def _recommenders(record: Record) -> Ask | None:
    name, _, threshold = record["impl"].partition("(by_threshold, threshold=")
    if threshold:
        # With relevancy_method="by_threshold", the Recommenders library keeps the top `threshold`
        # items.
        source = f"{record['source']} cut {threshold.rstrip(')')}"
        return Ask("recommenders", _at(name, record), source, "alone")
    name = record["impl"].replace("{'discfun_type': 'log2'}", "")
    name = name.replace("{'score_type': 'raw', 'discfun_type': 'log2'}", "(score_type=raw)")
    name = name.replace("{'score_type': 'exp', 'discfun_type': 'log2'}", "(score_type=exp)")
    return Ask("recommenders", _at(name, record), record["source"], "alone")


def _recpack(record: Record) -> Ask | None:
    graded = record["relevance"] == "graded"
    rules = (("defects", True),) if graded else ()
    return Ask("recpack", _at(record["impl"], record), record["source"], rules=rules)


CORNAC = {"FMeasure": "F1"}


def _cornac(record: Record) -> Ask | None:
    name = record["impl"]
    if name.endswith(".compute"):
        short = name.removesuffix(".compute").partition("(")[0]
        # Cornac's metrics do not know the training items, and count them as misses.
        rules = (("unknown_items", "misses"),)
        return Ask(
            "cornac", _at(CORNAC.get(short, short), record), record["source"], "alone", rules
        )
    if name.startswith("ranking_eval"):
        words = name.split()
        excluded = words[1] == "WITHOUT"
        metric = words[3] if excluded else words[1]
        padded = "exclude_unknowns=False" in name
        return Ask(
            "cornac",
            metric,
            "matrix padded" if padded else "matrix unseen",
            "positive without u4" if excluded else "positive",
            (("unknown_items", "misses"),) if padded else (),
        )
    return None


def _recbole(record: Record) -> Ask | None:
    name = record["impl"].split()[0]
    rules = (("users", "test"),) if "all incl. u3" in record["impl"] else ()
    return Ask("recbole", _at(name, record), "matrix", "judged", rules)


def _pyspark(record: Record) -> Ask | None:
    return Ask("pyspark", _at(record["impl"], record), record["source"])


def _rexmex(record: Record) -> Ask | None:
    name = record["impl"].split()[0]
    if name.startswith("normalized"):
        user = record["impl"].split()[1]  # the name of the only user in the call
        other_users = " ".join(f"u{n}" for n in range(9) if f"u{n}" != user)
        return Ask("rexmex", name, "matrix", f"judged without {other_users}")
    if name == "mean_reciprocal_rank":
        return Ask("rexmex", name, record["source"])
    return Ask("rexmex", _at(name, record), record["source"])


def _recmetrics(record: Record) -> Ask | None:
    return Ask("recmetrics", _at(record["impl"].split()[0], record), record["source"])


def _surprise(record: Record) -> Ask | None:
    return Ask("surprise", "fcp", "predictions")


def _elliot(record: Record) -> Ask | None:
    name = record["impl"].split()[0]
    return Ask("elliot", _at(name, record), record["source"])


def _lightfm(record: Record) -> Ask | None:
    return Ask("lightfm", _at(record["impl"], record), "matrix")


LIBRARIES: dict[str, Callable[[Record], Ask | None]] = {
    "pytrec_eval": _trec_eval,
    "ir_measures": _ir_measures,
    "ranx": _ranx,
    "sklearn": _sklearn,
    "recometrics": _recometrics,
    "implicit": _implicit,
    "rectools": _rectools,
    "replay": _replay,
    "lenskit": _lenskit,
    "torchmetrics": _torchmetrics,
    "pyg": _pyg,
    "evidently": _evidently,
    "recommenders": _recommenders,
    "recpack": _recpack,
    "cornac": _cornac,
    "recbole": _recbole,
    "pyspark": _pyspark,
    "rexmex": _rexmex,
    "recmetrics": _recmetrics,
    "surprise": _surprise,
    "elliot": _elliot,
    "lightfm": _lightfm,
}


# Each small case has one user, except the cases with tied items, which have one user per item.

USER = "u"
EQUAL_RANKS = [2, 3]
DENSE = ("recometrics", "implicit", "torchmetrics", "sklearn", "cornac", "recpack", "recbole")


def mini(cases: Cases, record: Record) -> tuple[rm.Evaluation, str] | None:
    """Evaluate a small case; return the evaluation and the name of the recorded metric."""
    name = record["source"].removeprefix("mini:")
    if name in ("ties8", "ties40"):
        return _tied(cases.mini[name], record)
    if name == "k_gt_items":
        return _more_places_than_items(record)
    if name == "unseen_positive":
        return _unseen_positive(cases, record)
    if name == "short_last_hit":
        return _short_last_hit()
    if name == "fcp":
        return _concordant_pairs(), "fcp"
    if name == "pad_minus1":
        return _padded_with_minus_one()
    if name not in cases.mini and name != "equal_ranks":
        return None
    call = _mini_ask(record)
    if call is None:
        return None
    protocol, metric, rules = call
    if name == "equal_ranks":
        return _equal_ranks(protocol, metric)
    case = cases.mini[name]
    items = case.get("list", case.get("items"))
    labels = case.get("rel") or dict.fromkeys(map(str, case.get("positives", ())), 1)
    if name == "graded_order":
        labels = {str(item): gain for item, gain in case["rel_order"]}
    if name == "dup_truth":
        return _repeated_test_rows(case, *call)
    test: dict[Any, float] = {int(item): float(gain) for item, gain in labels.items()}
    if record["relevance"] == "binary" and name == "neg_rel" and record["library"] != "lenskit":
        test = {item: 1.0 for item, gain in test.items() if gain > 0}
    scores = [number(score) for score in case.get("scores", range(len(items), 0, -1))]
    text = protocol in ("trec_eval", "ir_measures")
    if text:
        test = {str(item): gain for item, gain in test.items()}
        items = [str(item) for item in items]
    if record["library"] in DENSE and len(set(items)) == len(items) and max(items) < 90:
        source: Any = rm.Scores([scores], user_ids=[USER], item_ids=items)
    elif len(set(items)) < len(items):
        source = rm.Lists({USER: items})
    else:
        source = rm.Lists({USER: dict(zip(items, scores, strict=True))})
    result = rm.evaluate(source, {USER: test}, metrics=metric, protocol=protocol, **rules)
    return result, metric


def _concordant_pairs() -> rm.Evaluation:
    """Evaluate FCP for three users; only the second user's pair is discordant."""
    rows = [
        ("a", 1, 1.0, 1.0), ("a", 2, 2.0, 2.0), ("a", 3, 3.0, 3.0),
        ("b", 1, 1.0, 2.0), ("b", 2, 2.0, 1.0),
        ("c", 1, 1.0, 1.0), ("c", 2, 2.0, 2.0),
    ]  # fmt: skip
    frame = pl.DataFrame(rows, ["user", "item", "rating", "score"], orient="row")
    pairs = rm.Pairs(frame, rating="rating", score="score")
    return rm.evaluate(pairs, metrics="fcp", protocol="surprise")


def _padded_with_minus_one() -> tuple[rm.Evaluation, str]:
    """Evaluate two users without hits; in the record, the second list is padded with -1."""
    source, metric = rm.Lists({0: [0, 1, 2], 1: [0, 1]}), "LinkPredHitRatio@3"
    test, rules = {0: [4], 1: [3]}, {"defects": True, "shifted_ids": "kept"}
    return rm.evaluate(source, test, metrics=metric, protocol="pyg", **rules), metric


def _equal_ranks(protocol: str, metric: str) -> tuple[rm.Evaluation, str]:
    """Evaluate a list whose items have the ranks 1, 2, 2 and 2; the last two are relevant."""
    rows = [(USER, item, rank) for item, rank in enumerate((1, 2, 2, 2))]
    source = rm.Lists(pl.DataFrame(rows, ["user", "item", "rank"], orient="row"))
    return rm.evaluate(source, {USER: EQUAL_RANKS}, metrics=metric, protocol=protocol), metric


def _repeated_test_rows(
    case: Mapping[str, Any], protocol: str, metric: str, rules: Mapping[str, Any]
) -> tuple[rm.Evaluation, str]:
    """Evaluate a list against a test set that repeats a pair."""
    items = case["truth_rows"]
    test = pl.DataFrame({"user": [USER] * len(items), "item": items})
    source = rm.Lists({USER: case["list"]})
    return rm.evaluate(source, test, metrics=metric, protocol=protocol, **rules), metric


TREC_NAMES = {"P.3": "P_3", "recall.3": "recall_3", "map_cut.3": "map_cut_3"}
TREC_NAMES |= {"ndcg_cut.3": "ndcg_cut_3"}
TORCH = {
    "retrieval_precision": "RetrievalPrecision",
    "retrieval_recall": "RetrievalRecall",
    "retrieval_hit_rate": "RetrievalHitRate",
    "retrieval_reciprocal_rank": "RetrievalMRR",
    "retrieval_average_precision": "RetrievalMAP",
    "retrieval_normalized_dcg": "RetrievalNormalizedDCG",
    "retrieval_auroc": "RetrievalAUROC",
    "retrieval_fall_out": "RetrievalFallOut",
    "retrieval_r_precision": "RetrievalRPrecision",
}
RECTOOLS = {
    "NDCG(ach)": "NDCG(divide_by_achievable=True)",
    "trunc_precision": "Precision(r_precision=True)",
}
CORNAC_MINI = {"MRR via rank": "MRR", "FMeasure": "F1"}


def _mini_ask(record: Record) -> tuple[str, str, dict[str, Any]] | None:
    """Return the protocol, the metric's name and the rules for a small case."""
    library, impl = record["library"], record["impl"]
    rules: dict[str, Any] = {}
    if library == "pytrec_eval":
        return "trec_eval", TREC_NAMES.get(impl, impl), rules
    if library == "torchmetrics":
        name = TORCH[impl]
        return library, name if name.endswith("RPrecision") else _at(name, record), rules
    if library == "rectools":
        name = RECTOOLS.get(record["metric"], RECTOOLS.get(impl, impl))
        return library, _at(name, record), rules
    if library == "cornac":
        rules = {"unknown_items": "misses"}
        return library, _at(CORNAC_MINI.get(impl, impl), record), rules
    if library == "implicit":
        return library, _at(impl.partition(",")[0], record), rules
    if library == "recometrics":
        return library, f"{impl.split()[0].replace('@K', '')}@{record['k']}", rules
    if library == "lenskit":
        graded = "(gain=rating)" if record["relevance"] == "graded" else ""
        return LENSKIT, _at(f"{impl}{graded}", record), rules
    if library == "recpack":
        rules = {"defects": record["relevance"] == "graded"}
        return library, _at(impl, record), rules
    if impl == "gauc":
        return library, impl, rules
    if library in ("pyspark", "recbole"):
        return library, _at(impl.split()[0].partition("@")[0], record), rules
    if library == "recommenders":
        ask = ask_for({**record, "impl": impl.removesuffix("{}")})
        assert ask is not None
        # Recommenders' NDCG has a defect: it counts a listed item once for each test row that
        # repeats the item, and again for each repetition in the list.
        repeats = record["source"] in ("mini:dup_list", "mini:dup_truth")
        return library, ask.metric, {"defects": repeats and "ndcg" in impl}
    ask = ask_for({**record, "source": "full"})
    return None if ask is None else (ask.protocol, ask.metric, dict(ask.rules))


# A protocol, a metric, and a function that computes the place of a single relevant item from the
# metric's value.
RANKS: dict[tuple[str, str], tuple[str, str, Callable[[float], float]]] = {
    ("pytrec_eval", "recip_rank"): ("trec_eval", "recip_rank", lambda v: 1 / v),
    ("ir_measures", "RR (pytrec_eval)"): ("ir_measures", "RR", lambda v: 1 / v),
    ("ir_measures", "RR@50 (msmarco)"): ("ir_measures", "RR@50", lambda v: 1 / v),
    ("ir_measures", "nDCG(exp-log2)@50 (gdeval): 2^(1/x)-1"): (
        "ir_measures",
        "nDCG(dcg='exp-log2')@50",
        lambda v: 2 ** (1 / v) - 1,
    ),
    ("ranx", "mrr"): ("ranx", "mrr", lambda v: 1 / v),
    ("sklearn", "label_ranking_average_precision (max rank)"): (
        "sklearn",
        "label_ranking_average_precision_score",
        lambda v: 1 / v,
    ),
    ("sklearn", "ndcg_score averaged"): ("sklearn", "ndcg_score", float),
    ("sklearn", "ndcg_score ignore_ties"): ("sklearn", "ndcg_score(ignore_ties=True)", float),
    ("recometrics", "RR noise=False"): ("recometrics", "RR@{last}", lambda v: v and 1 / v),
    ("implicit", "map, K=8 (single positive)"): ("implicit", "map@8", lambda v: v and 1 / v),
    ("implicit", "map, K=3 (single positive)"): ("implicit", "map@3", lambda v: v and 1 / v),
    ("implicit", "map, K=5 (single positive)"): ("implicit", "map@5", lambda v: v and 1 / v),
    ("implicit", "map, K=40 (single positive)"): ("implicit", "map@40", lambda v: v and 1 / v),
    ("replay", "MRR [dict, sorted input]"): ("replay", "MRR@{all}", lambda v: 1 / v),
    ("replay", "MRR [pandas]"): ("replay_pandas", "MRR@{all}", lambda v: 1 / v),
    ("replay", "MRR [polars]"): ("replay_polars", "MRR@{all}", lambda v: 1 / v),
    ("torchmetrics", "recall-argsort: smallest k with hit_rate=1"): (
        "torchmetrics",
        "rr",
        lambda v: 1 / v,
    ),
    ("torchmetrics", "retrieval_normalized_dcg (tie-averaged)"): (
        "torchmetrics",
        "RetrievalNormalizedDCG",
        float,
    ),
    ("evidently", "MRRKMetric(score)"): ("evidently", "MRRKMetric@{all}", lambda v: 1 / v),
    ("recommenders", "map_at_k"): ("recommenders", "map_at_k@{all}", lambda v: 1 / v),
    ("cornac", "Recommender.rank(k=-1)"): ("cornac", "MRR", lambda v: 1 / v),
    ("cornac", "Recommender.rank(k=3)"): ("cornac", "MRR", lambda v: 1 / v),
    ("cornac", "Recommender.rank(k=5)"): ("cornac", "MRR", lambda v: 1 / v),
    ("cornac", "MAP (rankdata max)"): ("cornac", "MAP", lambda v: 1 / v),
    ("cornac", "AUC (strict >)"): ("cornac", "AUC", float),
    ("recbole", "GAUC (average rank)"): ("recbole", "gauc", float),
}


@dataclasses.dataclass
class Places:
    """The places of tied items under a convention, with the same attributes as an evaluation."""

    protocol: rm.Protocol
    user_ids: Any
    values: dict[str, Any]

    def mean(self) -> dict[str, float]:
        return dict.fromkeys(self.values, np.nan)


def _tied(case: Mapping[str, Any], record: Record) -> tuple[Any, str] | None:
    """Evaluate one user per item, with that item as the user's only relevant item."""
    impl = record["impl"]
    if impl.startswith("PrecisionTopK"):
        return _all_relevant(case)
    ranks_and_rule = RANKS.get(
        (record["library"], impl.replace("un", "").replace(", input reversed", ""))
    )
    if ranks_and_rule is None:
        return None
    reverse = "reversed" in impl or "unsorted" in impl
    protocol, metric, place_of = ranks_and_rule
    n = len(case["items"])
    metric = metric.format(last=n - 1, all=n)
    text = protocol in ("trec_eval", "ir_measures")
    items = [f"{item:02d}" if text else item for item in case["items"]]
    users = [str(item) for item in case["items"]]
    test = {user: {item: 1.0} for user, item in zip(users, items, strict=True)}
    if record["library"] in DENSE:
        scores = np.tile(np.array(case["scores"]), (n, 1))
        source: Any = rm.Scores(scores, user_ids=users, item_ids=items)
    else:
        pairs = list(zip(items, case["scores"], strict=True))
        source = rm.Lists({user: dict(pairs[::-1] if reverse else pairs) for user in users})
    result = rm.evaluate(source, test, metrics=metric, protocol=protocol)
    places = {user: place_of(v) for user, v in zip(result.user_ids, result[metric], strict=True)}
    # gdeval prints values with five digits, so the recorded places are rounded to three decimals.
    if "gdeval" in record["impl"]:
        places = {user: round(place, 3) for user, place in places.items()}
    values = {metric: np.array(list(places.values()))}
    return Places(result.protocol, np.array(list(places), object), values), metric


def _all_relevant(case: Mapping[str, Any]) -> tuple[Any, str]:
    """Evaluate precision at cut-offs 1 to 5 for a list in which every item is relevant."""
    source = rm.Lists({USER: dict(zip(case["items"], case["scores"], strict=True))})
    test = {USER: dict.fromkeys(case["items"], 1.0)}
    name = "PrecisionTopKMetric@1..5"
    result = rm.evaluate(source, test, metrics=name, protocol="evidently")
    values = {name: np.array([*result.mean().values()])}
    return Places(result.protocol, np.array(list("12345"), object), values), name


def _short_last_hit() -> tuple[Any, str]:
    """Evaluate MAP for two users; the first user's list of three items ends with a hit."""
    source = rm.Lists({"a": [0, 1, 2], "b": [0, *range(3, 12)]})
    name, cutoffs = "MAPKMetric@1,3,5,10", ["1", "3", "5", "10"]
    test = {"a": {2: 1.0}, "b": {0: 1.0}}
    result = rm.evaluate(source, test, metrics=name, protocol="evidently", defects=True)
    values = {name: np.array([*result.mean().values()])}
    return Places(result.protocol, np.array(cutoffs, object), values), name


def _unseen_positive(cases: Cases, record: Record) -> tuple[rm.Evaluation, str] | None:
    """Evaluate a user whose only relevant item is not in the training data."""
    metric = record["impl"].split()[1].rstrip(",")
    padded = "exclude_unknowns=False" in record["impl"]
    result = rm.evaluate(
        cases.scores("matrix padded" if padded else "matrix unseen"),
        {"u0": {0: 1.0}, "u7": {19: 1.0}},
        train=cases.train(),
        metrics=metric,
        protocol="cornac",
        unknown_items="misses" if padded else "left_out",
    )
    return result, metric


def _more_places_than_items(record: Record) -> tuple[rm.Evaluation, str]:
    """Evaluate a list with ten places for a catalogue of only five items."""
    name, positive = record["impl"].split(",")[0], int(record["impl"].split("[")[1][0])
    source = rm.Scores([[0.9, 0.8, 0.7, 0.6, 0.5]], user_ids=[USER], item_ids=np.arange(5))
    metric = f"{name}@10"
    test = {USER: {positive: 1.0}}
    return rm.evaluate(source, test, metrics=metric, protocol="implicit", defects=True), metric


# The functions below reproduce recorded list metrics.

# If a user has too few candidates, RecBole fills up the list with masked items and padding, in the
# order in which torch.topk returns them. These lists were recorded with torch 2.13.0 on the CPU for
# topk=[5], [1, 3, 5, 10], [20] and [21]. RecBole uses item 0 as padding, so the item numbers here
# are one higher than in the cases.
TOPK = {
    5: {"u4": [14, 9, 20, 13, 10], "u6": [13, 15, 14, 16, 12]},
    10: {
        "u4": [14, 9, 20, 12, 10, 13, 17, 19, 18, 15],
        "u6": [16, 11, 12, 13, 14, 15, 18, 20, 19, 10],
    },
    20: {
        "u0": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17, 18, 19, 20, 11, 0, 13],
        "u1": [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 19, 20, 15, 16, 17, 18, 0, 2],
        "u2": [1, 7, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 5, 6, 0],
        "u3": [1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0, 7],
        "u4": [14, 9, 20, 18, 17, 16, 15, 19, 13, 10, 12, 5, 1, 2, 3, 4, 7, 0, 8, 11],
        "u5": [4, 1, 5, 6, 7, 8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 2, 0, 10],
        "u6": [12, 8, 9, 7, 4, 3, 2, 1, 5, 11, 10, 13, 14, 15, 16, 17, 18, 19, 20, 0],
        "u7": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 1, 19],
    },
    21: {f"u{user}": list(range(21)) for user in range(8)},
}

LIST_NAMES = {
    ("evidently", "arp"): "PopularityBias.apr",
    ("evidently", "coverage"): "PopularityBias.coverage",
    ("evidently", "gini"): "PopularityBias.gini",
}
# LensKit's values were recorded with an additional training row, whose item is in u4's list.
LENSKIT_EXTRA = {"somebody": [19]}


def of_lists(cases: Cases, record: Record) -> tuple[rm.Evaluation, str] | None:
    """Evaluate a recorded list metric; return the evaluation and the name of the metric."""
    library = record["library"]
    if library == "recbole":
        return _of_filled_lists(cases, record)
    name = LIST_NAMES.get((library, record["metric"]), record["impl"])
    for end in (" [dict]", ".measure_list", " list_summary mean", ".current_value (rank)"):
        name = name.removesuffix(end)
    name = name.removesuffix(".current_value (score)").removeprefix("RunAnalysis ")
    if library in ("replay", "rexmex", "recmetrics", "recpack"):
        name = re.split(r"[ :]", name)[0]
    lists = cases.lists(record["source"].split()[0])
    depth = record["k"] or 25
    if "lists >= k" in record["impl"]:
        lists = {user: items for user, items in lists.items() if len(items) >= depth}
    if "with >=10 recs" in record["source"]:
        lists = {user: items for user, items in lists.items() if len(items) >= 10}
    train = cases.train() | (LENSKIT_EXTRA if library == "lenskit" else {})
    if not lists:
        return None
    baseline = rm.Lists({user: list(range(10)) for user in lists})
    features, kinds = cases.features, cases.categories
    call = (library, record["impl"], record["source"], record["k"])
    if library == "recommenders" and call not in cases.called:
        features = cases.in_train()  # only the second of two identical calls used item features
    cases.called.add(call)
    catalogue = rm.Catalogue(np.arange(cases.n_items), categories=kinds, features=features)
    metric = f"{name}@{depth}"
    result = rm.evaluate(
        rm.Lists(lists),
        cases.test("alone"),
        train=train,
        metrics=metric,
        protocol=LENSKIT if library == "lenskit" else library,
        catalogue=catalogue,
        baseline=baseline,
    )
    return result, metric


def _of_filled_lists(cases: Cases, record: Record) -> tuple[rm.Evaluation, str]:
    """Evaluate lists that RecBole filled up with masked items; their item numbers start at 1."""
    depth = max(json.loads(record["impl"].split("topk=")[1].split("]")[0] + "]"))
    odd = TOPK[depth]
    test = cases.test("judged" if "incl. u3" in record["impl"] else "positive")
    lists = {
        user: odd.get(user, [item + 1 for item in cases.users[user]["ranking"]])[:depth]
        for user in test
    }
    train = {user: [item + 1 for item in items] for user, items in cases.train().items()}
    test = {user: {item + 1: gain for item, gain in rows.items()} for user, rows in test.items()}
    metric = f"{record['impl'].split()[0]}@{record['k']}"
    rules = {"users": "test"} if "incl. u3" in record["impl"] else {}
    catalogue = np.arange(1, cases.n_items + 1)
    source = rm.Lists(lists)
    result = rm.evaluate(
        source,
        test,
        train=train,
        metrics=metric,
        protocol="recbole",
        catalogue=catalogue,
        **rules,
    )
    return result, metric
