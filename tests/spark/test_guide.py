"""The code in the guide to ALS models runs unchanged."""

import numpy as np
import polars as pl
from snippets import blocks_of
from spark_cases import MARKS

pytestmark = MARKS


def test_guide_to_als_models_runs(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    columns = {
        "user_id": np.repeat(np.arange(40), 10),
        "item_id": np.argsort(rng.random((40, 25)), axis=1)[:, :10].ravel(),
        "rating": rng.integers(1, 6, 400),
        "timestamp": rng.integers(0, 10**7, 400),
    }
    # Spark resolves relative paths against the folder in which Java was started.
    path = tmp_path / "ratings.csv"
    pl.DataFrame(columns).write_csv(path)
    (code,) = blocks_of("model_spark_als.md")
    names = {}
    exec(compile(code.replace("ratings.csv", str(path)), "ALS on Spark", "exec"), names)
    assert 0 < names["result"].mean()["ndcg@10"] < 1
