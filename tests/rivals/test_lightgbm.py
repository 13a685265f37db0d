"""recometer's convention for LightGBM gives the same values as LightGBM."""

import numpy as np
import pytest
from _compare import check
from _queries import CUTOFFS, Queries, queries

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
LINEAR = {"label_gain": ",".join(map(str, range(8)))}


@pytest.mark.parametrize("case", queries(), ids=str)
def test_values_match_lightgbm(case: Queries) -> None:
    library_values = {name: (None, mean) for name, mean in values(case, ["ndcg", "map"]).items()}
    for name, mean in values(case, ["ndcg"], **LINEAR).items():
        library_values[name.replace("ndcg", "ndcg(label_gain=label)")] = (None, mean)
    check("lightgbm", rm.Pairs.of(case.label, case.score, case.query), None, library_values)


def values(case: Queries, metrics: list[str], **parameters: object) -> dict[str, float]:
    """Let LightGBM evaluate the scores, which are the initial scores of a model without trees."""
    import lightgbm

    quiet = {"verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(
        np.zeros((len(case.label), 1)),
        label=case.label,
        group=case.sizes,
        init_score=case.score,
        params=quiet,
    )
    arguments = {"objective": "lambdarank", "metric": metrics, "eval_at": list(CUTOFFS)}
    booster = lightgbm.Booster({**quiet, **arguments, **parameters}, data)
    return {name: float(value) for _, name, value, _ in booster.eval_train()}
