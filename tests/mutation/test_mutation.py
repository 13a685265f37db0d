"""The mutation testing tool creates the expected mutants, and detects survivors."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import mutants
import pytest
from run import WIDER, draw, main

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "recometer"

SOURCE = '''
"""One string < another."""

import math


@metric(upper=1)
def scale(values: list[int], top: int = 3) -> int:
    """Return 1 < 2."""
    total = 0
    for value in values[1:]:
        total += value
    if not values or (top > 2 and math.isfinite(top)):
        raise ValueError(f"{1 + 1} of {top}")
    if ready(top, copy=False, strict=True):
        table["größe"] = np.searchsorted(values, top, side="left")
    log.info("done")
    nothing = np.zeros(0, int), Parameter(examples=(1, 2))
    return -max(total, top) * 2
'''


def test_every_mutant_has_one_mistake() -> None:
    descriptions = [f"{mutant.line}: {mutant}" for mutant in mutants.mutants_of(SOURCE)]
    assert descriptions == [
        "8: 3 -> 4",
        "10: 0 -> 1",
        "11: 1 -> 2",
        "12: total += value -> total -= value",
        "12: total += value -> pass",
        "13: not values or (top > 2 and math.isfinite(top)) -> "
        "not values and (top > 2 and math.isfinite(top))",
        "13: not values -> values",
        "13: top > 2 and math.isfinite(top) -> top > 2 or math.isfinite(top)",
        "13: top > 2 -> top >= 2",
        "13: 2 -> 3",
        "15: ready(top, copy=False, strict=True) -> not ready(top, copy=False, strict=True)",
        "16: table['größe'] = np.searchsorted(values, top, side='left') -> pass",
        "16: np.searchsorted(values, top, side='left') -> "
        "np.searchsorted(values, top, side='right')",
        "17: log.info('done') -> pass",
        "18: 0 -> 1",
        "19: -max(total, top) * 2 -> -max(total, top) / 2",
        "19: -max(total, top) -> max(total, top)",
        "19: max(total, top) -> min(total, top)",
        "19: 2 -> 3",
    ]


@pytest.mark.parametrize("path", ["ties.py", "metrics/ranked/graded.py", "stats/saddlepoint.py"])
def test_every_mutant_is_valid_and_differs_from_the_source(path: str) -> None:
    source = (PACKAGE / path).read_text("utf-8")
    tree = ast.dump(ast.parse(source))
    all_mutants = mutants.mutants_of(source)
    assert len(all_mutants) > 50
    for mutant in all_mutants[::14]:
        assert ast.dump(ast.parse(mutant.source)) != tree


needs_processes = pytest.mark.skipif(sys.platform == "win32", reason="needs limits on processes")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that runs the command with given options and returns its exit code."""

    def with_options(*options: object) -> int:
        monkeypatch.setattr(sys, "argv", ["run.py", *map(str, options)])
        return main()

    return with_options


@needs_processes
def test_survivors_are_reported(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    nearest = tmp_path / "nearest.toml"
    nearest.write_text('[cutoffs]\n"metrics/cutoffs.py" = ["mutation/sample.py"]\n')
    # Draw only a few mutants, since each needs its own process.
    few_mutants = ("--share", 0, "--least", 2, "--seed", 1)
    assert run("--nearest", nearest, "--needed", 0.51, *few_mutants) == 1
    *verdicts, area, last = capsys.readouterr().out.splitlines()
    assert len(verdicts) == 2
    (killed,) = (line for line in verdicts if line.startswith("killed"))
    assert killed.endswith(": 1 -> 2  [tests/mutation/sample.py::test_hint_corrects_the_cutoff]")
    (survived,) = (line for line in verdicts if line.startswith("survived"))
    expression = "parts is None or metric is None"
    assert survived.endswith(f": {expression} -> {expression.replace('or', 'and')}")
    assert area == "cutoffs: 1 of 2 killed (50.0%)"
    assert last == "all: 1 of 2 killed (50.0%)"


def test_drawn_mutants_depend_only_on_the_seed_and_the_module() -> None:
    one_module = {"metrics/cutoffs.py": ["mutation/sample.py"]}
    three_modules = {
        **one_module,
        "metrics/parameters.py": ["mutation/sample.py"],
        "metrics/rated.py": [],
    }
    first_8, first_14, other_seed, of_one_module = (
        [
            (mutant.path, mutant.number, str(mutant))
            for mutant in draw({"area": tests}, None, 0, n, seed)
        ]
        for tests, n, seed in (
            (three_modules, 8, 0),
            (three_modules, 14, 0),
            (three_modules, 8, 1),
            (one_module, 99, 0),
        )
    )
    assert first_8 == first_14[:8]
    assert set(first_8) != set(other_seed)
    assert [entry for entry in first_14 if entry in of_one_module] == [
        entry for entry in of_one_module if entry in first_14
    ]
    assert {path for path, *_ in first_14} == {"metrics/cutoffs.py", "metrics/parameters.py"}


def test_nearest_toml_lists_only_existing_tests_and_modules() -> None:
    areas = tomllib.loads((HERE / "nearest.toml").read_text("utf-8"))
    modules = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    wrong = []
    for nearest in areas.values():
        for start, tests in nearest.items():
            if start != WIDER and not any(path.startswith(start) for path in modules):
                wrong.append(f"src/recometer/{start}")
            wrong += [
                test for test in tests if not (HERE.parent / test.partition("::")[0]).exists()
            ]
    assert wrong == [], "nearest.toml names missing tests or modules: correct its lines"


@needs_processes
def test_missing_tests_are_reported(tmp_path: Path, run: Callable[..., int]) -> None:
    nearest = tmp_path / "nearest.toml"
    nearest.write_text('[draws]\n"draws.py" = ["mutation/missing.py"]\n')
    with pytest.raises(SystemExit, match=r"There are no such tests: mutation/missing\.py\."):
        run("--nearest", nearest, "--least", 1, "--share", 0)


def test_unknown_area_is_reported(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("--area", "tie")
    message = "There is no area tie: ties, metrics, measuring, stats, sources."
    assert message in capsys.readouterr().err
