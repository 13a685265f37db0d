"""As many users as the question needs: what is read, what it says of all users, what is refused."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import recometer as rm
from recometer.errors import InputError, InputTypeError, UnknownNameError
from recometer.results.users_read import UsersRead
from recometer.sources.base import Request, Source

N_USERS, N_ITEMS = 300, 40
METRICS = "ndcg@5 recall@5 rr roc_auc"
UNTIL = rm.Until("ndcg@5 ± 0.15", first=20, growth=1.5)
UNTIL_RR = rm.Until("rr ± 0.15", first=20, growth=1.5)
NAMES = np.array([f"u{number:03d}" for number in range(N_USERS)], object)


def data(seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return scores with ties, test and train; some users have no row of test left."""
    generator = np.random.default_rng(seed)
    scores = generator.integers(0, 12, (N_USERS, N_ITEMS)).astype(np.float64)
    test = generator.random((N_USERS, N_ITEMS)) < 0.05
    train = generator.random((N_USERS, N_ITEMS)) < 0.1
    test[:, 0] |= scores[:, 0] > 6
    return scores, test, train


def frame(entries: NDArray[Any], scores: NDArray[Any] | None = None) -> pl.DataFrame:
    """Return the entries that are not 0 as rows with ids, in any order."""
    user, item = np.nonzero(entries)
    columns: dict[str, Any] = {"user_id": NAMES[user].tolist(), "item_id": item}
    if scores is not None:
        columns["score"] = scores[user, item]
    return pl.DataFrame(columns).sample(fraction=1, shuffle=True, seed=3)


def sources(named: bool) -> dict[str, rm.Factors | rm.Scores | rm.Lists | rm.Pairs]:
    """Return every kind of source, with ids of users and items, or without."""
    scores = data()[0]
    ids: dict[str, Any] = {}
    order = np.arange(N_USERS)
    if named:
        order = np.random.default_rng(1).permutation(N_USERS)
        ids = {"user_ids": NAMES[order].tolist(), "item_ids": list(range(N_ITEMS))}
    every = np.ones_like(scores, bool)
    best = np.argsort(-scores, axis=1, kind="stable")
    return {
        "factors": rm.Factors(scores[order], np.eye(N_ITEMS), **ids),
        "scores": rm.Scores(scores[order], **ids),
        "function": rm.Scores(
            lambda rows: scores[order][rows], n_users=N_USERS, n_items=N_ITEMS, **ids
        ),
        "lists": rm.Lists(best[order][:, :15], **ids),
        **({"pairs": rm.Pairs(frame(every, scores), relevance=False)} if named else {}),
    }


def given(named: bool) -> dict[str, Any]:
    _, test, train = data()
    if named:
        return {"test": frame(test), "train": frame(train)}
    return {"test": test, "train": train}


def places(result: rm.Evaluation, whole: rm.Evaluation) -> NDArray[np.int64]:
    """Return where the users of a result stand in that of all."""
    if whole.user_ids is None:
        return result.user_ids  # type: ignore[return-value]
    found = {name: place for place, name in enumerate(whole.user_ids)}
    return np.array([found[name] for name in result.user_ids])  # type: ignore[union-attr]


KINDS = [("named", name) for name in sources(True)] + [("positions", n) for n in sources(False)]


