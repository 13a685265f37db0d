"""Read tests/metrics/convention_numbers.toml: numbers that libraries printed for small cases."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

import recometer as rm
from recometer.metrics.conventions import find

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

FILE = pathlib.Path(__file__).parents[1] / "metrics" / "convention_numbers.toml"
CONTENT = tomllib.loads(FILE.read_text(encoding="utf-8"))
CASES = CONTENT.pop("cases")


def printed_values() -> Iterator[tuple[str, str, Mapping[str, Mapping[str, float]]]]:
    """Yield the conventions and cases, each with the printed numbers of every metric."""
    for name, part in CONTENT.items():
        for convention in filter(None, (part.get("convention", name), part.get("also"))):
            yield convention, part["case"], part["numbers"]


def rules_of(convention: str | rm.Protocol) -> rm.Protocol:
    """Return the rules of a convention."""
    if isinstance(convention, rm.Protocol):
        return convention
    found = find(convention)
    assert found is not None
    return found.protocol


def evaluate(convention: str | rm.Protocol, case: str, metric: str) -> rm.Evaluation:
    """Evaluate a case of the file, where "binary" and "all items" are variants of "lists"."""
    given: dict[str, Any] = CASES["lists" if case in ("binary", "all items") else case]
    asked: dict[str, Any] = {"metrics": metric, "protocol": convention}
    if case in ("ratings", "labels"):
        frame = pl.DataFrame({name: given[name] for name in ("user", "item", "rating", "score")})
        # Some conventions have a fixed threshold, and then accept no other one.
        said = isinstance(rules_of(convention).relevant_from, float)
        threshold = None if said else given["threshold"]
        pairs = rm.Pairs(frame, rating="rating", score="score", threshold=threshold)
        return rm.evaluate(pairs, **asked)
    if case == "repeated":
        rows = [("user", item) for item in given["test"]]
        frame = pl.DataFrame(rows, ["user", "item"], orient="row")
        return rm.evaluate(rm.Lists({"user": given["list"]}), frame, **asked)
    if case in ("scores", "queries"):
        return rm.evaluate(rm.Scores(np.array(given["scores"])), np.array(given["test"]), **asked)
    if case == "matrix":
        scores, train, test = (np.array(given[name]) for name in ("scores", "train", "test"))
        kinds = np.array(given["kinds"], bool)
        asked["catalogue"] = rm.Catalogue(len(kinds), categories=kinds)
        return rm.evaluate(rm.Scores(scores), test, train=train, **asked)
    if case == "factors":
        source = rm.Factors(np.array(given["users"]), np.array(given["items"]))
        train, test = (np.array(given[name]) for name in ("train", "test"))
        return rm.evaluate(source, test, train=train, **asked)
    if case == "negative":
        return rm.evaluate(rm.Lists(given["lists"]), given["test"], **asked)
    test = given["test"]
    if case == "binary":
        test = {user: [item for item, gain in of.items() if gain] for user, of in test.items()}
    source: Any = rm.Lists(given["lists"])
    if case == "all items":
        items, users = given["catalogue"]["item"], list(given["lists"])
        scores = [[given["lists"][user].get(item, 0.1) for item in items] for user in users]
        source = rm.Scores(np.array(scores), user_ids=users, item_ids=items)
    return rm.evaluate(
        source,
        test,
        train=given["train"],
        baseline=rm.Lists(given["baseline"]),
        catalogue=rm.Catalogue(
            pl.DataFrame(given["catalogue"]), categories="categories", features="size"
        ),
        **asked,
    )


def our_value(result: rm.Evaluation, metric: str, which: str) -> float:
    """Return recometer's value for a user, or over all users."""
    if which == "mean":
        return result.mean()[metric]
    users = range(len(result)) if result.user_ids is None else result.user_ids.tolist()
    return float(result[metric][[str(user) for user in users].index(which)])
