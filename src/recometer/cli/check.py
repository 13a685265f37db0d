"""The command ``recometer check``, which checks a model's output or recometer's installation."""

from __future__ import annotations

from typing import Annotated

import typer

from recometer.checking.installation import check_installation
from recometer.checking.preflight import check as run_check
from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._job import option_rules, protocol_of, reading
from recometer.cli._messages import ExitCode
from recometer.rendering import output

UNREAD = ("categories", "features", "propensity")  # options that a check does not read


@command
def check(
    data: options.DataOptions,
    model: options.ModelOptions,
    rules: options.RuleOptions,
    run: options.RunOptions,
    files: Files,
    protocol: options.ProtocolName = "recometer",
    places: Annotated[
        int,
        options.rule_option("--places", "-k", min=1, help="Number of list places to check."),
    ] = 10,
    users: Annotated[
        int,
        options.rule_option(
            min=0, help="Number of test users to check, drawn at random; 0 checks all of them."
        ),
    ] = 1000,
    strict: Annotated[
        bool,
        options.rule_option(
            "--strict", help=f"Exit with {ExitCode.VERDICT:d} if there is a problem."
        ),
    ] = False,
) -> None:
    """Check the output of a model before it is evaluated; without options, check recometer itself.

    Every finding comes with a count, examples and its effect on the result. Without a model and
    data, the installation is checked: version, instruction set, threads, a known result, and
    whether the native kernel agrees with plain NumPy on the same input.
    """
    plain = options.RunOptions(form=run.form, quiet=run.quiet)
    if [data, model, rules, run] == [*(type(group)() for group in (data, model, rules)), plain]:
        installation = check_installation()
        output(installation, run.form)
        if not installation.works:
            raise typer.Exit(ExitCode.FAILED)
        return
    unread = {name: getattr(data, name) for name in UNREAD} | {"per-user": run.per_user}
    for name in (name for name, value in unread.items() if value):
        raise typer.BadParameter(
            "recometer check does not use this option. Hint: leave it out.", param_hint=f"--{name}"
        )
    rules_by_name = option_rules(rules)
    settled = protocol_of("--protocol", protocol, rules_by_name)
    with reading(data, model, rules, run, files) as work:
        job, checked, source = work.only_model("checked")
        settled = job.settled(settled, protocol, rules_by_name)
        with job.inputs.error_context(checked):
            result = run_check(
                source,
                job.test,
                k=places,
                n_users=users or None,
                protocol=settled,
                seed=rules.seed,
                **job.arguments,
            )
    output(result, run.form)
    problems = [
        f"{finding.name} ({finding.count:,})"
        for finding in result.findings
        if finding.level == "problem"
    ]
    if strict and problems:
        typer.echo(f"Problems: {', '.join(problems)}.", err=True)
        raise typer.Exit(ExitCode.VERDICT)
