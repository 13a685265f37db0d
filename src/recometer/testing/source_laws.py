"""Laws for all sources of `Ranks`, including your own."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recometer.arrays import Array, Float64
from recometer.data.interactions import Interactions, gains
from recometer.errors import DataWarning, InputError, InputTypeError, brief
from recometer.protocol import Protocol
from recometer.ragged import users_of
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.sources.base import Request, Source
from recometer.sources.candidates import read_candidates, read_items
from recometer.testing.laws import law_settings

Make = Callable[[Float64, list[str], list[str]], Source]

DEPTHS = (1, 2, 5)
ORDERED = ("item", "item_desc")  # rules that break all ties by item id


@dataclasses.dataclass(frozen=True)
class SourceCase:
    """A source, and the data for requests to it.

    Attributes
    ----------
    source, make
        The source, and the function that makes sources from scores.
    test, train
        Interactions with ids; `train` may be None.
    scores : float64 [n_users, n_items]
        The scores from which the source was made.
    user_ids, item_ids : tuple of str
        The ids of the rows and columns of `scores`.
    by_scores
        Whether the source ranks all items by `scores`.
    """

    source: Source
    test: Interactions
    train: Interactions | None
    scores: Float64
    make: Make
    user_ids: tuple[str, ...]
    item_ids: tuple[str, ...]
    by_scores: bool

    def request(self, *, ties: str = "item", **changes: Any) -> Request:
        """Return the request that `evaluate` would make, with some fields replaced."""
        protocol = Protocol(ties=ties)  # type: ignore[arg-type]
        request = Request(self.test, self.train, protocol)
        return dataclasses.replace(request, **changes)

    def ranks(self, *, ties: str = "item") -> Ranks:
        """Return the ranks of the judged items."""
        return self.source.rank(self.request(ties=ties))

    def top(self, k: int, *, ties: str = "item") -> TopLists | None:
        """Return the lists of the best k items, or None if the source cannot make lists."""
        if type(self.source).top is Source.top:
            return None
        return self.source.top(self.request(ties=ties), k)


def check_source(make: Make, *, by_scores: bool = True) -> None:
    """Check all laws for a source.

    The function draws a fifth as many cases as the current Hypothesis profile sets
    (`hypothesis.settings.load_profile`), which means 20 by default.

    Parameters
    ----------
    make
        A function that makes a source from a matrix of scores: ``make(scores, user_ids,
        item_ids)``. Scores are float64 [n_users, n_items] without NaN and with many equal values;
        the ids of rows and columns are in any order.
    by_scores
        Whether the source ranks all items by their scores, unlike lists that end early.

    Raises
    ------
    AssertionError
        If the source breaks a law. The traceback shows the law and the case that breaks it.
    InputTypeError
        If `make` is not a function that returns a source.

    Examples
    --------
    >>> import recometer as rm
    >>> from recometer.testing import check_source
    >>> check_source(
    ...     lambda scores, users, items: rm.Scores(scores, user_ids=users, item_ids=items)
    ... )
    """
    if not callable(make):
        raise InputTypeError(
            f"check_source takes a function that makes a source, found {type(make).__name__}. "
            "Hint: rm.check(source, test) checks a source on your own data."
        )

    @law_settings()
    @given(source_cases(make, by_scores=by_scores))
    def check(case: SourceCase) -> None:
        with warnings.catch_warnings():
            # The test and training data deliberately contain users and items unknown to the source.
            warnings.simplefilter("ignore", DataWarning)
            for law in SOURCE_LAWS:
                law(case)

    check()


@st.composite
def source_cases(draw: st.DrawFn, make: Make, *, by_scores: bool = True) -> SourceCase:
    """Draw a source made by `make`, and its data; the test data also contain an unknown user."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_users, n_items = draw(st.integers(1, 4)), draw(st.integers(2, 9))
    highest = draw(st.sampled_from([1, 3, 50]))
    scores = rng.integers(-highest, highest, (n_users, n_items), endpoint=True) / 2
    users = tuple(f"u{number}" for number in rng.permutation(n_users))
    items = tuple(f"i{number}" for number in rng.permutation(n_items))
    kind = rng.random((n_users, n_items))
    kind[0, 0] = 0  # because empty test data are an error
    values = rng.integers(1, 4, kind.shape)
    in_train = kind > draw(st.sampled_from([0.7, 2]))
    test, train = (
        {(users[user], items[item]): float(values[user, item]) for user, item in np.argwhere(cells)}
        for cells in (kind < 0.4, in_train)
    )
    source = make(scores.copy(), list(users), list(items))
    if not isinstance(source, Source):
        raise InputTypeError(
            f"The function given to check_source must return a source, but returned "
            f"{brief(source)} of type {type(source).__name__}."
        )
    return SourceCase(
        source,
        _of_pairs({**test, ("u9", items[0]): 1.0}),
        _of_pairs(dict.fromkeys(train, 1.0)) if train else None,
        scores,
        make,
        users,
        items,
        by_scores,
    )


