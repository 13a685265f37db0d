"""Write docs/metrics.md from the registry of metrics: python docs/write_metrics.py."""

from pathlib import Path

from recometer.metrics import METRICS, MetricDefinition, reading
from recometer.metrics.registry import SIDE_DATA

HEAD = """# Metrics

For one user let the candidates be the items that were ranked (the catalogue, less the user's
training items), `n` their number, and `R` the number of relevant items: those of test whose value
is not 0, or at least `relevant_from` where that is given. `rel(j)` is 1 if the item at rank `j` is
relevant, otherwise 0; `hits(k)` the sum of the first `k` of these; `gain(j)` the value in test of
the item at rank `j`. Ranks start at 1.

A name with `@k` takes a cut-off: `recall@10`, several at once `recall@5,10,50`, or all from 1 on
`ndcg@1..10`. "Optional": without a cut-off the whole ranking is read.

Parameters come last, in brackets: `ndcg@10(gain=exponential)`, `f@5,10(beta=0.5)`, `rr(all)`;
those of each metric are listed below. "Down": lower values are better. A metric of your own takes
five lines: see [own_metric.md](own_metric.md).

Between names stand spaces or commas: `"ndcg@10 recall@5,10"`, `"ndcg@10, recall@10"`. In Python a
dict may have the cut-offs of each name, `{"ndcg": [5, 10], "recall": range(1, 11), "rr": None}`,
where None stands for the whole ranking. Case, hyphens and underscores in names do not matter, and
[other names](#other-names) of a metric are read, too. Results have the names of this table:
`result.mean()["rr@10"]`, whether `MRR@10` or `rr@10` was asked for; `result["mrr@10"]`
finds it by either.

| name | metric | formula | cut-off | range | better | source |
|---|---|---|---|---|---|---|
"""

OTHER_NAMES = """
## Other names

What others call these metrics. Under a [convention](conventions.md) the names of its library come
first. A name that stands for different things is refused: {unclear}.

| name | other names |
|---|---|
"""

PARAMETERS = """
## Parameters

The first name is the default.

"""

RATINGS = """
## Predicted ratings

`rm.Pairs(frame, score=..., rating=...)` and Surprise's predictions give one value per user, from
the user's rows. With a threshold a row is relevant if its true rating reaches it, and recommended
if its predicted rating does; the first k are the best predicted ones.

| name | metric | formula | cut-off | range | better | source |
|---|---|---|---|---|---|---|
"""

RATINGS_TAIL = """
`print(result)` and `result.mean()` have the value over the rows of all users together (all but
rated_precision and rated_recall; of fcp, over the pairs of each user's rows), as every table has
it; the mean over users is `result.mean("users")`, or the rule `average="users"`. Over rows,
log_loss and rated_roc_auc are those of classification: pairs of the ROC curve may be of different
users.

A value is undefined where a prediction is NaN or infinite, where all true ratings are the same (r2,
explained_variance, fcp), where rows are relevant all or none (rated_roc_auc), where a prediction is
no probability (log_loss), where nothing is recommended (rated_precision) or nothing relevant
(rated_recall). Other rules below do not hold for them. Cut-offs reach up to the number of rows.
"""

LISTS = """
## The lists themselves

These read the first k items of each list, whatever test says of them, and what stands under
"needs". One value for all users instead of one per user: `*`; its interval comes from resampling
the users. Where scores are equal, the lower ids are listed first (rules `"expected"`,
`"optimistic"` and `"pessimistic"`). `users` are those of train, `interactions` its rows.

| name | metric | formula | needs | range | better | source |
|---|---|---|---|---|---|---|
"""

LISTS_TAIL = """
A value is undefined where the list is empty, and where what it is about is missing: a second item
(ild), a relevant item (epc, serendipity, alpha_ndcg, subtopic_recall), a category, the user's
history (miscalibration), the baseline's list, or the features of a listed item. Of the rules below
`min_candidates`, 5 and 6 do not hold for them, and those about relevant items only where a metric
reads test. Other metrics and parameters need other data:

{needs}

How `evaluate` is given them:

{arguments}
"""

NEEDS = {
    "train": "`train=`",
    "test": "test",
    "baseline": "`baseline=`",
    "catalogue": "`catalogue=`, or a source that knows its items",
    "categories": "categories of the `Catalogue`",
    "features": "features of the `Catalogue`",
    "propensity": "propensities of the `Catalogue`",
}

