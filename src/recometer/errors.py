"""The exceptions that recometer raises.

::

    RecometerError                     all of them
    ├── InputError       (ValueError)  data with wrong shapes, ids or values
    ├── InputTypeError   (TypeError)   an object whose type is not supported
    ├── ColumnError      (KeyError)    a column that a table does not have
    ├── UnknownNameError (ValueError)  a metric, rule or convention that does not exist
    ├── FileError        (OSError)     a file that cannot be read, or has the wrong content
    ├── MissingExtraError (ImportError) an optional library is not installed
    ├── ModelError       (RuntimeError) the user's function or model raised an exception
    └── InternalError    (RuntimeError) an internal check of recometer failed: a bug

A warning about the data is a `DataWarning`.
"""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = [
    "ColumnError",
    "DataWarning",
    "FileError",
    "InputError",
    "InputTypeError",
    "InternalError",
    "MissingExtraError",
    "ModelError",
    "RecometerError",
    "UnknownNameError",
]


OPTIONS = {"groups": "by"}  # arguments whose command-line options have other names
RULE_OPTIONS = ("ties", "relevant_from")  # rules that have options of their own
LONGEST = 8_000  # maximum length of a message, because a name may have millions of characters
# Matches control characters, direction marks and lone surrogates, which control a terminal or are
# invisible.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


class RecometerError(Exception):
    """Base class of all errors that recometer raises deliberately.

    Attributes
    ----------
    reason : str
        The message without the hint.
    hint : str
        The hint on how to fix the error, or an empty string.
    """

    # KeyError would show the repr of its argument, with quotes and escapes.
    def __str__(self) -> str:
        text = visible(" ".join(str(argument) for argument in self.args))
        half = LONGEST // 2
        return text if len(text) <= LONGEST else f"{text[:half]} [...] {text[-half:]}"

    @property
    def reason(self) -> str:
        """The message without the hint."""
        return str(self).partition(" Hint: ")[0]

    @property
    def hint(self) -> str:
        """The hint on how to fix the error, or an empty string."""
        return str(self).partition(" Hint: ")[2]


class InputError(RecometerError, ValueError):
    """Raised for data with wrong shapes, ids or values."""


class InputTypeError(RecometerError, TypeError):
    """Raised for an object whose type is not supported."""


class ColumnError(RecometerError, KeyError):
    """Raised for a column that a table does not have."""


class UnknownNameError(RecometerError, ValueError):
    """Raised for a metric, rule or convention that does not exist."""


class FileError(RecometerError, OSError):
    """Raised for a file that cannot be read, or has the wrong content."""


class MissingExtraError(RecometerError, ImportError):
    """Raised if an optional library is not installed; the message says how to install it."""


class ModelError(RecometerError, RuntimeError):
    """Raised if the user's function or model fails; ``__cause__`` is the original exception."""


class InternalError(RecometerError, RuntimeError):
    """Raised if an internal check of recometer fails. This is a bug; please report it."""


class DataWarning(UserWarning):
    """A warning about the data, or about how a rule has treated them."""


def visible(text: str) -> str:
    r"""Replace characters that are invisible or control a terminal with escape sequences.

    Names of models, users and items are untrusted input. Unescaped, they could colour the text
    after them, delete the text before them, or look like a separate line.
    """
    if text.isprintable():
        return text
    return UNSEEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def brief(value: object) -> str:
    """Return the (possibly shortened) repr of an argument, for messages."""
    import reprlib  # imported only here, because only messages need it

    show = reprlib.Repr()
    show.maxstring = show.maxother = 80
    try:
        return show.repr(value)
    except Exception:  # the integer has too many digits, or __repr__ failed
        return f"a {type(value).__name__}"


def did_you_mean(name: str, names: Iterable[str], listed: str = "") -> str:
    """Return a hint with the most similar names (ignoring case), and a list of all names.

    If there are too many names for a message, `listed` is a sentence that replaces the list and
    says where to find them.
    """
    import difflib  # imported only here, because only messages need it

    names = list(names)
    of_lower = {candidate.lower(): candidate for candidate in reversed(names)}
    near = difflib.get_close_matches(str(name).lower(), of_lower, n=3 if listed else 2, cutoff=0.5)
    guess = f"Did you mean {' or '.join(repr(of_lower[n]) for n in near)}? " if near else ""
    return f"Hint: {guess}" + (listed or f"Known: {', '.join(names)}.")


def quantity(n: int, noun: str, plural: str = "") -> str:
    """Return a number with a noun, such as ``"1 user"`` or ``"2,000 users"``."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def python_or_command(python: str, command: str) -> str:
    """Return `command` when running from the command line, and `python` otherwise."""
    return command if _options.get() else python


def argument_text(name: str, value: object = ...) -> str:
    """Return an argument as a user would write it: ``time=False``, or ``--time none``.

    Without a value, return ``train=``, or ``--train``.
    """
    if not _options.get():
        return f"{name}={'' if value is ... else brief(value)}"
    option = f"--{OPTIONS.get(name, name).replace('_', '-')}"
    if value is ... or value is True or value == "":
        return option
    return f"{option} {'none' if value is False else shlex.quote(str(value))}"


def rule_text(name: str, value: object) -> str:
    """Return a rule as a user would write it: ``seen='excluded'``, or ``--rule seen=excluded``."""
    if name in RULE_OPTIONS or not _options.get():
        return argument_text(name, value)
    return f"--rule {name}={option_value(value)}"


def option_value(value: object) -> str:
    """Return the value of a rule as written on the command line, for instance ``false``."""
    return str(value).lower() if isinstance(value, bool | None) else str(value)


@contextlib.contextmanager
def naming_options() -> Iterator[None]:
    """Make messages name command-line options instead of Python arguments."""
    token = _options.set(True)
    try:
        yield
    finally:
        _options.reset(token)


def need(module: str, feature: str, extra: str, package: str | None = None) -> Any:
    """Import a module that an extra of recometer installs.

    `feature` is what the error message calls the part of recometer that needs the module. `package`
    is the package to install, if its name differs from the module's.

    Raises
    ------
    MissingExtraError
        If the module is not installed, or cannot be imported.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{feature} needs the package {package or module}, which is not installed ({error}). "
            f'Hint: pip install "recometer[{extra}]".'
        ) from error


def warn(message: str) -> None:
    """Issue a DataWarning that points to the user's code: the first frame outside recometer."""
    package = os.path.dirname(__file__) + os.sep
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        level, frame = level + 1, frame.f_back
    warnings.warn(visible(_model.get() + message), DataWarning, stacklevel=level)


@contextlib.contextmanager
def naming(model: str, *, errors: bool = True) -> Iterator[None]:
    """Prefix warnings (and errors, if `errors`) with a name, such as that of a model."""
    token = _model.set(f"{model}: " if model else "")
    try:
        yield
    except RecometerError as error:
        if not errors:
            raise
        raise type(error)(f"{model}: {error}") from error
    finally:
        _model.reset(token)


_options: contextvars.ContextVar[bool] = contextvars.ContextVar("options", default=False)
_model: contextvars.ContextVar[str] = contextvars.ContextVar("model", default="")
