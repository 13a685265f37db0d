"""The command line talks about options, not about Python arguments."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from types import CodeType

import pytest
from modules import FILES

from recometer.cli._words import PHRASES, in_words


def texts_of(constants: object) -> list[str]:
    """Return every text among the constants of compiled code and of nested code."""
    if isinstance(constants, str):
        return [constants]
    if isinstance(constants, CodeType):
        constants = constants.co_consts
    if isinstance(constants, tuple | frozenset):
        return [text for constant in constants for text in texts_of(constant)]
    return []


def test_every_translated_phrase_is_still_in_use() -> None:
    # Compiled modules are in files next to the others, and contain no comments.
    library = {name: path for name, path in FILES.items() if not name.startswith("cli/")}
    texts = "\0".join(
        text
        for name, path in library.items()
        for text in texts_of(SourceFileLoader(name, str(path)).get_code(name))
    )
    assert [phrase for phrase in PHRASES if phrase not in texts] == []


def test_translation_is_idempotent() -> None:
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
