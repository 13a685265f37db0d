"""The command ``recometer demo``, which evaluates simple models on example data or on a file."""

from __future__ import annotations

import contextlib
import sys
from time import perf_counter
from typing import Annotated

import numpy as np
import typer

from recometer import baselines
from recometer.cli import _options as options
from recometer.cli._inputs import Inputs
from recometer.cli._messages import say, usage_of
from recometer.cli._models import fit_baseline
from recometer.cli._results import check_page
from recometer.comparison import compare
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions
from recometer.data.pipes import StandardInput
from recometer.data.times import values_in_words
from recometer.datasets import MSWEB_ATTRIBUTION, msweb, msweb_items
from recometer.errors import InputError, quantity
from recometer.evaluation import Evaluation, evaluate
from recometer.leaderboard import Leaderboard
from recometer.metrics.names import parse
from recometer.rendering import output, wrapped
from recometer.sources.base import Source
from recometer.split.choices import Fraction, LastFraction, What
from recometer.split.splitting import split
from recometer.tasks import resolve_threads

DEFAULT_METRICS = "ndcg@10 recall@10 roc_auc"
REPORT_METRICS = "ndcg@10 recall@1..10 hit@10 roc_auc coverage@10 novelty@10"
TITLES = {
    "random": "random",
    "popular": "most popular",
    "knn": "item-kNN",
    "svd": "truncated SVD",
    "ease": "EASE",
}
"""The names of the models in the demo, keyed by their names in `recometer.baselines`."""

Metrics = Annotated[
    list[str] | None,
    options.metrics_option(
        "Metrics, for instance ndcg@5,10 recall@1..10 roc_auc",
        f"{DEFAULT_METRICS}; with --report {REPORT_METRICS}",
    ),
]
SHARE = 0.25  # the share of each user's interactions that is held out for testing


def demo(
    data: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="CSV, TSV or Parquet file with a row per interaction. The default is the "
            "Microsoft Web data that come with recometer.",
            show_default=False,
        ),
    ] = None,
    user: options.User = None,
    item: options.Item = None,
    value: options.Value = None,
    time: options.Time = None,
    metric: Metrics = None,
    seed: options.Seed = 0,
    form: options.Form = "table",
    report: options.ReportPath = None,
    threads: options.Threads = None,
) -> None:
    """Evaluate simple models on real data, and print a leaderboard.

    The data are split into training and test data. Simple models are fitted to the training data,
    and each ranks the whole catalogue for every user. The columns of FILE are found by their common
    names (user_id, movieId, rating, timestamp, ...) unless you name them.
    """
    metrics = " ".join(metric or [DEFAULT_METRICS if report is None else REPORT_METRICS])
    with usage_of("--metrics"):
        parsed = parse(metrics)  # reject unknown names before any model is fitted
    if report is not None:
        check_page(report, "--report", [] if data is None else [data])
    threads = resolve_threads(threads)
    columns = {"user": user, "item": item, "value": value, "time": time}
    passed = [f"--{option}" for option, name in columns.items() if name is not None]
    if data is None and passed:
        raise typer.BadParameter("it also needs the option --data.", param_hint=", ".join(passed))
    # Formats other than tables are for programs, so print everything else to standard error.
    with contextlib.redirect_stdout(sys.stdout if form == "table" else sys.stderr):
        if data is None:
            say("Data     ", MSWEB_ATTRIBUTION)
        interactions = msweb() if data is None else _read(data, columns)
        values = ""
        if interactions.values is not None:
            values = f", {values_in_words(*interactions.value_range)}"
        n_rows, users = len(interactions), quantity(interactions.n_users, "user")
        items = quantity(interactions.n_items, "item")
        say("         ", f"{quantity(n_rows, 'interaction')} of {users} with {items}{values}")
        train, test = _split(interactions, seed)
        say(
            "Ranking  ",
            f"for each user, all {quantity(train.n_items, 'item')} except the user's training "
            "items",
        )
        say(
            "Models   ",
            "item-kNN and EASE as in recometer.baselines, truncated SVD with items of equal norm",
        )
        results: dict[str, Evaluation] = {}
        sources: dict[str, Source] = {}
        seconds, left_out = {}, []
        for name, model in TITLES.items():
            begin = perf_counter()
            try:
                source: Source
                if name == "svd":  # scale items to equal norm, because histories are short
                    source = baselines.truncated_svd(train, normalise=True, seed=seed)
                else:
                    source = fit_baseline(name, train, seed, None)
            except InputError as error:
                if name != "ease":
                    raise
                # Leave out the hint, because it names an argument that the demo does not have.
                left_out.append(f"Left out: {model}. {error.reason}")
                continue
            fitted = perf_counter()
            sources[model] = source
            results[model] = evaluate(
                source, test, train=train, metrics=metrics, seed=seed, threads=threads
            )
            seconds[model] = {"fit": fitted - begin, "evaluate": perf_counter() - fitted}
        typer.echo()
    output(Leaderboard(results, seconds), form)
    for line in left_out:
        typer.echo(wrapped(line), err=form != "table")
    if report is not None:
        versus = compare(results, primary=str(parsed[0]), threads=threads)
        titles = Catalogue(msweb_items()) if data is None else None
        versus.report(
            report,
            title="The demo: simple models",
            lists=sources,
            test=test,
            train=train,
            catalogue=titles,
            threads=threads,
        )
        typer.echo(f"written: {report}", err=form != "table")


def _read(path: str, columns: dict[str, str | None]) -> Interactions:
    def note(text: str) -> None:
        text = text.removeprefix("data: ").replace(f"{path} (", f"{path} (columns: ", 1)
        say("Data     ", text)

    with StandardInput(None) as stdin:
        inputs = Inputs(stdin, columns, note)
        inputs.check_columns([path])
        interactions = inputs.interactions("data", path, value=True, time=True)
    if interactions.values is not None and not interactions.values.any():
        raise InputError(
            f"All values in {path} are 0, so nothing is relevant. Hint: name another column with "
            "--value, or count every row with --value none."
        )
    return interactions


def _split(interactions: Interactions, seed: int) -> tuple[Interactions, Interactions]:
    share = f"{SHARE:.0%} of each user's interactions"
    what: What = LastFraction(SHARE)
    rule = f"the last {share} by time"
    if interactions.times is None:
        what, rule = Fraction(SHARE), f"a random {share} (seed {seed})"
    parts = split(interactions, what, min_test=0, seed=seed)
    train, test = parts.train, parts.test
    if not len(test):
        largest = int(np.diff(interactions.indptr).max())
        raise InputError(
            f"No interaction is left to test on: no user has more than {largest}, and {SHARE:.0%} "
            "of that rounds to 0. Hint: check that --user names the column of users."
        )
    say("Split    ", f"test: {rule}, {len(test):,}; train: the remaining {len(train):,}")
    return train, test
