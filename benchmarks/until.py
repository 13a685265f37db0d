"""How many users a question needs, and what that saves.

Prints tables, and writes ``results/until.json``: for a model of MovieLens 1M (``--shared``), a
million values without a model, and a million users with factors that were fitted; and how often the
interval misses the mean of all users, over many orders in which they are read. Time is that of the
processor (time.process_time), so that it can be measured while others work.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _machine
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg
from _cases import Data, read_ml1m
from _table import markdown, number, seconds
from numpy.typing import NDArray

import recometer as rm
from recometer.evaluating.reading import read_until
from recometer.stats import ConfidenceSequence

RESULTS = Path(__file__).parent / "results" / "until.json"
METRIC = "ndcg@10"
WIDTHS = (0.02, 0.01, 0.005, 0.002, 0.001)
AT_A_SINGLE_LOOK = 1.96  # standard errors that an interval takes that is looked at once
Record = dict[str, Any]


def one_look(values: NDArray[np.float64], width: float) -> int:
    """Return how many of the users an interval needs whose number is fixed beforehand."""
    n = (AT_A_SINGLE_LOOK * values.std() / width) ** 2
    return int(np.ceil(1 / (1 / n + 1 / len(values))))


def needed(values: NDArray[np.float64], width: float, seed: int) -> tuple[int, bool]:
    """Return how many users are read in a random order, and whether the interval missed."""
    order = np.random.default_rng(seed).permutation(len(values))
    sequence, until = (
        ConfidenceSequence((0, 1), population=len(values), aim=width),
        rm.Until(f"{METRIC} ± {width:g}"),
    )
    n, reached = read_until(sequence, until, lambda one, other: values[order[one:other]])
    n = n if reached else len(values)
    mean = float(values.mean())
    return n, n < len(values) and mean not in sequence.interval


def by_width(name: str, values: NDArray[np.float64], orders: int) -> list[Record]:
    """Return a record for each width that is asked for."""
    records = []
    for width in WIDTHS:
        found = [needed(values, width, seed) for seed in range(orders)]
        read = statistics.median(n for n, _ in found)
        records.append(
            {
                "data": name,
                "n_users": len(values),
                "mean": float(values.mean()),
                "deviation": float(values.std()),
                "width": width,
                "orders": orders,
                "read": read,
                "one_look": one_look(values, width),
                "missed": sum(missed for _, missed in found),
            }
        )
        print(f"  {name}, ± {width:g}: {read:,.0f} of {len(values):,}", flush=True)
    return records


def missed_at_any_time(values: NDArray[np.float64], orders: int) -> float:
    """Return the share of orders in which the mean is outside after any user, stop or not."""
    mean, missed = float(values.mean()), 0
    for seed in range(orders):
        order = np.random.default_rng(10_000 + seed).permutation(len(values))
        sequence = ConfidenceSequence((0, 1), population=len(values), aim=0.005)
        sequence.add(values[order[:-1]])
        missed += sequence.p_value(mean) <= 0.05
    return missed / orders


def in_turns(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Return the processor's seconds of each call, one after the other, again and again."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            begin = time.process_time()
            call()
            spent[name].append(time.process_time() - begin)
    return spent


def timed(name: str, data: Data, widths: tuple[float, ...], options: argparse.Namespace) -> Record:
    """Time evaluations that stop against that of all users; and a comparison that decides."""
    source = rm.Factors(data.users, data.items)
    given: dict[str, Any] = {"train": data.train, "metrics": METRIC, "threads": options.threads}
    texts = [f"{METRIC} ± {width:g}" for width in widths]
    calls: dict[str, Callable[[], Any]] = {
        text or "all": functools.partial(rm.evaluate, source, data.test, until=text, **given)
        for text in (None, *texts)
    }
    spent = in_turns(calls, options.repeats)
    read = {text: calls[text]().users_read.n_read for text in texts}
    fewer = rm.Factors(data.users[:, :-4].copy(), data.items[:, :-4].copy())
    evaluator = rm.Evaluator(data.test, **given)
    models = {"all factors": source, "four fewer": fewer}
    both: dict[str, Callable[[], Any]] = {
        "compared, all": lambda: rm.compare(models, evaluator=evaluator),
        "decided": lambda: rm.compare(models, evaluator=evaluator, until="decided"),
    }
    spent |= in_turns(both, options.repeats)
    found = both["decided"]()
    read["decided"] = found.models[0].first.users_read.n_read
    n_users = found.models[0].first.users_read.n_users
    return {"data": name, "n_users": n_users, "read": read, "seconds": spent}


def million(seed: int, n_users: int, n_items: int, n_factors: int) -> Data:
    """Return factors that were fitted to users who like three of a hundred kinds of items.

    25 items of each user are drawn: from the kinds that the user likes, the popular ones more
    often. Five of them, drawn at random, are test; the factors are a truncated singular value
    decomposition of the others.
    """
    generator = np.random.default_rng(seed)
    n_kinds, n_drawn, n_test = 100, 25, 5
    size = n_items // n_kinds
    kinds = generator.integers(n_kinds, size=(n_users, 3))
    kind = np.take_along_axis(kinds, generator.integers(3, size=(n_users, n_drawn)), axis=1)
    share = np.cumsum(1 / np.arange(1, size + 1))
    place = np.searchsorted(share / share[-1], generator.random((n_users, n_drawn)))
    item = kind * size + place
    user = np.repeat(np.arange(n_users), n_drawn)
    is_test = np.tile(np.arange(n_drawn) < n_test, n_users)
    shape = (n_users, n_items)
    train, test = (
        sp.csr_matrix(
            (np.ones(np.count_nonzero(which), np.float32), (user[which], item.ravel()[which])),
            shape,
        )
        for which in (~is_test, is_test)
    )
    for one in (train, test):
        one.sum_duplicates()
        one.data[:] = 1
    test = sp.csr_matrix(test - test.multiply(train))
    test.eliminate_zeros()
    svds: Any = scipy.sparse.linalg.svds
    left, values, right = svds(train, k=n_factors, tol=1e-2, random_state=seed)
    best_first = np.argsort(-values)
    users = np.ascontiguousarray((left * values)[:, best_first])
    return Data(users, np.ascontiguousarray(right.T[:, best_first]), train, test)


def table_of_widths(records: list[Record]) -> str:
    """Return the records of `by_width` as a Markdown table."""
    lines = [
        [
            one["data"],
            f"{one['n_users']:,}",
            f"± {one['width']:g}",
            f"{one['read']:,.0f}",
            f"{one['read'] / one['n_users']:.1%}",
            f"{one['one_look']:,}",
            f"{one['missed']} of {one['orders']}",
        ]
        for one in records
    ]
    headers = ["data", "users", METRIC, "read", "share", "at a single look", "interval missed"]
    return markdown(headers, lines)


def table_of_times(records: list[Record]) -> str:
    """Return the records of `timed` as a Markdown table."""
    lines = []
    for one in records:
        for text, read in one["read"].items():
            whole = "compared, all" if text == "decided" else "all"
            spent = {name: one["seconds"][name] for name in (text, whole)}
            ratios = [a / b for a, b in zip(spent[text], spent[whole], strict=True)]
            lines.append(
                [
                    one["data"],
                    text,
                    f"{read:,} of {one['n_users']:,}",
                    seconds(statistics.median(spent[text])),
                    seconds(statistics.median(spent[whole])),
                    number(statistics.median(ratios)),
                ]
            )
    headers = ["data", "until", "users read", "processor time", "of all users", "ratio"]
    return markdown(headers, lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--factors", type=int, default=32)
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    widths: list[Record] = []
    times: list[Record] = []
    at_any_time: dict[str, float] = {}
    movies = read_ml1m(options.shared)
    if movies is not None:
        source = rm.Factors(movies.users, movies.items)
        result = rm.evaluate(source, movies.test, train=movies.train, metrics=METRIC)
        values = result[METRIC][~np.isnan(result[METRIC])]
        widths += by_width("ml1m_als", values, options.orders)
        at_any_time["ml1m_als"] = missed_at_any_time(values, 5 * options.orders)
        times.append(timed("ml1m_als", movies, (0.01, 0.005), options))
    generator = np.random.default_rng(0)
    some = np.where(generator.random(options.users) < 0.4, generator.beta(1, 3, options.users), 0)
    widths += by_width("values", some, max(10, options.orders // 4))
    first = some[:100_000]
    at_any_time["values, the first 100,000"] = missed_at_any_time(first, 5 * options.orders)
    data = million(1, options.users, options.items, options.factors)
    times.append(timed("fitted factors", data, (0.01, 0.005, 0.002), options))
    print(table_of_widths(widths))
    print()
    print(table_of_times(times))
    print()
    for name, share in at_any_time.items():
        print(f"{name}: the mean is outside after any user in {share:.1%} of orders")
    record: Record = {"machine": _machine.describe(), "widths": widths, "times": times}
    record["missed_at_any_time"] = at_any_time
    RESULTS.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
