"""Unknown users and items count as misses, and ids that look like positions are refused."""

from __future__ import annotations

import contextlib
import pickle
import unicodedata
import warnings

import numpy as np
import polars as pl
import pytest

import recometer as rm

N_USERS, N_ITEMS = 40, 30
RANDOM = np.random.default_rng(5)
USERS, ITEMS = RANDOM.normal(size=(N_USERS, 4)), RANDOM.normal(size=(N_ITEMS, 4))
SCORES = USERS @ ITEMS.T
BEST = np.argsort(-SCORES, axis=1)
# Each user's test items are the user's two best items and a third item, so that every item is some
# user's test item. The ids of users and items start at 1.
CHOSEN = np.unique(np.concatenate([BEST[:, :2] + 1, np.arange(N_USERS)[:, None] % N_ITEMS + 1], 1))
TEST = pl.DataFrame(
    {
        "user": np.repeat(np.arange(1, N_USERS + 1), 3),
        "item": np.hstack([BEST[:, :2] + 1, np.arange(N_USERS)[:, None] % N_ITEMS + 1]).ravel(),
    }
).unique(maintain_order=True)
FROM_ONE = np.arange(1, N_USERS + 1), np.arange(1, N_ITEMS + 1)
POSITIONS = np.arange(N_USERS), np.arange(N_ITEMS)
WORDS = r"positions seem to be used as ids"


def sources(users, items):
    """Return a source of every kind with these user and item ids."""
    ids = {"user_ids": users, "item_ids": items}
    rows = {
        "user": np.repeat(users, N_ITEMS),
        "item": items[BEST].ravel(),
        "score": -np.sort(-SCORES, axis=1).ravel(),
    }
    frame = pl.DataFrame(rows)
    lists = {user: items[row] for user, row in zip(users.tolist(), BEST, strict=True)}
    pairs = rm.Pairs(frame, relevance=False, rating=False)
    return {
        "Factors": rm.Factors(USERS, ITEMS, **ids),
        "Scores": rm.Scores(SCORES, **ids),
        "function": rm.Scores(lambda rows: SCORES[rows], **ids),
        "Lists of a frame": rm.Lists(frame),
        "Lists of a dict": rm.Lists(lists),
        "Lists of an array": rm.Lists(BEST, **ids),
        "Pairs": pairs,
    }


def streams(evaluator, users, items, n=7):
    """Return streams of scores, arrays and dicts with these ids, in batches of `n` users."""
    of_scores, of_lists, of_frames = (
        evaluator.stream(item_ids=items),
        evaluator.stream(item_ids=items),
        evaluator.stream(),
    )
    for begin in range(0, N_USERS, n):
        rows = slice(begin, begin + n)
        of_scores.update(SCORES[rows], users=users[rows])
        of_lists.update(items=BEST[rows], users=users[rows])
        items_of_users = dict(zip(users[rows].tolist(), items[BEST[rows]], strict=True))
        of_frames.update(items_of_users)
    return {"scores": of_scores, "arrays": of_lists, "dicts": of_frames}


