"""Corrections for sampled candidates match their formulas, obey laws, and reduce the bias."""

import functools
import itertools
from math import comb

import numpy as np
import pytest
import scipy.sparse as sp
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from shared import SHARED

import recometer as rm
from recometer.errors import InputError
from recometer.measuring.corrections import CORRECTABLE, estimates
from recometer.metrics import METRICS

CORRECTIONS = ("plug_in", "unbiased", "cv")
ASKED = " ".join(
    name if METRICS[name].cutoff == "none" else f"{name}@1,3,10" for name in CORRECTABLE
)
WHOLE = " ".join(name for name in CORRECTABLE if METRICS[name].cutoff != "required")


def first_places(k):
    return lambda rank: np.where(rank <= k, 1 / np.log2(rank + 1), 0.0)


def estimate(n, m, f, correction, gamma=0.1, head=1):
    """Return the estimate for each possible number x of sampled items above the relevant item."""
    x = np.arange(m + 1)
    full = np.full(m + 1, 1)
    return estimates(x, m * full, n * full, head * full, (n + head) * full, f, correction, gamma)


@functools.cache
def hypergeometric(n, m):
    """Return P(x | X) if m distinct items out of n are drawn."""
    return np.array(
        [[comb(X, x) * comb(n - X, m - x) / comb(n, m) for x in range(m + 1)] for X in range(n + 1)]
    )


def binomial(n, m):
    """Return P(x | X) if m items are drawn with replacement, as in the paper."""
    p = np.arange(n + 1)[:, np.newaxis] / n
    x = np.arange(m + 1)
    return np.array([comb(m, hits) for hits in x]) * p**x * (1 - p) ** (m - x)


def paper(conditional, f, gamma, head=1):
    """Compute the estimator of Krichene & Rendle directly: ((1 - g) A'A + g diag(c))^-1 A'b."""
    p = np.full(len(conditional), 1 / len(conditional))
    a = np.sqrt(p)[:, np.newaxis] * conditional
    b = np.sqrt(p) * f(head + np.arange(len(p)))
    c = p @ conditional
    return np.linalg.solve((1 - gamma) * a.T @ a + gamma * np.diag(c), a.T @ b)


@pytest.mark.parametrize(
    ("n", "m", "gamma", "head"),
    [
        *itertools.product([7], [7], [0.5, 0.1, 0.01], [1, 4]),
        *itertools.product([30], [1, 12], [0.5, 0.1, 0.01], [1, 4]),
        (200, 20, 0.1, 1),
        (201, 100, 0.01, 4),
    ],
)
def test_cv_matches_the_formula_of_the_paper(n, m, gamma, head):
    for f in (first_places(5), first_places(n), lambda rank: 1 / rank):
        np.testing.assert_allclose(
            estimate(n, m, f, "cv", gamma, head),
            paper(hypergeometric(n, m), f, gamma, head),
            atol=1e-11,
        )


@pytest.mark.parametrize(("n", "m"), [(7, 7), (30, 1), (30, 10), (60, 8)])
def test_unbiased_is_least_squares(n, m):
    for f in (first_places(5), lambda rank: 1 / rank):
        a, b = hypergeometric(n, m), f(1 + np.arange(n + 1))
        np.testing.assert_allclose(
            estimate(n, m, f, "unbiased"), np.linalg.lstsq(a, b, rcond=None)[0], atol=1e-6
        )
    # The estimate is unbiased for metrics that are polynomials of degree m or less in the rank.
    f = lambda rank: (rank / n) ** min(m, 3)  # noqa: E731
    a, b = hypergeometric(n, m), f(1 + np.arange(n + 1))
    np.testing.assert_allclose(a @ estimate(n, m, f, "unbiased"), b, atol=1e-9)


def test_small_samples_match_the_binomial_of_the_paper():
    """Krichene & Rendle sample with replacement, which hardly matters if m is much less than N."""
    n, m, f = 20_000, 20, first_places(300)
    np.testing.assert_allclose(
        estimate(n, m, f, "cv", 0.01), paper(binomial(n, m), f, 0.01), atol=5e-4
    )


