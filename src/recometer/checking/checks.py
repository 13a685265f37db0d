"""The checks on a model's output before it is evaluated."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from recometer import ragged, stats
from recometer.arrays import Array, Bool, Float64, Int64, UInt32
from recometer.auditing.findings import (
    EXAMPLES,
    Finding,
    Level,
    among,
    counted,
    examples_at,
    unchecked,
)
from recometer.data import ids, matching
from recometer.data.interactions import Interactions
from recometer.data.matching import SourceIndex
from recometer.errors import InputError, RecometerError, python_or_command
from recometer.evaluating import checks
from recometer.evaluating.case import Case, request_of
from recometer.evaluation import evaluate
from recometer.ranks import Ranks, TopLists, UserFlag
from recometer.remembered import cached_property
from recometer.results.evaluation import EvaluationRecord
from recometer.sources.base import Kind, Request, Source
from recometer.sources.lists import Lists

if TYPE_CHECKING:
    import polars as pl


@dataclasses.dataclass(frozen=True)
class Answers:
    """The arguments of `check`, and the lists and ranks that the source returns.

    `case` contains the arguments in the form that `evaluate` uses, restricted to the users to
    check; `all_test` is the test data of all users. `second_source` is the source of `case`, or the
    result of a second call if a model made it. `k` is the number of places to check in each list.
    """

    case: Case
    second_source: Source
    all_test: Interactions
    k: int

    @property
    def source(self) -> Source:
        """The source that contains the model's output."""
        return self.case.source

    @property
    def test(self) -> Interactions:
        """The test interactions of the users to check."""
        return self.case.sides.test

    @property
    def train(self) -> Interactions | None:
        """The training interactions of all users, or None if there are none."""
        return self.case.sides.arguments.train

    @cached_property
    def request(self) -> Request:
        """The request to the source; it orders equal scores by item id."""
        protocol = self.case.protocol.replace(ties="item")
        return dataclasses.replace(request_of(self.case), protocol=protocol, depth=None)

    @cached_property
    def ranks(self) -> Ranks:
        """The ranks of the test items."""
        return self.source.rank(self.request)

    @cached_property
    def lists(self) -> TopLists:
        """Each user's list, cut off after the first k items."""
        return self.source.top(self.request, self.k)

    @cached_property
    def listed(self) -> Interactions:
        """The listed items as interactions, in the form of a test set."""
        return as_interactions(self.lists, self.test)

    @cached_property
    def places(self) -> Ranks:
        """The ranks of the listed items, or of all rows if the source contains the test data."""
        if self.case.brings_truth:
            return self.ranks
        return self.source.rank(dataclasses.replace(self.request, test=self.listed))

    @cached_property
    def flags(self) -> UInt32:
        """The `UserFlag` bits of each user: uint32 [test.n_users]."""
        return self.ranks.flags | self.places.flags

    @cached_property
    def trained(self) -> Interactions | None:
        """The training interactions of the users to check, or None if there are none."""
        if self.train is None:
            return None
        users = SourceIndex.of_data(self.train, "train").places_of_users(self.test)
        indptr, rows = ragged.take(self.train.indptr, users)
        return self.train.with_rows(
            indptr, rows, user_ids=self.test.user_ids, values=None, times=None
        )

    @property
    def user_ids(self) -> Array | None:
        """The ids of the users to check, or None if there are no ids."""
        return self.test.user_ids


def as_interactions(lists: TopLists, test: Interactions) -> Interactions:
    """Return lists as interactions of the test users."""
    filled = lists.items >= 0
    items = np.sort(np.where(filled, lists.items, lists.n_items), axis=1)
    return Interactions(
        indptr=ragged.indptr_of(lists.lengths),
        items=items[items < lists.n_items].astype(np.int32),
        n_items=lists.n_items,
        user_ids=test.user_ids,
        item_ids=lists.item_ids,
    )


def named(items: Int64, item_ids: Array | None) -> Array:
    """Return the ids of items, with None for -1, or their positions if there are no ids."""
    if item_ids is None:
        return items
    return np.append(item_ids.astype(object), [None])[items]


TIED_SHARE = 0.1  # if more than 10 % of the listed places are tied, the finding is a warning


