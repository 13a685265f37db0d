"""The command ``recometer audit``, which looks for leakage and other faults in a split."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from recometer.auditing import LEAKAGE
from recometer.auditing import audit as run_audit
from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._inputs import Inputs, check_stdin
from recometer.cli._job import load_split
from recometer.cli._messages import ExitCode, check_name, note_unless
from recometer.data.pipes import StandardInput
from recometer.rendering import output


@command
def audit(
    files: Files,
    split: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER",
            help="Folder made by recometer split.",
            show_default=False,
        ),
    ] = None,
    test: options.Test = None,
    train: options.Train = None,
    format_in: options.FormatIn = None,
    user: options.User = None,
    item: options.Item = None,
    value: options.Value = None,
    time: options.Time = None,
    separator: options.Separator = None,
    relevant_from: options.RelevantFrom = None,
    strict: Annotated[
        bool,
        options.rule_option(
            "--strict", help=f"Exit with {ExitCode.VERDICT:d} if there is leakage."
        ),
    ] = False,
    allow: Annotated[
        list[str] | None,
        options.rule_option(
            metavar="FINDING",
            help=f"Leakage that --strict accepts: {', '.join(LEAKAGE)}. May be repeated.",
        ),
    ] = None,
    form: options.Form = "table",
    quiet: options.Quiet = False,
) -> None:
    """Look for leakage and other faults in a train-test split.

    Every finding comes with a count, examples and its effect on the result. Columns are found
    by their common names (user_id, movieId, timestamp, ...) unless you name them.
    """
    allowed = tuple(allow or [])
    for name in allowed:
        check_name(name, LEAKAGE, "leakage called ", "--allow")
    if allowed and not strict:
        raise typer.BadParameter(
            "it lists what --strict accepts. Hint: pass --strict as well.", param_hint="--allow"
        )
    columns = {"user": user, "item": item, "value": value, "time": time}
    settings = [name for name in (separator, *columns.values()) if name is not None]
    if split is not None and (train or test or settings):
        raise typer.BadParameter(
            "a split already defines its files and columns. Hint: pass only the folder."
        )
    if split is None and (train is None or test is None):
        raise typer.BadParameter("an audit needs --train and --test, or the folder of a split.")
    check_stdin(files, format_in)
    with StandardInput(format_in) as stdin:
        inputs = Inputs(stdin, columns, note_unless(quiet), separator)
        if split is not None:
            with inputs.error_context(label=split):
                parts = load_split(split)
                inputs.note(f"split: {split} ({parts.protocol})")
                result = run_audit(parts, relevant_from=relevant_from)
        else:
            assert train is not None
            assert test is not None
            inputs.check_columns([train, test])
            test_data = inputs.interactions("test", test, value=True, time=True)
            train_data = inputs.interactions("train", train, value=False, time=True, test=test_data)
            with inputs.error_context():
                result = run_audit(train_data, test_data, relevant_from=relevant_from)
    output(dataclasses.replace(result, allowed=allowed), form)
    leaks = [
        f"{finding.name} ({finding.count:,})"
        for finding in result.findings
        if finding.level == "leakage" and finding.name not in allowed
    ]
    if strict and leaks:
        typer.echo(f"Leakage: {', '.join(leaks)}.", err=True)
        raise typer.Exit(ExitCode.VERDICT)
