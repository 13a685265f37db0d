"""Tests that the tutorial runs from start to end as written."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import run_command

PAGE = Path(__file__).parents[1] / "docs" / "tutorial.md"
IN_PYTHON, ON_THE_COMMAND_LINE = PAGE.read_text(encoding="utf-8").split(
    "\n## On the command line\n"
)
MODELS = 5


@pytest.fixture(autouse=True)
def _ratings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder that contains ratings.csv, with 40 users' favourite items."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "recometer.report.page.vega", lambda: ""
    )  # leave the chart script out of reports
    generator = np.random.default_rng(0)
    liking = generator.normal(size=(40, 3)) @ generator.normal(size=(3, 30))
    liking += generator.gumbel(size=liking.shape)
    users = np.repeat(np.arange(40), 12)
    items = np.argsort(-liking, axis=1)[:, :12].ravel()
    frame = pl.DataFrame(
        {
            "user_id": [f"Jürg, {user}" for user in users],
            "item_id": items + 1001,
            "rating": generator.integers(1, 6, len(users)),
            "timestamp": 1_700_000_000 + generator.integers(0, 10**7, len(users)),
        }
    )
    frame.write_csv("ratings.csv")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def lines_of(code: str) -> list[str]:
    return [line for line in code.splitlines() if line.strip()]


# implicit warns about threads and sparse arrays, and recometer warns about few users.
@pytest.mark.filterwarnings("ignore")
def test_python_tutorial_prints_the_output_shown(capsys: pytest.CaptureFixture[str]) -> None:
    code = "".join(blocks(IN_PYTHON, "python"))
    assert len(lines_of(code)) <= 15
    Path("tutorial.py").write_text(code, encoding="utf-8")
    variables = runpy.run_path("tutorial.py")
    assert len(variables["results"]) == MODELS
    printed = capsys.readouterr().out
    assert all(name in printed for name in variables["results"])
    assert "activity" in printed
    assert "adjusted p" in printed
    headings = [line.split() for line in printed.splitlines()]
    printed_headings = [block.split("\n")[0].split() for block in blocks(IN_PYTHON, "text")]
    assert [heading for heading in printed_headings[1:] if heading not in headings] == []
    assert Path("report.html").stat().st_size > 0


@pytest.mark.filterwarnings("ignore")
def test_command_line_tutorial_prints_its_tables() -> None:
    (script,) = blocks(ON_THE_COMMAND_LINE, "python")
    (commands,) = blocks(ON_THE_COMMAND_LINE, "sh")
    commands = commands.replace("\\\n", "")
    assert len(lines_of(commands)) <= 5
    Path("fit.py").write_text(script, encoding="utf-8")
    printed = []
    for line in lines_of(commands):
        program, *arguments = shlex.split(line)
        if program == "python":
            runpy.run_path(arguments[0])
            continue
        result = run_command(arguments, env={"COLUMNS": "100"})
        assert result.exit_code == 0, result.output
        printed.append(result.stdout)
    assert "activity" in printed[1]
    assert "adjusted p" in printed[2]
    assert Path("report.html").stat().st_size > 0
    shown_results = run_command(["show", "results", "--per-user", "--format", "csv"])
    assert len({line.split(",")[0] for line in shown_results.stdout.splitlines()[1:]}) == MODELS