@pytest.mark.parametrize(("ids", "kind"), KINDS)
@pytest.mark.parametrize("ties", ["expected", "random"])
def test_users_have_the_values_that_they_have_among_all(ids: str, kind: str, ties: str) -> None:
    source, options = sources(ids == "named")[kind], given(ids == "named")
    options |= {"metrics": METRICS, "ties": ties, "seed": 4}
    if kind == "lists":
        options["metrics"] = "ndcg@5 recall@5 rr"
        options["catalogue"] = list(range(N_ITEMS)) if ids == "named" else N_ITEMS
        if ties == "random":
            options["ties"] = "item"  # there are none
    whole = rm.evaluate(source, **options)
    result = rm.evaluate(source, **options, until=UNTIL)
    place = places(result, whole)
    read = result.users_read
    assert read is not None
    assert 20 <= read.n_read == len(place) < read.n_users
    assert read.n_users == np.count_nonzero(whole.n_relevant)
    for name in whole.reasons:
        np.testing.assert_array_equal(result[name], whole[name][place])
        np.testing.assert_array_equal(result.reasons[name], whole.reasons[name][place])
    for name in ("n_relevant", "n_candidates", "n_excluded", "depth", "flags", "activity"):
        np.testing.assert_array_equal(getattr(result, name), getattr(whole, name)[place])
    assert whole.mean()["ndcg@5"] in result.interval("ndcg@5")
    assert result.interval("ndcg@5").width <= 0.3
    assert {name: one["fingerprints"] for name, one in result.inputs.items()} == {
        name: one["fingerprints"] for name, one in whole.inputs.items()
    }
    assert [one["description"] for one in result.inputs.values()] == [
        one["description"] for one in whole.inputs.values()
    ]


@pytest.mark.parametrize("ids", ["named", "positions"])
@pytest.mark.parametrize("kind", ["factors", "scores", "lists"])
def test_what_was_counted_is_that_of_the_users_read(ids: str, kind: str) -> None:
    """The result equals an evaluation of these users alone, unknown items and users included."""
    source, options = sources(ids == "named")[kind], given(ids == "named")
    if ids == "named":
        extra = pl.DataFrame({"user_id": ["u007", "stranger"], "item_id": [99, 3]})
        options["test"] = pl.concat([options["test"], extra])
    options |= {"metrics": "ndcg@5 novelty@5"}
    result = rm.evaluate(source, **options, until=UNTIL)
    test = rm.Interactions.of(options["test"])
    whole = rm.evaluate(source, **options)
    place = places(result, whole)
    if ids == "named":
        alone = rm.evaluate(source, **{**options, "test": test.select_users(place)})
        assert dict(result.counts) == dict(alone.counts)
        assert result.by_popularity is not None
        assert alone.by_popularity is not None
        np.testing.assert_array_equal(result.by_popularity.found, alone.by_popularity.found)
    for name in whole.reasons:
        np.testing.assert_array_equal(result[name], whole[name][place])
    assert result.lists is not None
    assert whole.lists is not None
    np.testing.assert_array_equal(result.lists.items, whole.lists.items[place])
    # Lists have a value for users without a relevant item, too, who are read then.
    assert result.users_read is not None
    assert result.users_read.n_users == whole.n_users


def test_candidates_and_chance_are_those_of_all() -> None:
    source, options = sources(False)["factors"], given(False)
    sets = np.random.default_rng(9).random((N_USERS, N_ITEMS)) < 0.5
    for candidates in (rm.SampledCandidates(20), rm.Interactions.of(sets), [0, 1, 2, 3, 5, 8, 13]):
        options |= {"candidates": candidates, "metrics": METRICS, "chance": True}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rm.DataWarning)
            whole = rm.evaluate(source, **options)
            result = rm.evaluate(source, **options, until=UNTIL)
        place = places(result, whole)
        assert len(place) < N_USERS / 2
        for name in whole.reasons:
            np.testing.assert_array_equal(result[name], whole[name][place])
            np.testing.assert_array_equal(result.chance[name], whole.chance[name][place])


def test_pairs_that_bring_the_truth() -> None:
    scores, test, _ = data()
    every = frame(np.ones_like(test), scores)
    relevance = pl.Series([bool(test[int(u[1:]), i]) for u, i, _ in every.iter_rows()])
    pairs = rm.Pairs(every.with_columns(relevance=relevance.cast(pl.Int64)))
    whole = rm.evaluate(pairs, metrics=METRICS)
    result = rm.evaluate(pairs, metrics=METRICS, until=UNTIL)
    assert result.users_read is not None
    assert result.users_read.n_users == N_USERS  # those without a relevant row come among them
    assert result.n_users < N_USERS
    place = places(result, whole)
    for name in whole.reasons:
        np.testing.assert_array_equal(result[name], whole[name][place])
    assert whole.mean()["ndcg@5"] in result.interval("ndcg@5")


