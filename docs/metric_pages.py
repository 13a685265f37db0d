"""A page for each metric of the registry, with an example that is computed when it is written."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import recometer as rm
from recometer.metrics import METRICS, MetricDefinition
from recometer.metrics.registry import SIDE_DATA

# One user, five candidates in the order of the model, three of them judged.
ITEMS = ["bread", "milk", "eggs", "tea", "salt"]
GAINS = {"milk": 3.0, "tea": 1.0, "salt": 0.0}
CUTOFFS = (1, 2, 3, 4)
# Six predicted ratings beside the true ones; for probabilities, the same as shares.
PREDICTED, TRUE = [4.5, 3.5, 3.0, 2.5, 4.0, 1.0], [5.0, 4.0, 2.0, 3.0, 4.0, 1.0]
# Two users' lists over the same five items.
LISTS = {"ann": ["bread", "milk", "tea"], "bob": ["bread", "salt", "eggs"]}
TEST = {"ann": ["milk"], "bob": ["eggs", "milk"]}
TRAIN = {"ann": ["eggs"], "bob": ["bread", "tea"], "eve": ["bread", "milk"]}
BASELINE = {"ann": ["bread", "eggs", "tea"], "bob": ["bread", "milk", "tea"]}
CATALOGUE = {
    "item": ITEMS,
    "categories": ["food", "drink|fresh", "food|fresh", "drink", "food"],
    "sweet": [0.2, 0.3, 0.1, 0.1, 0.0],
    "price": [2.0, 1.0, 3.0, 4.0, 0.5],
    "propensity": [0.9, 0.6, 0.5, 0.4, 0.3],
}


def write(folder: Path) -> None:
    """Write the pages of all metrics, and the page that lists them."""
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.md"):
        old.unlink()
    for name, definition in METRICS.items():
        folder.joinpath(f"{name}.md").write_text(page(name, definition), encoding="utf-8")
    listed = "\n".join(METRICS)
    text = f"# Each metric\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    folder.joinpath("index.md").write_text(text, encoding="utf-8")


def page(name: str, definition: MetricDefinition) -> str:
    """Return the page of a metric."""
    parts = [
        f"# {name}: {definition.title}\n",
        f"```text\n{definition.formula}\n```\n",
        *facts(definition),
        *parameters(definition),
        *example(name, definition),
        *libraries(name),
        f"\n## Literature\n\n{definition.source}\n",
    ]
    return "\n".join(parts)


def facts(definition: MetricDefinition) -> Iterator[str]:
    """List facts about its values."""
    better = "Higher" if definition.higher_is_better else "Lower"
    yield f"* The values lie between {definition.lower:g} and {definition.upper:g}."
    yield f"* {better} values are better."
    yield f"* A cut-off, as in `{definition.name}@10`, is {cutoff(definition)}."
    if definition.over_users:
        yield "* There is one value for all users, not one per user."
    if definition.side:
        needed = ", ".join(SIDE_DATA[side][0] for side in definition.given(()).side)
        yield f"* Besides lists, it needs {needed}." if needed else ""
    if definition.other_names:
        yield f"* Other names: {', '.join(f'`{other}`' for other in definition.other_names)}."
    yield ""


def cutoff(definition: MetricDefinition) -> str:
    """Say whether it takes a cut-off."""
    words = {"required": "required", "optional": "optional; without one, the whole ranking is read"}
    return words.get(definition.cutoff, "not possible")


def parameters(definition: MetricDefinition) -> Iterator[str]:
    """List its parameters; long ones fold."""
    if not definition.parameters:
        return
    yield "## Parameters\n"
    for name, parameter in definition.parameters.items():
        yield f":::{{dropdown}} `{name}={parameter.default}`: {parameter.sentence}"
        for choice, sentence in parameter.choices.items():
            yield f"* `{choice}`: {sentence}"
        if isinstance(parameter.default, bool):
            yield f"To switch it on, write its name, as in `{definition.name}({name})`."
        elif not parameter.choices:
            yield f"It takes {parameter.values}."
        yield ":::\n"


def example(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute it for a few items."""
    yield "## Example\n"
    if definition.record == "ratings":
        yield from rated(name, definition)
    elif definition.record == "lists":
        yield from listed(name, definition)
    else:
        yield from ranked(name, definition)


