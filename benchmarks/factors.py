"""The speed of evaluating factors, compared with other libraries in the same run.

The script prints a table and writes ``results/factors.json``; README.md explains the measurements.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import _cases
import _machine
import _rivals
from _cases import BASE, CUTOFF_METRICS, Case, Data
from _probe import import_seconds, probe
from _table import HEADERS, Measure, markdown, number, seconds
from _timing import Timed, Times, side_by_side
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
LARGE_OPERATIONS = 2 * _rivals.LARGE**3
MIB = 2**20
# If the product of the factors takes more operations than this, recometrics runs only once, or all
# other calls run only 3 times.
LONG_FOR_RECOMETRICS, VERY_LONG = 10**10, 10**11
RECOMETRICS_USERS = 512  # without a target, time this many users and scale the time up

MILLION = BASE.but("500,000 items", n_items=500_000)
MAPPED = BASE.but("2,000,000 items, memory-mapped", n_items=2_000_000, mapped=True)
# The size of LightGCN's Gowalla data (He et al. 2020); the factors are fitted to random data.
GOWALLA = BASE.but("Gowalla", n_users=29_858, n_items=40_981, n_train=27, n_relevant=7)
MORE_USERS = BASE.but("10 x users", n_users=10 * BASE.n_users)

# The target ratios for fitted factors, relative to metrics with a cut-off or to lists.
TRAINED_TARGETS = {
    "all metrics": 8,
    "NumPy's product of the factors": 5,
    "faiss, top 10 lists": 10,
}


@dataclasses.dataclass
class Run:
    """The options of a run, and its measurements so far."""

    threads: int
    repeats: int
    quick: bool
    others: bool
    shared: Path
    measures: list[Measure] = dataclasses.field(default_factory=list)
    times: dict[str, Any] = dataclasses.field(default_factory=dict)

    def sized(self, case: Case) -> Case:
        """Return the case, reduced in size in a quick run."""
        if not self.quick:
            return case
        return case.but(case.name, n_users=case.n_users // 32, n_items=case.n_items // 20)

    def add(self, *measure: Any, **more: Any) -> None:
        """Add a row to the table, and print it."""
        line = Measure(*measure, **more)
        self.measures.append(dataclasses.replace(line, target=None) if self.quick else line)
        print("  " + " | ".join(self.measures[-1].cells()), flush=True)

    def time(
        self,
        name: str,
        contestants: Mapping[str, Callable[[], object]],
        repeats: int | None = None,
        *,
        warm_up: bool = True,
    ) -> Times:
        """Time calls in turn, and keep the times for the results."""
        repeats = min(self.repeats, repeats or self.repeats)
        options = {"wait": 0.0} if self.quick else {}
        times = side_by_side(contestants, repeats, warm_up=warm_up, **options)
        return self.keep(name, times)

    def keep(self, name: str, times: Times) -> Times:
        """Keep times for the results."""
        times_of_case = self.times.setdefault(name, {})
        times_of_case.update(
            {contestant: dataclasses.asdict(timed) for contestant, timed in times.items()}
        )
        return times

    def ratio(
        self, label: str, theirs: Timed, ours: Timed, target: float | None = None, **more: Any
    ) -> None:
        """Add a row with the ratio of the other call's time."""
        ratio = theirs.median / ours.median
        self.add(label, seconds(ours.median), seconds(theirs.median), ratio, target, **more)


def compare(run: Run, name: str, data: Data, targets: dict[str, float]) -> None:
    """Time recometer, the other libraries and the large product in turn."""
    threads = run.threads
    contestants: dict[str, Callable[[], object]] = {
        "evaluate": _rivals.evaluate(data, threads),
        "rank": _rivals.rank(data, threads),
        "large product": _rivals.large_product(data.items.dtype.name),
    }
    if run.others:
        contestants["NumPy's product of the factors"] = _rivals.product(data)
        if data.items.dtype == "float32":
            contestants["faiss, top 10 lists"] = _rivals.faiss_lists(data, threads)
            contestants["implicit, 4 metrics"] = _rivals.implicit_metrics(data, threads)
    times = run.time(name, contestants, 3 if data.operations > VERY_LONG else None)
    shares(run, name, data.operations, times, targets)
    medians = times["evaluate"].median, times["rank"].median
    run.add(
        f"{name}: evaluate / ranks alone",
        *(seconds(median) for median in medians),
        medians[0] / medians[1],
        targets.get("whole"),
        at_most=True,
    )
    for contestant in [
        contestant_name
        for contestant_name in contestants
        if contestant_name not in ("evaluate", "rank", "large product")
    ]:
        run.ratio(
            f"{name}: {contestant}", times[contestant], times["evaluate"], targets.get(contestant)
        )
    if run.others:
        compare_recometrics(run, name, data, times["evaluate"], targets.get("recometrics"))