def _changes_between_calls(answers: Answers) -> Finding:
    second = answers.second_source.top(answers.request, answers.k)
    changed = _changed_lists(answers.lists, second)
    changed |= _changed_ranks(answers.ranks, answers.second_source.rank(answers.request))
    return among(
        changed,
        answers.user_ids,
        "users whose ranking changes when it is requested again",
        "problem",
        "Two calls disagree, so evaluations are not repeatable. Hint: switch off dropout and "
        "sampling, and fix the seeds.",
        "Both calls returned the same output.",
    )


def _rank_differs_from_list(answers: Answers) -> Finding:
    lists, ranks = answers.lists, answers.places
    place, n_users = ranks.above + ranks.before, lists.n_users
    rows = np.flatnonzero((ranks.above >= 0) & (place < lists.depth))
    user, place = ranks.user[rows], place[rows]
    agrees = lists.items[user, place] == ranks.item[rows]
    within = np.bincount(user, minlength=n_users)
    agreeing = np.bincount(user[agrees], minlength=n_users)
    ranked = lists.known & ((answers.flags & (UserFlag.NAN_SCORE | UserFlag.INFINITE_SCORE)) == 0)
    too_short = ranked & (lists.lengths < np.minimum(answers.k, answers.ranks.depth))
    complete = lists.n_places == lists.lengths  # no place is taken by a repeated item
    return among(
        ((within != lists.lengths) | (agreeing != lists.lengths) | too_short) & complete,
        answers.user_ids,
        "users whose list is not in the order of their ranks, or is too short",
        "problem",
        "rank(...) and top(...) of the source contradict each other: metrics of lists and of ranks "
        "would describe two different models. Hint: recometer.testing.check_source shows where.",
        "Lists are in the order of the ranks.",
    )


def _tied_places(answers: Answers) -> Finding:
    ranks = answers.places
    listed = (ranks.above >= 0) & (ranks.above + ranks.before < answers.lists.depth)
    tied = listed & (ranks.tied > 0)
    count, total = int(np.count_nonzero(tied)), int(np.count_nonzero(listed))
    level: Level = "warning" if count > TIED_SHARE * total else "fact"
    return counted(
        count,
        total,
        examples_at(np.unique(ranks.user[tied]), answers.user_ids),
        f"of the first {answers.k:,} places, those with the same score as another candidate",
        "problem" if count == total else level,
        "The order of equal scores is arbitrary: other libraries keep the order of the rows, or "
        "whatever a sort produces. Here, the mean over all orders is used (the rule ties).",
        "No listed item has the same score as another candidate.",
    )


def _same_list(answers: Answers) -> Finding:
    lists = answers.lists
    filled = np.flatnonzero(lists.lengths > 0)
    _, list_numbers, counts = np.unique(
        lists.items[filled], axis=0, return_inverse=True, return_counts=True
    )
    count = int(counts.max(initial=0))
    users = filled[list_numbers.ravel() == np.argmax(counts)] if count > 1 else filled[:0]
    return counted(
        len(users),
        len(filled),
        examples_at(users, answers.user_ids),
        f"users with the same first {answers.k:,} places in the same order",
        "warning" if count == len(filled) else "fact",
        "All users get the same list: nothing is personalised."
        if count == len(filled)
        else "The most common list.",
        "No two users have the same list.",
    )


def _changed_lists(lists: TopLists, other: TopLists) -> Bool:
    """Return a mask of the users whose lists differ between `lists` and `other`: bool [n_users]."""
    depth = max(lists.depth, other.depth)
    first, second = (
        named(np.pad(top.items, ((0, 0), (0, depth - top.depth)), constant_values=-1), top.item_ids)
        for top in (lists, other)
    )
    differs: Bool = np.any(np.asarray(first != second, np.bool_), axis=1)
    return differs


def _changed_ranks(ranks: Ranks, other: Ranks) -> Bool:
    """Return a mask of the users with a test item whose rank changed: bool [n_users]."""
    columns: tuple[tuple[Array | Int64, Array | Int64], ...] = (
        (named(ranks.item, ranks.item_ids), named(other.item, other.item_ids)),
        (ranks.above, other.above),
        (ranks.tied, other.tied),
    )
    differs = np.zeros(len(ranks.above), np.bool_)
    for first, second in columns:
        differs |= np.asarray(first != second, np.bool_)
    moved: Bool = np.bincount(ranks.user[differs], minlength=ranks.n_users) > 0
    return moved


