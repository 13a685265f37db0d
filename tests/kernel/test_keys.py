"""The kernel ranks scores correctly even if they differ by less than one step of the 16-bit keys.

Only some instruction sets use keys, but all instruction sets must return the same ranks.
"""

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from ranked_biases import rank_biases, zero_counts

from recometer import _kernel

STEPS = 65_000  # the approximate number of keys between a user's lowest and highest thresholds
N_ITEMS = 3000


def single(values):
    """Clip values to the finite range of float32, and convert them to float32."""
    largest = np.finfo(np.float32).max
    return np.clip(values, -largest, largest).astype(np.float32)


def thresholds(rng, n, kind):
    """Draw sorted, mostly distinct thresholds to use as the scores of the judged items."""
    if kind == "neighbours":  # these nearly equal numbers have the same key
        first = np.float32(rng.choice([1e-40, 1.0, 3e7, -1e12]))
        steps = np.arange(n) * rng.integers(1, 4)
        return (first.view(np.int32) + steps.astype(np.int32)).view(np.float32)
    values = np.sort(rng.standard_normal(n))
    if kind == "a step apart":
        values = np.sort(rng.integers(0, 6 * n, n)) / STEPS
        values[-1] = 1
    scale = rng.choice([1e-44, 1e-38, 1e-3, 1.0, 1e20, 1e38])
    center = rng.choice([0.0, 0.0, -1.0, 1e3, 1e6])
    return single((values + center) * scale)


def candidates(rng, limits, dense):
    """Draw item scores, some of which lie within a few key steps of a threshold."""
    width = np.float64(limits.max()) - limits.min()
    close_scores = rng.choice(limits, N_ITEMS) + rng.normal(0, 1, N_ITEMS) * width / STEPS
    distant_scores = rng.normal(limits.mean(dtype=np.float64), width, N_ITEMS) * rng.choice(
        [1, 1, 1e3, 1e12]
    )
    scores = np.where(rng.random(N_ITEMS) < dense, close_scores, distant_scores)
    equal_to_limits = rng.random(N_ITEMS) < 0.01
    scores[equal_to_limits] = rng.choice(limits, equal_to_limits.sum())
    return single(scores)


@given(
    seed=st.integers(0, 2**31),
    n_judged=st.integers(3, 17),
    kind=st.sampled_from(["any", "neighbours", "a step apart"]),
    dense=st.sampled_from([0.0, 0.001, 0.02, 0.5]),
    limit=st.sampled_from([None, 1, 40]),
)
@examples(4)
def test_scores_with_the_same_key_are_ranked_correctly(seed, n_judged, kind, dense, limit):
    rng = np.random.default_rng(seed)
    judged_scores = thresholds(rng, n_judged, kind)
    scores = candidates(rng, judged_scores, dense)
    judged = np.sort(rng.choice(N_ITEMS, n_judged, replace=False)).astype(np.int32)
    rng.shuffle(judged_scores)
    scores[judged] = judged_scores
    expected = [
        [(scores > s).sum() for s in judged_scores],
        [(scores == s).sum() - 1 for s in judged_scores],
        [(scores[:i] == s).sum() for i, s in zip(judged, judged_scores, strict=True)],
    ]
    within = np.array(expected[0]) < (N_ITEMS if limit is None else limit)
    for instruction_set in _kernel.instruction_sets():
        counts = zero_counts(n_judged)
        assert (
            rank_biases(instruction_set, scores, judged, judged_scores, counts, limit=limit) == -1
        )
        for name, values in zip(("above", "tied", "before"), expected, strict=True):
            np.testing.assert_array_equal(
                counts[name][within], np.array(values)[within], f"{instruction_set} {name}"
            )
        assert (counts["above"][~within] >= (limit or 0)).all()
