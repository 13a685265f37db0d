"""Tukey's test of all models from sums of parts of the users: no Spark is needed for that."""

import numpy as np
import pyarrow as pa
import pytest

from recometer import stats
from recometer.protocol import Protocol
from recometer.spark import _differences
from recometer.spark._packing import folded, from_bytes, to_bytes, together

N, N_MODELS = 400, 3


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("ids", [str, int])
@pytest.mark.parametrize("n_alike", [0, N - 60], ids=["many differ", "few differ"])
def test_tukey_of_parts_is_that_of_all_users(n_alike, ids, clustered):
    rng = np.random.default_rng(0)
    users = [ids(n) for n in np.repeat(np.arange(100, 230), 4)[:N].tolist()]
    values = rng.integers(0, 3, (N, N_MODELS)) / 2
    values[:n_alike] = values[:n_alike, :1]
    values[7, 1] = np.nan
    columns = {"u": users, "s": np.arange(N), **({"g": users} if clustered else {})}
    for model in range(N_MODELS):
        columns |= {f"m{model}_0_0": values[:, model], f"r{model}_0_0": np.zeros(N, np.int8)}
    batches = pa.table(columns).to_batches(max_chunksize=50)
    models = list(range(N_MODELS))
    rules, n_runs, names = [[Protocol()] * N_MODELS], [1] * N_MODELS, ["u", "s"]
    whom = [], ([0], models), clustered, names
    asked = _differences.Compared([_differences.Each(0, 0, 1)], rules, n_runs, *whom)
    first = folded(_differences._first(batches, asked=asked), together)
    scales = {0: float(first["0 largest"].values[0])}
    parts = _differences._second(batches, asked=asked, centres={}, scales=scales)
    second = from_bytes(to_bytes(folded(parts, together)))
    found = _differences.Differences(asked, {**first, **second}).tukey(0, alpha=0.05, seed=3)
    labels = np.unique(users, return_inverse=True)[1] if clustered else None
    expected = stats.tukey(values, seed=3, clusters=labels)
    assert (found.n, found.method) == (expected.n, expected.method)
    np.testing.assert_allclose(found.p_values, expected.p_values, rtol=1e-10)
    assert found.critical_difference == pytest.approx(expected.critical_difference, rel=1e-10)


def test_clusters_of_users_without_values_of_both_models_are_none():
    columns = {"u": ["a", "b"], "s": [0, 0], "g": ["x", "y"]}
    for model, values in enumerate(([1.0, np.nan], [np.nan, 1.0])):
        columns |= {f"m{model}_0_0": values, f"r{model}_0_0": np.zeros(2, np.int8)}
    batches = pa.table(columns).to_batches()
    each, rules = [_differences.Each(0, 0, 1)], [[Protocol()] * 2]
    asked = _differences.Compared(each, rules, [1, 1], [], ([], []), True, ["u", "s"])
    first = folded(_differences._first(batches, asked=asked), together)
    parts = _differences._second(batches, asked=asked, centres={}, scales={})
    sums = {**first, **from_bytes(to_bytes(folded(parts, together)))}
    units, added = _differences.Differences(asked, sums).clusters(0)
    assert units.n == added.n == 0
