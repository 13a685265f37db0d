"""The rules that a number depends on."""

from __future__ import annotations

import dataclasses
import functools
import math
import typing
from typing import Any, Literal

from recometer.errors import InputError, UnknownNameError, did_you_mean

TieRule = Literal[
    "expected",
    "optimistic",
    "pessimistic",
    "random",
    "item",
    "item_desc",
    "item_desc_within",
    "input",
    "shared",
]

# Every rule with a fixed set of values; the others are checked in __post_init__.
CHOICES: dict[str, tuple[str, ...]] = {
    "ties": typing.get_args(TieRule),
    "constant_scores": ("undefined", "ties"),
    "nan_scores": ("undefined", "first", "last"),
    "users": ("test", "all", "known", "relevant", "known_relevant", "listed", "positive"),
    "interval": ("t", "bootstrap"),
    "correction": ("none", "plug_in", "unbiased", "cv"),
    "no_list": ("misses", "undefined"),
    "deep_cutoffs": ("undefined", "computed"),
    "all_relevant": ("undefined", "computed"),
    "missing": ("skip", "zero", "nan"),
    "average": ("users", "relevant", "pooled", "parts"),
    "unranked": ("misses", "left_out"),
    "unknown_items": ("misses", "left_out"),
    "duplicates": ("removed", "first", "counted", "joined"),
    "short_lists": ("misses", "first_item"),
    "train_in_lists": ("removed", "kept"),
}

# What each rule says, by its value; {} stands for a number.
SENTENCES: dict[str, dict[str, str]] = {
    "ties": {
        "expected": "Equal scores: the mean over all orders.",
        "optimistic": "Equal scores: relevant items first.",
        "pessimistic": "Equal scores: relevant items last.",
        "random": "Equal scores: one order, drawn at random.",
        "item": "Equal scores: the lower item id first.",
        "item_desc": "Equal scores: the higher item id first.",
        "item_desc_within": "Equal scores: the lower ids are in the first k places, and there the "
        "higher id comes first.",
        "input": "Equal scores: in the order given.",
        "shared": "Equal scores: all at one place, the middle of theirs rounded down.",
    },
    "relevant_from": {
        "None": "Relevant: a value in test other than 0.",
        "-inf": "Relevant: every item of test, whatever its value.",
        "{}": "Relevant: a value in test of {} or more.",
    },
    "undefined": {
        "nan": "An undefined value is NaN.",
        "{}": "An undefined value is {}.",
    },
    "constant_scores": {
        "undefined": "All scores the same: undefined.",
        "ties": "All scores the same: one group of ties.",
    },
    "nan_scores": {
        "undefined": "A score of NaN: the user is undefined.",
        "first": "A score of NaN ranks first.",
        "last": "A score of NaN ranks last.",
    },
    "users": {
        "test": "Mean over all users of test; one without a list has misses only.",
        "known": "Mean over the users of test with a list.",
        "relevant": "Mean over the users with a relevant item; one without a list has misses only.",
        "all": "Mean over all users, those without anything in test, too.",
        "known_relevant": "Mean over the users with a list and a relevant item.",
        "listed": "Mean over all users with a list, those not in test, too.",
        "positive": "Mean over the users with a value above 0.",
    },
    "min_positives": {"{}": "At least {} relevant items, otherwise undefined."},
    "min_candidates": {
        "0": "Any number of items to rank, even none.",
        "{}": "At least {} items to rank, otherwise undefined.",
    },
    "cold_start": {
        "True": "Users without training items count.",
        "False": "Users without training items are undefined.",
    },
    "interval": {
        "t": "Interval of the mean: Student's t.",
        "bootstrap": "Interval of the mean: bootstrap over users.",
    },
    "confidence": {"{}": "Coverage of the interval: {}."},
    "correction": {
        "none": "Sampled candidates: no correction.",
        "plug_in": "Sampled candidates: the metric at the estimated rank.",
        "unbiased": "Sampled candidates: the least bias.",
        "cv": "Sampled candidates: bias traded for variance.",
    },
    "gamma": {"{}": "Weight of the variance in the correction: {}."},
    "no_relevant": {
        "undefined": "A user without a relevant item: undefined.",
        "computed": "A user without a relevant item: by the formula.",
        "{}": "A user without a relevant item: {}.",
    },
    "no_list": {
        "misses": "A user without a list: misses only.",
        "undefined": "A user without a list: undefined.",
    },
    "deep_cutoffs": {
        "undefined": "No more candidates than k, and the order does not matter: undefined.",
        "computed": "No more candidates than k: computed all the same.",
    },
    "all_relevant": {
        "undefined": "Every candidate is relevant: undefined.",
        "computed": "Every candidate is relevant: computed all the same.",
    },
    "missing": {
        "skip": "Undefined values are left out of the mean.",
        "zero": "Undefined values count as 0 in the mean.",
        "nan": "One undefined value makes the mean NaN.",
    },
    "average": {
        "users": "Every user counts the same in the mean.",
        "relevant": "Users count by their number of relevant items in the mean.",
        "pooled": "The mean is the sum of all numerators divided by that of all denominators.",
        "parts": "The mean of F is that of the mean precision and the mean recall.",
    },
    "decimals": {
        "None": "Values are not rounded.",
        "{}": "A user's value is rounded to {} decimals.",
    },
    "percent": {"False": "Shares are at most 1.", "True": "Shares are in percent."},
    "unranked": {
        "misses": "Relevant items that are not in the list: misses.",
        "left_out": "Relevant items that are not in the list: as if test lacked them.",
    },
    "unknown_items": {
        "misses": "Relevant items that the model does not know: misses.",
        "left_out": "Relevant items that the model does not know: as if test lacked them.",
    },
    "score_above": {
        "None": "Relevant items count as found with any score.",
        "{}": "Relevant items count as found with a score above {} only.",
    },
    "duplicates": {
        "removed": "An item repeated in a list counts once, and the rest moves up.",
        "first": "An item repeated in a list counts once, and the others keep their places.",
        "counted": "An item repeated in a list counts each time.",
        "joined": "An item repeated in a list counts each time, and as so many relevant items.",
    },
    "short_lists": {
        "misses": "Fewer items than k: the missing places are misses.",
        "first_item": "Fewer items than k: the catalogue's first item fills the missing places.",
    },
    "train_in_lists": {
        "removed": "Items of train are removed from lists, and the rest moves up.",
        "kept": "Items of train stay in lists.",
    },
    "defects": {
        "False": "What the library documents.",
        "True": "What the library computes, against its own documentation.",
    },
}


