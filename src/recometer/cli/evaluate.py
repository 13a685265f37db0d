"""``recometer evaluate``: models in files, against interactions in files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from recometer.cli import _options as options
from recometer.cli._folder import data_of, output_folder
from recometer.cli._formats import Format, is_summary, print_results, summary_csv
from recometer.cli._inputs import (
    NONE,
    Inputs,
    Model,
    baseline_of,
    catalogue_columns,
    check_stdin,
    models,
)
from recometer.cli._stdin import InputFormat, StandardInput
from recometer.cli.metrics import complete_metrics
from recometer.data.storage import check_replaced, is_table
from recometer.errors import FileError, RecometerError, did_you_mean, warn
from recometer.evaluate import DEFAULT_METRICS
from recometer.evaluate import evaluate as run_evaluation
from recometer.evaluating.arguments import named_protocol, protocol_names
from recometer.metrics.conventions import parse_under
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation, load
from recometer.tasks import resolve_threads

SUMMARY = "summary.csv"


def complete_rules(incomplete: str) -> list[str]:
    """Return what may follow: the rules' names, or the values of the one that is named."""
    name, equals, _ = incomplete.partition("=")
    if equals and name in Protocol.declared:
        found = [f"{name}={value}" for value in Protocol.declared[name].choices]
    else:
        found = [f"{name}=" for name, declared in Protocol.declared.items() if declared.says]
    return [each for each in found if each.startswith(incomplete)]


def evaluate(
    test: options.Test = None,
    train: options.Train = None,
    split: options.Split = None,
    run: options.Run = None,
    factors: options.Factors = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="METRICS",
            help="For instance: 'ndcg@10 recall@5,10,50 ap@1..10'. May be repeated. See: recometer "
            "metrics.",
            autocompletion=complete_metrics,
            show_default=DEFAULT_METRICS,
        ),
    ] = None,
    user: options.User = None,
    item: options.Item = None,
    value: options.Value = None,
    score: options.Score = None,
    rank: options.Rank = None,
    catalogue: options.CatalogueOption = None,
    categories: options.Categories = None,
    features: options.Features = None,
    propensity: options.Propensity = None,
    baseline: options.Baseline = None,
    format_in: Annotated[
        InputFormat | None,
        typer.Option(
            help="Format of standard input.",
            show_default="recognised",
            rich_help_panel=options.DATA,
        ),
    ] = None,
    relevant_from: options.RelevantFrom = None,
    depth: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            min=1,
            help="Cut every list after its first M items (trec_eval's -M).",
            show_default="whole lists",
            rich_help_panel=options.RULES,
        ),
    ] = None,
    complete: Annotated[
        bool | None,
        typer.Option(
            "--complete/--no-complete",
            help="Users of test without a list count as misses (trec_eval's -c), or are left out.",
            show_default="complete; for TREC runs alone not",
            rich_help_panel=options.RULES,
        ),
    ] = None,
    ties: Annotated[
        str | None,
        typer.Option(
            metavar="RULE",
            help=f"Order of equal scores: {', '.join(Protocol.declared['ties'].choices)}.",
            autocompletion=lambda: list(Protocol.declared["ties"].choices),
            show_default="expected",
            rich_help_panel=options.RULES,
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A set of rules: its name, or a saved evaluation (.parquet) to repeat.",
            autocompletion=protocol_names,
            rich_help_panel=options.RULES,
        ),
    ] = "recometer",
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE=VALUE",
            help="Any other rule of the protocol, such as undefined=0. May be repeated.",
            autocompletion=complete_rules,
            rich_help_panel=options.RULES,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Of what is random.", rich_help_panel=options.RULES)
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=output_folder,
            metavar="FOLDER",
            help="Write NAME.parquet for each model and summary.csv into this folder.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    form: options.Form = Format.table,
    per_user: Annotated[
        bool,
        typer.Option(
            "--per-user",
            help="Also print the values of every user (with --format csv: these alone).",
            rich_help_panel=options.OUTPUT,
        ),
    ] = False,
    threads: options.Threads = None,
    quiet: options.Quiet = False,
) -> None:
    """Evaluate models in files against interactions in files.

    Columns are found by their common names (user_id, movieId, rating, ...) unless they are
    given; what was found is said on standard error. Items that a user has in train are not
    ranked for that user. --run and --factors may be repeated.

    Exit codes: 0 done, 1 a failure that is stated on standard error, 2 wrong usage.
    """
    test, train, known = data_of(test, train, split)
    named = models(run or [], factors or [])
    users = None if complete is None else "test" if complete else "known"
    rules = _rules(rule or [], ties=ties, relevant_from=relevant_from, users=users)
    settled = _protocol(protocol, rules)
    metrics = " ".join(metric or [DEFAULT_METRICS])
    parse_under(metrics, settled)  # a wrong name should not wait for the files
    threads = resolve_threads(threads)
    columns = {"user": user, "item": item, "value": value, "score": score, "rank": rank}
    columns |= {name: column for name, column in known.items() if columns.get(name) is None}
    data = [test] if train is None else [test, train]
    files = [path for model in named for path in model.paths if path]
    check_stdin([*data, *files], format_in)
    if rank not in (None, NONE) and score not in (None, NONE):
        raise typer.BadParameter("--rank and --score: name the one to rank by.")
    compared_with = baseline_of(baseline, named)
    if out is not None:
        more = [] if compared_with is None else compared_with.paths
        _check_out(
            out, named, [*data, *files, *more, protocol, *([catalogue] if catalogue else [])]
        )
        _make_folder(out)

    def note(text: str) -> None:
        if not quiet:
            typer.echo(text, err=True)

    of_items = catalogue_columns(catalogue, categories, features, propensity)
    results: dict[str, Evaluation] = {}
    with StandardInput(format_in) as stdin:
        inputs = Inputs(stdin, columns, note)
        inputs.check_columns([*data, *files])
        test_data, train_data = inputs.both(test, train)
        items = inputs.catalogue(catalogue, test_data, of_items)
        compared = None if compared_with is None else inputs.source(compared_with, test_data, depth)
        if protocol == Protocol().name and "users" not in rules:
            settled = settled.replace(users=_users(named, inputs))
        for model in named:
            source = inputs.source(model, test_data, depth)
            with inputs.stated(model):
                results[model.name] = run_evaluation(
                    source,
                    test_data,
                    train=train_data,
                    metrics=metrics,
                    protocol=settled,
                    catalogue=items,
                    baseline=compared,
                    seed=seed,
                    threads=threads,
                    progress=False if quiet else None,
                )
            if out is not None:
                results[model.name].save(out / f"{model.name}.parquet")
    if out is not None:
        _write(out / SUMMARY, summary_csv(results))
        note(f"written: {out}: {', '.join(f'{name}.parquet' for name in results)}, {SUMMARY}")
    print_results(results, form, per_user)


