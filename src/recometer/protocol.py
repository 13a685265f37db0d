"""The rules that a number depends on."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

from recometer.errors import InputError, UnknownNameError, did_you_mean

__all__ = ["Protocol"]

# Every rule with a fixed set of values; the others are checked in __post_init__.
CHOICES: dict[str, tuple[str, ...]] = {
    "ties": ("expected", "optimistic", "pessimistic", "random", "item", "item_desc", "input"),
    "constant_scores": ("undefined", "ties"),
    "nan_scores": ("undefined", "first", "last"),
    "users": ("test", "known"),
    "interval": ("t", "bootstrap"),
    "correction": ("none", "plug_in", "unbiased", "cv"),
}


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
        ``"input"``: as given, for lists.
    relevant_from
        An item of test is relevant from this value on; None: when its value is not 0.
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
        has misses only), or only those ``"known"`` to the source.
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
        traded for variance, see `recometer.metrics.corrections`. It needs the ties "expected".
    gamma
        Weight of the variance in the correction ``"cv"``, in (0, 1]; the paper takes 0.1 and
        0.01.
    """

    name: str = "recometer"
    ties: Literal[
        "expected", "optimistic", "pessimistic", "random", "item", "item_desc", "input"
    ] = "expected"
    relevant_from: float | None = None
    undefined: Literal["nan"] | float = "nan"
    constant_scores: Literal["undefined", "ties"] = "undefined"
    nan_scores: Literal["undefined", "first", "last"] = "undefined"
    users: Literal["test", "known"] = "test"
    min_positives: int = 1
    min_candidates: int = 2
    cold_start: bool = True
    interval: Literal["t", "bootstrap"] = "t"
    confidence: float = 0.95
    correction: Literal["none", "plug_in", "unbiased", "cv"] = "none"
    gamma: float = 0.01

    def __post_init__(self) -> None:
        for rule, choices in CHOICES.items():
            value = getattr(self, rule)
            if value not in choices:
                raise InputError(
                    f"The rule {rule}={value!r} does not exist. "
                    f"Hint: {rule} is one of {', '.join(map(repr, choices))}."
                )
        for rule in ("min_positives", "min_candidates"):
            value = getattr(self, rule)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise InputError(f"{rule}={value!r} must be a whole number, 0 or more.")
        if not isinstance(self.cold_start, bool):
            raise InputError(f"cold_start={self.cold_start!r} must be True or False.")
        if not _is_number(self.confidence) or not 0 < self.confidence < 1:
            raise InputError(f"confidence={self.confidence!r} must lie between 0 and 1.")
        if self.relevant_from is not None and not _is_number(self.relevant_from):
            raise InputError(f"relevant_from={self.relevant_from!r} must be a number or None.")
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
            A value that the rule does not take.
        """
        known = [field.name for field in dataclasses.fields(self)]
        for rule in rules:
            if rule not in known:
                raise UnknownNameError(f"There is no rule {rule!r}. {did_you_mean(rule, known)}")
        return dataclasses.replace(self, **rules)

    def describe(self) -> str:
        """Return its name, and the rules that are not the default: ``"recometer ties='item'"``."""
        default = Protocol()
        rules = [field.name for field in dataclasses.fields(self) if field.name != "name"]
        changed = [
            f"{rule}={getattr(self, rule)!r}"
            for rule in rules
            if getattr(self, rule) != getattr(default, rule)
        ]
        return " ".join([self.name, *changed])

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as plain values (for JSON)."""
        return dataclasses.asdict(self)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
