"""The speed of evaluating lists, compared with other libraries in the same run.

The script computes seven metrics at k = 20 from the user's data in memory. Times include
conversions. It prints a table and writes ``results/lists.json``; README.md explains the
measurements. Libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import dataclasses
import gc
import importlib.util
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _lists
import _machine
from _lists import DIFFERENT, LENGTH, Contestant, Data
from _table import HEADERS, Measure, markdown, number, seconds
from _timing import Times, side_by_side

HERE = Path(__file__).parent
USERS = (30_000, 1_000_000)
# With more users, the other libraries would take hours and too much memory. Their time is scaled
# up, which favours them: for ten times the users, RecTools takes 17 to 22 times as long.
OTHERS_USERS = 300_000
WARM_UP_USERS = 100
QUICK = ("rectools", "pytrec_eval")  # the others are timed once
FASTEST = ("rectools",)
# With more users, the slower libraries are left out, and Python objects do not fit into memory.
FEW_USERS = 30_000
OTHERS = (*QUICK, "ranx", "torchmetrics")
TOLERANCE = 1e-6  # torchmetrics computes in float32


@dataclasses.dataclass(frozen=True)
class Case:
    """The data that a user has in memory, and the comparisons."""

    name: str
    prepare: Callable[[Data], tuple[Any, Any]]  # returns the lists and the test data
    strings: bool = False
    dicts: bool = False
    objects: bool = False
    target: float | None = None


def in_arrow(frames: tuple[Any, Any]) -> tuple[Any, Any]:
    return frames[0].to_arrow(), frames[1].to_arrow()


def in_pandas(frames: tuple[Any, Any]) -> tuple[Any, Any]:
    return _lists.in_pandas(frames[0]), _lists.in_pandas(frames[1])


def in_dicts(frames: tuple[Any, Any]) -> tuple[Any, Any]:
    return _lists.in_dicts(frames[0]), _lists.in_dicts(frames[1])


CASES = (
    Case("integer frame", lambda data: data.frames(), target=10),
    Case("integer frame, shuffled", lambda data: data.frames(shuffled=True), target=10),
    Case("integer frame, pandas", lambda data: in_pandas(data.frames()), target=10),
    Case("integer array", lambda data: (data.lists, data.matrix()), target=25),
    Case("string frame", lambda data: data.frames(strings=True), strings=True, target=6),
    Case(
        "string frame, shuffled",
        lambda data: data.frames(strings=True, shuffled=True),
        strings=True,
        target=6,
    ),
    Case(
        "string frame, Arrow",
        lambda data: in_arrow(data.frames(strings=True)),
        strings=True,
        target=6,
    ),
    Case(
        "string frame, pandas",
        lambda data: in_pandas(data.frames(strings=True)),
        strings=True,
        objects=True,
    ),
    Case("dicts of integers", lambda data: in_dicts(data.frames()), dicts=True, objects=True),
    Case(
        "dicts of strings",
        lambda data: in_dicts(data.frames(strings=True)),
        dicts=True,
        objects=True,
    ),
)


def others_of(case: Case, data: Data, names: list[str]) -> dict[str, Contestant]:
    """Return the calls of other libraries, keyed by name, each with the kind of data it accepts."""
    lists, test = data.frames(strings=case.strings or "strings" in case.name)
    if case.dicts:
        dicts = _lists.trec_dicts(lists, test)
        name = "pytrec_eval on dicts"
        return {name: _lists.pytrec_eval_on_dicts(*dicts)} if "pytrec_eval" in names else {}
    return {name: getattr(_lists, name)(lists, test) for name in names}


def check(data: Data, names: list[str]) -> None:
    """Check that all libraries agree on the means of metrics with the same definition."""
    frames = data.frames()
    recometer = _lists.ours(*frames, 1)
    expected = recometer.means(recometer.call())
    for name in names:
        library = getattr(_lists, name)(*frames)
        for metric, mean in library.means(library.call()).items():
            if (abs(mean - expected[metric]) <= TOLERANCE) == (metric in DIFFERENT[name]):
                raise SystemExit(
                    f"{name} has {metric} = {mean}, but recometer has {expected[metric]}."
                )


def run_case(case: Case, n_users: int, options: argparse.Namespace) -> tuple[Times, Measure]:
    """Time recometer and the faster libraries in turn."""
    data = Data.generate(n_users)
    few = data.first(min(n_users, OTHERS_USERS))
    factor = n_users / few.n_users
    quick = QUICK if n_users <= FEW_USERS else FASTEST
    others = others_of(case, few, [name for name in quick if name in options.others])
    prepared = case.prepare(data)
    del data
    gc.collect()
    calls = {"recometer": _lists.ours(*prepared, options.threads).call}
    times = side_by_side(
        calls | {name: contestant.call for name, contestant in others.items()}, options.repeats
    )
    median = times["recometer"].median
    fastest = min(others, key=lambda name: times[name].median, default=None)
    fastest_time = float("nan") if fastest is None else times[fastest].median * factor
    scaled = f" ({few.n_users:,} users, scaled up)" if factor > 1 else ""
    rate = number(n_users * LENGTH / median / 1e6)
    measure = Measure(
        f"{n_users:,} users, {case.name}: {rate} million rows a second",
        seconds(median),
        "" if fastest is None else f"{fastest}{scaled}: {seconds(fastest_time)}",
        fastest_time / median,
        case.target,
    )
    print(measure.cells(), flush=True)
    return times, measure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, nargs="*", default=USERS)
    parser.add_argument("--case", nargs="*", choices=[case.name for case in CASES])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--others", nargs="*", choices=OTHERS, default=OTHERS)
    options = parser.parse_args()
    options.others = [name for name in options.others if importlib.util.find_spec(name)]
    warnings.simplefilter("ignore")
    check(Data.generate(WARM_UP_USERS), options.others)  # this also lets ranx compile
    times: dict[str, Times] = {}
    measures = []
    for n_users in options.users:
        for case in CASES:
            selected = options.case is None or case.name in options.case
            if selected and (n_users <= FEW_USERS or not case.objects):
                case_times, measure = run_case(case, n_users, options)
                times[f"{n_users} users, {case.name}"] = case_times
                measures.append(measure)
    slow = [name for name in options.others if name not in QUICK]
    for name in slow:
        library = getattr(_lists, name)(*Data.generate(FEW_USERS).frames())
        times[name] = side_by_side({name: library.call}, 1, warm_up=False)
        duration = times[name][name].median
        key = f"{FEW_USERS} users, integer frame"
        ours = times[key]["recometer"].median if key in times else float("nan")
        label = f"{FEW_USERS:,} users, integer frame: {name}, once"
        measures.append(Measure(label, seconds(ours), seconds(duration), duration / ours))
    print(markdown(HEADERS, [measure.cells() for measure in measures]))
    results = {
        "machine": _machine.describe(),
        "options": vars(options),
        "measures": [dataclasses.asdict(measure) for measure in measures],
        "times": {
            part: {name: dataclasses.asdict(timed) for name, timed in case_times.items()}
            for part, case_times in times.items()
        },
    }
    path = HERE / "results" / "lists.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
