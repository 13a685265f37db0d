"""``recometer check``: checks the output of a model, or the installation of recometer."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from recometer.checking import check as run_check
from recometer.checking.installation import check_installation
from recometer.cli import _options as options
from recometer.cli._exit import ExitCode
from recometer.cli._groups import Files, command
from recometer.cli._job import given_rules, named_alone, protocol_of, reading, with_users
from recometer.rendering import output

Places = Annotated[
    int, options.rule_option("--places", "-k", min=1, help="Number of places of lists to check.")
]
Users = Annotated[
    int,
    options.rule_option(
        min=0, help="Number of test users to check, drawn at random; 0 checks all of them."
    ),
]
Strict = Annotated[
    bool,
    options.rule_option("--strict", help=f"Exit with {ExitCode.VERDICT:d} if there is a problem."),
]
# The options that a check does not read, for each group of options.
UNREAD = {
    "data": ("categories", "features", "propensity"),
    "model": ("baseline",),
    "run": ("per_user",),
}


@command
def check(
    data: options.DataOptions,
    model: options.ModelOptions,
    rules: options.RuleOptions,
    run: options.RunOptions,
    files: Files,
    protocol: options.ProtocolName = "recometer",
    places: Places = 10,
    users: Users = 1000,
    strict: Strict = False,
) -> None:
    """Check the output of a model before it is evaluated; without options, check recometer itself.

    Every finding comes with a count, examples and its effect on the result. Without a model and
    data, the installation is checked: version, instruction set, threads, a known result, and the
    native kernel in comparison with what plain NumPy found for the same input.
    """
    if data == options.DataOptions() and model == options.ModelOptions():
        _check_installation(rules, run)
        return
    groups = {"data": data, "model": model, "run": run}
    for group, names in UNREAD.items():
        for name in names:
            if getattr(groups[group], name):
                raise typer.BadParameter(
                    "a check does not read it. Hint: leave it out.",
                    param_hint=f"--{name.replace('_', '-')}",
                )
    given = given_rules(rules)
    settled = protocol_of("--protocol", protocol, given)
    named = named_alone(data, model, files, "checked")
    with reading(named, data, rules, run, rated=False) as jobs:
        (job,) = jobs
        settled = with_users(settled, protocol, given, named.models, job.inputs)
        checked, source = job.only("checked")
        with job.inputs.stated(checked):
            found = run_check(
                source,
                job.test,
                k=places,
                n_users=users or None,
                protocol=settled,
                seed=rules.seed,
                **job.given,
            )
    output(found, run.form)
    problems = [f"{one.name} ({one.count:,})" for one in found.findings if one.level == "problem"]
    if strict and problems:
        typer.echo(f"Problems: {', '.join(problems)}.", err=True)
        raise typer.Exit(ExitCode.VERDICT)


def _check_installation(rules: options.RuleOptions, run: options.RunOptions) -> None:
    plain = options.RunOptions(form=run.form, quiet=run.quiet)
    if (rules, run) != (options.RuleOptions(), plain):
        changed = [
            field.name
            for group, default in ((rules, options.RuleOptions()), (run, plain))
            for field in dataclasses.fields(group)
            if getattr(group, field.name) != getattr(default, field.name)
        ]
        raise typer.BadParameter(
            "there is nothing to check. Hint: name a model and --test; without any option, the "
            "installation is checked.",
            param_hint=f"--{changed[0].replace('_', '-')}",
        )
    found = check_installation()
    output(found, run.form)
    if not found.works:
        raise typer.Exit(ExitCode.FAILED)