def test_plug_in():
    np.testing.assert_allclose(
        estimate(100, 10, first_places(25), "plug_in", head=3),
        first_places(25)(3 + 10.0 * np.arange(11)),
        rtol=1e-15,
    )


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_users, n_items = draw(st.integers(1, 4)), draw(st.integers(4, 16))
    scores = rng.integers(0, draw(st.sampled_from([2, 5, 100])), (n_users, n_items)) * 1.0
    kind = rng.random(scores.shape)
    test = np.where(kind < 0.3, rng.integers(-1, 4, kind.shape), np.nan)
    test[0, 0] = 2
    users, items = np.nonzero(~np.isnan(test))
    test = sp.coo_array((test[users, items], (users, items)), shape=kind.shape).tocsr()
    return scores, test, sp.csr_array((kind > 0.85) * 1.0)


@pytest.mark.parametrize("correction", CORRECTIONS)
@given(problem=problems(), relevant_from=st.sampled_from([None, 2]))
@examples(0.5)
def test_complete_samples_need_no_correction(correction, problem, relevant_from):
    """The corrected value equals the exact value, even with ties, grades and judged misses."""
    scores, test, train = problem
    options = {"train": train, "metrics": f"{ASKED} {WHOLE}", "relevant_from": relevant_from}
    expected = rm.evaluate(rm.Scores(scores), test, **options)
    result = rm.evaluate(
        rm.Scores(scores),
        test,
        candidates=rm.SampledCandidates(scores.shape[1]),
        correction=correction,
        **({"gamma": 1e-12} if correction == "cv" else {}),
        **options,
    )
    for name in expected.values:
        np.testing.assert_allclose(result[name], expected[name], atol=1e-9, err_msg=name)
        np.testing.assert_array_equal(result.reasons[name], expected.reasons[name])


@pytest.mark.parametrize("ties", [False, True])
def test_unbiased_over_all_samples(ties):
    """The mean over all possible samples equals the value over the whole catalogue.

    This holds for every metric if the sample lacks only one item.
    """
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 3 if ties else 1000, 9) * 1.0
    judged = {1: 3.0, 4: 1.0, 6: 0.0, 7: 2.0}  # item 6 is judged but not relevant
    test = rm.Interactions.of({0: judged}, n_users=1, n_items=9)
    other_items = [item for item in range(9) if item not in judged]
    options = {"metrics": "roc_auc", "constant_scores": "ties"}
    exact = rm.evaluate(rm.Scores(scores[np.newaxis]), test, **options)
    for correction, n in itertools.product(CORRECTIONS, (1, 2, 4)):
        values = []
        for drawn_items in itertools.combinations(other_items, n):
            among = rm.Interactions.of({0: [*judged, *drawn_items]}, n_users=1, n_items=9)
            result = rm.evaluate(
                rm.Scores(scores[np.newaxis]),
                test,
                candidates=among,
                correction=correction,
                **options,
            )
            values.append(result["roc_auc"][0])
        assert np.mean(values) == pytest.approx(exact["roc_auc"][0], abs=1e-12)


def test_unbiased_estimates_of_ties_and_several_relevant_items():
    """The mean over all samples of 7 items is exact; over samples of 6 of the 7, nearly so."""
    scores = np.array([[3.0, 2, 2, 2, 1, 2, 3, 0, 1, 2, 2]])
    test = rm.Interactions.of({0: [1, 4, 6, 9]}, n_users=1, n_items=11)
    other_items = [0, 2, 3, 5, 7, 8, 10]
    metrics = "ap@6 ndcg@4 recall@4 rr@5 hit@3 precision@2 tap@3 rprecision tprecision@2"
    exact = rm.evaluate(rm.Scores(scores), test, metrics=metrics)
    for n in (6, 7):  # all other items, or all but one
        means = dict.fromkeys(exact.values, 0.0)
        samples = list(itertools.combinations(other_items, n))
        for drawn_items in samples:
            among = rm.Interactions.of({0: [1, 4, 6, 9, *drawn_items]}, n_users=1, n_items=11)
            result = rm.evaluate(
                rm.Scores(scores), test, candidates=among, metrics=metrics, correction="unbiased"
            )
            for name in means:
                means[name] += result[name][0] / len(samples)
        tolerance = 0.05 if n == 6 else 1e-12
        for name in means:
            assert means[name] == pytest.approx(exact[name][0], abs=tolerance), name


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_users_do_not_depend_on_each_other(correction):
    rng = np.random.default_rng(1)
    scores, ids = rng.normal(size=(40, 120)), np.arange(40) * 3
    kind = rng.random((40, 120))
    density = np.linspace(0, 0.7, 40)[:, np.newaxis]  # makes numbers of candidates very different
    test, train = (
        rm.Interactions.of(data * 1.0, user_ids=ids) for data in (kind > 0.95, kind < density)
    )
    options = {
        "candidates": rm.SampledCandidates(30),
        "metrics": f"{ASKED} {WHOLE}",
        "correction": correction,
        "train": train,
    }
    together = rm.evaluate(rm.Scores(scores, user_ids=ids), test, **options)
    for users in ([5], [2, 17, 30], range(0, 40, 2)):
        single = rm.evaluate(
            rm.Scores(scores, user_ids=ids), test.select_users(list(users)), **options
        )
        for name in together.values:
            np.testing.assert_array_equal(single[name], together[name][list(users)], err_msg=name)


