"""Tests that the documentation is complete, and that its code prints the output shown."""

import doctest
import importlib.util
import os
import re
from pathlib import Path

import pytest

import recometer as rm
from recometer.metrics import METRICS

ROOT = Path(__file__).parents[1]
PACKAGE = Path(rm.__file__).parent
PAGES = {
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("**/*.md"))
    if ">>>" in path.read_text(encoding="utf-8")
}
MODULES = {
    ".".join(("recometer", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if ">>>" in path.read_text(encoding="utf-8")
}


@pytest.fixture(autouse=True)
def _remove_added_metrics():
    """After each test, remove the metrics that a page's code has registered."""
    before = dict(METRICS)
    yield
    for name in METRICS.keys() - before.keys():
        del METRICS[name]


@pytest.mark.filterwarnings("ignore::recometer.DataWarning")  # code on pages may warn
@pytest.mark.filterwarnings("ignore:OpenBLAS is configured:RuntimeWarning")  # implicit emits this
@pytest.mark.parametrize("page", sorted(PAGES))
def test_code_on_pages_prints_the_output_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failures, tried = doctest.testfile(str(ROOT / page), module_relative=False)
    assert tried
    assert failures == 0


@pytest.mark.parametrize("name", sorted(MODULES))
def test_code_in_docstrings_prints_the_output_shown(name):
    failures, tried = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert tried
    assert failures == 0


def test_code_that_is_not_run_compiles_and_uses_known_names():
    """Some code cannot run here, because it needs a model or another library."""
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")):
        text = path.read_text(encoding="utf-8")
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            if ">>>" not in block:
                compile(block, path.name, "exec")
                missing = [
                    name for name in re.findall(r"\brm\.(\w+)", block) if name not in dir(rm)
                ]
                assert missing == [], path.name


@pytest.mark.parametrize(
    "script", [*(ROOT / "docs").glob("write_*.py")], ids=lambda path: path.stem
)
def test_generated_pages_are_up_to_date(script):
    spec = importlib.util.spec_from_file_location(script.stem, script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = script.with_name(script.stem.removeprefix("write_") + ".md")
    assert page.read_text(encoding="utf-8") == module.page(), f"Hint: python docs/{script.name}"


def load_draw_road():
    spec = importlib.util.spec_from_file_location("draw_road", ROOT / "docs" / "draw_road.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_architecture_picture_is_up_to_date():
    drawing = load_draw_road()
    picture = (ROOT / "docs" / "road.svg").read_text(encoding="utf-8")
    assert picture == drawing.picture(), "Hint: python docs/draw_road.py"
    paths = {path for box in drawing.BOXES.values() for path in box.paths}
    assert {path for path in paths if not (PACKAGE / path).exists()} == set()


def test_architecture_page_lists_the_contents_of_the_package():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE)
    named_paths = {path.rstrip("/") for row in rows for path in re.findall(r"`(.*?)`", row)}
    contents = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert contents - named_paths == {"__init__.py", "__main__.py", "__pycache__"} & contents
    assert {path for path in named_paths if not (PACKAGE / path).exists()} == {"cpp"}


def test_page_of_a_metric_shows_its_full_declaration():
    spec = importlib.util.spec_from_file_location("metric_pages", ROOT / "docs/metric_pages.py")
    pages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pages)
    folds = "Only to reproduce other libraries' numbers"
    for name, definition in METRICS.items():
        text = pages.page(name, definition)
        visible, _, folded = text.partition("## Example")[0].partition(folds)
        example, _, literature = text.partition("## Example")[2].partition("## Literature")
        assert definition.formula in " ".join(visible.split()), name
        assert re.search(r"^\| `.*\d\.\d{4}", example, re.MULTILINE), f"{name}: no number"
        assert re.search(r"^\* .*\b\d{4}, \w+", literature, re.MULTILINE), f"{name}: no title"
        for parameter in definition.parameters.values():
            part = folded if parameter.for_conventions else visible
            assert f"**`{parameter.name}`**" in part, f"{name}({parameter.name})"
        for convention in rm.conventions():
            for entry in convention.entries:
                if entry.metric_name == name:
                    assert f"| `{entry.name}` |" in example, f"{convention.name}: {entry.name}"


def test_documentation_has_no_broken_links():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if not target.startswith("http"):
                assert os.path.exists(page.parent / target), f"{page.name}: {target}"


def test_public_names_have_docstrings():
    for name in rm.__all__:
        if not name.startswith("__"):
            assert getattr(rm, name).__doc__, name


def test_every_public_name_is_documented():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in rm.__all__ if f"rm.{name}" not in text] == ["__version__"]


def test_every_option_is_documented():
    from recometer.cli._app import COMMANDS, command_of

    text = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    options = {
        option
        for name in COMMANDS
        for parameter in command_of(name).params
        for option in parameter.opts
        if option.startswith("--")
    }
    assert not {option for option in options if option not in text} - {"--help", "--metrics"}
