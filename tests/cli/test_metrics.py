"""Tests of ``recometer metrics``, which prints the registry of metrics as tables."""

from __future__ import annotations

import re

import pytest
from command_line import Result, run_command

from recometer.metrics import METRICS


def metrics(*arguments: str, **environment: str) -> Result:
    return run_command(["metrics", *arguments], env=environment)


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_every_metric_is_listed_with_its_formula() -> None:
    result = metrics()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for definition in METRICS.values():
        pattern = {"required": "@k", "optional": "[@k]", "none": ""}[definition.cutoff]
        (line,) = [line for line in lines if line.split("  ")[0] == definition.name + pattern]
        assert definition.title in line
        assert ", ".join(definition.other_names) in line
        assert line.endswith(definition.formula)


def test_list_fits_the_width_of_the_terminal() -> None:
    result = metrics(FORCE_COLOR="1", NO_COLOR="1", COLUMNS="70", TERM="xterm")
    assert result.exit_code == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    assert max(map(len, text.splitlines())) <= 70
    assert "ndcg[@k]" in text


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_explained(name: str) -> None:
    result = metrics(name)
    definition = METRICS[name]
    assert result.exit_code == 0
    text = one_line(result.stdout)
    for part in (definition.title, definition.formula, definition.source):
        assert one_line(part) in text
    assert "References" not in text
    assert "`" not in text
    assert (f"{name}@10" in text) == (definition.cutoff != "none")


def test_cutoff_is_ignored_when_explaining() -> None:
    assert metrics("ndcg@10").stdout == metrics("ndcg").stdout


def test_names_from_other_libraries_are_explained() -> None:
    assert metrics("MRR@10").stdout == metrics("rr").stdout
    assert "Other names mrr, " in one_line(metrics("rr").stdout)


def test_error_about_a_wrong_name_suggests_a_metric() -> None:
    result = metrics("ndgc")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: There is no metric 'ndgc'. Hint: Did you mean 'ndcg'")
