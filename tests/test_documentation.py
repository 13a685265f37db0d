"""What the documents show is what happens."""

import doctest
import importlib.util
import os
from pathlib import Path

import pytest

import recometer as rm
from recometer.metrics import METRICS

ROOT = Path(__file__).parents[1]
MODULES = ["recometer.auditing.check", "recometer.data.catalogue", "recometer.evaluate"]
MODULES += ["recometer.results.evaluation", "recometer.explanation", "recometer.exposure"]
MODULES += ["recometer.metrics.conventions"]
MODULES += ["recometer.split.splitting"]
MODULES += [
    f"recometer.sources.{name}"
    for name in ("candidates", "factors", "lists", "models", "pairs", "scores")
]
PAGES = [
    "README.md",
    "docs/audit.md",
    "docs/averages.md",
    "docs/candidates.md",
    "docs/catalogue.md",
    "docs/conventions.md",
    "docs/lists.md",
    "docs/own_source.md",
    "docs/result.md",
    "docs/splits.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_pages(page):
    failures, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert tried > 3
    assert failures == 0


def test_a_metric_of_ones_own():
    page = str(ROOT / "docs" / "own_metric.md")
    try:
        failures, tried = doctest.testfile(page, module_relative=False)
    finally:
        for name in ("fused", "years_apart"):
            METRICS.pop(name, None)
    assert tried > 5
    assert failures == 0


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    failures, tried = doctest.testmod(importlib.import_module(name))
    assert tried
    assert failures == 0


@pytest.mark.parametrize(
    "script", [*(ROOT / "docs").glob("write_*.py")], ids=lambda path: path.stem
)
def test_written_pages_are_fresh(script):
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = script.with_name(script.stem.removeprefix("write_") + ".md")
    assert page.read_text(encoding="utf-8") == module.page(), f"Hint: python docs/{script.name}"


def test_links_of_the_documents_lead_somewhere():
    import re

    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert os.path.exists(page.parent / target), f"{page.name}: {target}"


def test_public_names_have_docstrings():
    for name in rm.__all__:
        if not name.startswith("__"):
            assert getattr(rm, name).__doc__, name


def test_every_public_name_is_in_the_documents():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in rm.__all__ if f"rm.{name}" not in text] == ["__version__"]


def test_every_option_is_in_the_documents():
    from typer.main import get_command

    from recometer.cli._app import app

    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = get_command(app).commands
    options = {
        option
        for name in ("evaluate", "why")
        for parameter in commands[name].params
        for option in parameter.opts
        if option.startswith("--")
    }
    assert not {option for option in options if option not in text} - {"--help", "--metrics"}
