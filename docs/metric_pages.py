"""Write a page for each metric of the registry, with a computed example."""

import inspect
import re
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import polars as pl

import recometer as rm
from recometer.metrics import METRICS, MetricDefinition
from recometer.metrics.parameters import Parameter
from recometer.metrics.registry import SIDE_DATA

WIDTH = 76  # characters of a formula that the site shows without scrolling
REMARK = re.compile(r" \([^()]*\)$")  # a metric's remark about one of its sources

# One user with five candidates, in the order of the model. Three of the candidates are judged.
ITEMS = ["bread", "milk", "eggs", "tea", "salt"]
GAINS = {"milk": 3.0, "tea": 1.0, "salt": 0.0}
CUTOFFS = (1, 2, 3, 4)
# Six predicted ratings, and the true ratings. For metrics of probabilities, they are divided by 5.
PREDICTED, TRUE = [4.5, 3.5, 3.0, 2.5, 4.0, 1.0], [5.0, 4.0, 2.0, 3.0, 4.0, 1.0]
# Two users' lists over the same five items.
LISTS = {"ann": ["bread", "milk", "tea"], "bob": ["bread", "salt", "eggs"]}
TEST = {"ann": ["milk"], "bob": ["eggs", "milk"]}
TRAIN = {"ann": ["eggs"], "bob": ["tea"], "eve": ["bread", "milk", "tea"]}
BASELINE = {"ann": ["bread", "tea", "salt"], "bob": ["salt", "milk", "bread"]}
# For metrics of repeated items, Bob's list contains one of his training items.
REPEATED = ("repeated_hits", "new_hits")
TRAIN_REPEATED = TRAIN | {"bob": ["tea", "eggs"]}
CATALOGUE: dict[str, list[object]] = {
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
        description(definition),
        f"```text\n{textwrap.fill(definition.formula, WIDTH)}\n```\n",
        "[Metrics](../metrics.md) explains the symbols of the formulas.\n",
        *facts(definition),
        *parameters(definition),
        *example(name, definition),
        *libraries(name),
        *literature(definition),
    ]
    return "\n".join(parts)


def description(definition: MetricDefinition) -> str:
    """Return the first line of the metric function's docstring, without the range."""
    first = (inspect.getdoc(definition.function) or "").split("\n")[0]
    return re.sub("[;,:] (in \\[.*|at most 1|0 or more)\\.$", ".", first).replace("``", "`") + "\n"


def facts(definition: MetricDefinition) -> Iterator[str]:
    """List the range, the direction and other facts about the values."""
    definition = definition.with_parameters(())
    better = "Higher" if definition.higher_is_better else "Lower"
    yield f"* {bounds(definition)}"
    yield f"* {better} values are better."
    yield f"* A cut-off, as in `{definition.name}@10`, is {cutoff(definition)}."
    if definition.over_users:
        yield "* There is one value for all users, not one per user."
    if definition.side:
        data = " and ".join(SIDE_DATA[side][0] for side in definition.side)
        yield f"* In addition to the model's output, the metric needs {data}."
    if definition.other_names:
        yield f"* Other names: {', '.join(f'`{other}`' for other in definition.other_names)}."
    yield ""


def bounds(definition: MetricDefinition) -> str:
    """State the range of the values."""
    low, high = definition.lower, definition.upper
    if np.isfinite(low) and np.isfinite(high):
        return f"The values lie between {low:g} and {high:g}."
    if np.isfinite(low):
        return f"The values are at least {low:g}, without an upper bound."
    if np.isfinite(high):
        return f"The values are at most {high:g}, without a lower bound."
    return "The values have no bounds."


def cutoff(definition: MetricDefinition) -> str:
    """State whether the metric takes a cut-off."""
    words = {"required": "required", "optional": "optional; without it, the whole ranking is used"}
    return words.get(definition.cutoff, "not possible")


def parameters(definition: MetricDefinition) -> Iterator[str]:
    """List the parameters; those for conventions only are folded away."""
    visible, folded = (
        [
            declared
            for declared in definition.parameters.values()
            if declared.for_conventions == kind
        ]
        for kind in (False, True)
    )
    if visible or folded:
        yield "## Parameters\n"
    for declared in visible:
        yield from parameter(definition, declared)
    if folded:
        names = ", ".join(f"`{declared.name}`" for declared in folded)
        yield f":::{{dropdown}} Only to reproduce other libraries' numbers: {names}"
        yield "The [convention](../conventions.md) of a library sets them if necessary.\n"
        for declared in folded:
            yield from parameter(definition, declared)
        yield ":::\n"


