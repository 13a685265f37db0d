"""Other libraries give the same values as recometer's metrics on random cases.

If a library defines a metric differently, parameters of recometer's metric select that definition.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import recometer as rm

pytestmark = pytest.mark.live

SEEDS = range(25)
CUTOFFS = (1, 3, 10)


@dataclasses.dataclass(frozen=True)
class Case:
    """Arrays [n_users, n_items] of scores in [0, 1] and gains, negative for unjudged items."""

    scores: np.ndarray
    gains: np.ndarray

    @property
    def relevant(self) -> np.ndarray:
        return self.gains > 0

    @property
    def test(self) -> sp.csr_array:
        users, items = np.nonzero(self.gains >= 0)
        return sp.csr_array((self.gains[users, items], (users, items)), shape=self.gains.shape)

    def qrels(self) -> dict[str, dict[str, int]]:
        return {
            f"u{user:02}": {f"i{i:02}": int(row[i]) for i in np.flatnonzero(row >= 0)}
            for user, row in enumerate(self.gains)
        }

    def run(self, depth: int) -> dict[str, dict[str, float]]:
        """Return each user's `depth` best items with their scores, sorted by id."""
        best = np.argsort(-self.scores, axis=1, kind="stable")[:, :depth]
        return {
            f"u{user:02}": {f"i{i:02}": float(self.scores[user, i]) for i in sorted(items)}
            for user, items in enumerate(best)
        }


def make_case(seed: int, *, ties: bool = False) -> Case:
    """Return a case in which every user has a relevant and an irrelevant item."""
    rng = np.random.default_rng(seed)
    shape = int(rng.integers(3, 9)), int(rng.integers(14, 30))
    if ties:
        scores = rng.integers(1, 6, shape) / 8
    else:
        scores = rng.permuted(np.tile(np.arange(1, shape[1] + 1) / 32, (shape[0], 1)), axis=1)
    density = rng.choice([0.1, 0.3, 0.6])
    gains = np.where(rng.random(shape) < density, rng.integers(1, 4, shape), 0)
    gains[rng.random(shape) < 0.2] = -1
    gains[:, 0], gains[:, 1] = 2, 0
    return Case(scores, gains)


def compare(result: rm.Evaluation, expected: dict[str, list[float]]) -> None:
    """Compare values per user, with a tolerance for libraries that use single precision."""
    for name, values in expected.items():
        assert not np.isnan(result[name]).any(), name
        np.testing.assert_allclose(result[name], values, rtol=2e-6, atol=1e-7, err_msg=name)


# TorchMetrics counts rows without a positive score as misses, and its ROC-AUC applies a sigmoid if
# a score is above 1, so scores must be in (0, 1]. TorchMetrics knows only the relevant items among
# its rows.

