"""The errors and warnings of `evaluate` about mismatched ids and about the records."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from recometer.arrays import Array, Bool, Int64, any_of
from recometer.data import ids
from recometer.data.interactions import Interactions
from recometer.data.matching import is_threshold
from recometer.data.spelling import guess
from recometer.errors import InputError, argument_text, brief, python_or_command, rule_text, warn
from recometer.evaluating.requirements import Requirements
from recometer.measuring.reasons import Reason
from recometer.metrics.conventions import find_convention
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol, RelevantFrom
from recometer.ranks import Ranks
from recometer.sources.base import Kind, Source


class BlockFacts(NamedTuple):
    """Facts about a block of users, for `check_facts`."""

    n_users: int
    n_rows: int  # number of test rows
    n_relevant: int
    n_known: int  # number of users with a ranking in the source
    n_judged: int  # number of known users with a relevant item
    n_unusable: int  # number of users in `n_judged` with a NaN or infinite score
    n_early: int  # number of users whose lists end early
    n_unknown: int  # number of unknown users, except those that a rule leaves out
    n_any_cutoff: int  # number of blocks whose source allows any cut-off, as `Pairs` does
    n_compared: int  # number of blocks without a baseline, or with one that has any lists
    depth: int  # length of the longest known ranking
    n_candidates: int  # largest number of candidates of any user
    n_listed: int  # length of the longest list
    undefined: Mapping[str, Int64]  # number of users per `Reason`, for metrics with no values

    @classmethod
    def merge(cls, parts: Sequence[BlockFacts]) -> BlockFacts:
        """Merge the facts about several blocks, which must not have any users in common."""
        blocks = [part for part in parts if part.n_users]
        first = blocks[0].undefined if blocks else {}
        names = [name for name in first if all(name in part.undefined for part in blocks)]
        numbers: dict[str, int] = {
            name: (max if name in MAXIMA else sum)([getattr(part, name) for part in blocks] or [0])
            for name in cls._fields[:-1]
        }
        totals = {name: np.sum([part.undefined[name] for part in blocks], axis=0) for name in names}
        return cls(**numbers, undefined=totals)


MAXIMA = ("depth", "n_candidates", "n_listed")  # `merge` takes the maximum of these, not the sum


class Inputs(NamedTuple):
    """The inputs of an evaluation that messages mention."""

    source: Source
    baseline: Source | None
    candidates: object
    examples: Sequence[object]  # ids of a few test users
    value_range: tuple[float, float] | None  # None if test has no values
    find: FindUnknown | None  # returns examples of unknown ids; None to suppress warnings


def check_not_empty(n_users: int, n_rows: int) -> None:
    """Refuse test data without users or interactions."""
    if not n_users or not n_rows:
        raise InputError(
            f"test is empty: {n_users} user{'s' * (n_users != 1)}, {n_rows} interactions. Hint: "
            "check the split and the user column."
        )


def check_facts(
    facts: BlockFacts,
    counts: Mapping[str, int],
    needs: Requirements,
    protocol: Protocol,
    inputs: Callable[[], Inputs],
) -> None:
    """Raise the errors and issue the warnings that depend on all users.

    `protocol` has the rules as the user set them. `inputs` is called only if a message needs it.
    """
    n_users, n_relevant, n_rows = facts.n_users, facts.n_relevant, facts.n_rows
    if needs.of_lists:
        warn_beyond_lists(facts.n_listed, needs.of_lists)
    if not facts.n_compared and (baseline := inputs().baseline) is not None:
        raise InputError(
            f"The baseline ({baseline.describe()}) has no list for any test user. Hint: are "
            "user ids spelled the same in both?"
        )
    if not facts.n_known:
        raise _no_known_user(n_users, inputs())
    # Under "undefined_for_all", `warn_of_undefined` warns instead, and names the metrics.
    if 2 * facts.n_unusable > facts.n_judged and protocol.nan_scores != "undefined_for_all":
        _warn_of_unusable(facts.n_unusable, facts.n_judged, inputs().source)
    if 2 * counts.get("train_test_overlap", 0) > n_rows:
        _warn_of_overlap(counts["train_test_overlap"], n_rows)
    if 2 * counts.get("relevant_not_candidates", 0) > n_relevant:
        _warn_of_lost(counts["relevant_not_candidates"], n_relevant, inputs().candidates)
    if facts.n_early and needs.cutoff > facts.depth:
        warn_beyond_lists(facts.depth, needs.of_rankings)
    if "users_below_relevant" in counts:
        warn(
            "rprecision reads the first R places, where R is the user's number of relevant items: "
            f"the lists of {counts['users_below_relevant']:,} of {n_users:,} users are shorter; "
            "the missing places are misses."
        )
    if facts.n_any_cutoff and protocol.deep_cutoffs != "undefined_below":
        max_rows = facts.n_candidates
        beyond = [str(m) for m in needs.of_rankings if m.cutoff is not None and m.cutoff > max_rows]
        if beyond:
            source = inputs().source
            warn(
                f"{', '.join(beyond)}: the cut-off is larger than any user's number of rows: in "
                f"the source ({source.describe()}), no user has more than {max_rows:,}; the "
                "missing places are misses."
            )
    if facts.n_unknown > MANY * n_users and (find := inputs().find):
        source, unknown = inputs().source, find("user")
        left_out = protocol.no_list == "undefined" or protocol.users.startswith("known")
        effect = "are left out of the means" if left_out else "count as misses"
        warn(
            f"{facts.n_unknown:,} of {n_users:,} test users ({facts.n_unknown / n_users:.0%}) "
            f"{source.facts.of_unknown} ({source.describe()}){unknown.clause}, and {effect}."
            f"{unknown.hint}"
        )
    if counts.get("relevant_unranked", 0) > MANY * n_relevant and (find := inputs().find):
        source, unknown = inputs().source, find("item")
        unranked = counts["relevant_unranked"]
        effect = "left out of the test data" if protocol.unknown_items == "left_out" else "misses"
        warn(
            f"{unranked:,} of {n_relevant:,} relevant test rows ({unranked / n_relevant:.0%}) "
            f"have items that are unknown to the model ({source.describe()}){unknown.clause}, and "
            f"are {effect}.{unknown.hint}"
        )
    if facts.undefined:
        warn_of_undefined(facts, inputs().value_range, protocol.relevant_from)


def _no_known_user(n_users: int, inputs: Inputs) -> InputError:
    named = inputs.source.facts.arrays.get("user_ids")
    hint = python_or_command(
        "pass the source the ids of the test data: user_ids=...",
        "add ID files: --factors NAME=USERS,ITEMS,USER_IDS,ITEM_IDS.",
    )
    if isinstance(named, np.ndarray) and len(named):
        alike = python_or_command(
            "are user ids spelled the same in both?",
            "does --user name the user column, and are user ids spelled the same in both files?",
        )
        hint = f"{alike} The source has {', '.join(map(repr, named[:3].tolist()))}."
    return InputError(
        f"None of the {n_users:,} test users, such as {', '.join(map(repr, inputs.examples))}, "
        f"is known to the source ({inputs.source.describe()}). Hint: {hint}"
    )


def _warn_of_unusable(n_unusable: int, n_judged: int, source: Source) -> None:
    """Warn about users with a NaN or infinite score; refuse to go on if all users have one."""
    hint = (
        "Hint: look for NaN and infinity in the source, and for factors whose products are too "
        f"large for their dtype; {rule_text('nan_scores', 'last')} ranks NaN last, and "
        f"{rule_text('infinite_scores', 'ranked')} infinity like other numbers."
    )
    if n_unusable == n_judged:
        raise InputError(
            f"All {n_judged:,} users have a NaN or infinite score among their candidates "
            f"({source.describe()}), so there is nothing to measure. {hint} "
            f"{rule_text('nan_scores', 'undefined_for_all')} gives a mean of NaN, for loops that "
            "should continue."
        )
    warn(
        f"{n_unusable:,} of {n_judged:,} users have a NaN or infinite score among their "
        f"candidates and are left out of the means. {hint}"
    )


def _warn_of_overlap(overlap: int, n_rows: int) -> None:
    split = python_or_command("rm.split(data, ...)", "recometer split")
    audit = python_or_command("rm.audit(train, test)", "recometer audit")
    warn(
        f"{overlap:,} of {n_rows:,} test rows are also in train and are left out. Hint: "
        f"test and train must not overlap ({split} splits data, {audit} gives details); without "
        f"{argument_text('train')}, nothing is left out."
    )


def _warn_of_lost(lost: int, n_relevant: int, candidates: object) -> None:
    hint = (
        f"{argument_text('candidates')} and {argument_text('exclude')} must not remove the items "
        "to be found"
    )
    if isinstance(candidates, Interactions):
        negatives = python_or_command("candidates=rm.Negatives(candidates)", "--negatives FILE")
        hint = f"{negatives} adds the test items to each user's candidates"
    warn(
        f"{lost:,} of {n_relevant:,} relevant test rows are not candidates, so they "
        f"are misses. Hint: {hint}."
    )


def check_length(ranks: Ranks, names: Sequence[str], test: Interactions) -> None:
    """If lists end early, refuse metrics that need the whole ranking."""
    early = ranks.ends_early
    if any_of(early):
        user = int(np.argmax(early))
        name = user if test.user_ids is None else ids.show(test.user_ids, user)
        n, depth = ranks.n_candidates[user], ranks.depth[user]
        reason = (
            f"it is unknown how many items there were beyond the {depth:,} in the list of user "
            f"{name}. Hint: if the lists are complete, pass {argument_text('catalogue')} (the "
            "number of items, or their ids)"
            if n < 0
            else f"the list of user {name} ends after {depth:,} of {n:,} items. Hint: use "
            "metrics with a cut-off"
        )
        need = "needs" if len(names) == 1 else "need"
        raise InputError(f"{' and '.join(names)} {need} the whole ranking, but {reason}.")


def warn_beyond_lists(longest: int, metrics: Iterable[Metric]) -> None:
    """Warn about cut-offs that are larger than the longest list.

    The metrics must either all read rankings or all read lists.
    """
    beyond = [m for m in metrics if m.cutoff is not None and m.cutoff > longest]
    if beyond:
        of_lists = beyond[0].definition.record == "lists"
        misses = "; the missing places are misses"
        warn(
            f"{', '.join(map(str, beyond))}: the cut-off is larger than every list; the longest "
            f"has {longest:,} item{'' if longest == 1 else 's'}{'' if of_lists else misses}."
        )


def check_defects(ranks: Ranks, metrics: Iterable[Metric], protocol: Protocol) -> None:
    """Under ``defects=True``, refuse metrics if a library's defect changes any user's value."""
    convention = find_convention(protocol.name)
    if convention is None:
        return
    for metric in metrics:
        refused = convention.refused_for(metric)
        if refused is None:
            continue
        assert metric.cutoff is not None
        if any_of(DEFECTS[refused.users](ranks, metric, metric.cutoff)):
            raise InputError(
                f"{metric}: {rule_text('defects', True)} is refused for users {refused.users}. "
                f"{refused.says} Hint: {refused.hint}; or leave "
                f"{python_or_command('defects=True', 'it')} out to follow the documentation."
            )


def _with_more_places(ranks: Ranks, metric: Metric, k: int) -> Bool:
    """Return a mask of users whose value changes if the first item fills the missing places."""
    unknown = ranks.n_candidates < 0
    n_items = np.where(unknown, ranks.depth, ranks.n_candidates + ranks.n_excluded)
    user = ranks.user
    first = user[ranks.relevant & ((ranks.item == 0) | unknown[user])]
    changed = np.bincount(first, minlength=ranks.n_users) > 0
    if metric.definition.name == "roc_auc":
        # Further misses have no effect if all relevant items are found. Further hits have no effect
        # if no candidate is left, because training items then fill the list as misses.
        hits = np.bincount(user[ranks.relevant & (ranks.above >= 0)], minlength=ranks.n_users)
        missed = hits < ranks.n_relevant
        changed = missed | changed & (unknown | (ranks.depth < ranks.n_candidates))
    affected: Bool = (n_items < k) & changed
    return affected


def _with_short_lists(ranks: Ranks, metric: Metric, k: int) -> Bool:
    """Return a mask of users whose lists are shorter than k and are padded with a hit.

    The library pads a list with the last item of the catalogue. This counts as a hit if the user
    has a relevant item and the last item is relevant for the previous user.
    """
    last = ranks.user[ranks.relevant & (ranks.item == ranks.item.max(initial=-1))]
    filled = np.zeros(ranks.n_users + 1, bool)
    filled[last + 1] = True
    affected: Bool = (ranks.depth < k) & (ranks.n_relevant > 0) & filled[:-1]
    return affected


def _with_repeated_rows(ranks: Ranks, metric: Metric, k: int) -> Bool:
    """Return a mask of users with a repeated item in the first k places, as bool [n_users]."""
    repeated = np.zeros(len(ranks.above), bool) if ranks.repeated is None else ranks.repeated
    if ranks.copies is not None:
        repeated = repeated | (ranks.copies > 1) & (ranks.above >= 0) & (ranks.above < k)
    affected: Bool = np.bincount(ranks.user[repeated], minlength=ranks.n_users) > 0
    return affected


# Functions that find users whose value a library's defect changes, keyed by `Refused.users`.
DEFECTS: dict[str, Callable[[Ranks, Metric, int], Bool]] = {
    "with more places than items": _with_more_places,
    "with a list shorter than k": _with_short_lists,
    "with rows that repeat an item": _with_repeated_rows,
}


def warn_of_undefined(
    facts: BlockFacts, value_range: tuple[float, float] | None, relevant_from: RelevantFrom
) -> None:
    """Warn about metrics that are undefined for all users, and give the reasons."""
    names_of: dict[str, list[str]] = {}
    for name, counts in facts.undefined.items():
        most_first = np.argsort(-counts, kind="stable")
        codes = [code for code in most_first.tolist() if code and counts[code]]
        sentences = [reason.sentence for code in codes for reason in Reason if reason == code]
        if sentences:
            names_of.setdefault("; or ".join(sentences), []).append(name)
    for reason, names in names_of.items():
        cause = ""
        if Reason.NO_RELEVANT.sentence in reason and facts.n_rows:
            cause = _threshold_note(value_range, relevant_from)
        warn(f"{', '.join(names)}: undefined for all {facts.n_users:,} users: {reason}.{cause}")


def _threshold_note(value_range: tuple[float, float] | None, relevant_from: RelevantFrom) -> str:
    """If no test value reaches the threshold, return a sentence that says so; otherwise ""."""
    high = 1.0 if value_range is None else value_range[1]
    if not is_threshold(relevant_from) or high >= relevant_from:
        return ""
    if value_range is None:
        return (
            " Test has no values, so each of its rows counts as 1, but relevant_from is "
            f"{relevant_from:g}. Hint: "
            f"{python_or_command('rm.Interactions.of(test, value=...)', '--value')} names the "
            "column of ratings."
        )
    return f" The largest test value is {high:g}, but relevant_from is {relevant_from:g}."


KINDS: tuple[Kind, ...] = ("user", "item")
MANY = 0.1  # a larger share of unknown users, or of unknown relevant rows, causes a warning
EXAMPLES = 3
MAX_TRIED = 1000  # maximum number of unknown ids for which other spellings are tried
BY_CHANCE = 10  # with fewer users or items, ids may start at 0 or 1 by chance


FindUnknown = Callable[[Kind], "Unknown"]


def positions_and_ids(data: Interactions, kind: Kind) -> tuple[Int64, Array | None]:
    """Return the positions of the users or items with interactions, and the ids of all of them."""
    if kind == "user":
        return np.flatnonzero(np.diff(data.indptr)), data.user_ids
    return np.unique(data.items).astype(np.int64), data.item_ids


def unknown_positions(data: Interactions, kind: Kind, known_ids: Array | None) -> Int64:
    """Return the positions of users or items that have interactions, but no id in `known_ids`."""
    positions, all_ids = positions_and_ids(data, kind)
    if known_ids is None or all_ids is None:
        return positions[:0]
    data_ids = all_ids[positions]
    if kind == "user":
        data_ids = ids.drop_sessions(data_ids, known_ids)
    matches = ids.match(data_ids, known_ids, f"{kind} ids of test", f"{kind} ids of the source")
    return positions[matches < 0]


class Unknown(NamedTuple):
    """Examples of unknown ids, and the ids of the source."""

    examples: Sequence[Any]
    known_ids: Sequence[Any]
    side: str = "test"

    @classmethod
    def of(cls, unknown: Array, known_ids: Array | None, side: str = "test") -> Unknown:
        """Choose evenly spaced examples of the unknown ids."""
        chosen = np.linspace(0, len(unknown) - 1, min(len(unknown), MAX_TRIED)).astype(np.int64)
        return cls(unknown[chosen].tolist(), [] if known_ids is None else known_ids.tolist(), side)

    @property
    def clause(self) -> str:
        """A clause that names a few unknown ids, or an empty string."""
        return f", such as {_shortened(self.examples)}" if self.examples else ""

    @property
    def hint(self) -> str:
        """A hint that suggests another spelling of the ids, or shows examples from both sides."""
        if not self.examples or not self.known_ids:
            return ""
        spelling = guess(self.examples, self.known_ids)
        if spelling is None:
            data = "training" if self.side == "train" else self.side
            return (
                f" Hint: are ids spelled the same way? The {data} data have ids such as "
                f"{brief(self.examples[0])}, and the source has ids such as "
                f"{brief(self.known_ids[0])}."
            )
        return f" Hint: {spelling}. Spell ids the same way on both sides."


def _shortened(examples: Sequence[Any]) -> str:
    return ", ".join(map(brief, examples[:EXAMPLES]))


def find_unknown(source: Source, test: Interactions, kind: Kind) -> Unknown:
    """Return examples of test users or test items that the source does not know."""
    known_ids = source.facts.known_ids(kind)
    test_ids = test.user_ids if kind == "user" else test.item_ids
    if test_ids is None:
        return Unknown([], [])
    return Unknown.of(test_ids[unknown_positions(test, kind, known_ids)], known_ids)


def check_shifted(
    source: Source,
    data: Sequence[Interactions | None],
    protocol: Protocol,
    user_rules: Collection[str],
) -> None:
    """Refuse a source if its ids, or those of the data, look like positions.

    `data` contains test and train; None stands for data that were not passed, or that the source
    contains. If the user set ``shifted_ids="kept"`` and it has no effect, a warning says so.
    """
    message = _shifted(source, "user", data) or _shifted(source, "item", data)
    if protocol.shifted_ids == "kept":
        if "shifted_ids" in user_rules and not message:
            warn(
                f"The rule {rule_text('shifted_ids', 'kept')} changes nothing here: no ids of the "
                "model look like positions."
            )
    elif message:
        raise InputError(message)


def _shifted(source: Source, kind: Kind, data: Sequence[Interactions | None]) -> str:
    """Return a message if the ids of one side look like positions; otherwise ""."""
    named: list[Array | None] = [getattr(side, f"{kind}_ids", None) for side in data]
    sides = [side_ids for side_ids in named if side_ids is not None and len(side_ids)]
    known_ids = source.facts.known_ids(kind) if sides else None
    if known_ids is None or not len(known_ids):
        return ""
    kinds = {*map(ids.kind, sides), ids.kind(known_ids)}
    if kinds != {"int"} and not (kinds == {"str"} and sides[0][0][:1].isdecimal()):
        return ""
    # If one side uses positions as ids, exactly one of the sides has the id 0.
    zero = 0 if kinds == {"int"} else "0"
    if _contains(sides, zero) == bool((known_ids == zero).any()):
        return ""
    if zero == "0":
        numbers = [_whole_numbers(texts) for texts in (*sides, known_ids)]
        plain = [side_ids for side_ids in numbers if side_ids is not None]
        if len(plain) < len(numbers):
            return ""
        *sides, known_ids = plain
    low, high = min(int(side[0]) for side in sides), max(int(side[-1]) for side in sides)
    first, last = int(known_ids.min()), int(known_ids.max())
    if last - first + 1 != len(known_ids):
        return ""
    if first == 1 and low == 0 and last == high + 1 >= BY_CHANCE and last in map(len, sides):
        return _message_on_positions(source, kind, last)
    n, nodes = len(known_ids), False
    if kind == "item":  # a graph numbers its items after its users
        users = source.facts.known_ids("user")
        n_users = {side.n_users for side in data if side is not None}
        n_users |= set() if users is None else {len(users)}
        nodes = low in n_users and n <= high < low + n
    if first != 0 or last == 0 or not (nodes or _contains(sides, n)):  # one id cannot be shifted
        return ""
    return _message_on_shifted(source, kind, n, low if nodes else None)


def _contains(sides: Sequence[Array], sought: int | str) -> bool:
    """Return whether any of the sorted arrays contains the id `sought`."""
    for side in sides:
        place = int(np.searchsorted(side, sought))
        if place < len(side) and side[place] == sought:
            return True
    return False


def _whole_numbers(texts: Array) -> Int64 | None:
    """Return the strings as sorted numbers, or None if any is not a plain whole number."""
    if not all(
        text.isdecimal() and text.isascii() and len(text) < 19 and (text[0] != "0" or text == "0")
        for text in texts
    ):
        return None
    return np.sort(np.fromiter(map(int, texts), np.int64, len(texts)))


def _message_on_positions(source: Source, kind: Kind, n: int) -> str:
    """Return the message for a model with ids 1 to n, and data with ids 0 to n - 1."""
    return (
        f"The {kind}s of test and train are 0 to {n - 1:,}, but those of the source "
        f"({source.describe()}) are 1 to {n:,}: positions seem to be used as ids, so each {kind} "
        f"would be mistaken for another. Hint: use the same {kind} ids on both sides; "
        f"{rule_text('shifted_ids', 'kept')} confirms that the numbers are ids on both sides."
    )


def _message_on_shifted(source: Source, kind: Kind, n: int, low: int | None) -> str:
    """Return the message for a model with ids 0 to n - 1; `low` is a graph's first item node."""
    nodes = low is not None
    fact = (
        f"begin at {low:,}, which is the number of users, like the item nodes of a graph"
        if nodes
        else f"contain {kind} {n:,} and no {kind} 0"
    )
    offset = ", or item_offset=n_users for nodes of a graph" if nodes else ""
    options = python_or_command(f" ({kind}_ids=..., or ids[positions]{offset})", "")
    data = "items of test and train" if nodes else "test and train"
    return (
        f"The {kind}s of the source ({source.describe()}) are 0 to {n - 1:,}, but {data} {fact}: "
        f"positions seem to be used as ids, so each {kind} would be mistaken for another. Hint: "
        f"pass the {kind} ids in the order of the positions{options}; "
        f"{rule_text('shifted_ids', 'kept')} confirms that the numbers are ids on both sides."
    )