def test_when_all_are_read_the_means_are_exact() -> None:
    source, options = sources(True)["factors"], given(True)
    options["metrics"] = METRICS
    whole = rm.evaluate(source, **options)
    result = rm.evaluate(source, **options, until="ndcg@5 ± 0.0000001")
    assert result.mean() == whole.mean()
    for name, mean in whole.mean().items():
        interval = result.interval(name)
        assert (interval.low, interval.high, interval.method) == (mean, mean, "betting")
        assert interval.n == np.count_nonzero(~np.isnan(whole[name]))
    assert result.users_read is not None
    assert not result.users_read.reached
    assert "all 275 users were read" in str(result)


def test_the_seed_says_who_is_read() -> None:
    source, options = sources(True)["factors"], given(True)
    first, again, other = (
        rm.evaluate(source, **options, metrics="ndcg@5", until=UNTIL, seed=seed)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.user_ids, again.user_ids)
    assert first.users_read == again.users_read
    assert set(first.user_ids) != set(other.user_ids)  # type: ignore[arg-type]
    # Neither the order of users nor the number of threads changes who is read.
    options["test"] = options["test"].reverse()
    third = rm.evaluate(source, **options, metrics="ndcg@5", until=UNTIL, seed=1, threads=2)
    assert third.users_read == first.users_read


def test_the_mean_of_a_metric_of_lists_can_be_waited_for() -> None:
    source, options = sources(False)["scores"], given(False)
    until = rm.Until("tail_share@3 ± 0.3", first=20)
    result = rm.evaluate(source, **options, metrics="tail_share@3", until=until)
    assert result.users_read is not None
    assert 20 <= result.users_read.n_read < N_USERS


def test_the_mean_of_all_is_covered_whatever_is_read() -> None:
    """Seeds stop at different times, and widths can be relative to the mean."""
    source, options = sources(False)["scores"], given(False)
    evaluator = {
        seed: rm.Evaluator(**options, metrics="ndcg@5", seed=seed, threads=1) for seed in range(12)
    }
    mean = evaluator[0](source).mean()["ndcg@5"]
    numbers, missed = set(), 0
    for one in evaluator.values():
        result = one(source, until=rm.Until("ndcg@5 ± 45%", first=20, growth=1.2))
        interval, read = result.interval("ndcg@5"), result.users_read
        assert read is not None
        assert interval.width / 2 <= 0.45 * result.mean()["ndcg@5"]
        missed += mean not in interval
        numbers.add(read.n_read)
    assert len(numbers) > 3
    assert missed <= 1


def test_users_who_turn_out_to_be_undefined_count_for_nothing() -> None:
    """NaN scores show up only in reading: the mean is that of all users who have a value."""
    scores, test, _ = data()
    scores[np.random.default_rng(6).random(N_USERS) < 0.4, 5] = np.nan
    options: dict[str, Any] = {"test": test, "metrics": "ndcg@5"}
    whole = rm.evaluate(rm.Scores(scores), **options)
    result = rm.evaluate(rm.Scores(scores), **options, until=UNTIL)
    assert whole.mean()["ndcg@5"] in result.interval("ndcg@5")
    n_defined = int(np.count_nonzero(~np.isnan(result["ndcg@5"])))
    assert result.interval("ndcg@5").n == n_defined < result.n_users
    # As a number, they count.
    counted = rm.evaluate(rm.Scores(scores), **options, undefined=-1.0, until=UNTIL, seed=1)
    low, high = counted.interval("ndcg@5")
    mean = rm.evaluate(rm.Scores(scores), **options, undefined=-1.0).mean()["ndcg@5"]
    assert low < mean < high < whole.mean()["ndcg@5"]


def test_what_is_warned_of_is_said_once_of_all_that_were_read() -> None:
    best = np.argsort(-data()[0], axis=1, kind="stable")[:, :6]
    best[:, 5] = best[:, 0]
    lists = rm.Lists(best)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = rm.evaluate(lists, **given(False), metrics="ndcg@5", until=UNTIL)
    (said,) = found
    n_lists = result.counts["list_duplicates"]
    assert len(result) / 2 < n_lists <= len(result)
    assert f"in {n_lists} lists repeat an item" in str(said.message)
    assert said.filename == __file__


