"""Flat names and values for experiment trackers, in which ``ndcg@10`` is ``ndcg_at_10``.

A name begins with the metric and consists of ASCII letters, digits and ``_``, which MLflow, W&B,
TensorBoard and DVC all accept. It is read from left to right: a word from `WORDS` between two ``_``
stands for a sign, a ``_`` between two digits for a decimal point, and ``_x2f_`` for the character
with this hexadecimal code. Every other ``_`` stands for itself.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Iterable
from typing import Literal, get_args

from recometer.data.paths import as_path, write_atomic
from recometer.errors import InputError, InputTypeError, brief, did_you_mean
from recometer.rendering import plain

Statistic = Literal[
    "mean", "low", "high", "chance", "counted", "skipped", "p_value", "adjusted_p"
]  # fmt: skip
STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
"""The statistics of a metric; a mean has the same flat name as the metric itself."""

WORDS = {"@": "at", "(": "with", "=": "is", ",": "and", "-": "minus", "+": "plus", " ": "space"}
_SIGNS = {word: sign for sign, word in WORDS.items()}
# The words before the model's name and, in a comparison, before the other model's name.
_OF, _VERSUS = "of", "versus"
_TOKEN = re.compile(
    rf"_(?P<sign>{'|'.join(_SIGNS)})_"
    r"|_x(?P<code>[0-9a-f]{1,6})_"
    rf"|_(?P<part>{_OF}|{_VERSUS})_"
    rf"|_(?P<statistic>{'|'.join(STATISTICS[1:])})\Z"
    r"|(?<=\d)(?P<point>_)(?=\d)"
)


@dataclasses.dataclass(frozen=True)
class FlatName:
    """The parts of a flat name: ``str()`` joins them, and `FlatName.read` parses a name.

    Attributes
    ----------
    metric
        The name of the metric as in `recometer.evaluate`, such as ``"ndcg@10"``.
    statistic
        ``"mean"`` (for a comparison, the difference of two means); ``"low"`` and ``"high"``, the
        ends of its interval; ``"chance"``, the expected value for a random order; ``"counted"`` and
        ``"skipped"``, the numbers of users who do and do not count in the mean; ``"p_value"``; or
        ``"adjusted_p"``, which accounts for all comparisons.
    model
        The model. None if there is only one.
    other
        The model with which `model` is compared, if any.

    Examples
    --------
    >>> str(FlatName("ndcg@10")), str(FlatName("ndcg@10", "low"))
    ('ndcg_at_10', 'ndcg_at_10_low')
    >>> str(FlatName("f@5(beta=0.5,empty=undefined)", model="als"))
    'f_at_5_with_beta_is_0_5_and_empty_is_undefined_of_als'
    >>> FlatName.read("ndcg_at_10_of_als_versus_bpr_p_value")
    FlatName(metric='ndcg@10', statistic='p_value', model='als', other='bpr')
    """

    metric: str
    statistic: Statistic = "mean"
    model: str | None = None
    other: str | None = None

    def __post_init__(self) -> None:
        for part in (self.metric, self.model, self.other):
            if part is not None and not isinstance(part, str):
                raise InputTypeError(
                    f"{brief(part)} is of type {type(part).__name__}, expected the name of a "
                    "metric or a model. Hint: FlatName('ndcg@10', model='als')."
                )
        if self.statistic not in STATISTICS:
            raise InputError(
                f"A metric has no statistic {self.statistic!r}. "
                f"{did_you_mean(str(self.statistic), STATISTICS)}"
            )
        if self.other is not None and self.model is None:
            raise InputError(
                f"other={self.other!r} is compared with a model, but model is missing."
            )

    def __str__(self) -> str:
        written = _written(self.metric)
        for word, text in ((_OF, self.model), (_VERSUS, self.other)):
            written += "" if text is None else f"_{word}_{_written(text)}"
        return written if self.statistic == "mean" else f"{written}_{self.statistic}"

    @classmethod
    def read(cls, name: str) -> FlatName:
        """Parse a flat name.

        Raises
        ------
        InputError
            If `FlatName` does not produce such a name.
        InputTypeError
            If the name is not a string.
        """
        if not isinstance(name, str):
            raise InputTypeError(
                f"A flat name must be a string, found {type(name).__name__}. Hint: use a key of "
                "result.flat(), such as 'ndcg_at_10'."
            )
        parts, statistic = _parts(name)
        words = tuple(word for word, _ in parts[1:])
        if words in ((), (_OF,), (_OF, _VERSUS)):
            flat = cls(parts[0][1], statistic, *(text for _, text in parts[1:]))
            if str(flat) == name:
                return flat
        raise InputError(
            f"{brief(name)} is not a name from result.flat(). Hint: without a prefix added to "
            "it, such a name looks like ndcg_at_10, ndcg_at_10_low or ndcg_at_10_of_als."
        )


def by_flat_name(
    values: Iterable[tuple[FlatName, float | int]], path: str | os.PathLike[str] | None
) -> dict[str, float | int]:
    """Return values, keyed by their flat names; with a path, also write them to a JSON file.

    Undefined values are written as null. Raises FileError if the file cannot be written.
    """
    numbers = {
        str(name): int(value) if name.statistic in ("counted", "skipped") else float(value)
        for name, value in values
    }
    if path is not None:
        import json  # rarely needed

        text = json.dumps(plain(dict(numbers)), indent=2, allow_nan=False)
        write_atomic(as_path(path, "values"), f"{text}\n".encode())
    return numbers


def _written(text: str) -> str:
    """Rewrite a string using only the characters that flat names allow."""
    short = _escaped(text.removesuffix(")"), literal="_")
    # If the short form would be read as something else, spell out every sign. Also try the short
    # form with the ending "_low", which may complete a word at the end of the string.
    if all(
        _parts(f"{short}{end}") == ([("", text)], statistic)
        for end, statistic in (("", "mean"), ("_low", "low"))
    ):
        return short
    return _escaped(text, literal="", spelled=set(WORDS) - {"("})


def _escaped(text: str, literal: str, spelled: Iterable[str] = WORDS) -> str:
    """Replace characters other than letters and digits with a word, an underscore or a code."""
    pieces = []
    for place, character in enumerate(text):
        around = text[max(place - 1, 0) : place] + text[place + 1 : place + 2]
        if (character.isascii() and character.isalnum()) or character in literal:
            pieces.append(character)
        elif character == "." and len(around) == 2 and around.isascii() and around.isdigit():
            pieces.append("_")
        elif character in spelled:
            pieces.append(f"_{WORDS[character]}_")
        else:
            pieces.append(f"_x{ord(character):x}_")
    return "".join(pieces)


def _parts(name: str) -> tuple[list[tuple[str, str]], Statistic]:
    """Return a name's parts as pairs (preceding word, string), and the statistic."""
    parts = [("", "")]
    statistic: Statistic = "mean"
    end, opened = 0, False

    def add(text: str) -> None:
        word, before = parts[-1]
        parts[-1] = (word, before + text)

    for token in _TOKEN.finditer(name):
        add(name[end : token.start()])
        end = token.end()
        match token.lastgroup:
            case "sign":
                opened |= token["sign"] == WORDS["("]
                add(_SIGNS[token["sign"]])
            case "code":
                add(chr(min(int(token["code"], 16), sys.maxunicode)))
            case "point":
                add(".")
            case "part":
                add(")" if opened else "")
                parts.append((token["part"], ""))
                opened = False
            case _:
                statistic = token["statistic"]  # type: ignore[assignment]
    add(name[end:])
    add(")" if opened else "")
    return parts, statistic
