"""Errors and warnings of `evaluate` after ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from recometer.arrays import Bool, Int64, any_of
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import is_threshold
from recometer.errors import InputError, argument_text, python_or_command, rule_text, warn
from recometer.measuring.reasons import Reason
from recometer.metrics.conventions import find
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol, RelevantFrom
from recometer.ranks import Ranks, UserFlag, raised
from recometer.sources.base import Source


class BlockFacts(NamedTuple):
    """Numbers of a block of users, for the checks in `finish.check_facts`."""

    n_users: int
    n_rows: int  # rows of test
    n_relevant: int
    n_known: int  # users with a ranking in the source
    n_judged: int  # of these, those with a relevant item
    n_unusable: int  # of these, those with a NaN or infinite score
    n_unknown: int  # unknown users, without those that a rule leaves out
    n_early: int  # users whose lists end early
    n_any_cutoff: int  # blocks whose candidates are rows, as in `Pairs`
    n_compared: int  # users with a list of the baseline; `n_users` without a baseline
    depth: int  # the longest known ranking of a user
    n_candidates: int  # the largest number of candidates of a user
    n_listed: int  # the longest list
    undefined: Mapping[str, Int64]  # users per `Reason`, for metrics without any value

    @classmethod
    def merge(cls, parts: Sequence[BlockFacts]) -> BlockFacts:
        """Return the facts of all users, from those of blocks of different users."""
        each = [part for part in parts if part.n_users]
        first = each[0].undefined if each else {}
        names = [name for name in first if all(name in part.undefined for part in each)]
        numbers: dict[str, int] = {
            name: (max if name in MOST else sum)([getattr(part, name) for part in each] or [0])
            for name in cls._fields[:-1]
        }
        together = {name: np.sum([part.undefined[name] for part in each], axis=0) for name in names}
        return cls(**numbers, undefined=together)


MOST = ("depth", "n_candidates", "n_listed")  # merged by their maximum, the others by their sum


def check_not_empty(n_users: int, n_rows: int) -> None:
    """Refuse a test without users or interactions."""
    if not n_users or not n_rows:
        raise InputError(
            f"test is empty: {n_users} user{'s' * (n_users != 1)}, {n_rows} interactions. Hint: "
            "check the split, and the column of users."
        )


def check_known(
    facts: BlockFacts, examples: Sequence[object], source: Source, protocol: Protocol
) -> None:
    """Refuse a source without any known user or finite scores; warn if there are few."""
    if not facts.n_known:
        named = source.facts.arrays.get("user_ids")
        hint = python_or_command(
            "give the source the ids that test has: user_ids=...",
            "add files of ids: --factors NAME=USERS,ITEMS,USER_IDS,ITEM_IDS.",
        )
        if isinstance(named, np.ndarray) and len(named):
            alike = python_or_command(
                "are users written alike in both?",
                "does --user name the users' column, and are users written alike in both files?",
            )
            hint = f"{alike} The source has {', '.join(map(repr, named[:3].tolist()))}."
        raise InputError(
            f"The source ({source.describe()}) knows none of the {facts.n_users:,} users of test, "
            f"such as {', '.join(map(repr, examples))}. Hint: {hint}"
        )
    n_judged, n_unusable = facts.n_judged, facts.n_unusable
    hint = (
        "Hint: look for NaN and infinity in the source, and for factors whose products are too "
        f"large for their dtype; {rule_text('nan_scores', 'last')} ranks NaN last, and "
        f"{rule_text('infinite_scores', 'ranked')} infinity like other numbers."
    )
    if protocol.nan_scores == "undefined_for_all":
        return  # `warn_of_undefined` names the metrics
    if n_judged and n_unusable == n_judged:
        raise InputError(
            f"All {n_judged:,} users have a NaN or infinite score among their candidates "
            f"({source.describe()}), so there is nothing to measure. {hint} "
            f"{rule_text('nan_scores', 'undefined_for_all')} gives a mean of NaN, for loops that "
            "should go on."
        )
    if 2 * n_unusable > n_judged:
        warn(
            f"{n_unusable:,} of {n_judged:,} users have a NaN or infinite score among their "
            f"candidates and are left out of the means. {hint}"
        )


def check_overlaps(
    counts: Mapping[str, int], n_relevant: Int64 | int, n_rows: int, candidates: object
) -> None:
    """Warn if most of test is in train or is not a candidate, so that little is measured."""
    overlap = counts.get("train_test_overlap", 0)
    if 2 * overlap > n_rows:
        split = python_or_command("rm.split(data, ...)", "recometer split")
        audit = python_or_command("rm.audit(train, test)", "recometer audit")
        warn(
            f"{overlap:,} of {n_rows:,} rows of test are in train, too, and are left out of test. "
            f"Hint: test must be apart from train ({split} divides data, "
            f"{audit} says more); without {argument_text('train')} nothing is left "
            "out."
        )
    lost = counts.get("relevant_not_candidates", 0)
    if not lost or 2 * lost <= np.sum(n_relevant):
        return
    hint = (
        f"{argument_text('candidates')} and {argument_text('exclude')} must leave what should be "
        "found"
    )
    if isinstance(candidates, Interactions):
        negatives = python_or_command("candidates=rm.Negatives(candidates)", "--negatives FILE")
        hint = f"{negatives} adds the items of test to each user's"
    warn(
        f"{lost:,} of {np.sum(n_relevant):,} relevant rows of test are not candidates, so they "
        f"are misses. Hint: {hint}."
    )


def check_length(ranks: Ranks, whole: Sequence[str], test: Interactions) -> None:
    """Refuse metrics that need the whole ranking if lists end early."""
    early = ranks.ends_early
    if any_of(early):
        user = int(np.argmax(early))
        name = user if test.user_ids is None else ids.show(test.user_ids, user)
        n, depth = ranks.n_candidates[user], ranks.depth[user]
        found = (
            f"nothing says how many items there were beyond the {depth:,} in the list of user "
            f"{name}. Hint: if the lists are complete, pass {argument_text('catalogue')} (the "
            "number of items, or their ids)"
            if n < 0
            else f"the list of user {name} ends after {depth:,} of {n:,} items. Hint: ask for "
            "metrics with a cut-off"
        )
        need = "needs" if len(whole) == 1 else "need"
        raise InputError(f"{' and '.join(whole)} {need} the whole ranking, but {found}.")


def warn_beyond_lists(longest: int, metrics: Iterable[Metric]) -> None:
    """Warn of cut-offs that are larger than the longest list.

    All metrics read rankings, or all read lists.
    """
    beyond = [m for m in metrics if m.cutoff is not None and m.cutoff > longest]
    if beyond:
        of_lists = beyond[0].definition.record == "lists"
        misses = "; the missing places are misses"
        warn(
            f"{', '.join(map(str, beyond))}: the cut-off lies beyond every list, the longest of "
            f"which has {longest:,} item{'' if longest == 1 else 's'}{'' if of_lists else misses}."
        )


def below_relevant(ranks: Ranks, cutoffs: Sequence[int | None]) -> dict[str, int]:
    """Count the users whose list is shorter than R-precision with these cut-offs needs."""
    if not any_of(ranks.ends_early):
        return {}
    most = ranks.n_relevant
    if None not in cutoffs:
        most = np.minimum(most, max(filter(None, cutoffs)))
    shorter = ranks.ends_early & (ranks.depth < most)
    return {"users_below_relevant": int(np.count_nonzero(shorter))} if any_of(shorter) else {}


def warn_below_relevant(count: int, n_users: int) -> None:
    """Warn of users whose list is shorter than R-precision needs."""
    warn(
        f"rprecision reads the first R places, R the user's number of relevant items: the "
        f"lists of {count:,} of {n_users:,} users are shorter; the missing places are misses."
    )


def no_list(what: str) -> InputError:
    """Return the error for a baseline without a list for any user."""
    return InputError(
        f"The baseline ({what}) has no list for any user of test. Hint: are its user ids written "
        "like those of test?"
    )


def warn_beyond_rows(most: int, source: Source, metrics: Iterable[Metric]) -> None:
    """Warn of cut-offs that are larger than every user's number of rows."""
    beyond = [str(one) for one in metrics if one.cutoff is not None and one.cutoff > most]
    if beyond:
        warn(
            f"{', '.join(beyond)}: the cut-off lies beyond every user's rows: no user of the "
            f"source ({source.describe()}) has more than {most:,}; the missing places are misses."
        )


