"""Tests of ``recometer rules``, which prints every rule with its values."""

from __future__ import annotations

import csv

import pytest
from command_line import Result, run_command

from recometer import Protocol


def run(*arguments: str, columns: int = 80) -> Result:
    return run_command(["rules", *arguments], env={"COLUMNS": str(columns)})


def test_overview_lists_every_rule_with_its_default() -> None:
    rows = {row["rule"]: row for row in csv.DictReader(run("--format", "csv").stdout.splitlines())}
    assert rows.keys() == {name for name, rule in Protocol.declared.items() if rule.says}
    assert rows["seen"] == {
        "rule": "seen",
        "default": "removed",
        "values": "removed, kept_in_lists, kept",
    }
    assert rows["decimals"]["values"] == "none, x (a whole number from 0 to 15)"


@pytest.mark.parametrize("name", [name for name, rule in Protocol.declared.items() if rule.says])
def test_explanation_of_every_rule_fits_the_terminal(name: str) -> None:
    lines = run(name).stdout.splitlines()
    assert lines[0].startswith(f"--rule {name}=VALUE; default: ")
    assert max(map(len, lines)) <= 100


def test_unknown_rule_exits_with_2() -> None:
    result = run("tie")
    assert result.exit_code == 2
    assert "There is no rule 'tie'. Hint: Did you mean 'ties'" in result.stderr


def test_formats_apply_only_to_the_list_of_rules() -> None:
    assert run("ties", "--format", "csv").exit_code == 2
