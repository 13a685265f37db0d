"""Read the numbers that other libraries printed for small cases."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

import recometer as rm

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

FILE = pathlib.Path(__file__).parents[1] / "metrics" / "convention_numbers.toml"
CONTENT = tomllib.loads(FILE.read_text(encoding="utf-8"))
CASES = CONTENT.pop("cases")


def printed_values() -> Iterator[tuple[str, str, Mapping[str, Mapping[str, float]]]]:
    """Yield the name of each convention, the name of its case, and the printed values by metric."""
    for name, part in CONTENT.items():
        for convention in filter(None, (part.get("convention", name), part.get("also"))):
            yield convention, part["case"], part["numbers"]


def convention_of(name: str) -> rm.Convention:
    """Return the convention with this name."""
    return next(convention for convention in rm.conventions() if convention.name == name)


def rules_of(convention: str | rm.Protocol) -> rm.Protocol:
    """Return the rules of a convention."""
    if isinstance(convention, rm.Protocol):
        return convention
    return convention_of(convention).protocol


def evaluate(convention: str | rm.Protocol, case: str, metric: str) -> rm.Evaluation:
    """Evaluate a case from the file; "binary" and "all items" are variants of the case "lists"."""
    content: dict[str, Any] = CASES["lists" if case in ("binary", "all items") else case]
    arguments: dict[str, Any] = {"metrics": metric, "protocol": convention}
    if case in ("ratings", "labels"):
        frame = pl.DataFrame({name: content[name] for name in ("user", "item", "rating", "score")})
        # A convention that sets its own threshold accepts no other threshold.
        has_own_threshold = isinstance(rules_of(convention).relevant_from, float)
        threshold = None if has_own_threshold else content["threshold"]
        pairs = rm.Pairs(frame, rating="rating", score="score", threshold=threshold)
        return rm.evaluate(pairs, **arguments)
    if case == "repeated":
        rows = [("user", item) for item in content["test"]]
        frame = pl.DataFrame(rows, ["user", "item"], orient="row")
        return rm.evaluate(rm.Lists({"user": content["list"]}), frame, **arguments)
    if case in ("scores", "queries"):
        return rm.evaluate(
            rm.Scores(np.array(content["scores"])), np.array(content["test"]), **arguments
        )
    if case == "matrix":
        scores, train, test = (np.array(content[name]) for name in ("scores", "train", "test"))
        kinds = np.array(content["kinds"], bool)
        arguments["catalogue"] = rm.Catalogue(len(kinds), categories=kinds)
        return rm.evaluate(rm.Scores(scores), test, train=train, **arguments)
    if case == "factors":
        source = rm.Factors(np.array(content["users"]), np.array(content["items"]))
        train, test = (np.array(content[name]) for name in ("train", "test"))
        return rm.evaluate(source, test, train=train, **arguments)
    if case == "negative":
        return rm.evaluate(rm.Lists(content["lists"]), content["test"], **arguments)
    test = content["test"]
    if case == "binary":
        test = {
            user: [item for item, gain in gains_of_items.items() if gain]
            for user, gains_of_items in test.items()
        }
    source: Any = rm.Lists(content["lists"])
    if case == "all items":
        items, users = content["catalogue"]["item"], list(content["lists"])
        scores = [[content["lists"][user].get(item, 0.1) for item in items] for user in users]
        source = rm.Scores(np.array(scores), user_ids=users, item_ids=items)
    return rm.evaluate(
        source,
        test,
        train=content["train"],
        baseline=rm.Lists(content["baseline"]),
        catalogue=rm.Catalogue(
            pl.DataFrame(content["catalogue"]), categories="categories", features="size"
        ),
        **arguments,
    )


def our_value(result: rm.Evaluation, metric: str, user: str) -> float:
    """Return recometer's value for a user, or the mean over all users if the user is "mean"."""
    if user == "mean":
        return result.mean()[metric]
    users = range(len(result)) if result.user_ids is None else result.user_ids.tolist()
    return float(result[metric][[str(user) for user in users].index(user)])
