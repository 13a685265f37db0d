"""`recometer.compat.rectools` gives the same values as RecTools on 10,000 users."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from _dropins import assert_same, in_parts, numbers

from recometer.compat.rectools import calc_metrics

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
N_ITEMS, N_USERS = 25, 10


def case(generator: np.random.Generator) -> tuple[Any, Any, Any]:
    """Draw lists, test data and training data; some users may be missing from any of the three."""
    lists, test, train = [], [], []
    for user in range(100, 100 + N_USERS):
        items = generator.permutation(N_ITEMS)
        length = int(generator.integers(0, 12))
        lists += [(user, int(item), place + 1) for place, item in enumerate(items[:length])]
        relevant = generator.permutation(N_ITEMS)[: generator.choice([0, 1, 3, 8])]
        test += [(user, int(item)) for item in relevant]
        train += [(user, int(item)) for item in items[15 : 15 + generator.integers(1, 8)]]
    lists.append((99, 0, 1))
    test.append((98, 0))
    columns = ["user_id", "item_id", "rank"]
    frames = (pd.DataFrame(lists, columns=columns), pd.DataFrame(test, columns=columns[:2]))
    return (*frames, pd.DataFrame(train, columns=columns[:2]))


@in_parts
def test_dropin_values_match_rectools(part: int) -> None:
    import rectools.metrics as library

    for number, generator in numbers(part):
        if number % N_USERS:
            continue
        k = [int(k) for k in generator.integers(1, 15, 2)]
        metrics = {
            f"{name}@{cutoff}": getattr(library, name)(k=cutoff)
            for name in ("Precision", "Recall", "HitRate", "F1Beta", "MAP", "NDCG", "MRR")
            for cutoff in k
        }
        metrics |= {f"{name}@{k[0]}": getattr(library, name)(k=k[0])
                    for name in ("Accuracy", "MCC", "MeanInvUserFreq", "AvgRecPopularity",
                                 "PartialAUC", "PAP")}  # fmt: skip
        metrics["r_precision"] = library.Precision(k[0], r_precision=True)
        metrics["f2"] = library.F1Beta(k[1], beta=2)
        metrics["map_by_k"] = library.MAP(k[1], divide_by_k=True)
        metrics["ndcg_achievable"] = library.NDCG(k[1], divide_by_achievable=True)
        metrics["ndcg_log_3"] = library.NDCG(k[0], log_base=3)
        metrics["popularity"] = library.AvgRecPopularity(k[1], normalize=True)
        metrics["coverage"] = library.CatalogCoverage(k[1], normalize=bool(number % 20))
        lists, test, train = case(generator)
        arguments = {"prev_interactions": train, "catalog": range(N_ITEMS)}
        expected = library.calc_metrics(metrics, lists, test, **arguments)
        result = calc_metrics(metrics, lists, test, **arguments)
        assert list(result) == list(metrics)
        assert_same(result, expected, number)


def test_list_metrics_do_not_need_interactions() -> None:
    import rectools.metrics as library

    lists, _, train = case(np.random.default_rng(0))
    for metrics in ({"c": library.CatalogCoverage(3)}, {"n": library.MeanInvUserFreq(3)}):
        arguments = {"prev_interactions": train, "catalog": range(N_ITEMS)}
        expected = library.calc_metrics(metrics, lists, **arguments)
        assert calc_metrics(metrics, lists, **arguments) == pytest.approx(expected, abs=1e-12)
