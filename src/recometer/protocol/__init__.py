"""The rules that determine the values of metrics; each rule is a field of `Protocol`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import typing
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, TypedDict, TypeVar

from recometer.arrays import plain_number
from recometer.errors import (
    InputError,
    UnknownNameError,
    brief,
    did_you_mean,
    python_or_command,
    rule_text,
)
from recometer.remembered import cached_property

__all__ = [
    "STEPS", "Number", "Protocol", "RelevantFrom", "RepeatedTest", "Rule", "Rules", "TieRule",
    "rule", "ruled",
]  # fmt: skip

Step = Literal[
    "ranking", "ties", "formula", "undefined values", "rounding", "population", "average",
]  # fmt: skip
STEPS: tuple[Step, ...] = typing.get_args(Step)
"""The steps of `recometer.explain`, in their order; the step ``"formula"`` changes the metric."""

Value = TypeVar("Value")
Class = TypeVar("Class", bound=type[Any])


@dataclasses.dataclass(frozen=True)
class Number:
    """The numbers that a rule accepts, both as a phrase and as a condition."""

    text: str = "a number"
    fits: Callable[[float], bool] = math.isfinite

    def takes(self, value: object) -> bool:
        """Return whether a value is one of the accepted numbers."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        try:
            return self.fits(value)
        except OverflowError:  # the integer is too large for a float
            return False


@dataclasses.dataclass(frozen=True)
class Rule:
    """The declaration of a rule."""

    default: Any  # the value of the rule if it is not set
    # A sentence for each value that the rule accepts. In the sentence of a `Number`, ``{}`` stands
    # for the number. If there are no sentences, the rule accepts any text.
    says: Mapping[Any, str]
    step: Step | None  # the step of `recometer.explain` to which the rule belongs
    no_step: str  # the reason why the rule does not belong to a step
    about: str  # a further explanation for the docstring

    def __post_init__(self) -> None:
        if (self.step is None) != bool(self.no_step):
            raise TypeError("A rule must state a step of explain or, in no_step, why it has none.")
        if self.says:
            self._entry(self.default)  # raises LookupError if the rule does not accept its default

    @cached_property
    def choices(self) -> tuple[Any, ...]:
        """The values that the rule accepts, except numbers."""
        numbers = [entry for entry in self.says if isinstance(entry, Number)]
        return tuple(
            entry
            for entry in self.says
            if entry not in numbers and not any(number.takes(entry) for number in numbers)
        )

    @cached_property
    def _values(self) -> dict[tuple[type, Any], Any]:
        """The entries of `says`, keyed by type and value to tell True from the number 1."""
        return {(type(entry), entry): entry for entry in self.says}

    def _entry(self, value: object) -> Any:
        """Return the entry of `says` that matches a value; raise LookupError if none does."""
        # Subclasses of str (from NumPy or an enumeration) count as plain strings.
        kind = str if isinstance(value, str) else type(value)
        if isinstance(value, str | int | float | None) and (kind, value) in self._values:
            return self._values[kind, value]
        for entry in self.says:
            if isinstance(entry, Number) and entry.takes(value):
                return entry
        raise LookupError(value)

    def check(self, name: str, value: object) -> None:
        """Raise an error for a value that the rule does not accept."""
        if value is self.default or (not self.says and isinstance(value, str)):
            return
        if not self.says:
            raise InputError(f"{name}={brief(value)} must be a string.")
        try:
            self._entry(value)
        except LookupError:
            numbers = [entry.text for entry in self.says if isinstance(entry, Number)]
            choices = list(map(repr, self.choices))
            if numbers:
                takes = " or ".join([*numbers, *choices])
                raise InputError(f"{rule_text(name, value)} must be {takes}.") from None
            raise InputError(
                f"{rule_text(name, value)}: the rule has no such value. Hint: use one of "
                f"{', '.join(choices)}."
            ) from None

    def sentence(self, value: object) -> str:
        """Return the meaning of a value as a sentence."""
        entry = self._entry(value)
        sentence = self.says[entry]
        return sentence.format(f"{value:g}") if isinstance(entry, Number) else sentence

    def read(self, text: str) -> Any:
        """Return the value that a string stands for: a choice, a number, or the string itself."""
        for choice in self.choices:
            if str(choice).lower() == text.lower():
                return choice
        for number in (int, float) if self.says else ():
            with contextlib.suppress(ValueError):
                return number(text)
        return text

    def describe(self, name: str, default: object) -> str:
        """Return the rule's entry in the docstring."""
        lines = [f"{name} : default {default!r}", *([f"    {self.about}"] if self.about else [])]
        for entry, sentence in self.says.items():
            value = f"x, {entry.text}" if isinstance(entry, Number) else repr(entry)
            lines.append(f"    * {value}: {sentence.format('x')}")
        return "\n".join(lines)


