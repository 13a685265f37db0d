"""Published values are reproduced on data from outside the repository."""

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from shared import SHARED

import recometer as rm

# The published values of implicit's ALS (64 factors) on UltraGCN's split of MovieLens 1M. All
# test items are equally relevant, and training items are excluded.
ML1M_ALS = {
    "precision@10": 0.16102624,
    "recall@10": 0.16519065,
    "ndcg@10": 0.20975482,
    "hit@10": 0.77831285,
    "precision@20": 0.13796911,
    "recall@20": 0.26004395,
    "ndcg@20": 0.23476952,
    "hit@20": 0.88674859,
    "precision@50": 0.10253072,
    "recall@50": 0.42978466,
    "ndcg@50": 0.29181608,
    "hit@50": 0.96014613,
}


@pytest.mark.shared
def test_published_values_of_als_on_movielens_1m_are_reproduced():
    folder = SHARED / "data" / "ml1m_als"
    users, items = (np.load(folder / f"ml-1m_{name}_factors.npy") for name in ("user", "item"))
    train, test = (sp.load_npz(folder / f"{name}.npz") for name in ("train", "test"))
    test.data[:] = 1
    result = rm.evaluate(rm.Factors(users, items), test, train=train, metrics=list(ML1M_ALS))
    assert result.n_users == 6022
    for name, value in ML1M_ALS.items():
        assert result.mean()[name] == pytest.approx(value, abs=5e-9)
        assert not np.isnan(result[name]).any()
    # Hits counted in the lists agree with the precision, which is computed from ranks.
    listed_items = rm.evaluate(
        rm.Factors(users, items), test, train=train, metrics="coverage@50 user_coverage@50"
    ).lists.items
    hits = np.asarray(
        sp.csr_array(test, dtype=float)[
            np.arange(len(listed_items))[:, np.newaxis], listed_items
        ].todense()
    )
    for k in (10, 20, 50):
        np.testing.assert_array_equal(hits[:, :k].sum(axis=1) / k, result[f"precision@{k}"])


# The values that Microsoft Recommenders' SAR quick start reports for MovieLens 100K and k = 10.
ML100K_SAR = {
    "ap@10": 0.106959,  # this library divides AP by the number of relevant items
    "ndcg@10": 0.379533,
    "precision@10": 0.331071,
    "recall@10": 0.176837,
    "tap@10": 0.244722,  # here, AP is divided by min(k, number of relevant items)
}


@pytest.mark.shared
def test_published_values_of_sar_on_movielens_100k_are_reproduced():
    folder = SHARED / "data" / "ml100k_sar"
    test = rm.Interactions.of(folder / "test.parquet", value=False)
    result = rm.evaluate(
        rm.Lists(folder / "sar_top100.parquet"),
        test,
        train=folder / "train.parquet",
        metrics=list(ML100K_SAR),
    )
    for name, value in ML100K_SAR.items():
        assert result.mean()[name] == pytest.approx(value, abs=5e-7)


# recometer's name for each trec_eval measure, without the cut-off at its end.
TREC_EVAL = {
    "map": "ap",
    "ndcg": "ndcg",
    "Rprec": "rprecision",
    "recip_rank": "rr",
    "set_P": "precision",
    "set_recall": "recall",
    "P_": "precision@",
    "recall_": "recall@",
    "ndcg_cut_": "ndcg@",
    "map_cut_": "ap@",
    "success_": "hit@",
    "relative_P_": "tprecision@",
}
TREC_EVAL_RUNS = {
    "out.test.aq": ("results.test", "qrels.test", None, {"users": "known"}),
    "out.test.aqc": ("results.trunc", "qrels.test", None, {}),
    "out.test.aqcM": ("results.trunc", "qrels.test", 100, {}),
    "out.test.aql": ("results.test", "qrels.rel_level", None, {"relevant_from": 2}),
}


def name_of(measure):
    """Return recometer's name for a trec_eval measure, or None if there is none."""
    stem = measure.rstrip("0123456789")
    return TREC_EVAL[stem] + measure[len(stem) :] if stem in TREC_EVAL else None