def ranks_are_well_formed(case: SourceCase) -> None:
    """Check that each user's rows are sorted best first, and agree with the counts and flags."""
    ranks = case.ranks()
    user, ranked = users_of(ranks.indptr), ranks.above >= 0
    same = user[1:] == user[:-1]
    assert (ranked[:-1] >= ranked[1:])[same].all(), "what is not ranked comes last"
    pairs = same & ranked[1:] & ranked[:-1]
    above, before = np.diff(ranks.above), np.diff(ranks.before)
    assert ((above > 0) | ((above == 0) & (before > 0)))[pairs].all(), "the best item comes first"
    assert (ranks.above[~ranked] == -1).all()
    assert (ranks.tied[~ranked] == 0).all()
    assert ((ranks.before >= 0) & (ranks.before <= ranks.tied)).all()
    relevant = np.bincount(user[ranks.relevant], minlength=ranks.n_users)
    assert (ranks.n_relevant == relevant).all(), "n_relevant counts relevant items"
    assert ranks.n_users == case.test.n_users
    is_known = (ranks.flags & np.uint32(UserFlag.KNOWN)) != 0
    assert not (ranked & ~is_known[user]).any(), "only users known to the source are ranked"
    assert (ranks.depth >= 0).all()
    assert "\n" not in case.source.describe(), "a description is one line"


def threads_change_nothing(case: SourceCase) -> None:
    """Check that repeated calls with one or several threads return the same bits."""
    for threads in (1, 2, 3):
        _same(case.ranks(), case.source.rank(case.request(threads=threads)))


def rank_and_top_agree(case: SourceCase) -> None:
    """Check that judged items are listed at exactly the places that `rank` returns."""
    for ties in ORDERED:
        ranks = case.ranks(ties=ties)
        user = users_of(ranks.indptr)
        after = ranks.tied - ranks.before if ties == "item_desc" else ranks.before
        place = np.where(ranks.above >= 0, ranks.above + after, -1)
        for k in DEPTHS:
            lists = case.top(k, ties=ties)
            if lists is None:
                return
            rows = (place >= 0) & (place < k)
            listed_items = lists.items[user[rows], place[rows]]
            assert (listed_items == ranks.item[rows]).all(), f"place of judged items, ties={ties!r}"
            listed = {
                (number, item) for number, row in enumerate(lists.items.tolist()) for item in row
            } - {(number, -1) for number in range(lists.n_users)}
            hits = set(zip(user[rows].tolist(), ranks.item[rows].tolist(), strict=True))
            judged = set(zip(user.tolist(), ranks.item.tolist(), strict=True))
            assert listed & judged == hits, "listed test items have the ranks of their places"


def shorter_lists_are_beginnings_of_longer_ones(case: SourceCase) -> None:
    """Check that the first k places do not depend on k."""
    for ties in ORDERED:
        longest = case.top(max(DEPTHS), ties=ties)
        if longest is None:
            return
        for k in DEPTHS:
            shorter = case.top(k, ties=ties)
            assert shorter is not None
            np.testing.assert_array_equal(shorter.items, longest.items[:, :k])


def depth_hides_only_what_lies_beyond(case: SourceCase) -> None:
    """Check that limiting the depth hides the ranks beyond it, and changes no other ranks."""
    first = _by_pair(case.ranks())
    for depth in DEPTHS:
        second = _by_pair(case.source.rank(case.request(depth=depth)))
        assert first.keys() == second.keys()
        for pair, row in second.items():
            hidden = row[0] == -1 and first[pair][0] >= depth
            assert hidden or row == first[pair], f"depth {depth}: {pair}"


