"""Tests that speed ratios in COMPARE.md, docs/dropins.md and the guides match the benchmarks."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| .+ \| ([\d.]+) \| `python .+` \| (\w+\.json): (.+) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "COMPARE.md").read_text(encoding="utf-8"))

DROPINS = (ROOT / "docs" / "dropins.md").read_text(encoding="utf-8")
# This pattern matches rows: | library version | call | users | its time | our time | ratio |
CALL = re.compile(
    r"^\| [^|]+ [\d.]+ \| ([^|]+) \| [\d,]+ \| [^|]+ \| [^|]+ \| ([\d.]+) \|$", re.MULTILINE
)
GUIDES = sorted((ROOT / "docs").glob("from_*.md"))
NUMBER = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.]*\d)(?! m?s\b)")  # excludes versions and times


def ratio_of(results, name):
    """Find the ratio called `name` in the results, or compute it from two timings."""
    if "libraries" in results:
        library, call = name.split(": ", 1)
        return results["libraries"][library]["calls"][call]["ratio"]
    part, _, pair = name.partition(": ")
    if part in results:  # the results contain times in seconds
        theirs, ours = pair.split(" / ")
        return results[part][theirs] / results[part][ours]
    parts = results["cases"].values() if "cases" in results else [results]
    for part in parts:
        for measure in part["measures"]:
            if measure["name"].split(" (")[0] == name or measure["name"].startswith(f"{name}: "):
                return measure["value"]
    raise KeyError(name)


def round_like(value, printed):
    """Round a value to as many significant digits as a printed number has."""
    return float(f"{value:.{len(printed.replace('.', '').lstrip('0'))}g}")


def all_ratios():
    """Return all ratios in the result files, and the ratios for splits in benchmarks/README.md."""
    ratios = []
    for path in (ROOT / "benchmarks" / "results").glob("*.json"):
        results = json.loads(path.read_text(encoding="utf-8"))
        for library in results.get("libraries", {}).values():
            ratios += [call["ratio"] for call in library["calls"].values()]
        for part in [*results.get("cases", {}).values(), results]:
            ratios += [measure["value"] for measure in part.get("measures", [])]
    splits = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").split("\n## Splits")[1]
    ratios += [float(value) for value in re.findall(r"\| ([\d.]+) +\|", splits.split("\n## ")[0])]
    return ratios


def test_page_has_rows_of_ratios():
    assert len(ROWS) >= 15


@pytest.mark.parametrize(("ratio", "file", "name"), ROWS)
def test_ratios_match_the_results(ratio, file, name):
    results = json.loads((ROOT / "benchmarks" / "results" / file).read_text(encoding="utf-8"))
    assert round_like(ratio_of(results, name), ratio) == float(ratio)


def test_ratios_of_drop_ins_match_the_results():
    results = json.loads((ROOT / "benchmarks/results/dropins.json").read_text(encoding="utf-8"))
    calls = [call for library in results["libraries"].values() for call in library["calls"].items()]
    rows = CALL.findall(DROPINS)
    assert len(rows) == len(calls)
    for name, ratio in rows:
        ratios = [
            round_like(call["ratio"], ratio)
            for measured_name, call in calls
            if measured_name.startswith(name)
        ]
        assert float(ratio) in ratios, name


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_ratios_of_guides_match_the_results(guide):
    parts = guide.read_text(encoding="utf-8").split("\n## Speed\n")
    assert len(parts) == 2 or guide.stem == "from_r", "A guide says how fast it is."
    printed = NUMBER.findall(parts[-1]) if len(parts) == 2 else []
    ratios = all_ratios()
    for number in printed:
        accepted = {round_like(value, number) for value in ratios}
        accepted |= {round_like(1 / value, number) for value in ratios if value}
        assert float(number) in accepted, f"{number} is in no file of results."