# For each user flag, what the check counts, the sentence if it finds users, and the sentence if it
# finds none.
FLAG_TEXTS = {
    UserFlag.NAN_SCORE: (
        "users with a NaN score among their candidates",
        "They are left out of the mean, unless the rule nan_scores says otherwise.",
        "No score is NaN.",
    ),
    UserFlag.INFINITE_SCORE: (
        "users with an infinite score among their candidates",
        "They are left out of the mean, unless the rule infinite_scores says otherwise. Hint: "
        "the products of factors may be too large for their dtype.",
        "No score is infinite.",
    ),
    UserFlag.CONSTANT_SCORES: (
        "users whose candidates all have the same score",
        "They get no ranking at all, and are left out of the mean unless the rule constant_scores "
        "says otherwise.",
        "No user's candidates all have the same score.",
    ),
}


def _count_flags(answers: Answers, flag: UserFlag) -> Finding:
    chosen, (what, meaning, clear) = (answers.flags & flag) != 0, FLAG_TEXTS[flag]
    level: Level = "problem" if 2 * np.count_nonzero(chosen) > len(chosen) else "warning"
    return among(chosen, answers.user_ids, what, level, meaning, clear)


def _listed_items_unknown(answers: Answers) -> Finding:
    what = "listed items that are not in the catalogue"
    lists = answers.lists
    listed = np.unique(lists.items[lists.items >= 0])
    ids_listed = listed if lists.item_ids is None else lists.item_ids[listed]
    missing = _uncatalogued(answers, listed, ids_listed)
    if missing is None:
        return unchecked(what, "no catalogue with item ids.")
    return among(
        missing,
        ids_listed,
        what,
        "warning",
        "They are invented, no longer offered, or spelled differently: they are misses, and do "
        "not count towards the coverage. Hint: unknown_items@k is their share of the places.",
        "The catalogue contains every listed item.",
    )


def _uncatalogued(answers: Answers, positions: Int64, ids_listed: Array) -> Bool | None:
    """Return a mask of items that are not in the catalogue, or None if its items are unknown."""
    lists, catalogue = answers.lists, answers.case.sides.arguments.catalogue
    if lists.uncatalogued is not None:
        return np.isin(positions, lists.uncatalogued)
    if catalogue is None or (catalogue.item_ids is None) != (lists.item_ids is None):
        return None
    if catalogue.item_ids is None:
        return positions >= catalogue.n_items
    return ids.match(ids_listed, catalogue.item_ids, "item ids", "item ids of the catalogue") < 0


EFFECTS = {
    ("test", "user"): "They have no ranking: they count as misses, or not at all if the rule "
    "cold_start is off.",
    ("test", "item"): "The source cannot recommend them, so they are misses. If the source is "
    "lists, no list contains them.",
    ("train", "user"): "The model was not fitted to these training data, or it leaves users out.",
    ("train", "item"): "The model was not fitted to these training data, or it leaves items out. "
    "If the source is lists, no list contains them.",
}


def _count_unknown(answers: Answers, side: str, kind: Kind) -> Finding:
    """Count the users or items of one side (train or test) that the source does not know."""
    data = answers.all_test if side == "test" else answers.train
    what = f"{side} {kind}s that the source does not know"
    if data is None:
        return unchecked(what, "no training data.")
    source_ids = answers.source.facts.known_ids(kind)
    positions, side_ids = checks.positions_and_ids(data, kind)
    missing = checks.unknown_positions(data, kind, source_ids)
    level: Level = "problem" if 2 * len(missing) > len(positions) else "warning"
    meaning = EFFECTS[side, kind]
    if len(missing) > checks.MANY * len(positions) and side_ids is not None:
        meaning += checks.Unknown.of(side_ids[missing], source_ids, side).hint
    return counted(
        len(missing),
        len(positions),
        examples_at(missing, side_ids),
        what,
        level,
        meaning,
        f"Every {side} {kind} is known to the source.",
    )


MIDDLE = 0.5


def _train_items_recommended(answers: Answers) -> Finding:
    what = f"of the first {answers.k:,} places, those that the user's training items would take"
    if answers.train is None:
        return unchecked(what, "no training data.")
    protocol = answers.request.protocol.replace(seen="kept")
    request = dataclasses.replace(answers.request, protocol=protocol)
    lists = answers.source.top(request, answers.k)
    listed = as_interactions(lists, answers.test)
    in_train = matching.in_train(listed, answers.train)
    users = np.unique(ragged.users_of(listed.indptr)[in_train])
    # If all candidates are ranked, a list is short only because there are no more candidates.
    shorter = answers.lists.lengths < lists.lengths
    shortened = bool((shorter & answers.ranks.ends_early).any())
    left_out = answers.source.facts.removes_train(answers.case.protocol)
    effect = (
        "evaluate leaves them out, and others move up. When the model is used, its caller has to "
        "do the same."
    )
    if not left_out:
        effect = "They keep their places (the rule seen)."
    elif shortened:
        effect = (
            "evaluate leaves them out, and the lists become shorter by that many places, which "
            "count as misses. Hint: ask the model for longer lists, or for lists without these "
            "items."
        )
    return counted(
        int(np.count_nonzero(in_train)),
        len(in_train),
        examples_at(users, answers.user_ids),
        what,
        "warning" if shortened and left_out else "fact",
        effect,
        "No training item would be recommended to its user again.",
    )