def rule(
    default: Value,
    says: Mapping[Any, str] | None = None,
    *,
    step: Step | None = None,
    no_step: str = "",
    about: str = "",
) -> Value:
    """Declare a rule (see `Rule`) as a field of a class that `ruled` decorates."""
    declared = Rule(default, says or {}, step, no_step, about)
    return dataclasses.field(default=default, metadata={"rule": declared})


def ruled(protocol: Class) -> Class:
    """Collect the rules of a dataclass, add them to its docstring, and make it check rule names."""
    fields = dataclasses.fields(protocol)
    undeclared = [field.name for field in fields if "rule" not in field.metadata]
    if undeclared:
        raise TypeError(
            f"Every rule must be declared with rule(...), unlike {', '.join(undeclared)}."
        )
    declared = {field.name: field.metadata["rule"] for field in fields}
    init = protocol.__init__

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **rules: Any) -> None:
        args = tuple(map(plain_number, args))
        rules = {name: plain_number(value) for name, value in rules.items()}
        for name in rules:
            if name not in declared:
                raise UnknownNameError(f"There is no rule {name!r}. {did_you_mean(name, declared)}")
        init(self, *args, **rules)

    descriptions = "\n".join(
        declared[field.name].describe(field.name, field.default) for field in fields
    )
    text = inspect.cleandoc(protocol.__doc__ or "")
    protocol.__doc__ = f"{text}\n\nParameters\n----------\n{descriptions}\n"
    protocol.__init__ = checked
    protocol.declared = declared
    return protocol


TieRule = Literal[
    "expected", "optimistic", "pessimistic", "random", "item", "item_desc", "item_desc_within",
    "input", "as_ranked", "shared",
]  # fmt: skip
RepeatedTest = Literal["once", "summed", "largest", "counted", "joined"]
RelevantFrom = Literal["not_zero"] | float | None
AnyProtocol = TypeVar("AnyProtocol", bound="Protocol")

NUMBER = Number()
COUNT = Number("a whole number, 0 or more", lambda number: isinstance(number, int) and number >= 0)
DECIMALS = Number(
    "a whole number from 0 to 15", lambda number: isinstance(number, int) and 0 <= number <= 15
)
SHARE = Number("a number between 0 and 1", lambda number: 0 < number < 1)