def simulated():
    """Simulate 1,000 items, and a model that ranks each user's four relevant items high."""
    rng = np.random.default_rng(7)
    n_users, n_items = 2_000, 1_000
    scores = rng.normal(size=(n_users, n_items)).astype(np.float32)
    test = np.zeros((n_users, n_items))
    relevant = np.argpartition(rng.random((n_users, n_items)), 4, axis=1)[:, :4]
    np.put_along_axis(test, relevant, 1, axis=1)
    scores[test > 0] += 2
    train = (rng.random((n_users, n_items)) < 0.05) & (test == 0)
    return rm.Scores(scores), sp.csr_array(test), sp.csr_array(train * 1.0)


def distances(source, test, train, n, metrics):
    """Return the distance of each corrected mean from the mean over the whole catalogue."""
    options = {"train": train, "metrics": metrics}
    exact = rm.evaluate(source, test, **options).mean()
    by_method = {}
    for rules in (
        {},
        {"correction": "plug_in"},
        {"correction": "cv", "gamma": 0.1},
        {"correction": "cv", "gamma": 0.01},
    ):
        sample = rm.SampledCandidates(n, seed=3)
        means = rm.evaluate(source, test, candidates=sample, **rules, **options).mean()
        label = f"{rules.get('correction', 'none')} {rules.get('gamma', '')}".strip()
        by_method[label] = {name: abs(means[name] - exact[name]) for name in exact}
    return exact, by_method


def test_corrections_reduce_bias():
    exact, by_correction = distances(
        *simulated(), 100, "recall@10 ndcg@10 ap@10 rr@10 hit@10 roc_auc"
    )
    for name in ("recall@10", "ndcg@10", "ap@10", "rr@10", "hit@10"):
        naive = by_correction["none"][name]
        assert naive > 0.15 * exact[name]  # uncorrected samples are far off
        assert by_correction["plug_in"][name] < 0.85 * naive
        assert by_correction["cv 0.1"][name] < 0.7 * naive
        assert by_correction["cv 0.01"][name] < 0.4 * naive
    for correction in by_correction.values():
        assert correction["roc_auc"] < 0.002


ESTIMATORS = {
    "none": {},
    "plug_in": {"correction": "plug_in"},
    "cv 0.1": {"correction": "cv", "gamma": 0.1},
    "cv 0.01": {"correction": "cv", "gamma": 0.01},
    "unbiased": {"correction": "unbiased"},
}


@pytest.mark.shared
def test_bias_and_spread_on_movielens_1m():
    """Corrected means come close to exact ones, with Krichene & Rendle's variance weights.

    The plug-in estimator removes part of the bias. The bias-variance estimators remove most of it;
    the less weight they give to the variance, the more they remove. The variance of plain least
    squares is too large to be useful.
    """
    folder, n_users = SHARED / "data" / "ml1m_als", 500
    users, items = (np.load(folder / f"ml-1m_{name}_factors.npy") for name in ("user", "item"))
    train, test = (sp.load_npz(folder / f"{name}.npz").tocsr() for name in ("train", "test"))
    test.data[:] = 1
    source = rm.Factors(users[:n_users], items)
    options = {"train": train[:n_users], "metrics": "recall@10 ndcg@10 ap@10 roc_auc"}
    exact = rm.evaluate(source, test[:n_users], **options).mean()
    names = ("recall@10", "ndcg@10", "ap@10")
    biases = {}
    for m in (50, 100, 500):
        bias, spread, error_of_auc = {}, {}, []
        for label, rules in ESTIMATORS.items():
            means = []
            for seed in range(4):
                sample = rm.SampledCandidates(m, seed=seed)
                result = rm.evaluate(source, test[:n_users], candidates=sample, **options, **rules)
                means.append(result.mean())
            error_of_auc += [abs(mean["roc_auc"] - exact["roc_auc"]) for mean in means]
            bias[label] = [abs(np.mean([mean[n] for mean in means]) - exact[n]) for n in names]
            spread[label] = [np.std([mean[n] for mean in means], ddof=1) for n in names]
        bias, spread = (
            {k: np.array(v) for k, v in by_cutoff.items()} for by_cutoff in (bias, spread)
        )
        assert (bias["none"] > [exact[name] for name in names]).all()  # more than twice the value
        assert (bias["plug_in"] < 0.8 * bias["none"]).all()
        assert (bias["cv 0.1"] < 0.3 * bias["none"]).all()
        assert (bias["cv 0.01"] < bias["cv 0.1"] + 2 * spread["cv 0.01"]).all()
        assert (spread["cv 0.01"] < 0.02).all()
        assert (spread["unbiased"] > 100 * spread["cv 0.01"]).all()
        assert max(error_of_auc) < 0.005  # linear in the rank, so the mean over samples is exact
        biases[m] = bias
    for label in ("none", "plug_in", "cv 0.1", "cv 0.01"):
        assert (biases[500][label] < biases[50][label]).all()


