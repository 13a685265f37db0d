"""List metrics request lists and side data, and some have one value for all users."""

import dataclasses
import warnings

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.metrics import METRICS, parse
from recometer.stats.intervals import resampled

USERS = [f"u{u:02}" for u in range(40)]
ITEMS = [f"i{i:02}" for i in range(25)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(40, 25)) + rng.normal(size=25)
    trained = rng.random((40, 25)) < 0.1
    tested_cells = (rng.random((40, 25)) < 0.15) & ~trained
    ids = {"user_ids": USERS, "item_ids": ITEMS}

    def interactions(matrix):
        users, items = np.nonzero(matrix)
        return {u: [ITEMS[i] for i in items[users == row]] for row, u in enumerate(USERS)}

    frame = pl.DataFrame(
        {
            "item": ITEMS[::-1],
            "genres": [f"g{i % 3}|g{i % 4}" for i in range(25)],
            "vector": rng.normal(size=(25, 3)).tolist(),
        }
    )
    return {
        "source": rm.Scores(scores, **ids),
        "other": rm.Scores(scores + rng.normal(size=scores.shape), **ids),
        "test": interactions(tested_cells),
        "train": interactions(trained),
        "catalogue": rm.Catalogue(frame, features="vector", propensity=np.full(25, 0.5)),
        "scores": scores,
        "trained": trained,
    }


def evaluate(data, metrics, **options):
    side = {name: data[name] for name in ("train", "catalogue")} | {"baseline": data["other"]}
    return rm.evaluate(data["source"], data["test"], metrics=metrics, **(side | options))


def expected_lists(data, k, ties="item"):
    scores = np.where(data["trained"], -np.inf, data["scores"])
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def test_values_match_their_definitions(data):
    metrics = "coverage@5 popularity@5 unexpectedness@5 overlap@5 ndcg@5"
    result = evaluate(data, metrics)
    lists = expected_lists(data, 5)
    np.testing.assert_array_equal(result.lists.items, lists)
    mean = result.mean()
    assert list(mean) == metrics.split()
    assert mean["coverage@5"] == pytest.approx(len(np.unique(lists)) / 25)
    popularity = data["trained"].sum(axis=0)
    np.testing.assert_allclose(result["popularity@5"], popularity[lists].mean(axis=1))
    baseline = evaluate(data, "coverage@5", baseline=None)
    assert baseline.mean()["coverage@5"] == mean["coverage@5"]
    assert result.over_users.keys() == {"coverage@5"}


LISTS = [name for name, definition in METRICS.items() if definition.record == "lists"]


@pytest.mark.parametrize("name", LISTS)
def test_missing_side_data_is_reported(data, name):
    """If a metric's side data are missing, the error names the argument to pass."""
    result = evaluate(data, f"{name}@5")
    assert np.isfinite(result.mean()[f"{name}@5"])
    definition = parse(f"{name}@5")[0].definition
    arguments = {
        "train": "train",
        "baseline": "baseline",
        "categories": "catalogue",
        "features": "catalogue",
        "propensity": "catalogue",
    }
    for side in definition.side:
        if side in arguments:
            with pytest.raises(rm.InputError, match=rf"'{name}@5' needs .*{arguments[side]}="):
                evaluate(data, f"{name}@5", **{arguments[side]: None})


def test_catalogue_without_categories_is_refused(data):
    with pytest.raises(rm.InputError, match=r"category_entropy.* a column of categories"):
        evaluate(data, "category_entropy@5", catalogue=ITEMS)


def test_coverage_of_lists_needs_a_catalogue():
    lists = rm.Lists({"ann": ["a", "b"], "bob": ["b", "c"]})
    test = {"ann": ["a"], "bob": ["d"]}
    with pytest.raises(rm.InputError, match=r"'coverage@2' needs .* catalogue="):
        rm.evaluate(lists, test, metrics="coverage@2")
    result = rm.evaluate(lists, test, metrics="coverage@2", catalogue=10)
    assert result.mean() == {"coverage@2": 0.3}
    result = rm.evaluate(lists, test, metrics="coverage@2", catalogue=list("abcde"))
    assert result.mean() == {"coverage@2": 0.6}


