"""Tests that the conda-forge recipe has the same requirements as pyproject.toml."""

import re
import sys
from pathlib import Path

import recometer as rm

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
RECIPE = (ROOT / ".conda" / "recipe.yaml").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def section(name):
    """Return the lines of a requirements section, without list markers."""
    match = re.search(rf"^  {name}:\n((?:    .*\n)+)", RECIPE, re.MULTILINE)
    return [line.strip().removeprefix("- ") for line in match[1].splitlines()]


def spaced(requirement):
    """Convert pip's name>=1 to conda's name >=1."""
    return requirement.replace(">=", " >=")


def test_runtime_requirements_match_pyproject():
    always = [
        spaced(requirement)
        for requirement in PROJECT["project"]["dependencies"]
        if ";" not in requirement
    ]
    sometimes = [
        requirement.split(";")
        for requirement in PROJECT["project"]["dependencies"]
        if ";" in requirement
    ]
    older = [f"then: {spaced(requirement)}" for requirement, _ in sometimes]
    conditions = [
        f"if: match(python, {marker.replace('python_version', '').strip()})".replace("< '", '"<')
        for _, marker in sometimes
    ]
    expected = ["python", *always, *(x.replace("'", '"') for x in [*conditions, *older])]
    assert sorted(section("run")) == sorted(expected)


def test_build_requirements_match_pyproject():
    host = {spaced(requirement) for requirement in PROJECT["build-system"]["requires"]}
    assert set(section("host")) == {"python", "pip", *host}
    assert f"cmake {PROJECT['tool']['scikit-build']['cmake']['version']}" in section("build")


def test_version_and_command_match_the_package():
    assert re.search(r"^  version: (\S+)$", RECIPE, re.MULTILINE)[1] == rm.__version__
    ((name, call),) = PROJECT["project"]["scripts"].items()
    assert f"- {name} = {call}\n" in RECIPE