def test_items_that_count_twice_have_no_range() -> None:
    """Lists may repeat items under this rule; sources that score every item do not."""
    options = {**given(True), "metrics": "recall@5", "duplicates": "counted"}
    with pytest.raises(InputError, match="may lie beyond its range"):
        rm.evaluate(sources(True)["lists"], **options, until="recall@5 ± 0.1")
    with pytest.warns(rm.DataWarning, match="duplicates='counted' changes nothing here"):
        found = rm.evaluate(sources(True)["scores"], **options, until="recall@5 ± 0.1")
    assert found.users_read is not None


class Own(Source):
    """A source of one's own, which says of users no more than their ranks."""

    def __init__(self, source: Source) -> None:
        self.source, self.n_ranked = source, 0

    def rank(self, request: Request) -> rm.Ranks:
        """Rank as another source does."""
        self.n_ranked += request.test.n_users
        return self.source.rank(request)

    def describe(self) -> str:
        return "my own"

    def arrays(self) -> dict[str, object]:
        return {}


def test_sources_of_ones_own() -> None:
    options = {**given(True), "metrics": "ndcg@5", "until": UNTIL}
    own = Own(sources(True)["scores"])
    found, expected = rm.evaluate(own, **options), rm.evaluate(own.source, **options)
    np.testing.assert_array_equal(found["ndcg@5"], expected["ndcg@5"])
    assert found.users_read == expected.users_read
    assert own.n_ranked == 2 * len(found)  # once more, for what was counted
    # Where matching tells what was counted, no user is ranked twice.
    asked: list[int] = []

    def function(rows: NDArray[np.int64]) -> NDArray[Any]:
        asked.extend(rows.tolist())
        return data()[0][rows]

    result = rm.evaluate(
        rm.Scores(function, n_users=N_USERS, n_items=N_ITEMS),
        **{**given(False), "metrics": "ndcg@5", "until": UNTIL},
    )
    assert sorted(asked) == list(result.user_ids)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"knows them by position only.*user_ids="):
        rm.evaluate(Own(sources(False)["scores"]), **{**options, **given(False)})


def test_a_few_users_whose_factors_are_not_finite() -> None:
    """Whether scores have to be looked at is the same for all users, and so for all batches."""
    scores, test, train = data()
    scores[[7, 77], 3] = np.nan
    source = rm.Factors(scores, np.eye(N_ITEMS))
    whole = rm.evaluate(source, test, train=train, metrics=METRICS)
    result = rm.evaluate(source, test, train=train, metrics=METRICS, until=UNTIL)
    for name in whole.reasons:
        np.testing.assert_array_equal(result[name], whole[name][places(result, whole)])
    for name in ("depth", "flags"):
        np.testing.assert_array_equal(
            getattr(result, name), getattr(whole, name)[places(result, whole)]
        )