def short_of_cutoff(ranks: Ranks, cutoff: int) -> dict[str, int]:
    """Count the users with fewer rows than a cut-off."""
    shorter = (ranks.n_candidates < cutoff) & raised(ranks.flags, UserFlag.KNOWN)
    return {"users_below_cutoff": int(np.count_nonzero(shorter))} if any_of(shorter) else {}


def check_defects(ranks: Ranks, metrics: Iterable[Metric], protocol: Protocol) -> None:
    """Refuse metrics under ``defects=True`` if a user's value is due to a defect."""
    convention = find(protocol.name)
    if convention is None:
        return
    for metric in metrics:
        refused = convention.refused_for(metric)
        if refused is None:
            continue
        assert metric.cutoff is not None
        if any_of(DEFECTS[refused.where](ranks, metric, metric.cutoff)):
            raise InputError(
                f"{metric}: {rule_text('defects', True)} is refused for users {refused.where}. "
                f"{refused.says} Hint: {refused.way}; or leave "
                f"{python_or_command('defects=True', 'it')} out for what is documented."
            )


def _with_more_places(ranks: Ranks, metric: Metric, k: int) -> Bool:
    """Return for which users repeats of the first item beyond the end matter: bool [n_users]."""
    unknown = ranks.n_candidates < 0
    n_items = np.where(unknown, ranks.depth, ranks.n_candidates + ranks.n_excluded)
    user = ranks.user
    first = user[ranks.relevant & ((ranks.item == 0) | unknown[user])]
    changed = np.bincount(first, minlength=ranks.n_users) > 0
    if metric.definition.name == "roc_auc":
        # More misses change nothing if all relevant items are found. More hits change nothing if no
        # candidate is left, because items of train fill the list as misses.
        hits = np.bincount(user[ranks.relevant & (ranks.above >= 0)], minlength=ranks.n_users)
        missed = hits < ranks.n_relevant
        changed = missed | changed & (unknown | (ranks.depth < ranks.n_candidates))
    found: Bool = (n_items < k) & changed
    return found