def a_user_does_not_depend_on_the_others(case: SourceCase) -> None:
    """Check that the ranks and the list of a user do not depend on the other users."""
    all_ranks = case.ranks()
    lists = case.top(3)
    for user in range(min(3, case.test.n_users)):
        alone = case.request(test=case.test.select_users([user]))
        if not len(alone.test):
            continue
        ranks = case.source.rank(alone)
        rows = slice(all_ranks.indptr[user], all_ranks.indptr[user + 1])
        for name in ("above", "tied", "before", "gain", "relevant"):
            np.testing.assert_array_equal(getattr(ranks, name), getattr(all_ranks, name)[rows])
        if lists is not None:
            ids = _named(lists)[user]
            assert _named(case.source.top(alone, 3))[0] == ids, "the list of a single user"


def an_unknown_item_is_a_miss(case: SourceCase) -> None:
    """Check that an unknown relevant item changes nothing but the number of relevant items."""
    test = case.test
    assert test.user_ids is not None
    # Add a test item for each user, with an id that sorts after all other ids.
    unknown_item = "zzz"
    pairs = _pairs(test) | {(user, unknown_item): 1.0 for user in test.user_ids.tolist()}
    extended = _of_pairs(pairs)
    before = case.ranks()
    after = case.source.rank(case.request(test=extended))
    assert (after.n_relevant == before.n_relevant + 1).all()
    ranked_before = {pair: row for pair, row in _by_pair(before).items() if row[0] >= 0}
    ranked_after = {pair: row for pair, row in _by_pair(after).items() if row[0] >= 0}
    assert len(ranked_before) == len(ranked_after), "an unknown item is not ranked"
    assert sorted(ranked_before.values()) == sorted(ranked_after.values())


def items_of_train_are_not_recommended(case: SourceCase) -> None:
    """Check that a user's training items are neither listed nor judged."""
    if case.train is None or not case.source.facts.removes_train(Protocol()):
        return
    train = _pairs(case.train)
    ranks = case.ranks()
    judged = _by_pair(ranks, case.test).keys()
    assert not judged & train.keys(), "training items are not judged"
    lists = case.top(max(DEPTHS))
    if lists is not None:
        users = _names(case.test.user_ids, np.arange(lists.n_users))
        for user, names in zip(users, _named(lists), strict=True):
            assert not {(user, name) for name in names} & train.keys(), (
                "training items are not listed"
            )


def excluded_items_are_left_out(case: SourceCase) -> None:
    """Check that an excluded item is neither listed nor ranked, nor counted above other items."""
    if len(case.item_ids) < 3:
        return
    ranks = case.ranks()
    excluded = case.item_ids[-1]
    exclude = read_items([excluded], "exclude")
    try:
        fewer = case.source.rank(case.request(exclude=exclude))
    except InputError:
        return  # no candidates are left
    rows, fewer_rows = _by_pair(ranks), _by_pair(fewer)
    assert rows.keys() == fewer_rows.keys()
    for pair, row in fewer_rows.items():
        if pair[1] == excluded:
            assert row[0] == -1, "an excluded item is not ranked"
        elif row[0] >= 0 and rows[pair][0] >= 0:
            assert rows[pair][0] - 1 <= row[0] <= rows[pair][0] or not case.by_scores
    lists = case.source.top(case.request(exclude=exclude), max(DEPTHS))
    assert all(excluded not in names for names in _named(lists)), "an excluded item is not listed"


def only_candidates_are_ranked(case: SourceCase) -> None:
    """Check that only the candidates are ranked, whether all users share them or not."""
    if len(case.item_ids) < 3:
        return
    *candidates, excluded_item = case.item_ids
    sets = {
        (user, item)
        for row, user in enumerate(case.user_ids)
        for column, item in enumerate(case.item_ids)
        if (row + column) % 3
    }
    request = case.request(candidates=_of_pairs(dict.fromkeys(sets, 1.0)))
    try:
        restricted = case.source.rank(case.request(candidates=read_candidates(candidates)))
        excluded = case.source.rank(case.request(exclude=read_items([excluded_item], "exclude")))
        ranks, lists = case.source.rank(request), case.source.top(request, max(DEPTHS))
    except InputError:
        return  # no user has candidates left
    assert _by_pair(restricted) == _by_pair(excluded)
    ranked = {pair for pair, row in _by_pair(ranks, case.test).items() if row[0] >= 0}
    assert ranked <= sets, "only candidates of a user are ranked"
    users = _names(case.test.user_ids, np.arange(lists.n_users))
    for user, names in zip(users, _named(lists), strict=True):
        assert {(user, name) for name in names} <= sets, "only candidates of a user are listed"


