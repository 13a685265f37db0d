"""The measured cases of the conventions: which call of ours stands for a record of theirs.

A record says what a library printed for a call on the shared cases; an `Ask` is the call of
`recometer.evaluate` that must give the same.
"""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import recometer as rm

SHARED = pathlib.Path(
    os.environ.get("RECOMETER_SHARED", pathlib.Path(__file__).parents[2] / "shared")
)
FOLDER = SHARED / "conventions"

Record = Mapping[str, Any]


def load(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def number(value: Any) -> float | None:
    """Read a value of the files, in which NaN and infinity are texts; None: it is none."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    known = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}
    return known.get(value)


@dataclasses.dataclass(frozen=True)
class Ask:
    """A call of `evaluate`.

    `source` and `test` name what `Cases` makes.
    """

    protocol: str
    metric: str
    source: str
    test: str = "judged"
    rules: tuple[tuple[str, Any], ...] = ()
    options: tuple[tuple[str, Any], ...] = ()
    # What differs where the library was called for one user after the other.
    alone: tuple[tuple[str, Any], ...] = ()

    @property
    def call(self) -> tuple[Any, ...]:
        """What must be equal for two metrics to come from one evaluation."""
        return (self.protocol, self.source, self.test, self.rules, self.options)


class Cases:
    """The shared cases as sources and tests."""

    def __init__(self) -> None:
        content = load("cases.json")
        self.users: dict[str, dict[str, Any]] = content["users"]
        self.mini: dict[str, dict[str, Any]] = content["mini"]
        self.n_items: int = content["n_items"]

    def train(self) -> dict[str, list[int]]:
        return {user: facts["train"] for user, facts in self.users.items()}

    def test(self, kind: str) -> dict[str, dict[Any, float]]:
        """Return the truth.

        judged: all rows; positive: only those above 0; alone: all users, also without a row
        above 0; rated: all users with all rows.
        """
        kind, _, minus = kind.partition(" without ")
        text = kind.endswith(" as text")
        kind = kind.removesuffix(" as text")
        found = {}
        binary = kind.endswith("binary")
        kind = kind.removesuffix("binary").strip() or "judged"
        for user, facts in self.users.items():
            rows = {int(item): float(g) for item, g in (facts["test"] or {}).items()}
            if kind in ("positive", "alone"):
                rows = {item: g for item, g in rows.items() if g > 0}
            if user in minus.split() or (not rows and kind in ("judged", "positive")):
                continue
            found[user] = {
                str(item) if text else item: min(g, 1.0) if binary else g
                for item, g in rows.items()
            }
        return found

    def lists(self, kind: str) -> dict[str, dict[Any, float]]:
        text = kind.endswith(" as text")
        depth = 10 if kind.startswith("top10") else None
        found = {}
        for user, facts in self.users.items():
            ranking = facts["ranking"][:depth]
            if ranking:
                found[user] = {
                    str(item) if text else item: (20 - place) / 20
                    for place, item in enumerate(ranking)
                }
        return found

    def scores(self, kind: str) -> rm.Scores:
        matrix = np.array([facts["score_row"] for facts in self.users.values()])
        items = np.arange(self.n_items)
        if kind == "matrix unseen":
            matrix, items = matrix[:, :-1], items[:-1]
        if kind == "matrix padded":
            matrix[:, -1] = matrix[:, :-1].min(axis=1)
        return rm.Scores(matrix, user_ids=list(self.users), item_ids=items)

    def evaluate(self, ask: Ask, metrics: list[str]) -> rm.Evaluation:
        test = self.test(ask.test)
        options: dict[str, Any] = dict(ask.options)
        if ask.source.startswith("matrix"):
            source: Any = self.scores(ask.source)
            options["train"] = self.train()
        else:
            source = rm.Lists(self.lists(ask.source))
        return rm.evaluate(
            source, test, metrics=metrics, protocol=ask.protocol, **options, **dict(ask.rules)
        )


def ask_for(record: Record) -> Ask | None:
    """Return the call that gives the record; None: there is none."""
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
    return Ask("recometrics", f"{name}@{record['k']}", "matrix", "alone")


def _implicit(record: Record) -> Ask | None:
    name = record["impl"].split("'")[1]
    return Ask("implicit", _at(name, record), "matrix", "positive", (("defects", True),))


def _rectools(record: Record) -> Ask | None:
    options = ()
    if record["metric"] in ("accuracy", "mcc"):
        options = (("catalogue", 20),)
    return Ask("rectools", _at(record["impl"], record), record["source"], options=options)


def _replay(record: Record) -> Ask | None:
    name, _, kind = record["impl"].partition(" [")
    protocol = {"dict]": "replay", "dict, empty users dropped]": "replay"}.get(
        kind, f"replay_{kind[:-1]}"
    )
    rules = (("users", "relevant"),) if "dropped" in kind else ()
    return Ask(protocol, _at(name, record), record["source"], rules=rules)


def _lenskit(record: Record) -> Ask | None:
    name = (
        record["impl"].removeprefix("RunAnalysis ").split(" list")[0].removesuffix(".measure_list")
    )
    return Ask("lenskit", _at(name, record), record["source"], "alone")


TORCHMETRICS = re.compile(r"(\w+)(?:\(top_k, empty_target_action=(\w+)\))?")


def _torchmetrics(record: Record) -> Ask | None:
    name, action = record["impl"], "neg"
    if "empty_target_action" in name:
        found = TORCHMETRICS.fullmatch(name)
        assert found
        name, action = found[1], found[2]
    empty = {"neg": 0.0, "pos": 1.0, "skip": "undefined"}[action]
    rules: tuple[tuple[str, Any], ...] = () if action == "neg" else (("no_relevant", empty),)
    test = "judged" if record["relevance"] == "graded" else "binary"
    # The functions for one user know no empty_target_action.
    alone = (("no_relevant", 0.0),)
    return Ask("torchmetrics", _at(name, record), record["source"], test, rules, alone=alone)


def _pyg(record: Record) -> Ask | None:
    name = record["impl"].replace("(weighted)", "(weighted=True)")
    return Ask("pyg", _at(name, record), record["source"], "alone")


def _evidently(record: Record) -> Ask | None:
    name, _, rest = record["impl"].partition("(")
    everybody = "no_feedback_users=True" in rest
    rules: tuple[tuple[str, Any], ...] = (("defects", True),)
    if everybody:
        rules += (("users", "listed"),)
    test = "alone" if record["relevance"] == "graded" else "alone binary"
    alone = (("users", "listed"),)
    return Ask("evidently", _at(name, record), record["source"], test, rules, alone=alone)


def _recommenders(record: Record) -> Ask | None:
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
        # The metrics themselves do not know which items training had.
        rules = (("unknown_items", "misses"),)
        return Ask(
            "cornac", _at(CORNAC.get(short, short), record), record["source"], "alone", rules
        )
    if name.startswith("ranking_eval"):
        words = name.split()
        without = words[1] == "WITHOUT"
        metric = words[3] if without else words[1]
        padded = "exclude_unknowns=False" in name
        return Ask(
            "cornac",
            metric,
            "matrix padded" if padded else "matrix unseen",
            "positive without u4" if without else "positive",
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
    if name == "mean_reciprocal_rank":
        return Ask("rexmex", name, record["source"])
    return Ask("rexmex", _at(name, record), record["source"])


def _recmetrics(record: Record) -> Ask | None:
    return Ask("recmetrics", _at(record["impl"].split()[0], record), record["source"])


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
}