def _with_short_lists(ranks: Ranks, metric: Metric, k: int) -> Bool:
    """Return which users' lists are shorter than k and filled up with a hit: bool [n_users].

    The library fills the list with the last item of the catalogue. This counts as a hit if the user
    has a relevant item and the last item is relevant for the previous user.
    """
    last = ranks.user[ranks.relevant & (ranks.item == ranks.item.max(initial=-1))]
    filled = np.zeros(ranks.n_users + 1, bool)
    filled[last + 1] = True
    found: Bool = (ranks.depth < k) & (ranks.n_relevant > 0) & filled[:-1]
    return found


def _with_repeated_rows(ranks: Ranks, metric: Metric, k: int) -> Bool:
    """Return which users have an item twice in the first k places: bool [n_users]."""
    again = np.zeros(len(ranks.above), bool) if ranks.repeated is None else ranks.repeated
    if ranks.copies is not None:
        again = again | (ranks.copies > 1) & (ranks.above >= 0) & (ranks.above < k)
    found: Bool = np.bincount(ranks.user[again], minlength=ranks.n_users) > 0
    return found


# Find the users whose value is due to a defect, by `Refused.where`.
DEFECTS: dict[str, Callable[[Ranks, Metric, int], Bool]] = {
    "with more places than items": _with_more_places,
    "with a list shorter than k": _with_short_lists,
    "with rows that repeat an item": _with_repeated_rows,
}


def check_correction(ranks: Ranks, source: Source, protocol: Protocol) -> None:
    """Refuse a correction if the ranks or the number of candidates are unknown."""
    if ranks.ends_early.any() or (ranks.pool is not None and ranks.pool.min() < 0):
        raise InputError(
            f"{rule_text('correction', protocol.correction)} needs the ranks of all candidates, "
            f"and the number of items that they were drawn from. The source ({source.describe()}) "
            "does not tell."
        )


def warn_of_undefined(
    facts: BlockFacts, value_range: tuple[float, float] | None, relevant_from: RelevantFrom
) -> None:
    """Warn of metrics that are undefined for all users, with the reasons."""
    alike: dict[str, list[str]] = {}
    for name, counts in facts.undefined.items():
        most_first = np.argsort(-counts, kind="stable")
        codes = [code for code in most_first.tolist() if code and counts[code]]
        why = [reason.sentence for code in codes for reason in Reason if reason == code]
        if why:
            alike.setdefault("; or ".join(why), []).append(name)
    for reason, names in alike.items():
        cause = ""
        if Reason.NO_RELEVANT.sentence in reason and facts.n_rows:
            cause = _below(value_range, relevant_from)
        warn(f"{', '.join(names)}: undefined for all {facts.n_users:,} users: {reason}.{cause}")


def _below(value_range: tuple[float, float] | None, relevant_from: RelevantFrom) -> str:
    """Return a sentence if no value of test reaches the threshold, or an empty string."""
    high = 1.0 if value_range is None else value_range[1]
    if not is_threshold(relevant_from) or high >= relevant_from:
        return ""
    if value_range is None:
        return (
            " Test has no values, so that each of its rows counts as 1, and relevant_from is "
            f"{relevant_from:g}. Hint: "
            f"{python_or_command('rm.Interactions.of(test, value=...)', '--value')} names the "
            "column of ratings."
        )
    return f" The largest value of test is {high:g}, and relevant_from is {relevant_from:g}."