def ranked(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute it for one user at each cut-off."""
    yield "These are the five candidates of a user, best score first; `-` means not judged:\n"
    yield "| rank | item | value in test |\n|---|---|---|"
    for rank, item in enumerate(ITEMS, 1):
        value = f"{GAINS[item]:g}" if item in GAINS else "-"
        yield f"| {rank} | {item} | {value} |"
    yield ""
    names = [f"{name}@{k}" for k in CUTOFFS] if definition.cutoff != "none" else []
    whole = definition.cutoff != "required" and not definition.order_free
    names += [name] if whole or not names else []
    # What others have in train makes items popular, and leaves this user's candidates alone.
    others = {user: items for user, items in TRAIN.items() if user != "ann"}
    given = {"train": others} if definition.reads == "inverse_popularity" else {}
    source = rm.Scores([[0.9, 0.7, 0.5, 0.3, 0.1]], user_ids=["ann"], item_ids=ITEMS)
    yield from table(source, {"ann": GAINS}, names, **given)


def rated(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute it for six rows of one user."""
    shares = definition.needs == "probabilities"
    predicted = [value / 5 for value in PREDICTED] if shares else PREDICTED
    yield "These are predicted and true ratings of a user, and ratings from 4 on are relevant:\n"
    yield f"| predicted | {' | '.join(f'{value:g}' for value in predicted)} |"
    yield f"|---|{'---|' * len(predicted)}"
    yield f"| true | {' | '.join(f'{value:g}' for value in TRUE)} |\n"
    names = [f"{name}@3"] if definition.cutoff == "required" else [name]
    frame = pl.DataFrame({"user": ["ann"] * 6, "score": predicted, "rating": TRUE})
    source = rm.Pairs(frame, threshold=4)
    yield from table(source, None, names)


def listed(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute it for the lists of two users."""
    yield "These are the lists of two users; `*` marks the items that they chose:\n"
    yield "| user | list |\n|---|---|"
    for user, items in LISTS.items():
        marked = ", ".join(f"{item} *" if item in TEST[user] else item for item in items)
        yield f"| {user} | {marked} |"
    yield ""
    yield from table(
        rm.Lists(LISTS),
        TEST,
        [f"{name}@{k}" for k in (2, 3)],
        train=TRAIN,
        baseline=rm.Lists(BASELINE),
        catalogue=rm.Catalogue(CATALOGUE, features=["sweet", "price"]),
    )


def table(source: object, test: object, names: list[str], **given: object) -> Iterator[str]:
    """Return a table of the values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        result = rm.evaluate(source, test, metrics=" ".join(names), progress=False, **given)
    users = [str(user) for user in result.user_ids] if result.user_ids is not None else ["0"]
    mean = result.mean()
    yield f"| metric | {' | '.join(users)} | mean |\n|---|{'---|' * (len(users) + 1)}"
    for variant in map(str, result.metrics):
        values = np.asarray(result[variant], float).ravel() if variant in result.values else []
        cells = [shown(value) for value in values] or ["" for _ in users]
        yield f"| `{variant}` | {' | '.join(cells)} | {shown(mean[variant])} |"
    yield ""


def shown(value: float) -> str:
    """Return a value as text."""
    return "undefined" if np.isnan(value) else f"{value:.4f}"


def libraries(name: str) -> Iterator[str]:
    """List what other libraries call it."""
    rows = dict.fromkeys(  # a library may have several conventions
        f"| {convention.library} {convention.version} | `{entry.name}` | `{entry.metric}` |"
        for convention in rm.conventions()
        for entry in convention.entries
        if entry.metric_name == name
    )
    if rows:
        yield "\n## In other libraries\n"
        yield "A [convention](../conventions.md) gives these names the rules of their library:\n"
        yield "| library | its name | the name here |\n|---|---|---|"
        yield from rows


if __name__ == "__main__":
    write(Path(__file__).parent / "metric_pages")
