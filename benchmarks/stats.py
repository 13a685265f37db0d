"""Measure whether intervals and tests have their nominal error rates, and how fast they are.

Users are drawn with replacement from two data sets, so the means of the data sets are the true
means. The script prints tables and writes ``results/stats.json``. (The name is not statistics.py
because benchmarks import the standard library module of that name.)
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import math
import multiprocessing
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import _cases
import _machine
import numpy as np
import numpy.typing as npt
from _printing import printing
from _stats_tables import tables
from _table import HEADERS, Measure, markdown, seconds
from _timing import side_by_side
from threadpoolctl import threadpool_limits

import recometer as rm
from recometer import stats, tasks
from recometer.stats.comparing import difference_interval
from recometer.stats.grouping import group
from recometer.stats.means import student
from recometer.stats.planning import power_of, unit_of

HERE = Path(__file__).parent
Float64 = npt.NDArray[np.float64]
Bounds = tuple[float, float]

SIZES = (10, 20, 50, 200, 1_000, 5_000)
METRICS = ("ndcg@10", "hit@10", "recall@10", "rr", "dcg@10")
LEAST, LEVEL = 0.94, 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class Population:
    """The values of one metric for the users of two models; their means are the true means."""

    name: str
    first: Float64
    second: Float64
    bounds: Bounds


def populations(shared: Path) -> list[Population]:
    """Return populations from MovieLens 1M, if available, and from recometer's own data."""
    result = []
    for name, first, second in itertools.chain(_movies(shared), _visits()):
        for metric in METRICS:
            columns = first[metric], second[metric]
            defined = ~(np.isnan(columns[0]) | np.isnan(columns[1]))
            first_values, second_values = (column[defined] for column in columns)
            result.append(
                Population(f"{name} {metric}", first_values, second_values, first.bounds(metric))
            )
    return result


def _movies(shared: Path) -> Iterator[tuple[str, rm.Evaluation, rm.Evaluation]]:
    data = _cases.read_ml1m(shared)
    if data is None:
        print(f"There is no data/ml1m_als in {shared}: MovieLens is skipped.")
        return
    source = rm.Factors(data.users, data.items)
    yield "ml1m", *_evaluated(source, data.train, data.test)


def _visits() -> Iterator[tuple[str, rm.Evaluation, rm.Evaluation]]:
    from recometer.datasets import msweb
    from recometer.split import Fraction, split

    parts = split(msweb(), Fraction(0.3), seed=0)
    train, test = parts.train, parts.test
    yield "msweb", *_evaluated(rm.baselines.item_knn(train), train, test)


def _evaluated(source: Any, train: Any, test: Any) -> tuple[rm.Evaluation, rm.Evaluation]:
    metrics = list(METRICS)
    popular = rm.baselines.most_popular(train)
    return (
        rm.evaluate(source, test, train=train, metrics=metrics),
        rm.evaluate(popular, test, train=train, metrics=metrics),
    )


def _generator(population: Population, *numbers: int) -> np.random.Generator:
    """Return a random generator that is unique to a population and some numbers."""
    return np.random.default_rng([zlib.crc32(population.name.encode()), *numbers])


def _drawn(
    population: Population, n: int, repeats: int
) -> Iterator[tuple[Float64, Float64, np.random.Generator]]:
    generator = _generator(population, n)
    for _ in range(repeats):
        users = generator.integers(len(population.first), size=n)
        yield population.first[users], population.second[users], generator