@ruled
@dataclasses.dataclass(frozen=True)
class Protocol:
    """The rules that determine the value of a metric. Every result contains its rules.

    Raises
    ------
    UnknownNameError
        If a rule does not exist. The message names the most similar one.
    InputError
        If a rule does not accept its value.
    """

    declared: ClassVar[Mapping[str, Rule]]

    name: str = rule(
        "recometer",
        no_step="It only labels the set of rules.",
        about="The name of this set of rules.",
    )
    ties: TieRule = rule(
        "expected",
        {
            "expected": "The value is the mean over all orders of items with equal scores.",
            "optimistic": "Among equal scores, relevant items come first.",
            "pessimistic": "Among equal scores, relevant items come last.",
            "random": "Items with equal scores are put in random order, once.",
            "item": "Among equal scores, the lower item id comes first.",
            "item_desc": "Among equal scores, the higher item id comes first.",
            "item_desc_within": "Among equal scores, the lower item ids fill the places up to k, "
            "in descending order.",
            "input": "Equal scores keep the order of the input.",
            "as_ranked": "Items with equal ranks all have that rank; equal scores keep the order "
            "of the input.",
            "shared": "Items with equal scores all share one place: the middle of their places, "
            "rounded down.",
        },
        step="ties",
        about="This is the order of items with exactly the same score. The mean over all orders is "
        "exact (McSherry & Najork 2008). A random order depends on the seed and the user's id. "
        "'input' and 'as_ranked' apply to lists. With 'as_ranked' and with 'shared', more than k "
        "items may be in the first k places.",
    )
    relevant_from: RelevantFrom = rule(
        None,
        {
            None: "An item is relevant if its test value is above 0.",
            -math.inf: "Every test item is relevant, whatever its value.",
            "not_zero": "An item is relevant if its test value is not 0.",
            NUMBER: "An item is relevant if its test value is {} or more.",
        },
        step="ranking",
    )
    negative_gains: Literal["zero", "counted"] = rule(
        "zero",
        {
            "zero": "An item with a test value below 0 has a gain of 0.",
            "counted": "An item with a test value below 0 also has a gain below 0.",
        },
        step="ranking",
        about="The rule applies to metrics that read gains, such as NDCG.",
    )
    undefined: Literal["nan"] | float = rule(
        "nan",
        {"nan": "An undefined value is NaN.", NUMBER: "An undefined value is {}."},
        step="undefined values",
        about="The result keeps the reason.",
    )
    constant_scores: Literal["undefined", "ties"] = rule(
        "undefined",
        {
            "undefined": "A user whose scores are all equal has an undefined value.",
            "ties": "If a user's scores are all equal, their items form a single tie group.",
        },
        step="undefined values",
    )
    nan_scores: Literal["undefined", "undefined_for_all", "first", "last"] = rule(
        "undefined",
        {
            "undefined": "A user with a score of NaN has an undefined value.",
            "undefined_for_all": "A user with a score of NaN has an undefined value; if all users "
            "do, the means are undefined, without an error.",
            "first": "A score of NaN ranks first.",
            "last": "A score of NaN ranks last.",
        },
        step="ranking",
    )
    single_precision: bool = rule(
        False,
        {
            False: "Scores are compared in their own precision.",
            True: "Scores are rounded to single precision (float32) before they are compared.",
        },
        step="ranking",
        about="Scores that are equal in single precision become ties. The rule applies only to "
        "scores that you pass; Factors computes its scores in the precision of the factors.",
    )
    infinite_scores: Literal["undefined", "ranked"] = rule(
        "undefined",
        {
            "undefined": "A user with an infinite score has an undefined value.",
            "ranked": "An infinite score ranks like any other number, above or below all finite "
            "ones.",
        },
        step="ranking",
        about="In Scores, -inf means that the item is not a candidate. The same holds in Pairs, "
        "unless infinite scores are ranked. If a product of Factors overflows, the user's value is "
        "always undefined. So are errors of predicted ratings if a prediction is infinite.",
    )
    users: Literal["test", "all", "known", "relevant", "known_relevant", "listed", "positive"] = (
        rule(
            "test",
            {
                "test": "The mean is over all test users; a user without a list has only misses.",
                "all": "The mean is over all users, including those who are not in the test data.",
                "known": "The mean is over the test users with a list.",
                "relevant": "The mean is over the users with a relevant item; a user without a "
                "list has only misses.",
                "known_relevant": "The mean is over the users with a list and a relevant item.",
                "listed": "The mean is over all users with a list, including those who are not in "
                "the test data.",
                "positive": "The mean is over the users with a value above 0.",
            },
            step="population",
            about="With 'all', users who are not in the test data count only if the rule "
            "no_relevant gives them a value.",
        )
    )
    min_positives: int = rule(
        1,
        {COUNT: "A user with fewer than {} relevant items has an undefined value."},
        step="undefined values",
    )
    min_candidates: int = rule(
        2,
        {
            0: "A user may have any number of items to rank, even none.",
            COUNT: "A user with fewer than {} items to rank has an undefined value.",
        },
        step="undefined values",
    )
    cold_start: bool = rule(
        True,
        {
            True: "Users without training items count.",
            False: "Users without training items have undefined values.",
        },
        step="undefined values",
    )
    interval: Literal["gaffke", "t", "percentile", "bca"] = rule(
        "gaffke",
        {
            "gaffke": "The interval of the mean is Gaffke's if the metric has a range; otherwise, "
            "it is BCa.",
            "t": "The interval of the mean is Student's t.",
            "percentile": "The interval of the mean is the bootstrap's percentile interval, "
            "computed without resampling.",
            "bca": "The interval of the mean is the bootstrap's BCa interval, computed without "
            "resampling.",
        },
        no_step="It changes only the interval of a mean, not the mean or any value.",
        about="On small or sparse data, Student's t and bootstrap intervals contain the mean too "
        "rarely. No such case is known for Gaffke's interval. See `recometer.stats`.",
    )
    confidence: float = rule(
        0.95,
        {SHARE: "The interval has a coverage of {}."},
        no_step="It changes only the interval of a mean, not the mean or any value.",
    )
    no_relevant: Literal["undefined", "computed"] | float = rule(
        "undefined",
        {
            "undefined": "A user without a relevant item has an undefined value.",
            "computed": "The value of a user without a relevant item follows from the formula.",
            NUMBER: "The value of a user without a relevant item is {}.",
        },
        step="undefined values",
        about="If a metric reads gains, the rule also applies to users without a positive gain.",
    )
    no_list: Literal["misses", "undefined"] = rule(
        "misses",
        {
            "misses": "A user without a list has only misses.",
            "undefined": "A user without a list has an undefined value.",
        },
        step="undefined values",
    )
    deep_cutoffs: Literal["undefined", "undefined_below", "computed"] = rule(
        "undefined",
        {
            "undefined": "A user with at most k candidates has an undefined value for metrics that "
            "ignore the order of the first k items.",
            "undefined_below": "A user with fewer than k candidates has an undefined value; so "
            "does one with exactly k for metrics that ignore their order.",
            "computed": "A user with at most k candidates still has a value.",
        },
        step="undefined values",
    )
    all_relevant: Literal["undefined", "undefined_beyond", "computed"] = rule(
        "undefined",
        {
            "undefined": "A user whose candidates are all relevant has an undefined value.",
            "undefined_beyond": "A user whose candidates are all relevant has an undefined value "
            "if there are more than k of them.",
            "computed": "A user whose candidates are all relevant still has a value.",
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
            "usual": "Every user has the same weight in the mean; errors of predicted ratings are "
            "computed over the rows of all users.",
            "users": "Every user has the same weight in the mean, even for errors of predicted "
            "ratings.",
            "relevant": "Users are weighted in the mean by their number of relevant items.",
            "pooled": "The mean is the sum of all numerators divided by the sum of all "
            "denominators.",
            "parts": "The mean of F is the F measure of the mean precision and the mean recall.",
        },
        step="average",
    )
    decimals: int | None = rule(
        None,
        {
            None: "Values are not rounded.",
            DECIMALS: "A user's value is rounded to {} decimals.",
        },
        step="rounding",
        about="A single value for all users is rounded as well.",
    )
    percent: bool = rule(
        False,
        {False: "Shares are given as fractions.", True: "Shares are given as percentages."},
        step="rounding",
        about="The rule applies to metrics with one value for all users.",
    )
    unranked: Literal["misses", "left_out"] = rule(
        "misses",
        {
            "misses": "Relevant items that are not in the list are misses.",
            "left_out": "Relevant items that are not in the list are ignored, as if they were not "
            "in the test data.",
        },
        step="ranking",
    )
    unknown_items: Literal["misses", "left_out"] = rule(
        "misses",
        {
            "misses": "Relevant items that the model does not know are misses.",
            "left_out": "Relevant items that the model does not know are ignored, as if they were "
            "not in the test data.",
        },
        step="ranking",
    )
    score_above: float | None = rule(
        None,
        {
            None: "Relevant items count as found whatever their score.",
            NUMBER: "Relevant items count as found only if their score is above {}.",
        },
        step="ranking",
    )
    duplicates: Literal["removed", "first", "counted", "joined"] = rule(
        "removed",
        {
            "removed": "An item repeated in a list counts once, and later items move up.",
            "first": "An item repeated in a list counts once, and all other items keep their "
            "places.",
            "counted": "An item repeated in a list counts each time.",
            "joined": "An item repeated in a list counts each time, as a separate relevant item.",
        },
        step="ranking",
    )
    repeated_test: RepeatedTest = rule(
        "once",
        {
            "once": "Test rows with the same user and item count as one relevant item.",
            "summed": "Test rows with the same user and item count as one item. Their values "
            "are added up before relevant_from is applied.",
            "largest": "Test rows with the same user and item count as one item, with the "
            "largest of their values.",
            "counted": "Test rows with the same user and item each count as a relevant item, "
            "but only one of them can be a hit.",
            "joined": "Test rows with the same user and item each count as a relevant item, and "
            "all of them share the item's place.",
        },
        step="ranking",
        about="With 'once', the values of such rows are added up, which suits play counts. "
        "If relevant_from is a number, 'once' is refused for repeated rows. Use 'summed', which "
        "compares the sum with that number, or 'largest', which suits ratings. With 'counted' "
        "and 'joined', each row has the mean of the values. With 'joined', tied items need a rule "
        "for ties that gives each item its own place, such as 'item'.",
    )
    seen: Literal["removed", "kept_in_lists", "kept"] = rule(
        "removed",
        {
            "removed": "A user's training items are removed from rankings, lists and the test "
            "data.",
            "kept_in_lists": "A user's training items stay in lists, but are removed from other "
            "rankings.",
            "kept": "A user's training items stay in rankings, lists and the test data.",
        },
        step="ranking",
        about="If users return to the same items (music, groceries), use 'kept', so that the "
        "model has to find them again. Metrics that use the training data still use it.",
    )
    shifted_ids: Literal["refused", "kept"] = rule(
        "refused",
        {
            "refused": "A model's ids are refused if they look like positions of the ids in the "
            "test and training data, or the other way round.",
            "kept": "A model's ids are compared with those of the test and training data as they "
            "are.",
        },
        no_step="It affects only what is refused, never a value.",
        about="A model's ids look like positions if they are exactly 0 to n-1, and the test and "
        "training data together contain n but not 0. Its item ids also look like positions if the "
        "item ids of the test and training data start at the number of users, as in a graph that "
        "numbers the users first. The ids of the test and training data look like positions if "
        "they are exactly 0 to n-1 (for an n of at least 10), and the model's ids are exactly 1 to "
        "n. In these cases, each user would get the list of a neighbouring user. Set 'kept' if the "
        "numbers really are the same ids on both sides.",
    )
    version: str = rule(
        "",
        no_step="It only labels the set of rules.",
        about="The version of the library that this convention reproduces.",
    )
    defects: bool = rule(
        False,
        {
            False: "A name stands for the metric that the library documents.",
            True: "A name stands for the metric that the library computes, even if its "
            "documentation says otherwise.",
        },
        no_step="It changes the parameters and rules that a name stands for.",
        about="Only the protocols of other libraries have this rule.",
    )

    def __post_init__(self) -> None:
        if isinstance(self.undefined, float) and math.isnan(self.undefined):
            object.__setattr__(self, "undefined", "nan")
        for name, declared in self.declared.items():
            declared.check(name, getattr(self, name))
        if self.defects and not self.version:
            example = python_or_command(
                "evaluate(..., protocol='evidently', defects=True)",
                "--protocol evidently --rule defects=true",
            )
            raise InputError(
                f"{rule_text('defects', True)} reproduces the defects of a library, but "
                f"{self.name!r} is not the protocol of a library. Hint: choose one, as in "
                f"{example}."
            )

    def replace(self: AnyProtocol, **rules: Any) -> AnyProtocol:
        """Return a copy with some rules changed.

        Raises
        ------
        UnknownNameError
            If a rule does not exist. The message lists all rules.
        InputError
            If a rule does not accept its value, or if `version` is changed, which is not possible.
        """
        if not rules:
            return self
        version = rules.get("version", self.version)
        if version != self.version:
            owner = f"those of version {self.version!r} only" if self.version else "recometer's own"
            raise InputError(
                f"{rule_text('version', version)} cannot be chosen: the rules of the protocol "
                f"{self.name!r} are {owner}. Hint: leave it out."
            )
        return dataclasses.replace(self, **rules)

    def describe(self, other: Protocol | None = None) -> str:
        """Return the name, and the rules that differ from those of another protocol.

        An example is ``"recometer ties='item'"``.

        Parameters
        ----------
        other
            The protocol to compare with. None means recometer's default rules.
        """
        changed = [f"{rule}={getattr(self, rule)!r}" for rule in self.differing(other)]
        return " ".join([self.name, *filter(None, [self.version]), *changed])

    def sentence(self, rule: str) -> str:
        """Return a rule as a sentence."""
        return self.declared[rule].sentence(getattr(self, rule))

    def sentences(self, other: Protocol | None = None) -> list[str]:
        """Return a sentence for each rule that differs from another protocol's (or recometer's)."""
        return [self.sentence(rule) for rule in self.differing(other)]

    def differing(self, other: Protocol | None = None) -> list[str]:
        """Return the names of the rules that differ from another protocol (or recometer's)."""
        other = type(self)() if other is None else other
        return [
            rule
            for rule, declared in self.declared.items()
            if declared.says and self.differs(rule, other)
        ]

    def differs(self, rule: str, other: Protocol) -> bool:
        """Return whether a rule differs between this protocol and another one."""
        different: bool = getattr(self, rule) != getattr(other, rule)
        return different

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as JSON-compatible Python objects."""
        return {name: getattr(self, name) for name in self.declared}


class Rules(TypedDict, total=False):
    """The types of the rules of `Protocol`; a test checks that the two classes agree."""

    name: str
    ties: TieRule
    relevant_from: RelevantFrom
    negative_gains: Literal["zero", "counted"]
    undefined: Literal["nan"] | float
    constant_scores: Literal["undefined", "ties"]
    nan_scores: Literal["undefined", "undefined_for_all", "first", "last"]
    single_precision: bool
    infinite_scores: Literal["undefined", "ranked"]
    users: Literal["test", "all", "known", "relevant", "known_relevant", "listed", "positive"]
    min_positives: int
    min_candidates: int
    cold_start: bool
    interval: Literal["gaffke", "t", "percentile", "bca"]
    confidence: float
    no_relevant: Literal["undefined", "computed"] | float
    no_list: Literal["misses", "undefined"]
    deep_cutoffs: Literal["undefined", "undefined_below", "computed"]
    all_relevant: Literal["undefined", "undefined_beyond", "computed"]
    missing: Literal["skip", "zero", "nan"]
    average: Literal["usual", "users", "relevant", "pooled", "parts"]
    decimals: int | None
    percent: bool
    unranked: Literal["misses", "left_out"]
    unknown_items: Literal["misses", "left_out"]
    score_above: float | None
    duplicates: Literal["removed", "first", "counted", "joined"]
    repeated_test: RepeatedTest
    seen: Literal["removed", "kept_in_lists", "kept"]
    shifted_ids: Literal["refused", "kept"]
    version: str
    defects: bool
