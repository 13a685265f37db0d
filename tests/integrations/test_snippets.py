"""The snippets of docs/integrations.md and docs/tuning.md run, section by section."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

DOCS = Path(__file__).parents[2] / "docs"
SECTIONS = {
    section.split("\n", 1)[0].strip("# "): "\n".join(blocks)
    for page in ("integrations.md", "tuning.md")
    for section in (DOCS / page).read_text(encoding="utf-8").split("\n## ")
    if (blocks := re.findall(r"```python\n((?!>>>).*?)```", section, re.DOTALL))
}
START = SECTIONS.pop("Data for the examples below")
FIXTURES = {
    "MLflow": "mlflow",
    "Weights & Biases": "wandb",
}  # for each section, the fixture that prepares its library


@pytest.mark.parametrize("section", sorted(SECTIONS))
def test_snippets_of_each_section_run(section, request, tmp_path, monkeypatch):
    if section in FIXTURES:
        request.getfixturevalue(FIXTURES[section])
    monkeypatch.chdir(tmp_path)
    exec(compile(START + SECTIONS[section], section, "exec"), {})