def parameter(definition: MetricDefinition, declared: Parameter) -> Iterator[str]:
    """Describe a parameter, its values and its default."""
    if declared.is_flag:
        yield f"**`{declared.name}`**: {declared.sentence}"
        yield f"To switch it on, write its name, as in `{written(definition, declared.name)}`.\n"
        return
    default = "" if declared.default is None else f", by default {declared.default}"
    numbers = "" if declared.choices else f" ({declared.values}{default})"
    yield f"**`{declared.name}`**{numbers}: {declared.sentence}\n"
    for choice, sentence in declared.choices.items():
        usual = " (default)" if choice == declared.default else ""
        yield f"* `{choice}`{usual}: {sentence}"
    sample = next(
        (value for value in (*declared.choices, *declared.examples) if value != declared.default),
        None,
    )
    if declared.choices:
        yield ""
    if sample is not None:
        yield f"To set it, write for example `{written(definition, declared.write(sample))}`.\n"


def written(definition: MetricDefinition, setting: str) -> str:
    """Write the name of the metric with a parameter."""
    cutoff = "" if definition.cutoff == "none" else "@10"
    return f"{definition.name}{cutoff}({setting})"


def example(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute the metric for a few items."""
    yield "## Example\n"
    if definition.record == "ratings":
        yield from rated(name, definition)
    elif definition.record == "lists":
        yield from listed(name, definition)
    else:
        yield from ranked(name, definition)


def ranked(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute the metric for one user at each cut-off."""
    yield "These are a user's candidates, best score first. A `-` marks items that test lacks:\n"
    yield "| rank | item | value in test |\n|---|---|---|"
    for rank, item in enumerate(ITEMS, 1):
        value = f"{GAINS[item]:g}" if item in GAINS else "-"
        yield f"| {rank} | {item} | {value} |"
    yield ""
    names = [f"{name}@{k}" for k in CUTOFFS] if definition.cutoff != "none" else []
    whole_ranking = definition.cutoff != "required" and not definition.order_free
    names += [name] if whole_ranking or not names else []
    # Other users' training items make items popular; they do not exclude candidates of this user.
    other_users = {user: items for user, items in TRAIN.items() if user != "ann"}
    arguments: dict[str, object] = {}
    if definition.reads == "inverse_popularity":
        arguments = {"train": other_users}
        yield f"{in_words('The training items', other_users)}\n"
    source = rm.Scores([[0.9, 0.7, 0.5, 0.3, 0.1]], user_ids=["ann"], item_ids=ITEMS)
    yield from table(source, {"ann": GAINS}, names, **arguments)


def rated(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute the metric for six rows of one user."""
    shares = definition.needs == "probabilities"
    predicted = [value / 5 for value in PREDICTED] if shares else PREDICTED
    yield "These are a user's predicted and true ratings. Ratings of 4 or more are relevant:\n"
    yield f"| predicted | {' | '.join(f'{value:g}' for value in predicted)} |"
    yield f"|---|{'---|' * len(predicted)}"
    yield f"| true | {' | '.join(f'{value:g}' for value in TRUE)} |\n"
    names = [f"{name}@3"] if definition.cutoff == "required" else [name]
    frame = pl.DataFrame({"user": ["ann"] * 6, "score": predicted, "rating": TRUE})
    source = rm.Pairs(frame, threshold=4)
    yield from table(source, None, names)


def listed(name: str, definition: MetricDefinition) -> Iterator[str]:
    """Compute the metric for the lists of two users."""
    train, rules = (TRAIN_REPEATED, {"seen": "kept"}) if name in REPEATED else (TRAIN, {})
    yield "These are the lists and the test items of two users:\n"
    yield "| user | list | test |\n|---|---|---|"
    for user, items in LISTS.items():
        yield f"| {user} | {', '.join(items)} | {', '.join(TEST[user])} |"
    yield ""
    yield from side_data(definition, train)
    if rules:
        yield 'The rule `seen="kept"` leaves training items in the lists and in test.\n'
    yield from table(
        rm.Lists(LISTS),
        TEST,
        [f"{name}@{k}" for k in (2, 3)],
        train=train,
        baseline=rm.Lists(BASELINE),
        catalogue=rm.Catalogue(CATALOGUE, features=["sweet", "price"]),
        **rules,
    )


def side_data(definition: MetricDefinition, train: Mapping[str, list[str]]) -> Iterator[str]:
    """Show the side data that the metric reads."""
    sides = set(definition.with_parameters(()).side)
    if "train" in sides:
        yield f"{in_words('The training items', train)}\n"
    if "baseline" in sides:
        yield f"{in_words('The lists of the baseline', BASELINE)}\n"
    columns = {"categories": ["categories"], "features": ["sweet", "price"]}
    shown_columns = [name for side in sorted(sides) for name in columns.get(side, [])]
    if shown_columns:
        yield f"| item | {' | '.join(shown_columns)} |\n|---|{'---|' * len(shown_columns)}"
        for row, item in enumerate(ITEMS):
            cells = [str(CATALOGUE[name][row]).replace("|", ", ") for name in shown_columns]
            yield f"| {item} | {' | '.join(cells)} |"
        yield ""
    if sides & {"catalogue", "catalogue_items"}:
        yield f"The catalogue has {len(ITEMS)} items: {', '.join(ITEMS)}.\n"


def in_words(subject: str, lists: Mapping[str, list[str]]) -> str:
    """Return a sentence about the items of each user, which begins with `subject`."""
    users = "; ".join(f"{', '.join(items)} for {user}" for user, items in lists.items())
    return f"{subject} are {users}."


def table(source: object, test: object, names: list[str], **arguments: object) -> Iterator[str]:
    """Return a table of the values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rm.DataWarning)
        result = rm.evaluate(source, test, metrics=" ".join(names), progress=False, **arguments)
    users = [str(user) for user in result.user_ids] if result.user_ids is not None else ["0"]
    mean = result.mean()
    yield f"| metric | {' | '.join(users)} | mean |\n|---|{'---|' * (len(users) + 1)}"
    for variant in map(str, result.metrics):
        values = np.asarray(result[variant], float).ravel() if variant in result.values else []
        cells = [shown(value) for value in values] or ["" for _ in users]
        yield f"| `{variant}` | {' | '.join(cells)} | {shown(mean[variant])} |"
    yield ""


def literature(definition: MetricDefinition) -> Iterator[str]:
    """List the literature, with the titles from the docstrings."""
    all_references = [
        reference for other in METRICS.values() for reference in (*cited(other), *stated(other))
    ]
    titles = {
        key(reference): REMARK.sub("", reference) for reference in sorted(all_references, key=len)
    }
    references = [*stated(definition), *cited(definition)]
    titles |= {
        key(reference): reference for reference in references if re.search(r"\d{4}, ", reference)
    }
    yield "\n## Literature\n"
    for reference in dict.fromkeys(map(key, references)):
        yield f"* {titles[reference]}"
    yield ""


def stated(definition: MetricDefinition) -> list[str]:
    """Return the sources named in the declaration."""
    return re.split(r"; (?:\w+: )?", definition.source)


def cited(definition: MetricDefinition) -> list[str]:
    """Return the references in the metric function's docstring."""
    match = re.search(r"References\n-+\n(.*)", inspect.getdoc(definition.function) or "", re.DOTALL)
    text = " ".join(match[1].split()) if match else ""
    return [
        reference.rstrip(".")
        for reference in re.split(r"(?<!al)\. |; (?=[A-Z])", text)
        if reference
    ]


def key(reference: str) -> tuple[str, str]:
    """Return the name of the first author and the year."""
    inside = re.search(r"\(([^()]* \d{4})\)", reference)
    text = inside[1] if inside else reference
    year = re.search(r"\b\d{4}\b", text)
    return re.split("[ ,]", text)[0], year[0] if year else ""


def shown(value: float) -> str:
    """Return a value as text."""
    return "undefined" if np.isnan(value) else f"{value:.4f}"


def libraries(name: str) -> Iterator[str]:
    """List the metric's names in other libraries."""
    rows = dict.fromkeys(  # a library may have several conventions
        f"| {convention.library} {convention.version} | `{entry.name}` | `{entry.metric}` |"
        for convention in rm.conventions()
        for entry in convention.entries
        if entry.metric_name == name
    )
    if rows:
        yield "\n## In other libraries\n"
        yield "Under a [convention](../conventions.md), these names follow its library's rules."
        yield "`{k}` is the cut-off, and parts in square brackets are optional.\n"
        yield "| library | its name | the name here |\n|---|---|---|"
        yield from rows


if __name__ == "__main__":
    write(Path(__file__).parent / "metric_pages")