@pytest.mark.shared
@pytest.mark.filterwarnings("ignore:.*larger than every list")
@pytest.mark.filterwarnings("ignore:rprecision reads the first R places")
@pytest.mark.parametrize("by_own_name", [False, True])
@pytest.mark.parametrize("output", TREC_EVAL_RUNS)
def test_outputs_of_trec_eval_are_reproduced(output, by_own_name):
    folder = SHARED / "data" / "trec_eval"
    run, qrels, depth, rules = TREC_EVAL_RUNS[output]
    lines = [line.split(None, 2) for line in (folder / output).read_text().splitlines()]
    expected = [
        (topic, measure if by_own_name else name_of(measure), float(value))
        for measure, topic, value in lines
        if name_of(measure)
    ]
    protocol = {"ties": "item_desc", "undefined": 0}
    if by_own_name:
        protocol = {"protocol": "trec_eval", "users": rules.get("users", "test")}
    result = rm.evaluate(
        rm.Lists(folder / run, depth=depth),
        folder / qrels,
        metrics=list(dict.fromkeys(name for _, name, _ in expected)),
        **(protocol | rules),
    )
    user = {topic: position for position, topic in enumerate(result.user_ids)}
    assert len(expected) == 4 * 54
    for topic, name, value in expected:
        actual = result.mean()[name] if topic == "all" else result[name][user[topic]]
        assert actual == pytest.approx(value, abs=5.001e-5), (topic, name)


# The values published with the data: the recall@3 of object 4, and the means of recall@4 and
# precision@4.
KNOWLEDGE_RECALL = {
    "Random scores": (0.1538, 0.117027, 0.475),
    "KNN scores": (0.2308, 0.226328, 0.875),
}


@pytest.mark.shared
@pytest.mark.parametrize("scores", KNOWLEDGE_RECALL)
def test_published_knowledge_recall_is_reproduced(scores):
    frame = pl.read_parquet(SHARED / "data" / "knowledge_recall" / "example.parquet")
    pairs = rm.Pairs(frame, user="object", item="item", score=scores, relevance="relevant")
    result = rm.evaluate(pairs, metrics="recall@3,4 precision@4")
    of_object_4, recall, precision = KNOWLEDGE_RECALL[scores]
    assert result["recall@3"][4] == pytest.approx(of_object_4, abs=5e-5)
    assert result.mean()["recall@4"] == pytest.approx(recall, abs=5e-7)
    assert result.mean()["precision@4"] == precision
    # Compute recall@4 and precision@4 for each object.
    for place, rows in enumerate(frame.partition_by("object", maintain_order=True)):
        best = rows.sort(scores, descending=True)["relevant"].head(4).sum()
        assert result.user_ids[place] == rows["object"][0]
        assert result["recall@4"][place] == best / rows["relevant"].sum()
        assert result["precision@4"][place] == best / 4


@pytest.mark.shared
def test_audit_counts_of_movielens_100k_match_plain_joins():
    folder = SHARED / "data" / "ml100k_sar"
    train, test = (pl.read_parquet(folder / f"{side}.parquet") for side in ("train", "test"))
    report = rm.audit(train, test, relevant_from=4)
    newest = train.group_by("userID").agg(pl.col("timestamp").max().alias("newest"))
    joined = test.join(newest, on="userID")
    cold = test.join(train, on="itemID", how="anti")
    idle = test.group_by("userID").agg(pl.col("rating").max()).filter(pl.col("rating") < 4)
    expected = {
        "overlap": test.join(train, on=["userID", "itemID"]).height,
        "older_than_own_training": joined.filter(pl.col("timestamp") < pl.col("newest")).height,
        "older_than_training": test.filter(pl.col("timestamp") < train["timestamp"].max()).height,
        "same_time": joined.filter(pl.col("timestamp") == pl.col("newest")).height,
        "unseen_items": cold["itemID"].n_unique(),
        "unreachable": cold.filter(pl.col("rating") >= 4).height,
        "users_without_relevant": idle.height,
    }
    assert {name: report[name].count for name in expected} == expected
    assert expected["older_than_own_training"] == 24_450  # a random split leaks many future rows