def test_undefined_values_over_the_whole_catalogue():
    scores = np.arange(40.0).reshape(2, 20) % 17
    test = np.eye(2, 20)
    sets = np.array([[1.0] * 6 + [0] * 14, [0, 1.0] + [0] * 18])
    result = rm.evaluate(
        rm.Scores(scores), test, candidates=sets, metrics="recall@10 ndcg@10", correction="plug_in"
    )
    # The cut-off is larger than the number of candidates, but not than the number of items.
    assert result["recall@10"][0] == 0
    assert np.isnan(result["recall@10"][1])
    reason = "no candidate but the items of test, so there is nothing to correct with"
    assert result.skipped("ndcg@10") == {reason: 1}
    single_candidate = rm.evaluate(  # the only other item was not sampled
        rm.Scores([[3.0, 2.0, 1.0]]), np.array([[1, 0, 1]]), candidates=np.array([[1, 0, 1]]),
        metrics="ndcg@1", correction="plug_in", all_relevant="computed",
    )  # fmt: skip
    assert single_candidate.skipped("ndcg@1") == {reason: 1}


def test_messages():
    source, test = rm.Scores(np.random.default_rng(0).random((3, 30))), np.eye(3, 30)

    def evaluate(metrics="rr", sample=rm.SampledCandidates(5), correction="cv", **rules):  # noqa: B008
        return rm.evaluate(
            source, test, train=np.eye(3, 30, 5), candidates=sample, metrics=metrics,
            correction=correction, **rules,
        )  # fmt: skip

    with pytest.raises(InputError, match=r"correction='unbias' does not exist.*'plug_in'"):
        evaluate(correction="unbias")
    with pytest.raises(InputError, match="needs a sample to correct: candidates="):
        evaluate(sample=None)
    with pytest.raises(InputError, match="needs a sample to correct: candidates="):
        evaluate(sample=range(10))
    with pytest.raises(InputError, match="drawn uniformly, found by='popularity'"):
        evaluate(sample=rm.SampledCandidates(5, by="popularity"))
    with pytest.raises(InputError, match="requires ties='expected', found ties='item'"):
        evaluate(ties="item")
    for gamma in (0, -1, 1.5, "x"):
        with pytest.raises(InputError, match=r"gamma=.* must be a number above 0"):
            evaluate(gamma=gamma)
    for name in METRICS.keys() - set(CORRECTABLE):
        metric = name if METRICS[name].cutoff == "none" else f"{name}@5"
        none = f"does not exist for '{metric}'.*precision, tprec"
        # For metrics that also lack an input, the error names the input.
        with pytest.raises(InputError, match=f"{none}|'{metric}' needs "):
            evaluate(metric)
    # The lists contain all items, but recometer does not know the number of candidates.
    source = rm.Lists(np.tile(np.arange(30), (3, 1)))
    with pytest.raises(InputError, match=r"needs the ranks of all candidates, and the number"):
        evaluate(catalogue=30)
    source = rm.Scores(np.random.default_rng(0).random((3, 30)))
    text = str(evaluate())
    assert "Warning: The values are estimates of those of the whole catalogue" in text
    assert "correction='cv'" in text