TORCHMETRICS = {
    "precision@{}": "precision",
    "recall@{}": "recall",
    "hit@{}": "hit_rate",
    "fallout@{}": "fall_out",
    "rr@{}": "reciprocal_rank",
    "ap@{}(denominator=hits)": "average_precision",
    "ndcg@{}": "normalized_dcg",
    "rprecision": "r_precision",
    "roc_auc": "auroc",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_values_over_all_items_match_torchmetrics(torch, torchmetrics, seed):
    case = make_case(seed)
    scores, gains = torch.tensor(case.scores), torch.tensor(case.gains).clamp(min=0)
    expected = {}
    for ours, theirs in TORCHMETRICS.items():
        function = getattr(torchmetrics, f"retrieval_{theirs}")
        for k in CUTOFFS if "@" in ours else (None,):
            options = {} if k is None else {"top_k": k}
            target = gains if theirs == "normalized_dcg" else (gains > 0).long()
            pairs = zip(scores, target, strict=True)
            expected[ours.format(k)] = [float(function(*pair, **options)) for pair in pairs]
    compare(rm.evaluate(rm.Scores(case.scores), case.test, metrics=list(expected)), expected)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_of_lists_match_torchmetrics(torch, torchmetrics, seed):
    """For recall and the ideal DCG, TorchMetrics knows only the relevant items in the lists."""
    case, depth = make_case(seed), 8
    best = np.argsort(-case.scores, axis=1)[:, :depth]
    rows = np.arange(len(best))[:, None]
    scores = torch.tensor(case.scores[rows, best])
    gains = torch.tensor(case.gains[rows, best]).clamp(min=0)
    has_relevant = (gains > 0).any(dim=1).numpy()  # without a relevant item, TorchMetrics returns 0
    names = {
        "precision@{}(denominator=list)": ("precision", {"adaptive_k": True}),
        "recall@{}(denominator=list)": ("recall", {}),
        "ap@{}(denominator=hits)": ("average_precision", {}),
        "ndcg@{}(ideal=list)": ("normalized_dcg", {}),
        "rr@{}": ("reciprocal_rank", {}),
    }
    expected = {}
    for ours, (theirs, options) in names.items():
        function = getattr(torchmetrics, f"retrieval_{theirs}")
        for k in (1, 3, depth):
            target = gains if theirs == "normalized_dcg" else (gains > 0).long()
            pairs = zip(scores, target, strict=True)
            values = [float(function(*pair, top_k=k, **options)) for pair in pairs]
            expected[ours.format(k)] = np.array(values)[has_relevant]
    result = rm.evaluate(rm.Lists(best), case.test, metrics=list(expected))
    for name, values in expected.items():
        np.testing.assert_allclose(result[name][has_relevant], values, rtol=2e-6, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
def test_values_with_ties_match_torchmetrics(torch, torchmetrics, seed):
    """TorchMetrics averages NDCG over all orders of ties; in ROC-AUC, tied pairs count half."""
    case = make_case(seed, ties=True)
    gains = torch.tensor(case.gains).clamp(min=0)
    expected: dict[str, list[float]] = {f"ndcg@{k}": [] for k in CUTOFFS} | {"roc_auc": []}
    for scores, target in zip(torch.tensor(case.scores), gains, strict=True):
        for k in CUTOFFS:
            value = torchmetrics.retrieval_normalized_dcg(scores, target, top_k=k)
            expected[f"ndcg@{k}"].append(float(value))
        expected["roc_auc"].append(float(torchmetrics.retrieval_auroc(scores, target > 0)))
    compare(rm.evaluate(rm.Scores(case.scores), case.test, metrics=list(expected)), expected)


# Comparisons with PyTorch Geometric's link prediction metrics

LINK_PREDICTION = {
    "precision@{}": ("Precision", {}),
    "recall@{}": ("Recall", {}),
    "recall@{}(weighted)": ("Recall", {"weighted": True}),
    "f@{}": ("F1", {}),
    "ap@{}(denominator=min)": ("MAP", {}),
    "ndcg@{}(gain=binary)": ("NDCG", {}),
    "ndcg@{}": ("NDCG", {"weighted": True}),
    "rr@{}": ("MRR", {}),
    "hit@{}": ("HitRatio", {}),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_values_match_pytorch_geometric(torch, link_prediction, seed):
    case = make_case(seed)
    best = torch.tensor(case.scores).topk(max(CUTOFFS), dim=1).indices
    edges = torch.tensor(np.array(np.nonzero(case.relevant)))
    weights = torch.tensor(case.gains[case.relevant], dtype=torch.float32)
    metrics = [name.format(k) for name in LINK_PREDICTION for k in CUTOFFS]
    sources = {
        "scores": rm.Scores(torch.tensor(case.scores)),
        "lists": rm.Lists(best),
    }
    for kind, source in sources.items():
        result = rm.evaluate(source, case.test, metrics=metrics)
        for ours, (theirs, options) in LINK_PREDICTION.items():
            for k in CUTOFFS:
                metric = getattr(link_prediction, f"LinkPred{theirs}")(k, **options)
                weight_options = {"edge_label_weight": weights} if options else {}
                metric.update(best, edges, **weight_options)
                mean, expected = result.mean()[ours.format(k)], float(metric.compute())
                assert mean == pytest.approx(expected, rel=2e-6), (kind, ours, k)


# Comparisons with ranx and pytrec_eval, which take dicts keyed by ids

RANX = {
    "precision@{}": "precision@{}",
    "recall@{}": "recall@{}",
    "f@{}": "f1@{}",
    "hit@{}": "hit_rate@{}",
    "hits@{}": "hits@{}",
    "rr@{}": "mrr@{}",
    "ap@{}": "map@{}",
    "ndcg@{}": "ndcg@{}",
    "ndcg@{}(gain=exponential)": "ndcg_burges@{}",
    "rr": "mrr",
    "ap": "map",
    "rprecision": "r-precision",
    "rbp(p=0.8,graded,max_gain=3)": "rbp.80",
    "rbp(p=0.95,graded,max_gain=3)": "rbp.95",
}


@pytest.mark.parametrize("seed", SEEDS)
def test_values_match_ranx(ranx, seed):
    case = make_case(seed)
    # Leave out irrelevant documents, since ranx would count all judged documents as relevant.
    qrels = {u: {i: gain for i, gain in row.items() if gain} for u, row in case.qrels().items()}
    run = case.run(depth=12)
    names = {ours.format(k): theirs.format(k) for ours, theirs in RANX.items() for k in CUTOFFS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba warns
        library_values = ranx.evaluate(
            ranx.Qrels(qrels), ranx.Run(run), list(names.values()), return_mean=False, threads=1
        )
    # recometer's RBP divides each grade by the largest gain, which is 3; ranx's RBP does not.
    shares = {theirs: 3 if theirs.startswith("rbp") else 1 for theirs in library_values}
    result = rm.evaluate(rm.Lists(run), qrels, metrics=list(names))
    compare(
        result, {ours: library_values[theirs] / shares[theirs] for ours, theirs in names.items()}
    )


PYTREC_EVAL = {
    "precision@{}": "P_{}",
    "recall@{}": "recall_{}",
    "tprecision@{}": "relative_P_{}",
    "hit@{}": "success_{}",
    "ap@{}": "map_cut_{}",
    "ndcg@{}": "ndcg_cut_{}",
    "ap": "map",
    "ndcg": "ndcg",
    "rr": "recip_rank",
    "rprecision": "Rprec",
    "bpref": "bpref",
    "precision": "set_P",
    "recall": "set_recall",
    "f": "set_F",
}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_values_match_pytrec_eval(pytrec_eval, seed, ties):
    case = make_case(seed, ties=ties)
    qrels, run = case.qrels(), case.run(depth=12)
    cutoffs = ",".join(map(str, CUTOFFS))
    measures = {
        name.replace("_{}", f".{cutoffs}") if "{}" in name else name
        for name in PYTREC_EVAL.values()
    }
    library_values = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    # pytrec_eval orders equal scores by descending id.
    names = {
        ours.format(k): theirs.format(k) for ours, theirs in PYTREC_EVAL.items() for k in CUTOFFS
    }
    result = rm.evaluate(rm.Lists(run), qrels, metrics=list(names), ties="item_desc")
    values = {
        ours: [library_values[user][theirs] for user in qrels] for ours, theirs in names.items()
    }
    compare(result, values)
