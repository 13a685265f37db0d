"""Write docs/metrics.md from the registry of metrics: python docs/write_metrics.py."""

from pathlib import Path

from recometer.metrics import METRICS, MetricDefinition, reading
from recometer.metrics.registry import SIDE_DATA

HEAD = """# Metrics

All formulas are for one user. The candidates are the items that were ranked: the catalogue without
the user's training items. `n` is their number, and `R` is the number of relevant items. A test item
is relevant if its value is above 0 or, if you set `relevant_from`, at least that number. `rel(j)`
is 1 if the item at rank `j` is relevant, and 0 otherwise. `hits(k)` is the sum of `rel(j)` over the
first `k` ranks. `gain(j)` is the test value of the item at rank `j`, or 0 if that value is
negative. Ranks start at 1.

A name can have a cut-off after `@`, as in `recall@10`, several cut-offs, as in `recall@5,10,50`, or
a range, as in `ndcg@1..10`. If the cut-off is "optional" and you leave it out, the metric reads the
whole ranking. Precision, recall, hit, RR, AP and NDCG can be restricted to a [group of
items](item_groups.md), as in `recall@10[new]`: `rel(j)` and `gain(j)` are then 0 for all other
items, which stay in the ranking, and `R` is the number of relevant items in the group. The metric
is undefined if `R` is 0.

Parameters come last, in brackets: `ndcg@10(gain=exponential)`, `f@5,10(beta=0.5)`, `rr(all)`. The
parameters of each metric are listed below. "Down" means that lower values are better. You can write
your own metric in five lines: see [own_metric.md](own_metric.md). The formulas that estimate the
value of a policy from logged impressions are in [logs.md](logs.md#estimators), and those for groups
of different users in [compare.md](compare.md#groups-of-different-users).

Separate names with spaces or commas: `"ndcg@10 recall@5,10"`, `"ndcg@10, recall@10"`. In Python you
can also pass a dict with the cut-offs of each name,
`{"ndcg": [5, 10], "recall": range(1, 11), "rr": None}`, in which None means the whole ranking.
Case, hyphens and underscores in names do not matter, and you can use a metric's [other
names](#other-names). Results use the names in the table below: `result.mean()["rr@10"]`, whether
you requested `MRR@10` or `rr@10`; `result["mrr@10"]` accepts either name.

| name | metric | formula | cut-off | range | better | source |
|---|---|---|---|---|---|---|
"""

OTHER_NAMES = """
## Other names

These are other common names for the metrics. Under a [convention](conventions.md), the names of its
library take precedence. Ambiguous names are refused: {unclear}.

| name | other names |
|---|---|
"""

PARAMETERS = """
## Parameters

Each parameter is shown with its values and its default. A parameter that has no values is switched
on by its name alone, as in `rr(all)`.

"""

FOLDED = """
<details>
<summary>Parameters that only exist to reproduce other libraries' numbers</summary>

You rarely need them yourself: a [convention](conventions.md) sets them.

{folded}
</details>
"""

RATINGS = """
## Predicted ratings

These metrics apply to `rm.Pairs(frame, score=..., rating=...)`. Each user has one value, which is
computed from the user's rows. With a threshold, a row is relevant if its true rating reaches the
threshold, and recommended if its predicted rating reaches it. The first k rows are those with the
highest predictions.

| name | metric | formula | cut-off | range | better | source |
|---|---|---|---|---|---|---|
"""

RATINGS_TAIL = """
`print(result)`, `result.mean()` and every table show the value over the rows of all users together,
except for rated_precision and rated_recall (fcp is computed over pairs of rows of the same user).
`result.mean("users")`, or the rule `average="users"`, gives the mean over users. Over rows,
log_loss and rated_roc_auc are the usual classification metrics, so the two rows of a pair in
rated_roc_auc may belong to different users.

A value is undefined if a prediction is NaN or infinite, if all true ratings are the same (r2,
explained_variance, fcp), if all rows or no rows are relevant (rated_roc_auc), if a prediction is
not a probability (log_loss), if nothing is recommended (rated_precision), or if nothing is relevant
(rated_recall). The other rules below do not apply to these metrics. A cut-off cannot exceed the
number of rows.
"""

LISTS = """
## The lists themselves

These metrics use the first k items of each list, relevant or not, and the data in the column
"needs". A `*` marks metrics that have one value for all users instead of one per user; their
intervals are computed by resampling the users. Under the rules `"expected"`, `"optimistic"` and
`"pessimistic"`, items with equal scores are listed in ascending order of their ids. In the
formulas, `users` are the training users, and `interactions` are the training rows.

| name | metric | formula | needs | range | better | source |
|---|---|---|---|---|---|---|
"""

LISTS_TAIL = """
A value is undefined if the list is empty, or if data that the metric needs are missing: a second
item (ild), a relevant item (epc, serendipity, alpha_ndcg, subtopic_recall), a category, the user's
history (miscalibration), the baseline's list, or the features of a listed item. Of the rules
below, 5, 6 and `min_candidates` do not apply to these metrics, and the rules about relevant items
apply only if the metric uses the test data. Some ranking metrics and some parameters need other
data:

{needs}

You pass these data to `evaluate` as follows:

{arguments}
"""