def _naming_unknown_rules(protocol: type[Protocol]) -> type[Protocol]:
    """Say of a rule that does not exist which was meant, instead of a bare TypeError."""
    init = protocol.__init__
    known = [field.name for field in dataclasses.fields(protocol)]

    @functools.wraps(init)
    def checked(self: Protocol, *args: Any, **rules: Any) -> None:
        for rule in rules:
            if rule not in known:
                raise UnknownNameError(f"There is no rule {rule!r}. {did_you_mean(rule, known)}")
        init(self, *args, **rules)

    protocol.__init__ = checked  # type: ignore[method-assign]
    return protocol


@_naming_unknown_rules
@dataclasses.dataclass(frozen=True)
class Protocol:
    """The rules that a number depends on; every result carries its own.

    Parameters
    ----------
    name
        What this set of rules is called.
    ties
        Order of items with exactly the same score. ``"expected"``: the exact mean over
        all orders (McSherry & Najork 2008); ``"optimistic"``, ``"pessimistic"``: the
        relevant items first, last; ``"random"``: one order, drawn from the seed and the
        user's id; ``"item"``, ``"item_desc"``: the lower, the higher item id first;
        ``"input"``: as given, for lists; ``"item_desc_within"``: the lower ids are in the first
        k places, and there the higher ids come first; ``"shared"``: all tied items are at one
        place, the middle of theirs rounded down, so that more than k may be in the first k.
    relevant_from
        An item of test is relevant from this value on; None: when its value is not 0;
        ``-math.inf``: always.
    undefined
        What an undefined value becomes: ``"nan"`` (or NaN), or a number. The reason is kept.
    constant_scores
        A user whose candidates all have the same score is ``"undefined"``, or one tie
        group (``"ties"``).
    nan_scores
        A user with a NaN score among the candidates is ``"undefined"``, or these items
        are ranked ``"first"`` or ``"last"``. Infinite scores are ``"undefined"`` always.
    users
        Who counts in the mean: all users of ``"test"`` (one that the source does not know
        has misses only); ``"all"``: where users without a relevant item have a value, also those
        of whom test has nothing; or only those ``"known"`` to the source; only those with a
        ``"relevant"`` item, or ``"known_relevant"``: both; ``"listed"``: all whom the source has
        a list for, those not in test, too; ``"positive"``: only those with a value above 0.
    min_positives
        Users with fewer relevant items are undefined.
    min_candidates
        Users with fewer items to rank are undefined.
    cold_start
        False: users without training items are undefined.
    interval
        How the interval of a mean is computed: Student's ``"t"``, or ``"bootstrap"``
        (percentiles over resampled users).
    confidence
        Coverage of that interval, in (0, 1).
    correction
        Of metrics of sampled candidates (Krichene & Rendle 2020), so that they estimate what
        the whole catalogue would give: ``"none"``; ``"plug_in"``: the metric at the unbiased
        estimate of each rank; ``"unbiased"``: the least bias, at any variance; ``"cv"``: bias
        traded for variance, see `recometer.measuring.corrections`. It needs the ties "expected".
    gamma
        Weight of the variance in the correction ``"cv"``, in (0, 1]; the paper takes 0.1 and
        0.01.
    no_relevant
        The value of a user without a relevant item (or a positive gain, where gains are
        read): ``"undefined"``, or ``"computed"`` by the formula all the same, or a number.
    no_list
        A user of test whom the source does not know: has ``"misses"`` only, or is
        ``"undefined"``.
    deep_cutoffs
        A cut-off that all candidates fit into, where their order does not matter: the value is
        ``"undefined"``, or ``"computed"`` all the same.
    all_relevant
        Likewise where every candidate is relevant.
    missing
        Values of NaN in a mean: ``"skip"`` them, count them as ``"zero"``, or let the mean be
        ``"nan"``.
    average
        The mean over ``"users"``; weighted by each user's number of ``"relevant"`` items; or
        ``"pooled"``: the sum of the users' numerators divided by that of their denominators; or,
        for f, of its ``"parts"``: that of the mean precision and the mean recall.
    decimals
        A user's value (or the one value for all users) is rounded to so many; None: it is not.
    percent
        One value for all users is multiplied by 100.
    unranked
        Relevant items that are not in the list: ``"misses"``, or ``"left_out"`` as if test
        lacked them.
    unknown_items
        Relevant items that the source cannot rank, likewise.
    score_above
        A relevant item counts as found only with a score above this number; None: with any.
    duplicates
        An item that is repeated in a list counts once and the rest moves up (``"removed"``);
        counts once and the others keep their places (``"first"``); each time (``"counted"``); or
        each time, and as so many relevant items (``"joined"``).
    short_lists
        Where fewer items than k can be ranked the missing places are ``"misses"``, or all hold
        the ``"first_item"`` of the catalogue.
    train_in_lists
        Items of train in lists are ``"removed"``, and the rest moves up; or ``"kept"``.
    version
        Of the library whose convention this is.
    defects
        Whether values are reproduced that contradict that library's own documentation; not
        without a library.

    Raises
    ------
    UnknownNameError
        A rule that does not exist; the message names the nearest.
    InputError
        A value that the rule does not take.
    """

    name: str = "recometer"
    ties: TieRule = "expected"
    relevant_from: float | None = None
    undefined: Literal["nan"] | float = "nan"
    constant_scores: Literal["undefined", "ties"] = "undefined"
    nan_scores: Literal["undefined", "first", "last"] = "undefined"
    users: Literal["test", "all", "known", "relevant", "known_relevant", "listed", "positive"] = (
        "test"
    )
    min_positives: int = 1
    min_candidates: int = 2
    cold_start: bool = True
    interval: Literal["t", "bootstrap"] = "t"
    confidence: float = 0.95
    correction: Literal["none", "plug_in", "unbiased", "cv"] = "none"
    gamma: float = 0.01
    no_relevant: Literal["undefined", "computed"] | float = "undefined"
    no_list: Literal["misses", "undefined"] = "misses"
    deep_cutoffs: Literal["undefined", "computed"] = "undefined"
    all_relevant: Literal["undefined", "computed"] = "undefined"
    missing: Literal["skip", "zero", "nan"] = "skip"
    average: Literal["users", "relevant", "pooled", "parts"] = "users"
    decimals: int | None = None
    percent: bool = False
    unranked: Literal["misses", "left_out"] = "misses"
    unknown_items: Literal["misses", "left_out"] = "misses"
    score_above: float | None = None
    duplicates: Literal["removed", "first", "counted", "joined"] = "removed"
    short_lists: Literal["misses", "first_item"] = "misses"
    train_in_lists: Literal["removed", "kept"] = "removed"
    version: str = ""
    defects: bool = False

    def __post_init__(self) -> None:
        for rule, choices in CHOICES.items():
            value = getattr(self, rule)
            if value not in choices:
                raise InputError(
                    f"The rule {rule}={value!r} does not exist. "
                    f"Hint: {rule} is one of {', '.join(map(repr, choices))}."
                )
        for rule in ("min_positives", "min_candidates", "decimals"):
            value = getattr(self, rule)
            if rule == "decimals" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"{rule}={value!r} must be a whole number, 0 or more.")
        for rule in ("cold_start", "defects", "percent"):
            if not isinstance(getattr(self, rule), bool):
                raise InputError(f"{rule}={getattr(self, rule)!r} must be True or False.")
        if self.defects and not self.version:
            raise InputError(
                "defects=True gives what a library computes against its own documentation, and the "
                f"rules of the protocol {self.name!r} are no library's. Hint: name one, as in "
                "evaluate(..., protocol='evidently', defects=True)."
            )
        if not _is_number(self.confidence) or not 0 < self.confidence < 1:
            raise InputError(f"confidence={self.confidence!r} must lie between 0 and 1.")
        for rule in ("relevant_from", "score_above"):
            value = getattr(self, rule)
            everything = rule == "relevant_from" and value == -math.inf
            if value is not None and not _is_number(value) and not everything:
                raise InputError(f"{rule}={value!r} must be a number or None.")
        words = ("undefined", "computed")
        if self.no_relevant not in words and not _is_number(self.no_relevant):
            raise InputError(
                f"no_relevant={self.no_relevant!r} must be 'undefined', 'computed' or a number."
            )
        if isinstance(self.undefined, float) and math.isnan(self.undefined):
            object.__setattr__(self, "undefined", "nan")
        if not _is_number(self.gamma) or not 0 < self.gamma <= 1:
            raise InputError(f"gamma={self.gamma!r} must lie between 0 (excluded) and 1.")
        if self.correction != "none" and self.ties != "expected":
            raise InputError(
                f"correction={self.correction!r} is known for ties='expected' alone, found "
                f"ties={self.ties!r}."
            )
        if self.undefined != "nan" and not _is_number(self.undefined):
            raise InputError(f"undefined={self.undefined!r} must be 'nan' or a number.")

    def replace(self, **rules: Any) -> Protocol:
        """Return a copy with some rules changed.

        Raises
        ------
        UnknownNameError
            A rule that does not exist; the message lists those that do.
        InputError
            A value that the rule does not take, or another version: it says whose rules these are.
        """
        wanted = rules.get("version", self.version)
        if wanted != self.version:
            of = f"those of version {self.version!r} alone" if self.version else "recometer's own"
            raise InputError(
                f"version={wanted!r} cannot be chosen: the rules of the protocol {self.name!r} are "
                f"{of}. Hint: leave it out."
            )
        return dataclasses.replace(self, **rules)

    def describe(self, other: Protocol | None = None) -> str:
        """Return its name, and the rules that differ from another's: ``"recometer ties='item'"``.

        Parameters
        ----------
        other
            None: our own, with the default of each rule.
        """
        other = Protocol() if other is None else other
        rules = [field.name for field in dataclasses.fields(self)]
        changed = [
            f"{rule}={getattr(self, rule)!r}"
            for rule in rules
            if rule not in ("name", "version") and self.differs(rule, other)
        ]
        return " ".join([self.name, *filter(None, [self.version]), *changed])

    def sentence(self, rule: str) -> str:
        """Say in words what a rule is."""
        value = getattr(self, rule)
        said = SENTENCES[rule]
        return said[str(value)] if str(value) in said else said["{}"].format(f"{value:g}")

    def sentences(self, other: Protocol | None = None) -> list[str]:
        """Say in words which rules differ from those of another protocol (default: our own)."""
        other = Protocol() if other is None else other
        return [self.sentence(rule) for rule in SENTENCES if self.differs(rule, other)]

    def differs(self, rule: str, other: Protocol) -> bool:
        """Tell whether a rule is not the other protocol's."""
        different: bool = getattr(self, rule) != getattr(other, rule)
        return different

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain values (for JSON)."""
        return dataclasses.asdict(self)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