def shares(run: Run, name: str, operations: int, times: Times, targets: dict[str, float]) -> None:
    """Add the rates as shares of the rate of the large product."""
    large = LARGE_OPERATIONS / times["large product"].median
    for contestant, title in (("rank", "ranks alone"), ("evaluate", "evaluate")):
        ours = operations / times[contestant].median
        run.add(
            f"{name}: {title}, share of the large product",
            f"{number(ours / 1e9)} GFLOP/s",
            f"{number(large / 1e9)} GFLOP/s",
            ours / large,
            targets.get(contestant),
        )


def compare_recometrics(run: Run, name: str, data: Data, ours: Timed, target: float | None) -> None:
    """Time recometrics: for all users if there is a target, otherwise for the first users."""
    n_timed = len(data.users) if target else min(len(data.users), RECOMETRICS_USERS)
    _rivals.recometrics_metrics(data.first_users(16), run.threads)()
    call = _rivals.recometrics_metrics(data.first_users(n_timed), run.threads)
    repeats = 1 if data.operations > LONG_FOR_RECOMETRICS else None
    timed = run.time(name, {"recometrics": call}, repeats, warm_up=False)["recometrics"]
    scaled = Timed([second * len(data.users) / n_timed for second in timed.seconds], timed.others)
    run.keep(name, {"recometrics": scaled})
    remark = "" if n_timed == len(data.users) else f" ({n_timed} users, scaled up)"
    run.ratio(f"{name}: recometrics{remark}", scaled, ours, target)


def base(run: Run) -> None:
    """Measure the base case."""
    targets = {
        "recometrics": 90,
        "NumPy's product of the factors": 1.2,
        "faiss, top 10 lists": 1.4,
        "rank": 0.75,
        "evaluate": 0.57,
        "whole": 1.08,
    }
    compare(run, "base", _cases.make(run.sized(BASE)), targets)


def varied(name: str, kernel: float | None = None, **changes: Any) -> Callable[[Run], None]:
    """Return a variant of the base case."""

    def measure(run: Run) -> None:
        targets = {} if kernel is None else {"rank": kernel}
        compare(run, name, _cases.make(run.sized(BASE.but(name, **changes))), targets)

    return measure


def ml1m(run: Run) -> None:
    """Measure the factors of a real model, if ../shared has them."""
    data = _cases.read_ml1m(run.shared)
    if data is None:
        print(f"  skipped: there is no data/ml1m_als in {run.shared}")
        return
    compare(run, "ml1m_als", data, {"recometrics": 20, "whole": 1.25})


def avx2(run: Run) -> None:
    """Measure AVX2 on both sides, in a separate process."""
    case = run.sized(BASE)
    env = {"RECOMETER_INSTRUCTION_SET": "avx2", "OPENBLAS_CORETYPE": "Haswell"}
    measurements = probe("share", case, run.threads, run.repeats, env)
    times = {contestant: Timed(**timed) for contestant, timed in measurements.items()}
    operations = 2 * case.n_users * case.n_items * case.n_factors
    shares(run, "AVX2", operations, run.keep("AVX2", times), {"rank": 0.55})


def cutoffs(run: Run) -> None:
    """Measure metrics with a cut-off, and lists; both can stop early."""
    model, worth = _cases.trained(run.sized(BASE.but("trained", n_items=40_000)))
    worths = ", ".join(f"{name} {value:.2f}" for name, value in worth.items())
    random = _cases.make(run.sized(BASE))
    stop_early(run, f"trained factors ({worths})", model, TRAINED_TARGETS)
    stop_early(
        run, "as many as in Gowalla", _cases.trained(run.sized(GOWALLA))[0], {"all metrics": 5}
    )
    stop_early(run, "random factors", random, {"all metrics": 7.0})
    stop_early(run, "random factors of equal lengths", _cases.of_length_1(random), {})
    real = _cases.read_ml1m(run.shared)
    if real is not None:
        stop_early(run, "ml1m_als", real, {})


def stop_early(run: Run, name: str, data: Data, targets: Mapping[str, float]) -> None:
    """Time calls that can stop early against calls that score all items."""
    contestants: dict[str, Callable[[], object]] = {
        "cut-offs": _rivals.evaluate(data, run.threads, CUTOFF_METRICS),
        "lists": _rivals.lists(data, run.threads),
        "all metrics": _rivals.evaluate(data, run.threads),
    }
    if run.others:
        contestants["NumPy's product of the factors"] = _rivals.product(data)
        contestants["faiss, top 10 lists"] = _rivals.faiss_lists(data, run.threads)
    times = run.time(name, contestants)
    for contestant in list(contestants)[2:]:
        label = f"{contestant} / cut-offs only, {name}"
        run.ratio(label, times[contestant], times["cut-offs"], targets.get(contestant))
    if run.others:
        faiss = "faiss, top 10 lists"
        label = f"{faiss} / lists of 10, {name}"
        run.ratio(label, times[faiss], times["lists"], targets.get(faiss))


def threads(run: Run) -> None:
    """Compare one thread with two."""
    data = _cases.make(run.sized(BASE))
    contestants = {"two": _rivals.evaluate(data, 2), "one": _rivals.evaluate(data, 1)}
    times = run.time("threads", contestants)
    run.ratio("one thread / two threads", times["one"], times["two"], 1.85)