@pytest.mark.parametrize("kind", ["user", "item"])
def test_positions_are_not_mistaken_for_ids_starting_at_one(kind):
    users = POSITIONS[0] if kind == "user" else FROM_ONE[0]
    items = POSITIONS[1] if kind == "item" else FROM_ONE[1]
    right = rm.evaluate(rm.Factors(USERS, ITEMS, user_ids=FROM_ONE[0], item_ids=FROM_ONE[1]), TEST)
    evaluator = rm.Evaluator(TEST)
    calls = {
        name: lambda source=source: rm.evaluate(source, TEST)
        for name, source in sources(users, items).items()
    }
    calls |= {
        f"stream of {name}": stream.compute
        for name, stream in streams(evaluator, users, items).items()
    }
    calls["means"] = streams(evaluator, users, items)["scores"].mean
    calls["check"] = lambda: rm.check(sources(users, items)["Lists of a dict"], TEST)
    last = N_USERS if kind == "user" else N_ITEMS
    for name, call in calls.items():
        with pytest.raises(rm.InputError, match=WORDS) as caught:
            call()
        message = str(caught.value)
        assert f"contain {kind} {last} and no {kind} 0" in message, name
        assert f"{kind}_ids=" in message
        assert "shifted_ids='kept'" in message
    for source in sources(*FROM_ONE).values():
        assert rm.evaluate(source, TEST).mean() == right.mean()
    for stream in streams(evaluator, *FROM_ONE).values():
        assert stream.compute().mean() == right.mean()


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")
@pytest.mark.parametrize(
    "train", [{"u": ["01"], "v": ["02"]}, {"u": ["A"], "v": ["1"], "w": ["a "]}]
)
def test_few_train_items_with_another_spelling_are_reported(train):
    lists, test = rm.Lists({"u": ["1", "2", "a"], "v": ["2", "a", "b"]}), {"u": ["a"], "v": ["b"]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rm.evaluate(lists, test, train=train, metrics="rr")
        messages = [str(warning.message) for warning in caught]
        caught.clear()
        rm.evaluate(lists, test, train={"u": ["c"], "v": ["1"]}, metrics="rr")
    (message,) = messages
    assert "Some items of train occur in Lists only in another spelling: '" in message
    assert not caught


@pytest.mark.parametrize("n", [1, 2, 5])
def test_single_item_is_too_few_to_suggest_positions(n):
    lists, test = rm.Lists({"u": [*range(n)]}), {user: [n] for user in "uvwxyz"}
    refused = pytest.raises(rm.InputError, match=f"contain item {n} and no item 0")
    with contextlib.nullcontext() if n == 1 else refused:
        rm.evaluate(lists, test, metrics="rr@1")


def test_rule_shifted_ids_accepts_shifted_ids():
    for name, source in sources(*POSITIONS).items():
        result = rm.evaluate(source, TEST, shifted_ids="kept")
        assert result.counts["users_unknown"] == 1, name
        # The protocol of a result with shifted_ids="kept" can be reused.
        assert rm.evaluate(source, TEST, protocol=result.protocol).mean() == result.mean()
        data = {"source": source, "test": TEST}
        assert rm.explain(result, "ndcg@10", protocol="trec_eval", **data).right
    for stream in streams(rm.Evaluator(TEST, shifted_ids="kept"), *POSITIONS).values():
        assert stream.compute().counts["users_unknown"] == 1
    expected = rm.evaluate(sources(*FROM_ONE)["Scores"], TEST)
    assert rm.compare({"kept": result, "usual": expected}, allow="candidates")


def test_rule_shifted_ids_without_effect_causes_a_warning():
    with pytest.warns(rm.DataWarning, match="shifted_ids='kept' changes nothing here"):
        rm.evaluate(sources(*FROM_ONE)["Scores"], TEST, shifted_ids="kept")


def test_ids_from_zero_with_gaps_in_test_are_accepted():
    from_zero = TEST.with_columns(pl.col("user") - 1, pl.col("item") - 1)
    for part in (
        from_zero.filter(pl.col("item") != 0),
        from_zero.filter(pl.col("user") != 0),
        from_zero.filter((pl.col("user") != 0) & (pl.col("item") != 0)),
        from_zero.filter(pl.col("user") > 5),
    ):
        values = [
            rm.evaluate(source, part, metrics="ndcg@3").mean()
            for source in sources(*POSITIONS).values()
        ]
        assert values[1:] == values[:-1]
    # User 0 has training rows but no test rows, and the model does not know one of the test users.
    unknown_user = pl.DataFrame({"user": [N_USERS], "item": [3]})
    later = pl.concat([from_zero.filter(pl.col("user") > 0), unknown_user], how="vertical_relaxed")
    train = from_zero.filter(pl.col("user") < 2)
    assert rm.evaluate(sources(*POSITIONS)["Scores"], later, train=train).counts["users_unknown"]


def test_ids_of_train_are_checked_like_those_of_test():
    test, train = TEST.filter(pl.col("user") < 30), TEST.filter(pl.col("user") >= 30)
    source = sources(POSITIONS[0], FROM_ONE[1])["Scores"]
    assert rm.evaluate(source, test).mean()  # user 40 has no test rows, so nothing is refused
    with pytest.raises(rm.InputError, match=WORDS):
        rm.evaluate(source, test, train=train)
    # Pairs with labels have no test set, so their ids are compared with those in the training data.
    frame = TEST.with_columns(pl.col("user") - 1, score=1.0, relevance=1)
    with pytest.raises(rm.InputError, match=WORDS):
        rm.evaluate(rm.Pairs(frame), train=TEST, metrics="rr")


def test_item_nodes_that_begin_at_the_number_of_users_are_refused():
    n_users, n_items = 20, 30
    scores = SCORES[:n_users]
    nodes = pl.DataFrame({"user": range(n_users), "item": BEST[:n_users, 0] + n_users})
    nodes = nodes.filter(pl.col("item") != n_items)  # the model has no item 30
    first_and_last_nodes = pl.DataFrame({"user": [0, 1], "item": [n_users, n_users + n_items - 1]})
    source = rm.Scores(scores, user_ids=range(n_users), item_ids=range(n_items))
    with pytest.raises(rm.InputError, match=r"begin at 20, .* item_offset=n_users for nodes"):
        rm.evaluate(source, nodes, train=first_and_last_nodes)
    with pytest.raises(rm.InputError, match="item_offset"):
        rm.evaluate(
            rm.Lists(dict(enumerate(BEST[:n_users].tolist()))), nodes, train=first_and_last_nodes
        )
    with_node_ids = rm.Scores(
        scores, user_ids=range(n_users), item_ids=np.arange(n_items) + n_users
    )
    assert rm.evaluate(with_node_ids, nodes, metrics="hit@1").mean() == {"hit@1": 1}
    # The lowest item of a small test set can equal the number of users by chance.
    small_test = pl.DataFrame({"user": [3, 4], "item": [n_users, n_users + 1]})
    assert rm.evaluate(source, small_test, metrics="rr").mean()


SPELLINGS = {
    "leading or trailing blanks": lambda text: f"{text} ",
    "letter case": str.upper,
    "the Unicode form (NFC or NFD)": lambda text: unicodedata.normalize("NFD", text),
    "leading zeros": lambda text: f"00{text}",
    "a decimal point (1.0 for 1)": lambda text: f"{text}.0",
}


def text_ids(name, n):
    """Return text ids, each of which is changed by the spelling called `name`."""
    if "zeros" in name or "decimal" in name:
        return [str(number + 1) for number in range(n)]
    return [f"h\u00e9 {number}" for number in range(n)]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("kind", ["user", "item"])
def test_ids_with_another_spelling_are_reported(name, kind):
    users, items = text_ids(name, N_USERS), text_ids(name, N_ITEMS)
    changed = {"user": users, "item": items}[kind]
    respelled = [
        SPELLINGS[name](identifier) if place % 3 == 0 else identifier
        for place, identifier in enumerate(changed)
    ]
    source_ids = {"user_ids": users, "item_ids": items, f"{kind}_ids": respelled}
    test = pl.DataFrame({"user": users * 2, "item": (items * 4)[: 2 * N_USERS]})
    example = changed[0], respelled[0]
    lists = dict(
        zip(source_ids["user_ids"], np.array(source_ids["item_ids"])[BEST].tolist(), strict=True)
    )
    calls = [
        lambda: rm.evaluate(rm.Scores(SCORES, **source_ids), test, metrics="rr"),
        lambda: rm.evaluate(rm.Factors(USERS, ITEMS, **source_ids), test, metrics="coverage@2"),
        lambda: rm.Evaluator(test, metrics="rr").mean(rm.Scores(SCORES, **source_ids)),
        lambda: rm.evaluate(rm.Lists(lists), test, metrics="rr"),
    ]
    if kind == "item":
        calls.pop(1)  # list metrics read no relevant rows
    stream = rm.Evaluator(test, metrics="rr").stream(item_ids=source_ids["item_ids"])
    stream.update(SCORES, users=source_ids["user_ids"])
    calls.append(stream.compute)
    calls.append(pickle.loads(pickle.dumps(stream)).compute)
    for number, call in enumerate(calls):
        with pytest.warns(rm.DataWarning) as caught:
            call()
        text = " ".join(str(warning.message) for warning in caught)
        assert name in text, number
        assert f"{example[0]!r} may be {example[1]!r}" in text, number
    finding = rm.check(rm.Lists(lists), test)[f"test_{kind}s_unknown"]
    assert finding.count == len(changed[::3])
    assert f"{example[0]!r} may be {example[1]!r}" in finding.sentence


def scores_without_some_users(share):
    """Return a model that scores all items, but knows only some of the users in TEST."""
    n = round(N_USERS * (1 - share))
    return rm.Scores(SCORES[:n], user_ids=FROM_ONE[0][:n], item_ids=FROM_ONE[1])


@pytest.mark.filterwarnings("error")
def test_warning_about_unknown_users_needs_more_than_a_tenth():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.evaluate(scores_without_some_users(0.1), TEST)
    with pytest.warns(rm.DataWarning, match=r"5 of 40 test users \(12%\) are unknown"):
        result = rm.evaluate(scores_without_some_users(0.125), TEST)
    assert result.counts["users_unknown"] == 5
    with pytest.warns(rm.DataWarning, match="such as 31, 32, 33, and count as misses"):
        rm.evaluate(scores_without_some_users(0.25), TEST)
    with pytest.warns(rm.DataWarning, match="such as 31, 32, 33, and are left out of the means"):
        rm.evaluate(scores_without_some_users(0.25), TEST, no_list="undefined")


@pytest.mark.filterwarnings("error")
def test_relevant_rows_with_unknown_items_are_reported():
    source_of_few_items = rm.Scores(SCORES[:, :20], user_ids=FROM_ONE[0], item_ids=FROM_ONE[1][:20])
    n_unknown = int((TEST["item"] > 20).sum())
    message = (
        rf"{n_unknown} of {len(TEST)} relevant test rows .* such as 21, 22, 23, and are misses"
    )
    with pytest.warns(rm.DataWarning, match=message):
        rm.evaluate(source_of_few_items, TEST)
    # Lists do not show which items a model knows, so missing items cause no warning.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rm.evaluate(rm.Lists(dict(enumerate(BEST[:, :3] + 1, 1))), TEST, metrics="rr")


@pytest.mark.filterwarnings("error")
def test_stream_without_most_users_causes_a_warning():
    stream = rm.Evaluator(TEST).stream(item_ids=FROM_ONE[1])
    stream.update(SCORES[:4], users=FROM_ONE[0][:4])
    message = r"36 of 40 test users \(90%\) are "
    with pytest.warns(rm.DataWarning, match=message + "in no batch of the stream"):
        stream.compute()
    by_position = rm.Evaluator(np.eye(N_USERS, N_ITEMS)).stream()
    by_position.update(items=BEST[:4], users=np.arange(4))
    with pytest.warns(rm.DataWarning, match=message + "unknown to the model"):
        by_position.mean()
    # There is no warning if the caller requested only the known users.
    part = rm.Evaluator(TEST).of_known_users().stream(item_ids=FROM_ONE[1])
    part.update(SCORES[:4], users=FROM_ONE[0][:4])
    assert part.mean()


def test_check_reports_ids_missing_from_lists():
    lists = {user: list(range(0, 100, 2)) for user in range(9)}
    odd = pl.DataFrame({"user": range(9), "item": range(1, 19, 2)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = rm.check(rm.Lists(lists), odd)
    assert (report["test_items_unknown"].count, report["test_items_unknown"].level) == (
        9,
        "problem",
    )
    users = rm.check(rm.Lists({10: [1], 30: [2]}), {10: [1], 20: [2]})
    assert users["test_users_unknown"].examples == (20,)


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")
@pytest.mark.parametrize("type_of_ids", [int, str])
def test_positions_in_data_are_not_mistaken_for_ids_starting_at_one(type_of_ids):
    def model_with_ids(numbers):
        return np.array(
            [type_of_ids(number) for number in numbers], object if type_of_ids is str else None
        )

    type_of = pl.String if type_of_ids is str else pl.Int64
    positions = TEST.with_columns((pl.col("user", "item") - 1).cast(type_of))
    for kind, users, items in (
        ("user", FROM_ONE[0], POSITIONS[1]),
        ("item", POSITIONS[0], FROM_ONE[1]),
    ):
        model = sources(model_with_ids(users), model_with_ids(items))
        n = N_USERS if kind == "user" else N_ITEMS
        for source in (model["Factors"], model["Lists of a dict"], model["Pairs"]):
            message = f"{kind}s of test and train are 0 to {n - 1}, but .* 1 to {n}: {WORDS}"
            with pytest.raises(rm.InputError, match=message):
                rm.evaluate(source, positions)
            result = rm.evaluate(source, positions, shifted_ids="kept")
            assert result.protocol.shifted_ids == "kept"
    right = rm.Factors(
        USERS, ITEMS, user_ids=model_with_ids(POSITIONS[0]), item_ids=model_with_ids(POSITIONS[1])
    )
    wrong = sources(model_with_ids(POSITIONS[0]), model_with_ids(FROM_ONE[1]))["Scores"]
    from_one = TEST.with_columns(pl.col("user", "item").cast(type_of))
    with pytest.raises(rm.InputError, match=f"contain user {N_USERS} and no user 0: {WORDS}"):
        rm.evaluate(wrong, from_one)
    # There is no error if the model knows the item that is missing from the test and training data.
    assert rm.evaluate(right, positions.filter(pl.col("item") != type_of_ids(0))).mean()


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")
def test_few_lists_can_lack_the_first_item_by_chance():
    lists = rm.Lists({"ann": [1, 2], "bob": [3, 1]})
    assert rm.evaluate(
        lists, {"ann": [1], "bob": [2]}, train={"ann": [0]}, metrics="recall@2"
    ).mean() == {"recall@2": 0.5}
    texts = rm.Lists({"01": ["a", "b"], "2": ["b"]})
    assert rm.evaluate(texts, {"01": ["b"], "2": ["b"]}, metrics="rr").mean() == {"rr": 0.75}
