"""recometer's splits agree with LensKit and RecTools splits that have the same definition."""

import numpy as np
import pandas as pd
import pytest

from recometer.split import After, Fraction, Last, LeaveOneOut, UsersNumber, Windows, folds, split

pytestmark = pytest.mark.live


def interactions(seed=0, n_users=60, n_items=40):
    """Draw a pandas frame in which all user-item pairs and each user's times are distinct."""
    rng = np.random.default_rng(seed)
    pairs = rng.permutation(np.flatnonzero(rng.random(n_users * n_items) < 0.3))
    return pd.DataFrame(
        {
            "user_id": pairs // n_items + 100,
            "item_id": pairs % n_items + 500,
            "weight": rng.integers(1, 6, len(pairs)),
            "datetime": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(rng.permutation(len(pairs)), "h"),
        }
    )


def pairs(frame):
    return set(zip(frame["user_id"].tolist(), frame["item_id"].tolist(), strict=True))


# Comparisons with RecTools' splits, which are returned as row positions


def by_rectools(rectools, data, splitter_name, *arguments):
    unfiltered = {f"filter_{name}": False for name in ("cold_users", "cold_items", "already_seen")}
    splitter = getattr(rectools.model_selection, splitter_name)(*arguments, **unfiltered)
    return list(splitter.split(rectools.dataset.Interactions(data), collect_fold_stats=True))


@pytest.mark.parametrize("n", [1, 3])
def test_last_interactions_match_rectools(rectools, n):
    data = interactions()
    ((train, test, _),) = by_rectools(rectools, data, "LastNSplitter", n)
    ours = split(data, Last(n))
    assert sorted(test) == ours.test.index.sort_values().tolist()
    assert sorted(train) == ours.train.index.sort_values().tolist()


def test_split_at_a_time_matches_rectools(rectools):
    data = interactions()
    ((train, test, info),) = by_rectools(rectools, data, "TimeRangeSplitter", "5D")
    ours = split(data, After(info["start"].to_pydatetime()))
    assert sorted(test) == ours.test.index.sort_values().tolist()
    assert sorted(train) == ours.train.index.sort_values().tolist()


def test_windows_match_rectools(rectools):
    data = interactions()
    rectools_folds = by_rectools(rectools, data, "TimeRangeSplitter", "5D", 3)
    windows = Windows([info["start"].to_pydatetime() for *_, info in rectools_folds])
    until = rectools_folds[-1][2]["end"].to_pydatetime()
    for (train, test, _), ours in zip(
        rectools_folds, folds(data, Windows(windows.times, until)), strict=True
    ):
        assert sorted(test) == ours.test.index.sort_values().tolist()
        assert sorted(train) == ours.train.index.sort_values().tolist()


# Comparisons with LensKit's splits, which consist of a data set and one item list per test user


def dataset(lenskit, data):
    renamed = data.rename(columns={"weight": "rating", "datetime": "timestamp"})
    return lenskit.data.from_interactions_df(renamed)


def lenskit_pairs(split):
    test = pd.DataFrame(
        [(key.user_id, item) for key, items in split.test for item in items.ids().tolist()],
        columns=["user_id", "item_id"],
    )
    return pairs(split.train.interaction_table(format="pandas", original_ids=True)), pairs(test)


def last_interactions(lenskit, data, n):
    n_users, method = data["user_id"].nunique(), lenskit.splitting.LastN(n)
    return lenskit_pairs(
        lenskit.splitting.sample_users(dataset(lenskit, data), n_users, method, rng=1)
    )


@pytest.mark.parametrize("n", [1, 4])
def test_last_interactions_match_lenskit(lenskit, n):
    data = interactions()
    train, test = last_interactions(lenskit, data, n)
    ours = split(data, Last(n))
    assert (pairs(ours.train), pairs(ours.test)) == (train, test)
    if n == 1:
        assert pairs(split(data, LeaveOneOut()).test) == test


def test_split_at_a_time_matches_lenskit(lenskit):
    data = interactions()
    time = data["datetime"].quantile(0.8).to_pydatetime()
    train, test = lenskit_pairs(lenskit.splitting.split_global_time(dataset(lenskit, data), time))
    ours = split(data, After(time))
    assert (pairs(ours.train), pairs(ours.test)) == (train, test)


def test_numbers_of_drawn_users_and_items_match_lenskit(lenskit):
    data = interactions()
    method = lenskit.splitting.SampleFrac(0.5)
    lenskit_split = lenskit.splitting.sample_users(dataset(lenskit, data), 12, method, rng=1)
    _, test = lenskit_pairs(lenskit_split)
    ours = split(data, Fraction(0.5), who=UsersNumber(12))
    assert len({user for user, _ in test}) == len(ours.users) == 12