def _train_items_low(answers: Answers) -> Finding:
    what = "users whose training items are, on average, in the lower half of their ranking"
    ranks = _ranks_of_train(answers)
    if isinstance(ranks, str):
        return unchecked(what, f"{ranks}.")
    if ranks.ends_early.any():
        return unchecked(what, "the lists end before the last candidate.")
    n_others = ranks.n_candidates[ranks.user] - 1
    rows = np.flatnonzero((ranks.above >= 0) & (n_others > 0))
    user = ranks.user[rows]
    depth = (ranks.above[rows] + ranks.tied[rows] / 2) / n_others[rows]
    counts = np.bincount(user, minlength=ranks.n_users)
    users = np.flatnonzero(counts)
    mean = np.bincount(user, weights=depth, minlength=ranks.n_users)[users] / counts[users]
    low = users[mean >= MIDDLE]
    overall = float(mean.mean()) if len(mean) else np.nan
    level: Level = "warning" if overall >= MIDDLE else "fact"
    return counted(
        len(low),
        len(users),
        examples_at(low, answers.user_ids),
        what,
        level,
        f"On average, training items rank below {overall:.1%} of the other items. Most models rank "
        "what they were fitted to far above the middle"
        + (
            ": are the source's users and items those of the training data, in the same order?"
            if level == "warning"
            else "."
        ),
        "The users' training items rank above the middle.",
        {"mean_depth": overall},
    )


def _ranks_of_train(answers: Answers) -> Ranks | str:
    """Return the ranks of the training items, or a string that says why there are none."""
    if answers.trained is None:
        return "no training data"
    if answers.case.brings_truth:
        return "the source contains the test data"
    if not len(answers.trained):
        return "these users have no training items"
    request = dataclasses.replace(
        answers.request, test=answers.trained, train=None, candidates=None, exclude=None
    )
    try:
        return answers.source.rank(request)
    except InputError:  # another check counts the items that the source does not know
        return "the source knows none of these items"


CONFIDENCE = 0.95


def _no_better_than_chance(answers: Answers) -> Finding:
    what = "users whose relevant items rank no higher than in a random order (roc_auc)"
    try:
        result = _evaluate(answers)
    except RecometerError as error:
        return unchecked(what, str(error).split(" Hint:")[0])
    ndcg, auc = (str(metric) for metric in result.metrics)
    row = result.summary()[0]
    low, high = _difference(result[ndcg], result.chance[ndcg])
    statistics = {"mean": row.mean, "chance": row.chance, "low": low, "high": high}
    low_users = np.flatnonzero(result[auc] <= result.chance[auc])
    level: Level = "problem" if high <= 0 else "warning" if low <= 0 else "fact"
    verdict = {
        "problem": "That is worse than chance. Hint: are users and items the same in the source "
        "and in test, and are higher scores better?",
        "warning": (
            "This cannot be distinguished from chance. Hint: use more test "
            f"users ({python_or_command('n_users=None', '--users 0')} checks all of them), or a "
            "better model."
        ),
    }.get(level, "")
    return Finding(
        what=what,
        level=level,
        count=len(low_users),
        total=int(np.count_nonzero(~np.isnan(result[auc]))),
        examples=examples_at(low_users, answers.user_ids),
        sentence=(
            f"{ndcg} is {row.mean:.4f}; a random order of the same candidates has "
            f"{row.chance:.4f} (95% interval of the difference: {low:+.4f} to {high:+.4f}). "
            f"{verdict}"
        ).rstrip(),
        statistics=statistics,
    )


def _difference(values: Float64, chance: Float64) -> stats.Interval:
    """Return an interval for the mean difference from chance, limited to the possible range."""
    defined = ~np.isnan(values)
    if not defined.any():
        return stats.Interval.unknown(CONFIDENCE, 0, "No user has a value.")
    bounds = -float(chance[defined].max()), 1 - float(chance[defined].min())
    return stats.interval(values - chance, bounds=bounds, confidence=CONFIDENCE)