class Spy(rm.Scores):
    """A source that records the requests it receives."""

    requests: list

    def rank(self, request):
        self.requests.append("rank")
        return super().rank(request)

    def top(self, request, k):
        self.requests.append(f"top {k}")
        return super().top(request, k)


@pytest.mark.parametrize(
    ("metrics", "expected_requests"),
    [
        ("ndcg@3", ["rank"]),
        ("coverage@3 coverage@7", ["top 7"]),
        ("epc@3", ["top 3"]),
        ("ndcg@9 coverage@3", ["rank", "top 3"]),
    ],
)
def test_source_receives_only_the_requests_that_metrics_need(data, metrics, expected_requests):
    spy = Spy(data["scores"], user_ids=USERS, item_ids=ITEMS)
    spy.requests = []
    result = rm.evaluate(spy, data["test"], train=data["train"], metrics=metrics)
    assert spy.requests == expected_requests
    with_ranks = rm.evaluate(spy, data["test"], train=data["train"], metrics="ndcg@3")
    np.testing.assert_array_equal(result.n_relevant, with_ranks.n_relevant)
    np.testing.assert_array_equal(result.flags, with_ranks.flags)
    if "rank" not in expected_requests:
        assert (result.n_candidates == -1).all()
        assert (result.n_excluded == -1).all()


def test_baseline_may_list_items_unknown_to_the_source(data):
    lists_of_unknown_items = rm.Lists({user: ["i03", "new", "i05"] for user in USERS[:-1]})
    result = evaluate(data, "unexpectedness@5", baseline=lists_of_unknown_items)
    lists = expected_lists(data, 5)
    expected = 1 - np.isin(lists, (3, 5)).mean(axis=1)
    np.testing.assert_allclose(result["unexpectedness@5"][:-1], expected[:-1])
    assert np.isnan(result["unexpectedness@5"][-1])


@pytest.mark.parametrize(
    ("baseline", "error", "message"),
    [
        ("popular", rm.InputTypeError, "baseline= is of type str"),
        ("evaluation", rm.InputTypeError, "baseline= is of type Evaluation, expected another"),
        ("nobody", rm.InputError, "no list for any test user"),
    ],
)
def test_invalid_baselines_are_refused(data, baseline, error, message):
    baselines = {
        "popular": "popular",
        "evaluation": evaluate(data, "coverage@5", baseline=None),
        "nobody": rm.Lists({"nobody": ["i01"]}),
    }[baseline]
    with pytest.raises(error, match=message):
        evaluate(data, "overlap@5", baseline=baselines)


def test_coverage_has_one_value_for_all_users(data, tmp_path):
    result = evaluate(data, "coverage@5 ndcg@5 gini@5")
    assert "coverage@5" in result
    with pytest.raises(
        rm.InputError, match=r"'coverage@5' has one value for all users, .*mean\(\)"
    ):
        result["coverage@5"]
    assert result.per_user().columns == ["user", "ndcg@5"]
    rows = {row.metric: row for row in result.summary()}
    assert list(rows) == ["coverage@5", "ndcg@5", "gini@5"]
    assert rows["coverage@5"].counted == 40
    low, high = result.interval("coverage@5")
    assert low < result.mean()["coverage@5"] < high
    assert "coverage@5" in str(result)
    assert list(result.mean("relevant")) == ["ndcg@5"]

    result.save(tmp_path / "saved.parquet")
    loaded = rm.load(tmp_path / "saved.parquet")
    assert loaded.mean() == result.mean()
    assert loaded.summary() == result.summary()
    assert str(loaded) == str(result)
    assert loaded.lists is None
    assert loaded.metrics == result.metrics
    assert list(loaded.of_users([1, 2]).mean()) == ["ndcg@5"]


