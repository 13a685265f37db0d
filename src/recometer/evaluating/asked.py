"""The arguments of `evaluate` that do not depend on the model and the test, read."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions, read_interactions
from recometer.data.numbers import flag
from recometer.draws import seed_of
from recometer.evaluating.arguments import baseline_of, protocol_of
from recometer.evaluating.effects import given_by_hand
from recometer.measuring.side_data import Popularity, check_side_data, needed_by
from recometer.metrics.conventions import parse_under
from recometer.metrics.names import Metrics
from recometer.metrics.registry import Metric, rules_of
from recometer.protocol import Protocol
from recometer.remembered import cached_property
from recometer.results.evaluation import EvaluationRecord
from recometer.sources.base import Source
from recometer.sources.candidates import Items, read_items
from recometer.tasks import resolve_threads

DEFAULT_METRICS = "ndcg@10 recall@10 precision@10 ap@10 rr@10 hit@10"

# Of `evaluate`, beside rules, the source and test.
PARAMETERS = (
    "train",
    "candidates",
    "exclude",
    "metrics",
    "protocol",
    "catalogue",
    "baseline",
    "seed",
    "threads",
    "progress",
    "chance",
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Asked:
    """The arguments of `evaluate` that need neither a source nor test, see there."""

    metrics: tuple[Metric, ...]
    protocol: Protocol  # as stated: a source without an order of its own replaces one rule
    train: Interactions | None
    exclude: Items | None
    catalogue: Catalogue | None
    baseline: Source | EvaluationRecord | None
    seed: int
    threads: int
    progress: bool | None
    chance: bool
    as_given: Mapping[str, Any]  # what the evaluation is repeated with
    popularity: Popularity | None = None  # of the whole train, where train holds some users
    expects_unknown: bool = False  # whether it is meant that users of test are unknown
    some_users: bool = False  # whether other users are evaluated elsewhere, and put together

    @cached_property
    def by_hand(self) -> Sequence[str]:
        """The rules that were given by hand, whose effect is looked for."""
        return given_by_hand(self.protocol)

    @cached_property
    def counts_listed_users(self) -> bool:
        """Whether users with a list count, whom test need not have."""
        return counts_listed(self.metrics, self.protocol)


def counts_listed(metrics: Sequence[Metric], protocol: Protocol) -> bool:
    """Return whether users with a list count, whom test need not have."""
    return any(rules_of(one, protocol).users == "listed" for one in metrics)


def read_asked(
    *,
    train: object,
    candidates: object,
    exclude: object,
    metrics: Metrics,
    protocol: str | Protocol,
    catalogue: object,
    baseline: object,
    seed: int,
    threads: int | None,
    progress: bool | None,
    chance: bool,
    rules: Mapping[str, Any],
) -> Asked:
    """Read and check them."""
    stated = protocol_of(protocol, rules, PARAMETERS)
    requested = parse_under(metrics, stated)
    known_items = catalogue if isinstance(catalogue, Catalogue | None) else Catalogue(catalogue)
    other = baseline_of(baseline)
    seed, threads = seed_of(seed), resolve_threads(threads)
    trained = None if train is None else read_interactions(train, "train", warns=False)
    check_side_data(needed_by(requested), train=trained, baseline=other, catalogue=known_items)
    return Asked(
        metrics=tuple(requested),
        protocol=stated,
        train=trained,
        exclude=None if exclude is None else read_items(exclude, "exclude"),
        catalogue=known_items,
        baseline=other,
        seed=seed,
        threads=threads,
        progress=progress,
        chance=flag("chance", chance),
        as_given={
            "candidates": candidates,
            "exclude": exclude,
            "catalogue": known_items,
            "baseline": baseline,
        },
    )