def _users(named: Sequence[Model], inputs: Inputs) -> str:
    """Return who counts unless it is said: one rule for all models, whose means are compared."""
    runs = [model.name for model in named if inputs.is_trec(model)]
    if len(runs) == len(named):
        return "known"
    if runs:
        warn(
            f"{', '.join(runs)}: beside models that are no TREC runs, topics without a list count "
            "as misses. Hint: --complete confirms that, --no-complete leaves them out for all."
        )
    return "test"


def _rules(texts: list[str], **options: object) -> dict[str, Any]:
    """Return the rules that options give, by name."""
    rules: dict[str, Any] = {name: rule for name, rule in options.items() if rule is not None}
    for text in texts:
        name, equals, rule = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not RULE=VALUE.", param_hint="--rule")
        if name in rules:
            raise typer.BadParameter(f"the rule {name!r} is given twice.", param_hint="--rule")
        declared = Protocol.declared.get(name)
        rules[name] = rule if declared is None else declared.read(rule)
    return rules


def _protocol(name: str, rules: dict[str, Any]) -> Protocol:
    if name in protocol_names():
        found = named_protocol(name)
    elif name.endswith(".parquet"):
        found = load(name).protocol
    else:
        raise typer.BadParameter(
            f"there is no protocol {name!r}. {did_you_mean(name, protocol_names())} Or name a "
            "saved evaluation (.parquet).",
            param_hint="--protocol",
        )
    try:
        return found.replace(**rules)
    except RecometerError as error:
        raise typer.BadParameter(str(error)) from error


def _check_out(out: Path, named: Sequence[Model], inputs: Iterable[str]) -> None:
    """Raise if an output would replace an input, or what recometer did not write."""
    paths = [*(out / f"{model.name}.parquet" for model in named), out / SUMMARY]
    check_replaced(paths, lambda path: is_summary(path) or is_table(path), inputs)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"--out {folder}: the folder cannot be made ({error.strerror}). "
            "Hint: name a folder, new or not."
        ) from error


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise FileError(f"{path} cannot be written: {error.strerror}.") from error