def test_groups_of_users_have_separate_values(data):
    result = evaluate(data, "coverage@5 ndcg@5")
    lists = expected_lists(data, 5)
    selected = result.of_users([3, 8, 9])
    assert selected.mean()["coverage@5"] == pytest.approx(len(np.unique(lists[[3, 8, 9]])) / 25)
    groups = result.by(["old" if u < 10 else "new" for u in range(40)])
    values = {row.group: row.mean for row in groups.rows if row.metric == "coverage@5"}
    assert values["old"] == pytest.approx(len(np.unique(lists[:10])) / 25)


def test_interval_resamples_users(data):
    """The interval is as wide as one computed from the test's own resamples."""
    result = evaluate(data, "coverage@5")
    lists, rng = expected_lists(data, 5), np.random.default_rng(9)
    resampled_coverage = [
        len(np.unique(lists[rng.integers(40, size=40)])) / 25 for _ in range(2000)
    ]
    low, high = result.interval("coverage@5")
    assert (high - low) / 2 == pytest.approx(1.96 * np.std(resampled_coverage), rel=0.15)
    assert (high + low) / 2 == pytest.approx(result.mean()["coverage@5"])


@pytest.mark.parametrize(("percent", "highest"), [(False, 1), (True, 100)])
def test_interval_of_a_share_can_reach_1(percent, highest):
    """All lists together cover the 4 items, but the lists of resampled users often cover fewer."""
    lists = rm.Lists({"ann": ["a", "b"], "bob": ["b", "c"], "eve": ["d", "a"]})
    test = {"ann": ["a"], "bob": ["d"], "eve": ["d"]}
    result = rm.evaluate(lists, test, metrics="coverage@2", catalogue=4, percent=percent)
    assert result.mean()["coverage@2"] == highest
    low, high = result.interval("coverage@2")
    assert 0.5 * highest < low < 0.9 * highest
    assert high == highest


def test_intervals_of_resampled_means_match_the_standard_error():
    rng = np.random.default_rng(1)
    values = rng.normal(size=300)
    intervals = resampled(
        lambda weights: {"mean": float((weights * values).sum() / weights.sum())},
        {"mean": float(values.mean())},
        300,
    )
    half = (intervals["mean"][1] - intervals["mean"][0]) / 2
    assert half == pytest.approx(1.96 * values.std(ddof=1) / np.sqrt(300), rel=0.15)
    assert np.isnan(resampled(lambda w: {"a": 1.0}, {"a": 1.0}, 1)["a"]).all()


def test_mixing_ids_and_positions_is_refused(data):
    with pytest.raises(
        rm.InputError,
        match=r"the source has item ids, but the catalogue has none: its items are positions",
    ):
        evaluate(data, "ild@5", catalogue=rm.Catalogue(25, features=np.ones((25, 2))))


def test_histories_may_contain_items_unknown_to_the_source(data):
    """The source knows only 20 of the 25 training and test items."""
    small_source = rm.Scores(data["scores"][:, :20], user_ids=USERS, item_ids=ITEMS[:20])
    side = {name: data[name] for name in ("train", "catalogue")}
    result = rm.evaluate(
        small_source, data["test"], metrics="miscalibration@5 subtopic_recall@5 novelty@5", **side
    )
    assert np.isfinite(list(result.mean().values())).all()
    assert result.lists.n_items == 20


def test_order_of_items_in_a_source_does_not_matter(data):
    """The source knows only 20 of the 25 items in the data and the catalogue."""
    names = " ".join(f"{name}@3" for name in LISTS)
    evaluations = []
    for order in (np.arange(20), np.random.default_rng(5).permutation(20)):
        ids = [ITEMS[item] for item in order]
        source = rm.Scores(data["scores"][:, order], user_ids=USERS, item_ids=ids)
        evaluations.append(evaluate({**data, "source": source}, names))
    first, second = evaluations
    for name, values in first.values.items():
        np.testing.assert_allclose(second[name], values, rtol=1e-12, err_msg=name)
    assert second.mean() == pytest.approx(first.mean())