def growth(run: Run) -> None:
    """Measure ten times as many users or items."""
    small = _rivals.evaluate(_cases.make(run.sized(BASE)), run.threads)
    for case, more in ((MORE_USERS, "users"), (MILLION, "items")):
        large = _rivals.evaluate(_cases.make(run.sized(case)), run.threads)
        times = run.time(f"10 x {more}", {"ten times": large, "base": small}, 3)
        ratio = times["ten times"].median / times["base"].median
        ours, base = (seconds(times[contestant].median) for contestant in ("ten times", "base"))
        run.add(f"10 x {more} / base", ours, base, ratio, 10.5, at_most=True)


def memory(run: Run) -> None:
    """Measure memory beyond inputs and outputs, for catalogues of very different sizes."""
    small = BASE.but("5,000 items", n_items=5_000)
    for case in (small, BASE.but("50,000 items"), MILLION, MAPPED):
        peak = probe("memory", run.sized(case), run.threads)["peak"] / MIB
        label = f"memory above inputs and outputs, {case.name}"
        run.add(label, f"{number(peak)} MiB", "", peak, 32 + 16 * run.threads, at_most=True)


def imports(run: Run) -> None:
    """Measure ``import recometer`` beyond NumPy, and what the first evaluation imports."""
    numpys, ours, later = import_seconds(5 if run.quick else 21)
    run.times["import"] = {"recometer": ours, "when first used": later, "numpy": numpys}
    median, used = statistics.median(ours), statistics.median(later)
    numpys_median = seconds(statistics.median(numpys))
    label = "import recometer, beyond NumPy's own (s)"
    run.add(label, seconds(median), numpys_median, median, 0.06, at_most=True)
    label = "imports when evaluate and Factors are first used (s)"
    run.add(label, seconds(used), numpys_median, used)


def interrupt(run: Run) -> None:
    """Measure the return from Ctrl-C at several moments; keep the slowest one."""
    for case in (MORE_USERS, MILLION, MAPPED, MORE_USERS.but("256 factors", n_factors=256)):
        measurements = probe("interrupt", run.sized(case), run.threads)
        run.times[f"Ctrl-C, {case.name}"] = measurements
        latencies = measurements["seconds"]
        if not latencies:  # the evaluation ended before Ctrl-C
            continue
        label = f"Ctrl-C to prompt, the slowest of {len(latencies)}, {case.name} (s)"
        run.add(label, seconds(max(latencies)), "", max(latencies), 0.5, at_most=True)
        if measurements["threads"]:
            raise SystemExit(f"{measurements['threads']} threads were left running after Ctrl-C.")


CASES: dict[str, Callable[[Run], None]] = {
    "base": base,
    "ml1m_als": ml1m,
    "factors-16": varied("16 factors", 0.33, n_factors=16),
    "factors-256": varied("256 factors", 0.82, n_factors=256),
    "items-5000": varied("5,000 items", n_items=5_000),
    "items-500000": varied("500,000 items", n_items=500_000),
    "relevant-1": varied("1 relevant", 0.80, n_relevant=1),
    "relevant-100": varied("100 relevant", 0.20, n_relevant=100),
    "float64": varied("float64", 0.60, dtype="float64"),
    "avx2": avx2,
    "cut-offs": cutoffs,
    "threads": threads,
    "growth": growth,
    "memory": memory,
    "import": imports,
    "interrupt": interrupt,
}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--case", action="append", choices=CASES, help="run only this case; repeatable"
    )
    parser.add_argument("--repeats", type=int, default=5, help="number of repeats per median (5)")
    parser.add_argument("--threads", type=int, default=2, help="threads of all contestants (2)")
    parser.add_argument("--quick", action="store_true", help="use tiny sizes, without targets")
    parser.add_argument("--no-others", action="store_true", help="leave out other libraries")
    parser.add_argument("--shared", type=Path, default=HERE.parents[1] / "shared")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "factors.json")
    parser.add_argument("--update", action="store_true", help="keep the other cases in --output")
    options = parser.parse_args()
    repeats = 1 if options.quick else options.repeats
    record: dict[str, Any] = {"cases": {}}
    if options.update and options.output.exists():
        record = json.loads(options.output.read_text())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(options.threads):
        for name in options.case or CASES:
            print(name, flush=True)
            run = Run(
                options.threads, repeats, options.quick, not options.no_others, options.shared
            )
            CASES[name](run)
            record["cases"][name] = {
                "measures": [dataclasses.asdict(measure) for measure in run.measures],
                "times": run.times,
            }
            record |= {"machine": _machine.describe(), "threads": options.threads}
            options.output.write_text(json.dumps(record, indent=1) + "\n")
    print(f"\n{table(record)}\n\nWritten to {options.output}")


def table(record: dict[str, Any]) -> str:
    """Return the measurements as a Markdown table."""
    lines = [
        Measure(**measure).cells()
        for name in CASES
        for measure in record["cases"].get(name, {"measures": []})["measures"]
    ]
    return markdown(HEADERS, lines)


if __name__ == "__main__":
    main()
