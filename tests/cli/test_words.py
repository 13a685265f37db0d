"""The command line speaks of options, not of Python's arguments."""

from __future__ import annotations

import ast

import pytest
from modules import FILES, nodes_of

from recometer.cli._words import PHRASES, in_words


def texts_of_the_library() -> list[str]:
    """Return every text in the code outside of the command line."""
    return [
        node.value
        for name, path in FILES.items()
        if not name.startswith("cli/")
        for node in nodes_of(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def test_every_phrase_that_is_translated_is_still_said_somewhere() -> None:
    texts = texts_of_the_library()
    assert [phrase for phrase in PHRASES if not any(phrase in text for text in texts)] == []


def test_what_is_translated_is_not_translated_again() -> None:
    for phrase in PHRASES:
        assert in_words(in_words(phrase)) == in_words(phrase)


@pytest.mark.parametrize(
    ("python", "ours"),
    [
        ("pass time=False", "pass --time none"),
        ("pass value='stars'", "pass --value stars"),
        ("ties='input' keeps", "--ties input keeps"),
        ("nan_scores='last' ranks", "--rule nan_scores=last ranks"),
        ("Hint: correction='holm'.", "Hint: --correction holm."),
        ("(correction='plug_in')", "(--rule correction=plug_in)"),
        ("Hint: primary= names the one", "Hint: --primary names the one"),
        ("--core user=3,item=2", "--core user=3,item=2"),
        ("After(time=500) needs times", "After(time=500) needs times"),
        (
            "none is left there by what=Last(number=1), who=AllUsers(). Hint: hold out less",
            "none is left there by --what and --who. Hint: hold out less",
        ),
    ],
)
def test_arguments_become_options(python: str, ours: str) -> None:
    assert in_words(python) == ours