def test_user_with_a_nan_score_is_skipped_unless_nan_ranks_last(data):
    scores = data["scores"].copy()
    scores[0, 4] = np.nan
    source = rm.Scores(scores, user_ids=USERS, item_ids=ITEMS)
    result = rm.evaluate(source, data["test"], train=data["train"], metrics="novelty@5 coverage@5")
    assert np.isnan(result["novelty@5"][0])
    assert result.skipped("novelty@5") == {"a candidate's score is NaN": 1}
    assert result.summary()[1].counted == 39
    last = rm.evaluate(
        source,
        data["test"],
        train=data["train"],
        metrics="novelty@5",
        nan_scores="last",
    )
    assert not np.isnan(last["novelty@5"][0])


@pytest.mark.parametrize("ties", ["item", "item_desc", "random"])
def test_seed_changes_lists_only_if_ties_are_random(data, ties):
    scores = np.round(data["scores"])
    source = rm.Scores(scores, user_ids=USERS, item_ids=ITEMS)
    options = {"metrics": "coverage@5 ndcg@5 epc@5", "train": data["train"], "ties": ties}
    first, repeated, other = (
        rm.evaluate(source, data["test"], **options, seed=seed, threads=threads)
        for seed, threads in ((1, 1), (1, 2), (2, 1))
    )
    np.testing.assert_array_equal(first.lists.items, repeated.lists.items)
    changed = (first.lists.items != other.lists.items).any()
    assert changed == (ties == "random")
    assert first.counts["cut_in_ties"] > 0
    assert "cut among equal scores" in str(first)


def test_cutoff_beyond_every_list_causes_a_warning(data):
    with pytest.warns(rm.DataWarning, match="coverage@30: the cut-off is larger than every list"):
        evaluate(data, "coverage@30")


def test_list_metrics_accept_labelled_pairs():
    frame = pl.DataFrame(
        {
            "user": ["a", "a", "a", "b", "b", "b"],
            "item": [1, 2, 3, 1, 2, 3],
            "rating": [5.0, 1.0, 4.0, 1.0, 5.0, 2.0],
            "prediction": [3.0, 2.0, 1.0, 2.5, 2.0, 3.0],
        }
    )
    pairs = rm.Pairs(frame, threshold=3.5)
    train = {"b": [3], "c": [1, 2]}
    result = rm.evaluate(pairs, metrics="epc@1 coverage@1 rmse", train=train)
    assert result.over_users == {"coverage@1": pytest.approx(1 / 3)}
    # User a's best item is relevant; user b's best item outside the training data is irrelevant.
    assert result["epc@1"][0] > 0
    assert result["epc@1"][1] == 0


def test_result_contains_fingerprints_of_catalogue_and_baseline(data):
    result = evaluate(data, "overlap@5 ild@5")
    assert {"items", "categories", "features", "propensity"} <= set(
        result.inputs["catalogue"]["fingerprints"]
    )
    assert result.inputs["baseline"]["fingerprints"].keys() == {"matrix", "user_ids", "item_ids"}
    assert "baseline: Scores" in str(result)


def test_metrics_with_propensities_read_train_or_the_catalogue(data):
    """If the argument that provides the propensities is missing, an error names that argument."""
    names = "ips_recall@5 snips_recall@5 ips_recall@5(propensity=given)"
    result = evaluate(data, "recall@5 " + names)
    # All propensities are 1/2, so the weights are 2.
    with_given_propensities = result["ips_recall@5(propensity=given)"]
    np.testing.assert_allclose(with_given_propensities, 2 * result["recall@5"])
    with pytest.raises(rm.InputError, match=r"'ips_recall@5' needs .* train="):
        evaluate(data, "ips_recall@5", train=None)
    with pytest.raises(
        rm.InputError, match=r"'ips_recall@5\(propensity=given\)' needs .*catalogue="
    ):
        evaluate(data, "ips_recall@5(propensity=given)", catalogue=25)
    # Compute the default weights by hand, from the items' popularity.
    lists = expected_lists(data, 5)
    users = np.maximum(data["trained"].sum(axis=0), 1)
    weight = (users / users.max()) ** -0.5
    for u, user in enumerate(USERS):
        relevant = {ITEMS.index(item) for item in data["test"][user]}
        hits = sum(weight[i] for i in lists[u] if i in relevant)
        if relevant:
            assert result["ips_recall@5"][u] == pytest.approx(hits / len(relevant))
            total_weight = sum(weight[i] for i in relevant)
            assert result["snips_recall@5"][u] == pytest.approx(hits / total_weight)


