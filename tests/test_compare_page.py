"""The ratios of COMPARE.md are those of the results that it names."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| .+ \| ([\d.]+) \| `python .+` \| (\w+\.json): (.+) \|$", re.MULTILINE)
ROWS = ROW.findall((ROOT / "COMPARE.md").read_text(encoding="utf-8"))


def measured(results, name):
    """Return the ratio of a name: of a library's call, of a measure, or of a key."""
    if "libraries" in results:
        library, call = name.split(": ", 1)
        return results["libraries"][library]["calls"][call]["ratio"]
    if "mllib" in results:
        part, _, key = name.rpartition(": ")
        return results[part or "mllib"][key]
    parts = results["cases"].values() if "cases" in results else [results]
    for part in parts:
        for measure in part["measures"]:
            if measure["name"].split(" (")[0] == name or measure["name"].startswith(f"{name}: "):
                return measure["value"]
    raise KeyError(name)


def test_rows_are_read():
    assert len(ROWS) >= 15


@pytest.mark.parametrize(("ratio", "file", "name"), ROWS)
def test_ratios(ratio, file, name):
    results = json.loads((ROOT / "benchmarks" / "results" / file).read_text(encoding="utf-8"))
    digits = len(ratio.replace(".", "").lstrip("0"))
    assert float(f"{measured(results, name):.{digits}g}") == float(ratio)