def _evaluate(answers: Answers) -> EvaluationRecord:
    case, arguments = answers.case, answers.case.sides.arguments
    return evaluate(
        case.source,
        None if case.brings_truth else answers.test,
        **arguments.as_passed,
        train=arguments.train,
        catalogue=arguments.catalogue,
        baseline=arguments.baseline,
        metrics=f"ndcg@{answers.k} roc_auc",
        protocol=arguments.protocol,
        seed=arguments.seed,
        threads=arguments.threads,
        progress=False,
        chance=True,
    )


# The checks, keyed by the names of their findings, which are reported in this order.
CHECKS: dict[str, Callable[[Answers], Finding]] = {
    "changes_between_calls": _changes_between_calls,
    "rank_differs_from_list": _rank_differs_from_list,
    "nan_scores": lambda answers: _count_flags(answers, UserFlag.NAN_SCORE),
    "infinite_scores": lambda answers: _count_flags(answers, UserFlag.INFINITE_SCORE),
    "constant_scores": lambda answers: _count_flags(answers, UserFlag.CONSTANT_SCORES),
    "tied_places": _tied_places,
    "same_list": _same_list,
    "test_users_unknown": lambda answers: _count_unknown(answers, "test", "user"),
    "test_items_unknown": lambda answers: _count_unknown(answers, "test", "item"),
    "train_users_unknown": lambda answers: _count_unknown(answers, "train", "user"),
    "train_items_unknown": lambda answers: _count_unknown(answers, "train", "item"),
    "listed_items_unknown": _listed_items_unknown,
    "train_items_recommended": _train_items_recommended,
    "train_items_low": _train_items_low,
    "no_better_than_chance": _no_better_than_chance,
}


# For each kind of invalid place in generated lists, what the check counts, the sentence if it finds
# places, and the sentence if it finds none.
PLACE_TEXTS = {
    "unknown": (
        "places in answers whose title is not in the catalogue",
        "They are invented, or written differently (a missing year, a description after the title):"
        " they are misses. Hint: unknown_items@k is their share.",
        "The catalogue contains every title in the answers.",
    ),
    "shared": (
        "places in answers whose title several catalogue items share",
        "None of these items is chosen: they are misses. Hint: add something to the titles that "
        "tells them apart, such as the year.",
        "No title in the answers belongs to several items.",
    ),
    "repeated": (
        "places in answers that repeat an earlier place",
        "They are misses. Hint: repeated_items@k is their share.",
        "No answer repeats a title.",
    ),
}


def checks_of(source: Source) -> dict[str, Callable[[Answers], Finding]]:
    """Return the checks for a source; for generated lists, also those in `GENERATED_CHECKS`."""
    if not isinstance(source, Lists) or source.invalid is None:
        return CHECKS
    usual = {name: find for name, find in CHECKS.items() if name != "listed_items_unknown"}
    return usual | GENERATED_CHECKS


def _invalid_places(answers: Answers, kind: str) -> Finding:
    lists, (what, meaning, clear) = cast(Lists, answers.source), PLACE_TEXTS[kind]
    invalid = cast("pl.DataFrame", lists.invalid)
    texts = invalid.filter(invalid["kind"] == kind)["text"]
    examples = tuple(texts.unique(maintain_order=True).head(EXAMPLES))
    return counted(len(texts), len(lists.table.items), examples, what, "warning", meaning, clear)


def _answers_without_list(answers: Answers) -> Finding:
    lists = cast(Lists, answers.source)
    invalid = cast("pl.DataFrame", lists.invalid)
    broken = invalid.filter(invalid["place"].is_null())
    kinds = ", ".join(f"{n:,} {kind}" for kind, n in broken["kind"].value_counts(sort=True).rows())
    return counted(
        len(broken),
        lists.table.n_lists,
        tuple(broken["user"].head(EXAMPLES)),
        "answers that are empty or broken JSON",
        "warning",
        f"{kinds}. Hint: ask for a JSON list of titles.",
        "Every answer contains a list.",
    )


GENERATED_CHECKS: dict[str, Callable[[Answers], Finding]] = {
    **{f"places_{kind}": partial(_invalid_places, kind=kind) for kind in PLACE_TEXTS},
    "answers_without_list": _answers_without_list,
}