def test_list_metrics_cause_no_warnings(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(data, " ".join(f"{name}@5" for name in LISTS))


@pytest.mark.parametrize("kind", ["scores", "factors", "lists", "pairs"])
def test_candidates_per_user_define_the_catalogue(kind):
    """A shared list of candidates and the same list for each user define the same catalogue."""
    items, users = list("abcdef"), ["ann", "bob"]
    scores, ids = np.arange(12.0).reshape(2, 6), {"user_ids": users, "item_ids": items}
    frame = pl.DataFrame({"user": np.repeat(users, 6), "item": items * 2, "score": scores.ravel()})
    source = {
        "scores": lambda: rm.Scores(scores, **ids),
        "factors": lambda: rm.Factors(np.eye(2), scores.T.copy(), **ids),
        "lists": lambda: rm.Lists(frame),
        "pairs": lambda: rm.Pairs(frame, relevance=False, rating=False),
    }[kind]()
    data = {"metrics": "coverage@2 gini@2", "catalogue": items, "exclude": ["c"]}
    test, train = {"ann": ["a"], "bob": ["b"]}, {"ann": ["b"]}
    shared = rm.evaluate(source, test, train=train, candidates=list("abcd"), **data)
    sets = {user: list("abcd") for user in users}
    per_user = rm.evaluate(source, test, train=train, candidates=sets, **data)
    assert shared.lists.n_catalogue == per_user.lists.n_catalogue == 3
    assert shared.mean() == per_user.mean()
    sets = {"ann": ["a", "d"], "bob": ["d", "e"], "eve": ["f"]}
    restricted = rm.evaluate(source, test, train=train, candidates=sets, **data)
    assert restricted.lists.n_catalogue == 3
    assert restricted.mean()["coverage@2"] == 1


def test_unused_propensities_are_reported():
    catalogue = rm.Catalogue({"item": list("ab"), "p": [0.5, 1.0]}, propensity="p")
    lists, test, train = rm.Lists({"ann": ["b"]}), {"ann": ["b"]}, {"ann": ["a"], "joe": ["b"]}
    arguments = {"train": train, "catalogue": catalogue}
    with pytest.warns(rm.DataWarning, match="not used: snips_recall@1 computes them from"):
        rm.evaluate(lists, test, **arguments, metrics="snips_recall@1")
    rm.evaluate(lists, test, **arguments, metrics="snips_recall@1 snips_recall@1(propensity=given)")
    rm.evaluate(lists, test, **arguments, metrics="recall@1")


def test_relevant_items_unknown_to_the_source_count_in_snips_recall():
    """SNIPS recall sums over all relevant items, even those that the source does not know."""
    test = {"ann": {"a": 1.0, "b": 1.0}, "bob": {"b": 1.0, "c": 1.0, "z": 0.0}}
    train = {"ann": ["z"], "joe": ["a", "b"], "eve": ["b"], "dan": ["b"], "tom": ["b", "c"]}
    catalogue = rm.Catalogue({"item": list("abcz"), "p": [0.5, 0.25, 1.0, 1.0]}, propensity="p")
    metrics = "snips_recall@1(power=1) snips_recall@1(propensity=given)"
    data = {"train": train, "catalogue": catalogue, "metrics": metrics}
    scores = np.array([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]])
    ids = {"user_ids": ["ann", "bob"], "item_ids": list("aczy")}
    result = rm.evaluate(rm.Scores(scores, **ids), test, **data)
    # In the training data, 1 user interacted with a, 4 with b and 1 with c, so the weights are 4, 1
    # and 4. Ann's first item is a, and her relevant items are a and b. Bob's first item, y, is
    # irrelevant.
    np.testing.assert_allclose(result["snips_recall@1(power=1)"], [4 / 5, 0])
    np.testing.assert_allclose(result["snips_recall@1(propensity=given)"], [2 / 6, 0])
    lists = rm.evaluate(rm.Lists({"ann": ["a"], "bob": ["c", "a"]}), test, **data)
    np.testing.assert_allclose(lists["snips_recall@1(power=1)"], [4 / 5, 4 / 5])
    np.testing.assert_allclose(lists["snips_recall@1(propensity=given)"], [2 / 6, 1 / 5])


