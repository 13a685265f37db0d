"""Messages in the words of the command line: options instead of Python's arguments and calls."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from typing import Any

from recometer import rendering
from recometer.protocol import Protocol
from recometer.rendering import Shown, Table

# What a message says in Python, and what it means here; later entries see what earlier ones made.
PHRASES = {
    "catalogue= with a column of categories, or rm.Catalogue(frame, categories=...)": (
        "--catalogue FILE --categories COLUMN"
    ),
    "rm.Catalogue(frame, features=...) as catalogue=": "--catalogue FILE --features COLUMN",
    "rm.Catalogue(frame, propensity=...) as catalogue=": "--catalogue FILE --propensity COLUMN",
    "baseline= (another source, or an evaluation)": "--baseline (a model's name, or a file)",
    "rm.Pairs(frame, score=..., rating=...).": (
        "--pairs FILE reads predicted ratings; --value names the column of the true ones."
    ),
    "rm.Scores, rm.Pairs, and rm.Lists with scores do.": "runs with a column of scores do.",
    "candidates=rm.SampledCandidates(...), or a set of candidates per user.": (
        "--negatives FILE, or --candidates FILE."
    ),
    "recometer.load reads what result.save(path) wrote, nothing else.": (
        "recometer evaluate --out FOLDER writes saved evaluations."
    ),
    "name the file that result.save(path) wrote.": (
        "name a file NAME.parquet in the folder that recometer evaluate --out wrote."
    ),
    "result.save(path) writes one.": "recometer evaluate --out FOLDER writes saved evaluations.",
    "rm.Split.load reads what split.save(folder) wrote.": (
        "recometer split --out FOLDER writes splits."
    ),
    "name their column with time=, or draw at random: Fraction(0.2), Number(1).": (
        "--time names their column; --what fraction=0.2 and --what number=1 draw at random."
    ),
    'rm.compare({"als": result, "pop": other}, baseline="pop").': (
        "recometer compare als.parquet pop.parquet --baseline pop."
    ),
    "; load others into a data frame and pass that.": (
        "; --factors reads arrays of factors (.npy, .npz)."
    ),
    " of rm.Lists and rm.Interactions.of reads such cells": " reads such cells",
    "; in Python they are in recometer.metrics.METRICS.": ".",
    "bounds=(0, 1)": "--bounds 0 1",
    "candidates=rm.Negatives(candidates)": "--negatives FILE",
    "Hint: rm.evaluate(..., train=...).": "Hint: --train FILE.",
    "Hint: evaluate(..., chance=True).": "Hint: recometer evaluate --chance.",
    "n_users=None looks at all of them": "--users 0 looks at all of them",
    "chance=True": "--chance",
    "comparison.full() has all pairs": "--all shows all pairs",
    "cold_start=False in evaluate leaves": "--rule cold_start=false of recometer evaluate leaves",
    "result.by shows": "--by shows",
    "or see correction=.": "or see --rule correction=VALUE.",
    "evaluate(..., protocol='evidently', defects=True)": (
        "--protocol evidently --rule defects=true"
    ),
    ": defects=True is refused": ": --rule defects=true is refused",
    "leave defects=True out": "leave it out",
}
# How a split is made, in a warning: the user has just typed it.
MADE_BY = re.compile(r" by what=.*?(?=\. Hint)")
RUNS = re.compile(r"rm\.Lists\.each\(data, by='(.*?)'\)")
CALL = re.compile(r"(\b(?:rm\.[\w.]+|[A-Z]\w*)\([^)]*\))")
ARGUMENT = re.compile(
    r"\b(user|item|value|score|rank|time|catalogue|candidates|exclude|groups|train|baseline|allow|"
    r"primary|metrics|test|separator)=(False\b|'[^']*'|(?![\w-]))"
)
OTHER_NAMES = {"groups": "by"}  # options that are called otherwise than the arguments

RULE = re.compile(rf"\b({'|'.join(Protocol.declared)})='(\w+)'")


def in_words(message: str) -> str:
    """Return a message with options instead of the arguments and calls that it speaks of.

    Calls that stand for nothing on the command line, ``After(time=500)``, stay.
    """
    for python, ours in PHRASES.items():
        message = message.replace(python, ours)
    message = RUNS.sub(r"--each \1", message)
    parts = CALL.split(MADE_BY.sub(" by --what and --who", message))
    parts[::2] = map(_without_arguments, parts[::2])
    return "".join(parts)


def _without_arguments(text: str) -> str:
    def option(found: re.Match[str]) -> str:
        return f"--{OTHER_NAMES.get(found[1], found[1])} {_value(found[2])}".rstrip()

    def rule(found: re.Match[str]) -> str:
        # What comparisons correct is an option of its own.
        choices = Protocol.declared[found[1]].choices
        own = found[1] == "ties" or (found[1] == "correction" and found[2] not in choices)
        return f"--{found[1]} {found[2]}" if own else f"--rule {found[1]}={found[2]}"

    return RULE.sub(rule, ARGUMENT.sub(option, text))


def _value(written: str | None) -> str:
    if written == "False":
        return "none"
    plain = (written or "").strip("'")
    return shlex.quote(plain) if plain else ""


class InWords(Shown):
    """What is shown, with notes in the words of the command line."""

    def __init__(self, shown: Shown) -> None:
        self.shown = shown

    def table(self) -> Table:
        """Return the table that people read."""
        return _told(self.shown.table())

    def tables(self, width: int | None = None) -> Sequence[Table]:
        """Return tables that are not wider than `width` columns, if that is possible."""
        return [_told(table) for table in self.shown.tables(width)]

    def data(self) -> Table:
        """Return the table that CSV holds."""
        return _told(self.shown.data())

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values (for JSON)."""
        found = self.shown.to_dict()
        if "notes" in found:
            found["notes"] = _notes(found["notes"])
        return found


def output(shown: Shown, form: str = "table") -> None:
    """Write something to standard output, with notes in the words of the command line."""
    rendering.output(InWords(shown), form)


def _told(table: Table) -> Table:
    return dataclasses.replace(table, notes=_notes(table.notes))


def _notes(notes: Sequence[str]) -> list[str]:
    # Rules are listed as they are in Python, and so as --protocol reads them from a result.
    return [note if note.startswith("protocol: ") else in_words(note) for note in notes]