def coverage(population: Population, n: int, repeats: int) -> list[dict[str, Any]]:
    """Return how often the default interval and Student's t cover the mean and the difference."""
    first, second, bounds = population.first, population.second, population.bounds
    truths = {"mean": first.mean(), "difference": (first - second).mean()}
    outcomes: dict[str, list[tuple[bool, float, bool, float, bool]]] = {name: [] for name in truths}
    for x, y, _ in _drawn(population, n, repeats):
        values, differences = group(x), group(x - y)
        test = stats.randomisation(differences)
        of_difference = functools.partial(difference_interval, differences, test)
        of_mean = functools.partial(stats.interval, values)
        intervals = {
            "mean": (of_mean(bounds=bounds), of_mean(), of_mean("t")),
            "difference": (
                of_difference(bounds, 0.95),
                of_difference(None, 0.95),
                student(differences, 0.95),
            ),
        }
        for name, (usual, without, by_t) in intervals.items():
            truth = truths[name]
            outcomes[name].append(
                (truth in usual, usual.width, truth in by_t, by_t.width, truth in without)
            )
    lines = []
    for name, rows in outcomes.items():
        covered, width, by_student, student_width, without_range = np.mean(rows, axis=0).tolist()
        lines.append(
            {
                "population": population.name,
                "of": name,
                "n": n,
                "covered": covered,
                "student": by_student,
                "without range": without_range,
                "width": width / student_width if student_width else math.nan,
            }
        )
    return lines


def errors(population: Population, n: int, repeats: int) -> dict[str, Any]:
    """Return each test's rejection rate when the two models of each user are swapped at random.

    Also return the attainable rate. In tests that count users (sign; randomisation of hits), p is
    discrete, and its largest value up to 0.05 is below 0.05.
    """
    tests: dict[str, Callable[[Any], stats.TestResult]] = {
        "randomisation": stats.randomisation,
        "t": stats.paired_t,
        "wilcoxon": stats.wilcoxon,
        "sign": stats.sign,
    }
    rejected: dict[str, list[bool]] = {name: [] for name in tests}
    n_differ = []
    for x, y, generator in _drawn(population, n, repeats):
        differences = (x - y) * generator.choice([-1.0, 1.0], n)
        grouped = group(differences)
        for name, test in tests.items():
            result = test(differences if name == "wilcoxon" else grouped)
            rejected[name].append(bool(result.p_value <= LEVEL))
        n_differ.append(grouped.n_above + grouped.n_below)
    return {
        "population": population.name,
        "n": n,
        "differ": float(np.mean(n_differ)),
        **{name: float(np.mean(rejections)) for name, rejections in rejected.items()},
        "sign could": float(np.mean([_attainable(rejections) for rejections in n_differ])),
    }