def test_kept_train_items_stay_in_lists_and_test():
    """List metrics and ranking metrics count the same relevant items, including training items."""
    lists = rm.Lists({"ann": ["a", "b", "c"], "bob": ["b", "c"]})
    test, train = {"ann": ["a", "b"], "bob": ["c"]}, {"ann": ["a"], "bob": ["d"]}
    data = {"train": train, "metrics": "epc@2", "seen": "kept_in_lists"}
    result = rm.evaluate(lists, test, **data)
    # In the training data, one of two users interacted with a, and nobody with b or c.
    second = 1 / np.log2(3)
    expected = [(0.5 + second) / (1 + second), second / (1 + second)]
    np.testing.assert_allclose(result["epc@2"], expected)
    with_ranks = rm.evaluate(lists, test, **{**data, "metrics": "epc@2 hits@2"})
    np.testing.assert_array_equal(result.n_relevant, with_ranks.n_relevant)
    assert with_ranks["hits@2"].tolist() == [2, 1]
    groups = {"a": "x", "b": "y", "c": "y"}
    shares = rm.exposure(lists, groups, test, train=train, k=2, seen="kept")
    np.testing.assert_allclose(shares["relevant"], [1 / 3, 2 / 3])


def test_users_whose_relevant_items_are_all_in_train_do_not_count():
    scores, ids = np.eye(2, 4), {"user_ids": ["ann", "bob"], "item_ids": list("abcd")}
    test, train = {"ann": ["a"], "bob": ["b", "c"]}, {"ann": ["a"], "bob": ["b"]}
    result = rm.evaluate(
        rm.Scores(scores, **ids), test, train=train, metrics="popularity@2 recall@2",
        users="relevant", constant_scores="ties",
    )  # fmt: skip
    counted_users = {row.metric: row.counted for row in result.summary()}
    assert counted_users == {"popularity@2": 1, "recall@2": 1}


def test_resamples_without_a_value_are_left_out():
    """If a resample contains only one distinct user, there are no pairs of lists to compare."""
    lists = rm.Lists({"ann": ["a", "b"], "bob": ["b", "c"], "eve": ["d", "e"]})
    test = {"ann": ["a"], "bob": ["d"], "eve": ["d"]}
    result = rm.evaluate(lists, test, metrics="personalization@2")
    low, high = result.interval("personalization@2")
    assert result.mean()["personalization@2"] == pytest.approx(5 / 6)
    assert low < 5 / 6 < high


def test_excluding_items_outside_the_catalogue_changes_nothing():
    lists, test = rm.Lists({"ann": ["a", "b"], "bob": ["b"]}), {"ann": ["a", "z"], "bob": ["b"]}
    data = {"metrics": "coverage@2 ndcg@1", "catalogue": list("abcd")}
    unrestricted = rm.evaluate(lists, test, **data)
    restricted = rm.evaluate(lists, test, exclude=["z"], **data)
    assert restricted.lists.n_catalogue == unrestricted.lists.n_catalogue == 4
    assert restricted.n_candidates.tolist() == unrestricted.n_candidates.tolist() == [4, 4]
    assert rm.evaluate(lists, test, exclude=["d"], **data).n_candidates.tolist() == [3, 3]


def test_lists_without_rows_are_refused():
    empty = pl.DataFrame(schema={"user_id": pl.String, "item_id": pl.String})
    with pytest.raises(rm.InputError, match=r"There are no lists"):
        rm.Lists(empty)


