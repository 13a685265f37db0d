"""The rules, each a field of `Protocol`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

from recometer.errors import InputError
from recometer.protocol.declaring import Number, Rule, rule, ruled

TieRule = Literal[
    "expected", "optimistic", "pessimistic", "random", "item", "item_desc", "item_desc_within",
    "input", "as_ranked", "shared",
]  # fmt: skip
AnyProtocol = TypeVar("AnyProtocol", bound="Protocol")

NUMBER = Number()
COUNT = Number("a whole number, 0 or more", lambda number: isinstance(number, int) and number >= 0)
DECIMALS = Number(
    "a whole number from 0 to 15", lambda number: isinstance(number, int) and 0 <= number <= 15
)
SHARE = Number("a number between 0 and 1", lambda number: 0 < number < 1)
WEIGHT = Number("a number above 0 and at most 1", lambda number: 0 < number <= 1)


@ruled
@dataclasses.dataclass(frozen=True)
class Protocol:
    """The rules that a number depends on; every result carries its own.

    Raises
    ------
    UnknownNameError
        A rule that does not exist; the message names the nearest.
    InputError
        A value that the rule does not take.
    """

    declared: ClassVar[Mapping[str, Rule]]

    name: str = rule(
        "recometer",
        no_step="It names the other rules.",
        about="What this set of rules is called.",
    )
    ties: TieRule = rule(
        "expected",
        {
            "expected": "Equal scores: the mean over all orders.",
            "optimistic": "Equal scores: relevant items first.",
            "pessimistic": "Equal scores: relevant items last.",
            "random": "Equal scores: one order, drawn at random.",
            "item": "Equal scores: the lower item id first.",
            "item_desc": "Equal scores: the higher item id first.",
            "item_desc_within": "Equal scores: the lower ids are in the first k places, and there "
            "the higher id comes first.",
            "input": "Equal scores: in the order given.",
            "as_ranked": "Equal ranks: all at that rank; equal scores: in the order given.",
            "shared": "Equal scores: all at one place, the middle of theirs rounded down.",
        },
        step="ties",
        about="Order of items with exactly the same score. The mean over all orders is exact "
        "(McSherry & Najork 2008); a random order depends on the seed and the user's id; "
        "'input' and 'as_ranked' are for lists; with this one and with 'shared', more than k items "
        "may be in the first k places.",
    )
    relevant_from: float | None = rule(
        None,
        {
            None: "Relevant: a value in test other than 0.",
            -math.inf: "Relevant: every item of test, whatever its value.",
            NUMBER: "Relevant: a value in test of {} or more.",
        },
        step="ranking",
    )
    undefined: Literal["nan"] | float = rule(
        "nan",
        {"nan": "An undefined value is NaN.", NUMBER: "An undefined value is {}."},
        step="undefined values",
        about="The reason is kept.",
    )
    constant_scores: Literal["undefined", "ties"] = rule(
        "undefined",
        {
            "undefined": "All scores the same: undefined.",
            "ties": "All scores the same: one group of ties.",
        },
        step="undefined values",
    )
    nan_scores: Literal["undefined", "first", "last"] = rule(
        "undefined",
        {
            "undefined": "A score of NaN: the user is undefined.",
            "first": "A score of NaN ranks first.",
            "last": "A score of NaN ranks last.",
        },
        step="ranking",
    )
    infinite_scores: Literal["undefined", "ranked"] = rule(
        "undefined",
        {
            "undefined": "An infinite score: the user is undefined.",
            "ranked": "An infinite score ranks like any number, above or below all others.",
        },
        step="ranking",
        about="In Scores, -inf means that the item is not a candidate. Factors give infinite "
        "scores where products are too large, which are undefined always, and so are infinite "
        "predictions in errors of ratings.",
    )
    users: Literal["test", "all", "known", "relevant", "known_relevant", "listed", "positive"] = (
        rule(
            "test",
            {
                "test": "Mean over all users of test; one without a list has misses only.",
                "all": "Mean over all users, those without anything in test, too.",
                "known": "Mean over the users of test with a list.",
                "relevant": "Mean over the users with a relevant item; one without a list has "
                "misses only.",
                "known_relevant": "Mean over the users with a list and a relevant item.",
                "listed": "Mean over all users with a list, those not in test, too.",
                "positive": "Mean over the users with a value above 0.",
            },
            step="population",
            about="With 'all', users of whom test has nothing count where users without a relevant "
            "item have a value.",
        )
    )
    min_positives: int = rule(
        1,
        {COUNT: "At least {} relevant items, otherwise undefined."},
        step="undefined values",
    )
    min_candidates: int = rule(
        2,
        {
            0: "Any number of items to rank, even none.",
            COUNT: "At least {} items to rank, otherwise undefined.",
        },
        step="undefined values",
    )
    cold_start: bool = rule(
        True,
        {
            True: "Users without training items count.",
            False: "Users without training items are undefined.",
        },
        step="undefined values",
    )
    interval: Literal["gaffke", "t", "percentile", "bca", "bootstrap"] = rule(
        "gaffke",
        {
            "gaffke": "Interval of the mean: Gaffke's where the metric has a range, else BCa.",
            "t": "Interval of the mean: Student's t.",
            "percentile": "Interval of the mean: the bootstrap's percentiles, not resampled.",
            "bca": "Interval of the mean: the bootstrap's BCa, not resampled.",
            "bootstrap": "Interval of the mean: percentiles over resampled users.",
        },
        no_step="It changes the interval of a mean, and neither a value nor the mean.",
        about="On small or sparse data Student's t and the bootstrap cover the mean too seldom; "
        "Gaffke's was never seen to. See `recometer.stats`.",
    )
    confidence: float = rule(
        0.95,
        {SHARE: "Coverage of the interval: {}."},
        no_step="It changes the interval of a mean, and neither a value nor the mean.",
    )
    correction: Literal["none", "plug_in", "unbiased", "cv"] = rule(
        "none",
        {
            "none": "Sampled candidates: no correction.",
            "plug_in": "Sampled candidates: the metric at the estimated rank.",
            "unbiased": "Sampled candidates: the least bias.",
            "cv": "Sampled candidates: bias traded for variance.",
        },
        step="correction",
        about="So that metrics of sampled candidates estimate what the whole catalogue would give "
        "(Krichene & Rendle 2020); see `recometer.measuring.corrections`. It needs the ties "
        "'expected'.",
    )
    gamma: float = rule(
        0.01,
        {WEIGHT: "Weight of the variance in the correction: {}."},
        step="correction",
        about="Of the correction 'cv'; the paper takes 0.1 and 0.01.",
    )
    no_relevant: Literal["undefined", "computed"] | float = rule(
        "undefined",
        {
            "undefined": "A user without a relevant item: undefined.",
            "computed": "A user without a relevant item: by the formula.",
            NUMBER: "A user without a relevant item: {}.",
        },
        step="undefined values",
        about="It also applies to a user without a positive gain, where gains are read.",
    )
    no_list: Literal["misses", "undefined"] = rule(
        "misses",
        {
            "misses": "A user without a list: misses only.",
            "undefined": "A user without a list: undefined.",
        },
        step="undefined values",
    )
    deep_cutoffs: Literal["undefined", "computed"] = rule(
        "undefined",
        {
            "undefined": "No more candidates than k, and the order does not matter: undefined.",
            "computed": "No more candidates than k: computed all the same.",
        },
        step="undefined values",
    )
    all_relevant: Literal["undefined", "computed"] = rule(
        "undefined",
        {
            "undefined": "Every candidate is relevant: undefined.",
            "computed": "Every candidate is relevant: computed all the same.",
        },
        step="undefined values",
    )
    missing: Literal["skip", "zero", "nan"] = rule(
        "skip",
        {
            "skip": "Undefined values are left out of the mean.",
            "zero": "Undefined values count as 0 in the mean.",
            "nan": "One undefined value makes the mean NaN.",
        },
        step="population",
    )
    average: Literal["usual", "users", "relevant", "pooled", "parts"] = rule(
        "usual",
        {
            "usual": "Every user counts the same in the mean; errors of predicted ratings are "
            "those over the rows of all users.",
            "users": "Every user counts the same in the mean, of errors of predicted ratings, too.",
            "relevant": "Users count by their number of relevant items in the mean.",
            "pooled": "The mean is the sum of all numerators divided by that of all denominators.",
            "parts": "The mean of F is that of the mean precision and the mean recall.",
        },
        step="average",
    )
    decimals: int | None = rule(
        None,
        {None: "Values are not rounded.", DECIMALS: "A user's value is rounded to {} decimals."},
        step="rounding",
        about="A value for all users is rounded, too.",
    )
    percent: bool = rule(
        False,
        {False: "Shares are at most 1.", True: "Shares are in percent."},
        step="rounding",
        about="Of metrics with one value for all users.",
    )
    unranked: Literal["misses", "left_out"] = rule(
        "misses",
        {
            "misses": "Relevant items that are not in the list: misses.",
            "left_out": "Relevant items that are not in the list: as if test lacked them.",
        },
        step="ranking",
    )
    unknown_items: Literal["misses", "left_out"] = rule(
        "misses",
        {
            "misses": "Relevant items that the model does not know: misses.",
            "left_out": "Relevant items that the model does not know: as if test lacked them.",
        },
        step="ranking",
    )
    score_above: float | None = rule(
        None,
        {
            None: "Relevant items count as found with any score.",
            NUMBER: "Relevant items count as found with a score above {} only.",
        },
        step="ranking",
    )
    duplicates: Literal["removed", "first", "counted", "joined"] = rule(
        "removed",
        {
            "removed": "An item repeated in a list counts once, and the rest moves up.",
            "first": "An item repeated in a list counts once, and the others keep their places.",
            "counted": "An item repeated in a list counts each time.",
            "joined": "An item repeated in a list counts each time, and as so many relevant items.",
        },
        step="ranking",
    )
    repeated_test: Literal["once", "counted", "joined", "multiplied"] = rule(
        "once",
        {
            "once": "Rows of test that repeat a user and an item: one relevant item.",
            "counted": "Rows of test that repeat a user and an item: as many relevant items, of "
            "which one can be found.",
            "joined": "Rows of test that repeat a user and an item: as many relevant items, all of "
            "them at its place.",
            "multiplied": "Rows of test that repeat a user and an item, m of them: as many "
            "relevant items; each time that it is in the first k places, m times m times the "
            "number of its places in the list.",
        },
        step="ranking",
        about="But for 'once', where the values of such rows are added up, each row has their "
        "mean as its value.",
    )
    short_lists: Literal["misses", "first_item", "previous_user"] = rule(
        "misses",
        {
            "misses": "Fewer items than k: the missing places are misses.",
            "first_item": "Fewer items than k: the catalogue's first item fills the missing "
            "places.",
            "previous_user": "Fewer items than k: the last item of all fills the missing places, "
            "and is relevant if it is for the user before.",
        },
        step="ranking",
    )
    seen: Literal["removed", "kept_in_lists", "kept"] = rule(
        "removed",
        {
            "removed": "A user's items of train leave the ranking, lists and test.",
            "kept_in_lists": "A user's items of train stay in lists, and leave other rankings.",
            "kept": "A user's items of train stay, in the ranking, in lists and in test.",
        },
        step="ranking",
        about="Where users come back to the same items (music, groceries), they are to be found "
        "again: 'kept'. Metrics that read train do so all the same.",
    )
    version: str = rule(
        "",
        no_step="It names the other rules.",
        about="Of the library whose convention this is.",
    )
    defects: bool = rule(
        False,
        {
            False: "What the library documents.",
            True: "What the library computes, against its own documentation.",
        },
        no_step="It is settled where names are read: as other parameters and rules.",
        about="Known for the rules of a library alone.",
    )

    def __post_init__(self) -> None:
        if isinstance(self.undefined, float) and math.isnan(self.undefined):
            object.__setattr__(self, "undefined", "nan")
        for name, declared in self.declared.items():
            declared.check(name, getattr(self, name))
        if self.defects and not self.version:
            raise InputError(
                "defects=True gives what a library computes against its own documentation, and the "
                f"rules of the protocol {self.name!r} are not those of a library. Hint: name one, "
                "as in evaluate(..., protocol='evidently', defects=True)."
            )
        if self.correction != "none" and self.ties != "expected":
            raise InputError(
                f"correction={self.correction!r} is known for ties='expected' alone, found "
                f"ties={self.ties!r}."
            )

    def replace(self: AnyProtocol, **rules: Any) -> AnyProtocol:
        """Return a copy with some rules changed.

        Raises
        ------
        UnknownNameError
            A rule that does not exist; the message lists those that do.
        InputError
            A value that the rule does not take, or another version: it says whose rules these are.
        """
        if not rules:
            return self
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
            None stands for our own rules, with the default of each.
        """
        changed = [f"{rule}={getattr(self, rule)!r}" for rule in self.differing(other)]
        return " ".join([self.name, *filter(None, [self.version]), *changed])

    def sentence(self, rule: str) -> str:
        """Say in words what a rule is."""
        return self.declared[rule].sentence(getattr(self, rule))

    def sentences(self, other: Protocol | None = None) -> list[str]:
        """Say in words which rules differ from those of another protocol (default: our own)."""
        return [self.sentence(rule) for rule in self.differing(other)]

    def differing(self, other: Protocol | None = None) -> list[str]:
        """Name the rules that differ from those of another protocol (default: our own)."""
        other = type(self)() if other is None else other
        return [
            rule
            for rule, declared in self.declared.items()
            if declared.says and self.differs(rule, other)
        ]

    def differs(self, rule: str, other: Protocol) -> bool:
        """Tell whether a rule is not the other protocol's."""
        different: bool = getattr(self, rule) != getattr(other, rule)
        return different

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain values (for JSON)."""
        return {name: getattr(self, name) for name in self.declared}