def the_order_of_users_and_items_changes_nothing(case: SourceCase) -> None:
    """Check that permuting the rows and columns of the scores does not change any bit."""
    rows, columns = np.argsort(case.user_ids), np.argsort(case.item_ids)[::-1]
    permuted = case.make(
        case.scores[rows][:, columns],
        [case.user_ids[row] for row in rows],
        [case.item_ids[column] for column in columns],
    )
    other = dataclasses.replace(case, source=permuted)
    for ties in ORDERED:
        _same(case.ranks(ties=ties), other.ranks(ties=ties))
        first, second = (side.top(max(DEPTHS), ties=ties) for side in (case, other))
        if first is not None and second is not None:
            np.testing.assert_array_equal(first.items, second.items)


def places_are_counts_of_scores(case: SourceCase) -> None:
    """Check that `above`, `tied` and `before` match counts from comparing all pairs of scores."""
    if not case.by_scores:
        return
    train = set() if case.train is None else _pairs(case.train).keys()
    ranks = case.ranks()
    for (user, item), row in _by_pair(ranks, case.test).items():
        if user not in case.user_ids or item not in case.item_ids:
            assert row[0] == -1
            continue
        scores = case.scores[case.user_ids.index(user)]
        item_score = scores[case.item_ids.index(item)]
        rivals = [
            (score, other)
            for other, score in zip(case.item_ids, scores.tolist(), strict=True)
            if other != item and (user, other) not in train
        ]
        above = sum(score > item_score for score, _ in rivals)
        tied = [other for score, other in rivals if score == item_score]
        assert row[:3] == (above, len(tied), sum(other < item for other in tied)), (user, item)


Law = Callable[[SourceCase], None]
SOURCE_LAWS: tuple[Law, ...] = (
    ranks_are_well_formed,
    threads_change_nothing,
    rank_and_top_agree,
    shorter_lists_are_beginnings_of_longer_ones,
    depth_hides_only_what_lies_beyond,
    a_user_does_not_depend_on_the_others,
    an_unknown_item_is_a_miss,
    items_of_train_are_not_recommended,
    excluded_items_are_left_out,
    only_candidates_are_ranked,
    the_order_of_users_and_items_changes_nothing,
    places_are_counts_of_scores,
)
"""All laws for sources."""


def _named(lists: TopLists) -> list[list[Any]]:
    """Return the ids of the items in each list."""
    return [_names(lists.item_ids, row[row >= 0]) for row in lists.items]


def _pairs(data: Interactions) -> dict[tuple[Any, Any], float]:
    values = gains(data)
    keys = zip(
        _names(data.user_ids, users_of(data.indptr)),
        _names(data.item_ids, data.items),
        strict=True,
    )
    return dict(zip(keys, values.tolist(), strict=True))


def _names(ids: Array | None, positions: Array) -> list[Any]:
    assert ids is not None
    names: list[Any] = ids[positions].tolist()
    return names


def _of_pairs(pairs: dict[tuple[Any, Any], float]) -> Interactions:
    users: dict[Any, dict[Any, float]] = {}
    for (user, item), value in pairs.items():
        users.setdefault(user, {})[item] = value
    return Interactions.of(users)


def _by_pair(ranks: Ranks, test: Interactions | None = None) -> dict[tuple[Any, Any], Any]:
    """Return `above`, `tied`, `before`, `gain` and `relevant`, keyed by the user-item pair."""
    users: list[Any] = users_of(ranks.indptr).tolist()
    if test is not None:
        users = _names(test.user_ids, users_of(ranks.indptr))
    items = _names(ranks.item_ids, ranks.item)
    # Items without a position and repeats of a pair get separate keys.
    rows: dict[tuple[Any, Any], Any] = {}
    columns = (ranks.above, ranks.tied, ranks.before, ranks.gain, ranks.relevant)
    for row, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        item = items[row] if ranks.item[row] >= 0 else None
        while (users[row], item) in rows:
            item = (item, "again")
        rows[users[row], item] = values
    return rows


def _same(first: Ranks, second: Ranks) -> None:
    for field in dataclasses.fields(Ranks):
        value, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, other, err_msg=field.name)
        elif field.name != "counts":
            assert value == other, field.name