@pytest.mark.parametrize("kind", ["factors", "scores", "lists", "pairs"])
def test_kept_train_items_are_ranked_and_relevant(kind):
    """Under seen="kept", training items stay in rankings, lists and test data."""
    users, items = ["ann", "bob"], list("abcd")
    scores = np.array([[4.0, 3, 2, 1], [1, 2, 3, 4]])
    rows = [(u, i, scores[n, m]) for n, u in enumerate(users) for m, i in enumerate(items)]
    frame = pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")
    source = {
        "factors": rm.Factors(scores, np.eye(4), user_ids=users, item_ids=items),
        "scores": rm.Scores(scores, user_ids=users, item_ids=items),
        "lists": rm.Lists(frame),
        "pairs": rm.Pairs(frame),
    }[kind]
    test = {"ann": ["a", "b"], "bob": ["a", "d"]}
    train = {"ann": ["a", "c"], "bob": ["d"], "eve": ["a"]}
    names = "recall@1 recall@2 repeated_hits@2 new_hits@2 novelty@1"
    result = rm.evaluate(source, test, train=train, metrics=names, seen="kept", catalogue=items)
    without_train = rm.evaluate(source, test, metrics="recall@1 recall@2", catalogue=items)
    for name in ("recall@1", "recall@2"):
        np.testing.assert_array_equal(result[name], without_train[name])
    assert result["repeated_hits@2"].tolist() == [0.5, 1.0]
    assert result["new_hits@2"].tolist() == [0.5, 0.0]
    np.testing.assert_allclose(result["novelty@1"], [np.log2(3 / 2), np.log2(3)])
    assert result.by({"ann": "x", "bob": "y"}).groups == ("x", "y")
    assert result.activity.tolist() == [2, 1]
    # By default, a user's training items are neither ranked nor relevant.
    with_train_removed = rm.evaluate(source, test, train=train, metrics=names, catalogue=items)
    np.testing.assert_array_equal(with_train_removed["new_hits@2"], [1.0, np.nan])
    assert with_train_removed.n_relevant.tolist() == [1, 1]


def test_rule_cold_start_applies_even_if_train_items_are_kept():
    lists, test = rm.Lists({"ann": ["a", "b"], "bob": ["a"]}), {"ann": ["a"], "bob": ["a"]}
    for seen in ("kept_in_lists", "kept"):
        result = rm.evaluate(
            lists, test, train={"ann": ["a"]}, metrics="recall@1", cold_start=False, seen=seen
        )
        assert result["recall@1"][0] == 1
        assert np.isnan(result["recall@1"][1])


def test_keeping_train_items_without_effect_causes_a_warning():
    scores, test, train = rm.Scores([[1.0, 2, 0]]), np.array([[1, 0, 0]]), np.array([[0, 1, 0]])
    with pytest.warns(
        rm.DataWarning, match="seen='kept' changes nothing here: there are no training data"
    ):
        rm.evaluate(scores, test, metrics="rr", seen="kept")
    with pytest.warns(rm.DataWarning, match="seen='kept_in_lists' changes nothing.*not lists"):
        result = rm.evaluate(scores, test, train=train, metrics="rr", seen="kept_in_lists")
    assert result["rr"].tolist() == [1.0]  # the list omits the training item, despite its top score


def test_padding_of_short_lists_does_not_count_as_an_item():
    lists = rm.Lists({"ann": ["c"], "bob": ["c", "d"]})
    result = rm.evaluate(
        lists, {"ann": ["c"], "bob": ["a"]}, metrics="coverage@2", catalogue=list("abcd")
    )
    assert result.mean()["coverage@2"] == 2 / 4


def test_ranks_of_items_outside_test_raise_an_internal_error():
    class Other(rm.Lists):
        def rank(self, request):
            ranks = super().rank(request)
            first_row_twice = ranks.rows(np.zeros(2, np.int64))
            return dataclasses.replace(first_row_twice, item=np.full(2, -1))

    with pytest.raises(rm.InternalError, match=r"Ranks\.item is -1 except for items"):
        rm.evaluate(
            Other({"ann": ["a"]}), {"ann": ["a"]}, train={"ann": ["b"]}, metrics="ips_recall@1"
        )


