"""All of recometer's sources obey the source laws, which detect broken sources."""

import dataclasses

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.sources.base import Source
from recometer.testing import SOURCE_LAWS, SourceCase, check_source


def factors(scores, users, items):
    return rm.Factors(scores, np.eye(scores.shape[1]), user_ids=users, item_ids=items)


def shared_ranking(scores, users, items):
    return rm.Factors(None, None, item_bias=scores.sum(axis=0), item_ids=items)


def matrix(scores, users, items):
    return rm.Scores(scores, user_ids=users, item_ids=items)


def function(scores, users, items):
    return rm.Scores(lambda rows: scores[rows], user_ids=users, item_ids=items)


def frame_of(scores, users, items):
    cells = np.argwhere(scores > -np.inf)
    return pl.DataFrame(
        {
            "user": [users[user] for user, _ in cells],
            "item": [items[item] for _, item in cells],
            "score": scores[cells[:, 0], cells[:, 1]],
        }
    )


def lists(scores, users, items):
    return rm.Lists(frame_of(scores, users, items))


def pairs(scores, users, items):
    return rm.Pairs(frame_of(scores, users, items), relevance=False, rating=False)


MAKERS = (factors, matrix, function, lists, pairs)


@pytest.mark.parametrize("make", MAKERS)
def test_sources_built_from_scores_obey_the_laws(make):
    check_source(make)


def test_every_public_source_is_checked():
    arguments, _, _ = case_data()
    public = [getattr(rm, name) for name in rm.__all__]
    sources = {
        public_object
        for public_object in public
        if isinstance(public_object, type) and issubclass(public_object, Source)
    }
    assert {type(make(*arguments)) for make in MAKERS} == sources


def test_shared_ranking_obeys_the_laws():
    check_source(shared_ranking, by_scores=False)


@pytest.mark.parametrize("scored", [True, False])
def test_truncated_lists_obey_the_laws(scored):
    def make(*arguments):
        frame = frame_of(*arguments).sort("score", "item", descending=[True, False])
        return rm.Lists(frame, score=None if scored else False, depth=2)

    check_source(make, by_scores=False)


def case_data(n_users=6, n_items=12):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, (n_users, n_items)).astype(float)
    kind = rng.random(scores.shape)
    users, items = [f"u{n}" for n in range(n_users)], [f"i{n}" for n in range(n_items)]
    ids = {"user_ids": users, "item_ids": items}
    test = rm.Interactions.of(kind < 0.3, **ids)
    train = rm.Interactions.of((kind > 0.8) | (kind < 0.1), **ids)
    return (scores, users, items), test, train


def test_check_source_accepts_only_functions():
    with pytest.raises(rm.InputTypeError, match=r"found int\. Hint: rm\.check"):
        check_source(3)


class Broken(rm.Scores):
    """A source of scores that breaks one law."""

    def __init__(self, law, *arguments):
        super().__init__(arguments[0], user_ids=arguments[1], item_ids=arguments[2])
        self.law = law

    def describe(self):
        return "two\nlines" if self.law == "ranks_are_well_formed" else "one line"

    def broken_request(self, request):
        left_out = {
            "excluded_items_are_left_out": "exclude",
            "only_candidates_are_ranked": "candidates",
            "items_of_train_are_not_recommended": "train",
        }
        if self.law not in left_out:
            return request
        return dataclasses.replace(request, **{left_out[self.law]: None})

    def rank(self, request):
        request = self.broken_request(request)
        ranks = super().rank(request)
        if self.law == "threads_change_nothing":
            return dataclasses.replace(ranks, n_excluded=ranks.n_excluded + request.threads)
        if self.law == "depth_hides_only_what_lies_beyond" and request.depth is not None:
            return dataclasses.replace(ranks, tied=ranks.tied + 1)
        if self.law == "a_user_does_not_depend_on_the_others":
            return dataclasses.replace(ranks, gain=ranks.gain * ranks.n_users)
        if self.law == "an_unknown_item_is_a_miss":
            n_relevant = np.bincount(
                np.repeat(np.arange(ranks.n_users), np.diff(ranks.indptr))[
                    ranks.relevant & (ranks.item >= 0)
                ],
                minlength=ranks.n_users,
            )
            return dataclasses.replace(ranks, n_relevant=n_relevant)
        if self.law == "places_are_counts_of_scores":
            ranked = ranks.above >= 0
            return dataclasses.replace(ranks, above=np.where(ranked, ranks.above + 1, -1))
        if self.law == "the_order_of_users_and_items_changes_nothing":
            first = self.facts.arrays["item_ids"][0] == ranks.item_ids[0]
            return dataclasses.replace(ranks, n_excluded=ranks.n_excluded + first)
        return ranks

    def top(self, request, k):
        lists = super().top(self.broken_request(request), k)
        if self.law == "rank_and_top_agree":
            return super().top(dataclasses.replace(request, train=None), k)
        if self.law == "shorter_lists_are_beginnings_of_longer_ones" and k == 2:
            return dataclasses.replace(lists, items=np.sort(lists.items)[:, ::-1].copy())
        return lists


@pytest.mark.parametrize("law", SOURCE_LAWS, ids=lambda law: law.__name__)
def test_laws_detect_broken_sources(law):
    (scores, users, items), test, train = case_data()

    def case(broken):
        def make(*arguments):
            return Broken(broken, *arguments)

        source = make(scores, users, items)
        return SourceCase(source, test, train, scores, make, tuple(users), tuple(items), True)

    law(case("none"))
    with pytest.raises(AssertionError):
        law(case(law.__name__))
