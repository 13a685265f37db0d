"""The command ``recometer compare``, which compares saved evaluations and checks gates."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from recometer.cli import _options as options
from recometer.cli._groups import Files, command
from recometer.cli._messages import ExitCode, check_name, usage_of
from recometer.cli._results import loaded_results, of_users
from recometer.comparing.gates import GateReport, Undecided
from recometer.comparing.gates import junit as write_junit
from recometer.comparing.wording import CORRECTIONS
from recometer.comparison import compare as run_comparison
from recometer.data.storage import check_replaced
from recometer.rendering import Shown, Table, output
from recometer.stats.tests import TESTS

EXIT = {"passed": ExitCode.DONE, "failed": ExitCode.FAILED, "undecided": ExitCode.VERDICT}
gate_option = functools.partial(typer.Option, rich_help_panel="Gates")  # their own help panel


@dataclasses.dataclass(frozen=True)
class WithGates(Shown):
    """A comparison that is shown below the gates' verdicts."""

    comparison: Shown
    report: GateReport

    def table(self) -> Table:
        """Return the table of gates."""
        return self.report.table()

    def tables(self, width: int | None = None) -> list[Table]:
        """Return the tables of the gates and of the comparison."""
        return [self.report.table(), *self.comparison.tables(width)]

    def data(self) -> Table:
        """Return a table with a row for each gate and model."""
        return self.report.data()

    def to_dict(self) -> dict[str, Any]:
        """Return the gates and the comparison as Python objects that can be written as JSON."""
        return {**self.comparison.to_dict(), "gates": self.report.to_dict()}


def _choice(
    names: Collection[str], help: str, default: str, option: Any = options.rule_option
) -> Any:
    """Declare an option that accepts one of `names`."""
    return option(
        parser=lambda text: check_name(text, names),
        metavar="NAME",
        help=f"{help}: {', '.join(names)}.",
        show_default=default,
    )


@dataclasses.dataclass(frozen=True)
class GateOptions:
    """The options for gates."""

    gate: Annotated[
        list[str] | None,
        gate_option(
            metavar="GATE",
            help="Bound on the difference from the baseline: 'ndcg@10 >= -5%', 'coverage@10 >= "
            "-0.02'. May be repeated.",
        ),
    ] = None
    undecided: Annotated[
        str | None,
        _choice(
            get_args(Undecided), "How an undecided gate counts", "neither: exit code 3", gate_option
        ),
    ] = None
    junit: Annotated[
        Path | None,
        gate_option(metavar="PATH", help="Also write the gates to this file, as JUnit XML."),
    ] = None

    def check(self, baseline: str | None, files: Files) -> None:
        """Raise an error if an option is misused, or if --junit would replace another file."""
        if self.gate and baseline is None:
            raise typer.BadParameter("a gate needs --baseline NAME.", param_hint="--gate")
        for name in ("undecided", "junit"):
            if getattr(self, name) is not None and not self.gate:
                raise typer.BadParameter("it also needs the option --gate.", param_hint=f"--{name}")
        if self.junit is not None:
            check_replaced([self.junit], lambda path: path.suffix == ".xml", files)

    def report(self, comparison: Any) -> GateReport | None:
        """Return the result of checking the gates for a comparison, or None if there are none."""
        if not self.gate:
            return None
        with usage_of("--gate"):
            report: GateReport = comparison.gate(self.gate, self.undecided)
        return report


@command
def compare(
    files: Files,
    results: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]RESULT[,RESULT]...",
            help="Files that result.save(path) or recometer evaluate --out wrote, or folders of "
            "them. Files separated by commas are runs of one model with different seeds.",
        ),
    ],
    comparing: options.ComparingOptions,
    gates: GateOptions,
    metrics: Annotated[
        list[str] | None,
        options.metrics_option("Metrics to compare, for instance 'ndcg@10 recall@10'", "all"),
    ] = None,
    test: Annotated[str | None, _choice(TESTS, "Test of the difference", "randomisation")] = None,
    correction: Annotated[
        str, _choice(CORRECTIONS, "Correction for several tests", "holm")
    ] = "holm",
    confidence: Annotated[
        float | None,
        options.rule_option(
            metavar="SHARE",
            help="Confidence level of the intervals; the significance level is 1 minus this value.",
            show_default="that of the evaluations",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        options.rule_option(
            metavar="DIFFERENCE",
            help="Differences below this do not matter; adds tests of equivalence.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        options.rule_option(
            metavar="[COLUMN=]FILE",
            help="Column of a table with a row per user: users with the same entry (such as "
            "sessions of one person) are not independent of each other.",
            show_default="every user is independent",
        ),
    ] = None,
    chance: Annotated[
        bool,
        options.rule_option(
            "--chance",
            help="Add a random order of the same candidates as a model. The first evaluation must "
            "come from recometer evaluate --chance.",
        ),
    ] = False,
    seed: options.Seed = 0,
    all_pairs: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show all pairs on all metrics, not just on --primary metrics or the first "
            "metric.",
        ),
    ] = False,
    form: options.Form = "table",
    threads: options.Threads = None,
) -> None:
    """Compare models with intervals, paired tests, effects and ranks, and check gates in CI.

    Models are compared user by user. With --gate, the command fails if a model is worse than
    the baseline by more than the bound, and exits with code 3 if there are too few users to tell.
    """
    gates.check(comparing.baseline, files)
    models = loaded_results(results)
    first = next(iter(models.values()))[0]
    comparison = run_comparison(
        models,
        **comparing.arguments(metrics),
        test=test,
        confidence=confidence,
        correction=correction,  # type: ignore[arg-type]
        margin=margin,
        cluster=None if cluster is None else of_users(cluster, "--cluster", first),
        chance=chance,
        seed=seed,
        threads=threads,
    )
    shown = comparison.full() if all_pairs else comparison
    conclude(shown, gates.report(comparison), form, gates.junit)


def conclude(comparison: Shown, report: GateReport | None, form: str, junit: Path | None) -> None:
    """Print a comparison and, if there are gates, their verdicts, which decide the exit code.

    The gates are also written to the file `junit`, unless it is None.
    """
    if report is None:
        output(comparison, form)
        return
    if junit is not None:  # write the file before printing, because writing may fail
        write_junit(report, junit)
    output(WithGates(comparison, report), form)
    for row in report.rows:
        if row.verdict != "passed":
            typer.echo(" ".join(row.sentences()), err=True)
    raise typer.Exit(EXIT[report.counted(report.verdict)])