def test_r_precision_reports_short_lists() -> None:
    lists = rm.Lists({"a": ["x"], "b": ["x", "y"]})
    test = {"a": ["x", "y", "z"], "b": ["y", "z"]}
    for metric, n, mentioned in (("rprecision", 1, True), ("rprecision@1", 0, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = rm.evaluate(lists, test, metrics=metric)
        texts = [str(warning.message) for warning in caught]
        assert any("the lists of 1 of 2 users are shorter" in text for text in texts) is mentioned
        assert result.counts.get("users_below_relevant", 0) == n
        assert ("users whose list ends before place R" in str(result)) is mentioned
    assert rm.evaluate(lists, test, metrics="ap").counts == {}
    full_list = rm.evaluate(rm.Lists({"b": ["x", "y"]}), {"b": ["y"]}, metrics="rprecision")
    assert full_list.counts == {}


INVENTED = {"a": ["x", "i1", "i2"], "b": ["z", "i3", "x"], "c": ["q1", "q2"], "d": []}
INVENTED_TEST = {"a": ["x", "y"], "b": ["z"], "c": ["w"], "d": ["w"]}


def test_invented_items_do_not_enlarge_the_catalogue():
    names = "coverage@3 coverage@1 gini@3 entropy@3(divisor=largest) unknown_items@1,3 fallout@3"
    result = rm.evaluate(rm.Lists(INVENTED), INVENTED_TEST, metrics=names, catalogue=list("wxyz"))
    mean = result.mean()
    assert mean["coverage@3"] == mean["coverage@1"] == 2 / 4  # the lists contain x and z
    assert mean["gini@3"] == pytest.approx(7 / 12)  # the four items occur 0, 0, 1 and 2 times
    assert mean["entropy@3(divisor=largest)"] == pytest.approx((np.log2(3) - 2 / 3) / 2)
    np.testing.assert_array_equal(result["unknown_items@1"], [0, 0, 1, np.nan])
    np.testing.assert_array_equal(result["unknown_items@3"], [2 / 3, 1 / 3, 1, np.nan])
    # A user's candidates are the catalogue and any items in the user's list that are not in it.
    assert result.n_candidates.tolist() == [6, 5, 6, 4]
    np.testing.assert_allclose(
        result["fallout@3"], [2 / 4, 2 / 4, 3 / 5, 1]
    )  # missing places count as misses
    assert result.counts["list_items_uncatalogued"] == 5


def test_models_that_invent_items_can_be_compared():
    real = {"a": ["x", "y", "z"], "b": ["x"], "c": ["z"], "d": []}
    results = {
        name: rm.evaluate(
            rm.Lists(lists), INVENTED_TEST, metrics="unknown_items@3 rr", catalogue=list("wxyz")
        )
        for name, lists in (("one", INVENTED), ("two", real))
    }
    assert rm.compare(results).row("unknown_items@3", "one").difference == pytest.approx(2 / 3)
    results["two"] = rm.evaluate(
        rm.Lists(real), INVENTED_TEST, metrics="unknown_items@3 rr", catalogue=list("vwxyz")
    )
    with pytest.raises(rm.InputError, match="their number differs for 3 users"):
        rm.compare(results)


def test_unknown_items_of_a_scoring_model_are_counted():
    matrix, item_ids = [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], ["x", "old", "y"]
    scores = rm.Scores(matrix, item_ids=item_ids, user_ids=["a", "b"])
    result = rm.evaluate(
        scores, {"a": ["x"], "b": ["y"]}, metrics="unknown_items@1,2", catalogue=["x", "y", "z"]
    )
    assert result["unknown_items@1"].tolist() == [0, 0]
    assert result["unknown_items@2"].tolist() == [0.5, 0.5]


def test_unknown_items_metric_needs_the_items_of_the_catalogue():
    for catalogue in (None, 20):
        with pytest.raises(rm.InputError, match=r"needs the items that could .*catalogue= \(their"):
            rm.evaluate(
                rm.Lists(INVENTED), INVENTED_TEST, metrics="unknown_items@3", catalogue=catalogue
            )
    with pytest.raises(
        rm.InputError, match="catalogue=6 is less than the number of listed items, 7"
    ):
        rm.evaluate(rm.Lists(INVENTED), INVENTED_TEST, metrics="coverage@3", catalogue=6)
