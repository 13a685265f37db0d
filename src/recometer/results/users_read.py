"""UsersRead: of an evaluation that did not read all users, how many it read, and why no more."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from recometer.rendering import plain
from recometer.stats import Interval

ALONE = (
    "Users were read until enough was known: only means over all that were read have an interval "
    "that holds then, of metrics with a range."
)


@dataclasses.dataclass(frozen=True)
class UsersRead:
    """How many users of test were read, and what follows for all of them.

    Attributes
    ----------
    until
        What was to be known, as it was asked for: ``"ndcg@10 ± 0.002"``.
    n_read, n_users
        How many users were read, and how many there are in test; of metrics that need one, only
        those with a relevant item.
    reached
        Whether it was known before all were read.
    intervals : mapping of str to Interval
        Intervals for the mean of each metric over all users of test, by confidence sequences. They
        hold at all times, so that it does not matter when one stops. Once all
        were read, they are the means.
    """

    until: str
    n_read: int
    n_users: int
    reached: bool
    intervals: Mapping[str, Interval]

    @property
    def share(self) -> float:
        """The share of the users that was read."""
        return self.n_read / self.n_users

    @property
    def sentence(self) -> str:
        """What a table says of it."""
        if self.n_read == self.n_users:
            return (
                f"until {self.until}: all {self.n_users:,} users were read, so that the means are "
                "those of test, and intervals have no width"
            )
        return (
            f"until {self.until}: {self.n_read:,} of {self.n_users:,} users were read "
            f"({self.share:.1%}), in random order. Intervals are of the means over all "
            f"{self.n_users:,}, and hold whenever one stops"
        )

    def intervals_of(
        self, names: Iterable[str], confidence: float, n: int, *, weighted: bool
    ) -> list[Interval]:
        """Return the intervals of some metrics; `n` users have a value, perhaps `weighted` ones."""
        known = {} if weighted else self.intervals
        return [known.get(name, Interval.unknown(confidence, n, ALONE)) for name in names]

    def of_some(self) -> UsersRead:
        """Return this for some of the users, for whom no interval is valid."""
        return dataclasses.replace(self, intervals={})

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, which `of_dict` reads."""
        return {
            **{name: value for name, value in vars(self).items() if name != "intervals"},
            "intervals": {
                name: {field: plain(value) for field, value in vars(one).items()}
                for name, one in self.intervals.items()
            },
        }

    @classmethod
    def of_dict(cls, given: Mapping[str, Any] | None) -> UsersRead | None:
        """Read what `to_dict` returned."""
        if given is None:
            return None
        nan = float("nan")
        intervals = {}
        for name, one in given["intervals"].items():
            ends = {end: nan if one[end] is None else one[end] for end in ("low", "high")}
            intervals[name] = Interval(**{**one, **ends})
        return cls(**{**given, "intervals": intervals})