TAIL = """
## Equal scores

With the default rule `ties="expected"`, a value is the exact mean over all orders of the tied items
(McSherry & Najork 2008), which is a finite sum for every ranking metric. `pr_auc(rule=distinct)`
and `pr_auc(rule=trapezoid)` are exceptions: they treat a group of tied items as one step. [The
rules](rules.md) describe the other values of `ties`. With `"random"`, each user's order depends on
`seed` and the user's id.

## When a value is undefined

An undefined value is NaN. The result contains the reason for each user, and the mean is taken over
the other users. A value is undefined if:

1. there is no relevant item to find: the user has no relevant test items, or all of them are also
   training items;
2. there are fewer candidates than `min_candidates` or fewer relevant items than `min_positives`, or
   the user has no training item and `cold_start=False`;
3. the score of a candidate is NaN (unless `nan_scores="first"` or `"last"` ranks it) or infinite;
4. there are at least two candidates and all have the same score, whether they are test items or
   not (unless `constant_scores="ties"` treats them as one tie group);
5. there are at most `k` candidates, for metrics that do not depend on the order within the first
   `k` places ({order_free}), because every ranking would give the same value. With `rm.Pairs`,
   where you choose the candidates, the value is still defined, and a warning tells you if `k`
   exceeds every user's number of rows;
6. all candidates are relevant, for all metrics except ndcg;
7. there is no positive gain, or there is an infinite gain, for metrics that use gains (ndcg, dcg,
   err, and graded and weighted metrics). Negative gains count as 0; with
   `negative_gains="counted"`, dcg includes negative gains, and the best order leaves them out;
8. the number of candidates is unknown or 0, for metrics that depend on it ({needs_candidates}).

For [lists](lists.md), rules 4 to 6 apply only if the number of items is known (`catalogue=` or
`candidates=`), and rule 4 applies only to a list with scores that contains all candidates, because
an item that is not listed ranks below the listed items.

With `undefined=0` (or another number), these users get this value instead.

## Unknown users and items

If an item is both a training and a test item of a user, it is left out of the test data. A relevant
item that the source does not know still counts in `R`, and is a miss: roc_auc ranks it below all
candidates, mean_rank ranks it after them, percentile_rank counts it as 1, and for fallout, accuracy
and mcc it is not a candidate. A test user that the source does not know has only misses
(`users="known"` leaves such users out). The result states how often each of these cases occurs.
"""


def page() -> str:
    """Return the text of docs/metrics.md."""
    ranks, ratings = (
        "".join(
            f"| `{name}` | {d.title} | {d.formula} | {d.cutoff} | {d.lower:g} to {d.upper:g} "
            f"| {'up' if d.higher_is_better else 'down'} | {d.source} |\n"
            for name, d in reading(record).items()
        )
        for record in ("ranks", "ratings")
    )
    each, folded = (
        "".join(parameters(d, for_conventions=kind) for d in METRICS.values())
        for kind in (False, True)
    )
    tail = TAIL.replace("{order_free}", names("order_free"))
    tail = tail.replace("{needs_candidates}", names("needs_candidates"))
    lists = "".join(
        f"| `{name}@k`{' *' if d.over_users else ''} | {d.title} | {d.formula} | {needs(d)} "
        f"| {d.lower:g} to {d.upper:g} | {'up' if d.higher_is_better else 'down'} | {d.source} |\n"
        for name, d in ((name, d.with_parameters(())) for name, d in reading("lists").items())
    )
    lists = (
        LISTS
        + lists
        + LISTS_TAIL.replace("{needs}", other_needs()).replace("{arguments}", arguments())
    )
    return (
        HEAD
        + ranks
        + other_names()
        + PARAMETERS
        + each
        + FOLDED.replace("{folded}", folded)
        + RATINGS
        + ratings
        + RATINGS_TAIL
        + lists
        + tail
    )


def needs(definition: MetricDefinition) -> str:
    """List the side data that a metric reads."""
    return ", ".join(SIDE_DATA[side][0] for side in definition.side)


def arguments() -> str:
    """List the argument of each kind of side data."""
    return "\n".join(
        f"* {data}: {argument}" for data, argument, _ in SIDE_DATA.values() if argument != "test"
    )


def other_needs() -> str:
    """List the parameters that change what a metric reads."""
    lines = []
    for name, d in METRICS.items():
        if d.record == "ranks" and d.with_parameters(()).side:
            lines.append(f"* `{name}`: {needs(d.with_parameters(()))}")
        for parameter in d.parameters.values():
            for value in [*parameter.choices, *([True] if parameter.is_flag else [])]:
                changed = d.with_parameters([(parameter.name, value)])
                if changed.side != d.with_parameters(()).side:
                    data = needs(changed) or "nothing else"
                    lines.append(f"* `{name}({parameter.write(value)})`: {data}")
    return "\n".join(lines)


def other_names() -> str:
    """List other names of the metrics, and ambiguous names, which are refused."""
    unclear = "; ".join(
        f"`{name}` ({instead})"
        for d in METRICS.values()
        for name, instead in d.unclear_names.items()
    )
    rows = "".join(
        f"| `{name}` | {', '.join(f'`{other}`' for other in d.other_names)} |\n"
        for name, d in METRICS.items()
        if d.other_names
    )
    return OTHER_NAMES.replace("{unclear}", unclear) + rows


def names(attribute: str) -> str:
    """List the metrics that have this attribute."""
    return ", ".join(name for name, d in reading("ranks").items() if getattr(d, attribute))


def parameters(definition: MetricDefinition, *, for_conventions: bool) -> str:
    """Describe the parameters of a metric: those for conventions only, or the others."""
    text = ""
    for parameter in definition.parameters.values():
        if parameter.for_conventions != for_conventions:
            continue
        text += f"* `{definition.name}({parameter.describe()})`: {parameter.sentence}\n"
        for choice, meaning in parameter.choices.items():
            text += f"  * `{choice}`: {meaning}\n"
    return text


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(page(), encoding="utf-8")