TAIL = """
## Equal scores

With the default rule `ties="expected"` a value is its exact mean over all orders of the tied
items (McSherry & Najork 2008), a finite sum for every metric of rankings (only
`pr_auc(rule=distinct)` and `pr_auc(rule=trapezoid)` take a group of tied items as one step
instead). The other rules:
`"optimistic"`, `"pessimistic"`, `"random"` (drawn per user from `seed` and the user's id), `"item"`
(lower id first), `"item_desc"`, and for lists `"input"` (as given).

## When a value is undefined

It is NaN, with the reason kept per user, and the mean is over the other users:

1. there is no relevant item to find: none in test, or only such as train excludes;
2. fewer candidates than `min_candidates`, fewer relevant items than `min_positives`, or no
   training item and `cold_start=False`;
3. a candidate's score is NaN (`nan_scores="first"` or `"last"` rank it instead) or infinite;
4. all candidates have the same score (`constant_scores="ties"` takes them as one tie group);
5. there are no more candidates than `k`, for metrics that the order within the first `k` places
   does not change ({order_free}): every ranking
   would give the same value. Not so for `rm.Pairs`, whose candidates were given: there a `k` above
   the number of rows is an error;
6. all candidates are relevant, for all metrics but ndcg;
7. metrics of gains (ndcg, dcg, err, graded and weighted ones): no positive gain, or an infinite
   one. Negative gains count in dcg as they are, and are left out of the best order; elsewhere
   they count as 0;
8. {needs_candidates}: the number of candidates is unknown,
   or there is none.

For [lists](lists.md), rules 4 to 6 need to know how many items there were (`catalogue=`).

`undefined=0` (or another number) counts such users with that value instead.

## Strangers

An item in train and test of the same user is left out of test. A relevant item that the source
does not know stays in `R` and is a miss; in roc_auc it lies below all candidates, in mean_rank it
follows them, in percentile_rank it counts 1, and for fallout, accuracy and mcc it is not a
candidate. A user of test
that the source does not know has misses only (`users="known"` leaves such users out). Each is
counted in the result.
"""


def page() -> str:
    """Return the page."""
    ranks, ratings = (
        "".join(
            f"| `{name}` | {d.title} | {d.formula} | {d.cutoff} | {d.lower:g} to {d.upper:g} "
            f"| {'up' if d.higher_is_better else 'down'} | {d.source} |\n"
            for name, d in reading(record).items()
        )
        for record in ("ranks", "ratings")
    )
    each = "".join(map(parameters, METRICS.values()))
    tail = TAIL.replace("{order_free}", names("order_free"))
    tail = tail.replace("{needs_candidates}", names("needs_candidates"))
    lists = "".join(
        f"| `{name}@k`{' *' if d.over_users else ''} | {d.title} | {d.formula} | {needs(d)} "
        f"| {d.lower:g} to {d.upper:g} | {'up' if d.higher_is_better else 'down'} | {d.source} |\n"
        for name, d in ((name, d.given(())) for name, d in reading("lists").items())
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
        + RATINGS
        + ratings
        + RATINGS_TAIL
        + lists
        + tail
    )


def needs(definition: MetricDefinition) -> str:
    """List what a metric reads beside its record."""
    return ", ".join(SIDE_DATA[side][0] for side in definition.side)


def arguments() -> str:
    """List how side data are given."""
    return "\n".join(
        f"* {what}: {argument}" for what, argument in SIDE_DATA.values() if what != argument
    )


def other_needs() -> str:
    """List the parameters that change what a metric reads."""
    lines = []
    for name, d in METRICS.items():
        if d.record == "ranks" and d.given(()).side:
            lines.append(f"* `{name}`: {needs(d.given(()))}")
        for parameter in d.parameters.values():
            for value in [*parameter.choices, *([True] if parameter.is_flag else [])]:
                given = d.given([(parameter.name, value)])
                if given.side != d.given(()).side:
                    read = needs(given) or "nothing else"
                    lines.append(f"* `{name}({parameter.write(value)})`: {read}")
    return "\n".join(lines)


def other_names() -> str:
    """List what others call the metrics, and the names that are refused."""
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
    """List the metrics of which something is stated."""
    return ", ".join(name for name, d in reading("ranks").items() if getattr(d, attribute))


def parameters(definition: MetricDefinition) -> str:
    """Describe the parameters of a metric."""
    text = ""
    for parameter in definition.parameters.values():
        text += f"* `{definition.name}({parameter.describe()})`: {parameter.sentence}\n"
        for choice, meaning in parameter.choices.items():
            text += f"  * `{choice}`: {meaning}\n"
    return text


if __name__ == "__main__":
    (Path(__file__).parent / "metrics.md").write_text(page(), encoding="utf-8")
