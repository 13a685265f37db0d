"""Part: the values of a block of users."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.arrays import Float64, UInt8, all_of
from recometer.evaluating.case import Case
from recometer.evaluating.chance import chance_of
from recometer.evaluating.checks import BlockFacts
from recometer.evaluating.records import Records, Users, measured_by
from recometer.measuring.compute import compute, compute_for_all
from recometer.measuring.listed import ListedUsers
from recometer.measuring.rated import RatedTogether, RatedUsers
from recometer.measuring.reasons import Reason
from recometer.measuring.side_data import needed_by
from recometer.metrics import ListData
from recometer.ranks import TopLists, UserFlag, raised


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """The values of a block of users, and further facts about these users.

    `rated`, `lists` and `list_data` are None unless metrics read them.
    """

    values: Mapping[str, Float64]
    reasons: Mapping[str, UInt8]
    users: Users
    counts: Mapping[str, int]  # rows and users that a rule affected
    facts: BlockFacts
    chance: Mapping[str, Float64] = dataclasses.field(default_factory=dict)
    rated: RatedTogether | None = None
    over_rows: Mapping[str, float] = dataclasses.field(default_factory=dict)
    lists: TopLists | None = None
    over_users: Mapping[str, float] = dataclasses.field(default_factory=dict)
    list_data: ListData | None = None

    def fields(self) -> dict[str, Any]:
        """Return the part as fields of an `Evaluation`."""
        found = {**vars(self), **self.users._asdict()}
        del found["users"], found["facts"]
        return found


def measure(case: Case, records: Records) -> Part:
    """Compute all metrics for the users of a case."""
    measured, rules, needs = measured_by(case, records), case.protocol, case.requirements
    arguments, metrics = case.sides.arguments, case.sides.metrics
    threads = arguments.threads
    values, reasons = compute(measured.values(), metrics, rules, threads)
    more: dict[str, Any] = {}
    if arguments.chance:
        more["chance"] = chance_of(records.ranks, metrics, rules, threads)
    rated, listed = measured.get("ratings"), measured.get("lists")
    if isinstance(rated, RatedUsers):
        more["rated"] = together = rated.together(reasons)
        more["over_rows"] = compute_for_all(together, needs.over_rows, rules)
    if isinstance(listed, ListedUsers):
        needed = needed_by(needs.over_users)
        gone = [name for name in ("train", "test", "baseline") if name not in needed]
        changes: dict[str, Any] = dict.fromkeys(gone)
        if "test" in gone:
            changes["relevant"] = None
        more |= {
            "lists": records.lists,
            "over_users": compute_for_all(listed, needs.over_users, rules),
            # The result keeps them, so drop what is not needed.
            "list_data": dataclasses.replace(listed.data, **changes),
        }
    facts = _facts(case, records, values, reasons)
    return Part(values, reasons, records.users, records.counts, facts, **more)


def _facts(
    case: Case, records: Records, values: Mapping[str, Float64], reasons: Mapping[str, UInt8]
) -> BlockFacts:
    users, ranks, test = records.users, records.ranks, case.sides.test
    known = raised(users.flags, UserFlag.KNOWN)
    judged = known & (users.n_relevant > 0)
    unusable = judged & raised(users.flags, UserFlag.NAN_SCORE, UserFlag.INFINITE_SCORE)
    n_unknown = records.counts.get("users_unknown", 0)
    if n_unknown and not case.protocol.cold_start:
        n_unknown = int(np.count_nonzero(raised(users.flags, UserFlag.TRAINED) & ~known))
    undefined = {}
    for name, column in values.items():
        # The first user nearly always decides, so the rest is not searched.
        if not len(column) or (math.isnan(column[0]) and all_of(np.isnan(column))):
            undefined[name] = np.bincount(reasons[name], minlength=max(Reason) + 1)
    return BlockFacts(
        n_users=test.n_users,
        n_rows=len(test),
        n_relevant=int(users.n_relevant.sum()),
        n_known=int(np.count_nonzero(known)),
        n_judged=int(np.count_nonzero(judged)),
        n_unusable=int(np.count_nonzero(unusable)),
        n_unknown=n_unknown,
        n_early=0 if ranks is None else int(np.count_nonzero(ranks.ends_early)),
        n_any_cutoff=int(ranks is not None and ranks.any_cutoff),
        n_compared=test.n_users
        if records.baseline is None
        else int(np.count_nonzero(records.baseline.known)),
        depth=int(users.depth.max(initial=0)),
        n_candidates=int(users.n_candidates.max(initial=0)),
        n_listed=0 if records.lists is None else int(records.lists.lengths.max(initial=0)),
        undefined=undefined,
    )
