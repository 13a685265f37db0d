"""Until: how precisely a metric must be known before reading stops."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence

from recometer.errors import InputError, InputTypeError, UnknownNameError, brief, did_you_mean
from recometer.metrics.registry import METRICS, Metric, rules_of
from recometer.protocol import Protocol
from recometer.results.naming import names_among
from recometer.results.together import is_over_rows

DECIDED = "decided"
LEAST_GROWTH = 1.08  # from look to look, where it is known how many users are needed
NEARLY_ALL = 0.75  # of the users: to read the others takes less time than several looks
WIDTH = re.compile(r"(?P<metric>.+?)\s*(?:±|\+/?-)\s*(?P<width>[^%]*?)\s*(?P<percent>%?)")
HINT = "Hint: 'ndcg@10 ± 0.002' (or 'ndcg@10 +- 0.002'), or 'ndcg@10 ± 2%' of the mean"


@dataclasses.dataclass(frozen=True)
class Until:
    """How precisely a metric must be known before reading stops.

    What ``until=`` of `recometer.evaluate` and `recometer.compare` takes is a text, or this to say
    how many users are read at a time, too.

    Parameters
    ----------
    text
        ``"ndcg@10 ± 0.002"``, also ``"ndcg@10 +- 0.002"``: half of the interval is at most as wide.
        ``"ndcg@10 ± 2%"``: of the mean found. ``"decided"``, in a comparison: the intervals of
        differences exclude 0.
    first
        How many users are read before the first look.
    growth
        By how much their number is multiplied from look to look, where the values that were read
        do not say how many are needed. The interval holds however often one looks; few looks read
        more users than needed, many take time.

    Raises
    ------
    InputError
        If the text cannot be read, or numbers are out of range.

    Examples
    --------
    >>> import recometer as rm
    >>> until = rm.Until("ndcg@10 ± 0.5%", first=2_000)
    >>> until.metric, until.width, until.relative
    ('ndcg@10', 0.005, True)
    """

    text: str
    first: int = 1000
    growth: float = 1.25

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InputTypeError(f"until={brief(self.text)} must be a text. {HINT}.")
        whole = isinstance(self.first, int) and not isinstance(self.first, bool)
        if not whole or self.first < 1:
            raise InputError(f"first={brief(self.first)} must be a whole number, at least 1.")
        number = isinstance(self.growth, int | float) and not isinstance(self.growth, bool)
        if not number or not 1 < self.growth < math.inf:
            raise InputError(f"growth={brief(self.growth)} must be a number above 1. Hint: 1.25.")
        if self.text.strip() == DECIDED:
            return
        match = WIDTH.fullmatch(self.text.strip())
        if match is None:
            raise InputError(
                f"until={self.text!r} cannot be read. {HINT}; or 'decided', in a comparison."
            )
        try:
            width = float(match["width"])
        except ValueError:
            width = math.nan
        if not 0 < width < math.inf:
            raise InputError(
                f"until={self.text!r}: {match['width']!r} is not a number above 0. {HINT}."
            )

    @classmethod
    def of(cls, given: object) -> Until:
        """Return what was given as ``until=``."""
        return given if isinstance(given, Until) else cls(given)  # type: ignore[arg-type]

    @property
    def decided(self) -> bool:
        """Whether the question is which model is better."""
        return self.text.strip() == DECIDED

    @property
    def metric(self) -> str | None:
        """The metric whose interval is to be narrow, as it was written; None if `decided`."""
        match = WIDTH.fullmatch(self.text.strip())
        return None if match is None else match["metric"]

    @property
    def width(self) -> float | None:
        """Half of the interval's width at most; a share of the mean if `relative`."""
        match = WIDTH.fullmatch(self.text.strip())
        if match is None:
            return None
        return float(match["width"]) / (100 if match["percent"] else 1)

    @property
    def relative(self) -> bool:
        """Whether `width` is a share of the mean."""
        return self.text.strip().endswith("%")

    def next_number(self, n_read: int, n_users: int, needed: float = 0.0) -> int:
        """Return how many users to read until the next look, if `needed` users are enough."""
        if n_read == 0:
            return min(self.first, n_users)
        if needed >= NEARLY_ALL * n_users:
            return n_users
        growth = min(self.growth, LEAST_GROWTH) if needed else self.growth
        return min(max(math.ceil(n_read * growth), n_read + 1, math.ceil(needed)), n_users)

    def metric_of(self, metrics: Sequence[Metric], protocol: Protocol) -> Metric:
        """Return which of some metrics is meant.

        Raises
        ------
        InputError
            If it names several metrics.
        UnknownNameError
            If it does not name one of them.
        """
        assert self.metric is not None
        known = {str(one): one for one in metrics}
        found = names_among(self.metric, metrics, protocol)
        if len(found) != 1:
            raise InputError(
                f"until={self.text!r} names several metrics: {', '.join(found)}. Hint: name one."
            )
        if found[0] not in known:
            raise UnknownNameError(
                f"until={self.text!r}: {found[0]} is not among the metrics. "
                f"{did_you_mean(found[0], known)}"
            )
        return known[found[0]]


def check_metric(metric: Metric, protocol: Protocol) -> None:
    """Refuse a metric that is not a mean over users, every one of whom counts the same."""
    rules, definition, name = rules_of(metric, protocol), metric.definition, str(metric)
    others = "Hint: until= is about means over users of values with a range, such as ndcg@10"
    if definition.over_users:
        raise InputError(
            f"{name} is one value for all users, which a part of them does not tell. {others}; "
            f"leave {name} out of metrics=."
        )
    if is_over_rows(metric, protocol, None):
        raise InputError(
            f"{name} is a mean over the rows of all users, and not over users. {others}; leave "
            f"{name} out of metrics=, or average='users'."
        )
    if rules.average not in ("users", "usual"):
        raise InputError(
            f"By the rule average={rules.average!r} users weigh differently in the mean of {name}. "
            "Hint: until= needs average='users'."
        )
    if rules.missing == "nan":
        raise InputError(
            f"By the rule missing='nan' one user without a value leaves {name} without a mean, "
            "whoever the others are. Hint: until= needs missing='skip'."
        )


def bounds_of(
    metric: Metric, protocol: Protocol, *, negative: bool, binary: bool
) -> tuple[float, float] | None:
    """Return the lowest and the highest value of a user, or None if they are unknown.

    `negative` and `binary` are those of `Metric.bounds`.
    """
    rules = rules_of(metric, protocol)
    if rules.correction != "none":
        return None  # of estimates, which may lie anywhere
    low, high = metric.bounds(negative=negative, binary=binary)
    instead = [rules.undefined, rules.no_relevant, 0.0 if rules.missing != "skip" else "nan"]
    numbers = [float(one) for one in instead if not isinstance(one, str)]
    low, high = min([low, *numbers]), max([high, *numbers])
    return (low, high) if -math.inf < low < high < math.inf else None


def check_bounds(metric: Metric, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return the range of a metric; refuse one without."""
    if bounds is None:
        ranged = [
            name
            for name, one in METRICS.items()
            if one.record == metric.definition.record
            and not (one.over_users or one.over_rows)
            and math.isfinite(one.upper - one.lower)
        ]
        raise InputError(
            f"The values of {metric} have no known range here, which until= needs to say how far "
            f"users who were not read can be off. Hint: these have one: {', '.join(ranged[:12])}, "
            "...; values of test that are 0 or 1, none below 0 and no correction= help, too."
        )
    return bounds
