"""Tests that the notebooks in docs/examples run from start to end."""

import re
from pathlib import Path

import pytest
from shared import SHARED

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
CELL = re.compile(r"^```\{code-cell\} ipython3\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")  # code in notebooks may warn
@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.md")), ids=lambda path: path.stem)
def test_cells_of_every_notebook_run(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOMETER_SHARED", str(tmp_path / "none"))
    run(notebook)
    assert not list(tmp_path.iterdir())


@pytest.mark.shared
def test_published_table_is_reproduced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOMETER_SHARED", str(SHARED))
    names = run(EXAMPLES / "reproducing_movielens.md")
    assert names["reproduced"] == names["published"]


def run(notebook):
    """Run all cells of a notebook, and return the variables that they define."""
    cells = CELL.findall(notebook.read_text(encoding="utf-8"))
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        exec(compile(cell, f"{notebook.name}, cell {number}", "exec"), names)
    assert any("assert " in cell for cell in cells), "The notebook contains no assertion."
    return names