def test_a_result_says_how_many_users_were_read(tmp_path: Path) -> None:
    source, options = sources(True)["factors"], given(True)
    metrics = "ndcg@5 recall@5 dcg@5"
    options["test"] = options["test"].with_columns(value=pl.lit(2.5))
    result = rm.evaluate(source, **options, metrics=metrics, until=UNTIL)
    read = result.users_read
    assert isinstance(read, UsersRead)
    assert read.reached
    assert read.share == read.n_read / 275
    text = f"until ndcg@5 ± 0.15: {read.n_read} of 275 users were read"
    assert text in str(result)
    assert "by betting, at all numbers of users at once" in str(result)
    for shown in (result.to_markdown(), result.to_html(), result.to_latex()):
        assert f"{read.n_read} of 275 users were read" in shown
    content = json.loads(result.to_json())
    assert content["users_read"]["n_read"] == read.n_read
    assert content["users_read"]["intervals"]["ndcg@5"]["low"] == result.interval("ndcg@5").low
    assert content["metrics"]["ndcg@5"]["method"] == "betting"
    result.save(tmp_path / "result.parquet")
    loaded = rm.load(tmp_path / "result.parquet")
    assert loaded.users_read == read
    assert str(loaded) == str(result)
    assert "users_read" not in json.loads(rm.evaluate(source, **options).to_json())
    # A metric without a range has a mean, and no interval; so have some of the users.
    row = next(row for row in result.summary() if row.metric.startswith("dcg"))
    assert np.isfinite(row.mean)
    assert np.isnan(row.low)
    assert "Users were read until enough was known" in row.note
    assert np.isnan(result.of_users([1, 2, 3]).interval("ndcg@5").low)
    assert np.isnan(result.interval("ndcg@5", "relevant").low)
    groups = result.by(np.arange(result.n_users) % 2).rows
    assert all(np.isnan(group.low) for group in groups)
    with pytest.raises(InputError, match="leave interval= and cluster= out"):
        result.summary(interval="t")


def test_the_report_says_how_many_users_were_read(tmp_path: Path) -> None:
    source, options = sources(True)["factors"], given(True)
    result = rm.evaluate(source, **options, until="ndcg@10 ± 0.15")
    result.report(tmp_path / "report.md")
    assert "users were read" in (tmp_path / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["ndcg@5 ± 0.15", "ndcg@5 +- 0.15", "ndcg@5+/-0.15", " nDCG@5 ±.15 "]
)
def test_ways_to_write_it(text: str) -> None:
    until = rm.Until(text)
    assert (until.width, until.relative, until.decided) == (0.15, False, False)
    options = given(True)
    result = rm.evaluate(sources(True)["scores"], **options, metrics="ndcg@5", until=text)
    assert result.users_read is not None


def test_looks_come_at_growing_numbers() -> None:
    until = rm.Until("rr ± 2%", first=10, growth=1.5)
    assert (until.width, until.relative) == (0.02, True)
    numbers = [until.next_number(0, 60)]
    while numbers[-1] < 60:
        numbers.append(until.next_number(numbers[-1], 60))
    assert numbers == [10, 15, 23, 35, 53, 60]
    assert rm.Until("rr ± 2", growth=1.001).next_number(3, 10) == 4
    assert rm.Until("decided").decided


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndcg@10", "cannot be read"),
        ("± 0.1", "cannot be read"),
        ("ndcg@10 ± wide", "'wide' is not a number above 0"),
        ("ndcg@10 ± 0", "'0' is not a number above 0"),
        ("ndcg@10 ± -0.1", "'-0.1' is not a number above 0"),
        ("ndcg@10 ± nan", "'nan' is not a number above 0"),
        ("ndcg@10 ± inf %", "'inf' is not a number above 0"),
        ("", "cannot be read"),
    ],
)
def test_texts_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        rm.Until(text)
    assert "Hint: 'ndcg@10 ± 0.002'" in str(refused.value)


def test_what_some_of_the_users_do_not_tell_is_refused() -> None:
    source, options = sources(True)["scores"], given(True)

    def refused(until: Any = UNTIL, error: type[Exception] = InputError, **more: Any) -> str:
        with pytest.raises(error) as found:
            rm.evaluate(source, **{**options, "metrics": METRICS, **more}, until=until)
        return str(found.value)

    assert "text" in refused(0.002, InputTypeError)
    assert "Hint: compare(" in refused("decided")
    assert "precision@5 is not among the metrics" in refused("precision@5 ± 0.1", UnknownNameError)
    assert "several metrics: ndcg@5, ndcg@10" in refused("ndcg@5,10 ± 0.1")
    assert "coverage@5 is one value for all users" in refused(metrics="ndcg@5 coverage@5")
    assert "average='users'" in refused(average="relevant")
    assert "missing='skip'" in refused(missing="nan")
    wide = refused("dcg@5 ± 0.1", metrics="dcg@5", test=options["test"].with_columns(value=2.0))
    assert "no known range" in wide
    assert "precision, recall" in wide
    sessions = frame(data()[1]).with_columns(session=pl.lit(1))
    of_sessions = rm.Interactions.of(sessions, user=["user_id", "session"])
    assert "sessions" in refused(test=of_sessions)
    for wrong in ({"first": 0}, {"first": 1.5}, {"growth": 1.0}, {"growth": "fast"}):
        with pytest.raises(InputError):
            rm.Until("ndcg@10 ± 0.1", **wrong)