@functools.cache
def _attainable(n_differ: int) -> float:
    """Return the probability that a sign test of this many users has p of at most 0.05."""
    from scipy.special import bdtr

    p = 2 * bdtr(np.arange(n_differ // 2 + 1), n_differ, 0.5)
    return float(p[p <= LEVEL].max(initial=0.0))


def powers(population: Population, n: int, repeats: int) -> list[dict[str, Any]]:
    """Return how often the randomisation test rejects when it should, and the predicted rate.

    The models of some users are swapped at random so that about half of the samples reject (the
    mean difference is 2 standard errors), or all users' differences are shifted by as much.
    """
    differences = population.first - population.second
    unit = unit_of(differences)
    rows: list[dict[str, Any]] = []
    for how in ("swapped", "shifted"):
        generator = _generator(population, n, len(rows))
        if how == "shifted":
            deviation = float(differences.std())
            effect = 2 * deviation / math.sqrt(n)
            values, swapped = differences - differences.mean() + effect, 0.0
        else:
            squares, mean = float((differences**2).mean()), abs(float(differences.mean()))
            effect = min(mean, math.sqrt(4 * squares / (n + 4)))
            deviation = math.sqrt(squares - effect**2)
            values, swapped = differences, (1 - effect / mean) / 2
        rejected = []
        for _ in range(repeats):
            signs = np.where(generator.random(n) < swapped, -1.0, 1.0)
            sample = generator.choice(values, n) * signs
            rejected.append(stats.randomisation(sample).p_value <= LEVEL)
        # After a shift, the differences are no longer multiples of a unit.
        step = unit if how == "swapped" else 0.0
        rows.append(
            {
                "population": population.name,
                "n": n,
                "how": how,
                "differ": float(np.mean(differences != 0)) * n,
                "power": float(np.mean(rejected)),
                "predicted": power_of(effect, deviation, n, unit=step),
                "predicted by t": power_of(effect, deviation, n),
            }
        )
    return rows


def _each(
    call: Callable[..., Any], tasks: Iterable[tuple[Any, ...]], workers: ProcessPoolExecutor
) -> list[Any]:
    """Return a function's results for all tasks, computed in separate processes."""
    start, results = time.perf_counter(), list(workers.map(call, *zip(*tasks, strict=True)))
    duration = time.perf_counter() - start
    print(
        f"{call.__name__}: {len(results)} settings in {duration:.0f} s", file=sys.stderr, flush=True
    )
    return results


def quality(options: argparse.Namespace) -> tuple[dict[str, Any], list[Measure]]:
    """Return coverage, errors and power, and their targets."""
    data, sizes = populations(options.shared), (20, 200) if options.quick else SIZES
    repeats = 60 if options.quick else options.repeats
    cells = [(population, n, repeats) for population, n in itertools.product(data, sizes)]
    large = [cell for cell in cells if cell[1] >= 50]
    # Samples are too small for numerical libraries to parallelise.
    spawned = multiprocessing.get_context("spawn")
    with (
        threadpool_limits(1),
        ProcessPoolExecutor(options.threads, spawned, threadpool_limits, (1,)) as workers,
    ):
        covered = list(itertools.chain(*_each(coverage, cells, workers)))
        wrong = _each(errors, large, workers)
        power_rows = list(itertools.chain(*_each(powers, large, workers)))
    table = [
        *_of_intervals(covered, repeats),
        *_of_power(power_rows, repeats),
        *_of_tests(wrong, repeats),
    ]
    if options.quick:  # too few samples to conclude anything
        table = [dataclasses.replace(measure, target=None) for measure in table]
    return {"coverage": covered, "errors": wrong, "power": power_rows}, table


def noise(chance: float, repeats: int) -> float:
    """Return two standard errors of a share."""
    return 2 * math.sqrt(chance * (1 - chance) / repeats)


def _of_intervals(covered: list[dict[str, Any]], repeats: int) -> list[Measure]:
    return [
        Measure(
            f"smallest coverage of the default interval, {len(covered)} settings",
            "",
            f"Student's t: {min(row['student'] for row in covered):.2f}",
            min(row["covered"] for row in covered),
            round(LEAST - noise(LEAST, repeats), 3),
        )
    ]


def _of_power(rows: list[dict[str, Any]], repeats: int) -> list[Measure]:
    def largest_error(by: str) -> float:
        return max(abs(float(row["power"]) - float(row[by])) for row in rows)

    return [
        Measure(
            f"largest error of the predicted power, {len(rows)} settings",
            "",
            f"by t alone: {largest_error('predicted by t'):.3f}",
            largest_error("predicted"),
            round(0.05 + noise(0.5, repeats), 3),
            True,
        )
    ]


def _of_tests(wrong: list[dict[str, Any]], repeats: int) -> list[Measure]:
    allowed, table = noise(LEVEL, repeats), []
    hits = [row for row in wrong if "hit" in row["population"]]
    # With few differing users, exact tests cannot reject in exactly 5 of 100 cases.
    usual = [row for row in wrong if row["differ"] >= 30 and row not in hits]
    for name in ("randomisation", "t", "wilcoxon", "sign"):
        label = f"type I error of {name}: most"
        highest = max(row[name] for row in wrong)
        table.append(Measure(label, "", "", highest, round(0.06 + allowed, 3), True))
        if name == "sign":
            continue
        label = f"type I error of {name}, at least 30 users differ, without hit: least"
        lowest = min(row[name] for row in usual)
        table.append(Measure(label, "", "", lowest, round(0.04 - allowed, 3)))
    for name, rows in (("sign", wrong), ("randomisation", hits)):
        test = f"{name} of hits" if rows is hits else name
        label = f"type I error of {test}: largest difference from the attainable rate"
        largest_difference = max(abs(row[name] - row["sign could"]) for row in rows)
        table.append(Measure(label, "", "", largest_difference, round(0.01 + allowed, 3), True))
    return table


def columns(n_users: int, n: int, seed: int = 0) -> list[Float64]:
    """Return models' values between 0 and 1; four in ten of them are above 0."""
    generator = np.random.default_rng(seed)
    common, positive = generator.random(n_users), generator.random(n_users) < 0.4
    arrays = []
    for _ in range(n):
        values = generator.random(n_users)
        values += common
        values *= 0.5
        values *= positive
        arrays.append(values)
    return arrays


def speed(options: argparse.Namespace) -> tuple[dict[str, Any], list[Measure]]:
    """Return the time of a test of 100,000 users, compared with SciPy, and of many tests."""
    from scipy.stats import permutation_test

    n = 2_000 if options.quick else 100_000
    x, y = columns(n, 2)
    differences = x - y

    def resampled() -> object:
        return permutation_test(
            (differences,),
            lambda sample, axis: sample.mean(axis=axis),
            vectorized=True,
            permutation_type="samples",
            n_resamples=10_000,
            batch=100,
            rng=np.random.default_rng(0),
        )

    (theirs,) = side_by_side({"scipy": resampled}, 1, warm_up=False, wait=options.wait).values()
    (ours,) = side_by_side(
        {"ours": lambda: stats.randomisation(differences)}, 5, wait=options.wait
    ).values()
    times: dict[str, Any] = {"scipy": theirs.seconds, "ours": ours.seconds}
    table = [
        Measure(
            f"paired test of {n:,} users: SciPy's permutation_test, 10,000 resamples",
            seconds(ours.median),
            seconds(theirs.median),
            theirs.median / ours.median,
            100,
        )
    ]
    n = 10_000 if options.quick else 1_000_000
    for case, label, bound in (
        ("columns", f"intervals of 255 columns x {n:,} users (s)", 10.0),
        ("pairs", f"10 models x 30 metrics x {n:,} users: intervals and all tests (s)", 30.0),
    ):
        command = [sys.executable, __file__, "--child", case, str(n), str(options.threads)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        times[case] = parsed = json.loads(output)
        duration = parsed["seconds"]
        table.append(Measure(label, seconds(duration), "", duration, bound, True))
        if case == "pairs":
            memory = parsed["GB"]
            label = "the same: memory of the process, with its 2.4 GB of values (GB)"
            table.append(Measure(label, f"{memory:.2f} GB", "", memory, 3.0, True))
    return times, table


def child(case: str, n: int, threads: int) -> None:
    """Time many intervals, or all comparisons of ten models, in a separate process."""
    unit = (0.0, 1.0)
    tables = [columns(n, 255)] if case == "columns" else [columns(n, 10, m) for m in range(30)]
    start = time.perf_counter()
    for table in tables:
        tasks.run_tasks(
            lambda values, _: stats.interval(values, bounds=unit),
            table,
            threads=threads,
            progress=False,
        )
        if case == "pairs":
            pairs = list(itertools.combinations(table, 2))
            tasks.run_tasks(
                lambda pair, _: stats.compare(*pair, bounds=unit),
                pairs,
                threads=threads,
                progress=False,
            )
    duration = time.perf_counter() - start
    lines = Path("/proc/self/status").read_text().splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    print(json.dumps({"seconds": duration, "GB": int(kilobytes) * 1024 / 1e9}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="use tiny sizes, to check that it runs"
    )
    parser.add_argument("--repeats", type=int, default=2_000, help="samples per setting")
    parser.add_argument(
        "--only", choices=("quality", "speed", "printing"), help="run only one part"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--wait", type=float, default=30.0, help="seconds to wait for other processes to be quiet"
    )
    parser.add_argument("--shared", type=Path, default=HERE.parents[1] / "shared")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        case, n, threads = options.child
        return child(case, int(n), int(threads))
    path = HERE / "results" / "stats.json"
    results: dict[str, Any] = {"machine": _machine.describe()}
    if options.only and path.exists():
        results = json.loads(path.read_text(encoding="utf-8")) | results
    parts = {"quality": quality, "speed": speed, "printing": printing}
    table = []
    for name, part in parts.items():
        if options.only in (None, name):
            results[name], lines = part(options)
            table += lines
            results[f"{name} options"] = {
                key: str(value) for key, value in vars(options).items() if key != "child"
            }
            if name == "quality":
                print(tables(results[name]), end="\n\n")
    print(markdown(HEADERS, [measure.cells() for measure in table]))
    if not options.quick:
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return None


if __name__ == "__main__":
    main()
