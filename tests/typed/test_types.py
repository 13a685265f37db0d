"""The declared types of keywords match the code, and a user's program passes type checkers."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
import json
import pathlib
import subprocess
import sys
import typing

import pytest

import recometer as rm
from recometer.protocol import Rules

SAMPLE = pathlib.Path(__file__).with_name("sample.py")
PACKAGE = pathlib.Path(rm.__file__).parent


def test_rule_types_match_the_protocol() -> None:
    declared = {field.name: field.type for field in dataclasses.fields(rm.Protocol)}
    typed = {name: annotation.__forward_arg__ for name, annotation in Rules.__annotations__.items()}
    plain = {name: ast.unparse(ast.parse(str(text))) for name, text in declared.items()}
    assert {name: ast.unparse(ast.parse(text)) for name, text in typed.items()} == plain
    hints = typing.get_type_hints(rm.Protocol)
    assert typing.get_type_hints(Rules) == {name: hints[name] for name in typed}


def parameters(path: str, name: str) -> list[dict[str, str]]:
    """Return the parameters, with their types, of every function with this name in a file."""
    tree = ast.parse((PACKAGE / path).read_text())
    found_parameters = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            arguments = [*node.args.args, *node.args.kwonlyargs]
            found_parameters.append(
                {
                    argument.arg: ast.unparse(argument.annotation)
                    for argument in arguments
                    if argument.annotation
                }
            )
    return found_parameters


def test_overloads_of_evaluate_have_all_options() -> None:
    *overloads, real = parameters("evaluation.py", "evaluate")
    for overload in overloads:
        assert list(overload) == list(real)
        differing = {name for name in overload if overload[name] != real[name]}
        assert differing <= {"source", "test", "train"}


def test_split_option_types_match_their_parameters() -> None:
    real, *_ = parameters("split/splitting.py", "split")
    tree = ast.parse((PACKAGE / "split/calling.py").read_text())
    (options,) = [
        node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == "Options"
    ]
    typed = {
        ast.unparse(line.target): ast.unparse(line.annotation).replace("Seen", "SeenInTrain")
        for line in options.body
        if isinstance(line, ast.AnnAssign)
    }
    assert typed == {
        name: annotation for name, annotation in real.items() if name not in ("data", "what")
    }
    assert inspect.signature(rm.split) == inspect.signature(rm.split.split)


@pytest.mark.live
@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_user_program_passes_type_checkers(checker: str, tmp_path: pathlib.Path) -> None:
    assert importlib.util.find_spec(checker), f"{checker} is not installed"
    command = [sys.executable, "-m", checker]
    if checker == "mypy":
        command += ["--strict", "--cache-dir", str(tmp_path), str(SAMPLE)]
    else:
        config = {
            "include": [str(SAMPLE)],
            "extraPaths": [str(PACKAGE.parent)],
            "typeCheckingMode": "standard",
        }
        (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
        command += ["--pythonpath", sys.executable, "--project", str(tmp_path)]
    process = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=PACKAGE.parent.parent
    )
    assert process.returncode == 0, process.stdout + process.stderr
