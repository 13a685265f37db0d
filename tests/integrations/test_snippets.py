"""What docs/integrations.md shows runs, section by section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
SECTIONS = {
    section.split("\n", 1)[0]: "\n".join(blocks)
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")
    if (blocks := re.findall(r"```python\n((?!>>>).*?)```", section, re.DOTALL))
}
START = SECTIONS.pop("What the examples below go on from")


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_snippets_of_a_section_run(section, request, tmp_path, monkeypatch):
    if section == "MLflow":
        request.getfixturevalue("mlflow")  # has the evaluator registered
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_SILENT", "true")
    exec(compile(START + SECTIONS[section], f"{PAGE.name}: {section}", "exec"), {})