def test_folds_are_refused() -> None:
    scores, test, _ = data()
    folds = rm.split.folds(frame(test), rm.split.KFold(2))
    with pytest.raises(InputError, match="folds have several"):
        rm.evaluate([rm.Scores(scores)] * 2, folds, until=UNTIL)  # type: ignore[call-overload]
    with pytest.raises(UnknownNameError, match=r"evaluator\(source, until=...\)"):
        rm.Evaluator(test, until=UNTIL)  # type: ignore[call-arg]


def test_splits_and_explanations() -> None:
    _, test, train = data()
    together = pl.concat([frame(test & ~train), frame(train)])
    made = rm.split(together, rm.split.Fraction(0.3), seed=1)
    named = rm.evaluate(sources(True)["factors"], made, metrics="rr", until=UNTIL_RR)
    whole = rm.evaluate(sources(True)["factors"], made, metrics="rr")
    np.testing.assert_array_equal(named["rr"], whole["rr"][places(named, whole)])
    by_position = rm.evaluate(
        sources(False)["factors"], **given(False), metrics="rr", until=UNTIL_RR
    )
    for result in (named, by_position):
        explained = rm.explain(result, "rr", protocol="rectools")
        np.testing.assert_array_equal(explained.user_ids, result.user_ids)
        np.testing.assert_array_equal(explained.values[:, 0], result["rr"])


def test_no_user_has_anything_to_find() -> None:
    scores, test, _ = data()
    with pytest.raises(InputError, match="nobody to read"):
        rm.evaluate(rm.Scores(scores), test, train=test, metrics="ndcg@5", until=UNTIL)


def test_a_source_that_knows_nobody_is_refused_as_ever() -> None:
    named = [f"x{number}" for number in range(N_USERS)]
    source = rm.Scores(data()[0], user_ids=named, item_ids=list(range(N_ITEMS)))
    test = {f"u{number}": [number % 7] for number in range(50)}
    with pytest.raises(InputError, match="knows none of the"):
        rm.evaluate(source, test, metrics="ndcg@5", until=UNTIL, users="known")


def test_looks_change_how_many_are_read_and_not_who() -> None:
    source, options = sources(True)["factors"], given(True)
    few, many = (
        rm.evaluate(
            source, **options, metrics="ndcg@5", until=rm.Until("ndcg@5 ± 0.15", first, 1.1)
        )
        for first in (1, 150)
    )
    assert len(few) < len(many) == 150
    assert set(few.user_ids) < set(many.user_ids)  # type: ignore[arg-type]


def test_the_next_look_is_when_enough_users_are_likely_to_be_read():
    until = rm.Until("ndcg@5 ± 0.1")
    assert until.next_number(0, 10_000) == 1_000
    assert until.next_number(1_000, 10_000) == 1_250  # nothing is known
    assert until.next_number(1_000, 10_000, needed=3_000) == 3_000
    assert until.next_number(3_000, 10_000, needed=2_900) == 3_240
    assert until.next_number(1_000, 10_000, needed=8_000) == 10_000  # or nearly all


def test_a_parameter_taken_from_test_need_not_be_named() -> None:
    """The metric is that which was asked for, whose largest gain is that of test."""
    test = {f"u{number}": {"a": 1 + number % 3, "b": 1} for number in range(60)}
    lists = rm.Lists({user: ["b", "a"] for user in test})
    until = rm.Until("err@2 ± 0.3", first=20)
    found = rm.evaluate(lists, test, metrics="err@2", until=until)
    assert found.users_read is not None
    assert found.users_read.n_read < 60
    assert list(found.mean()) == ["err@2(max_gain=3)"]
