"""The packages of the extra ``report``, imported when they are needed."""

from __future__ import annotations

import importlib
from typing import Any

from recometer.errors import RecometerError


class MissingExtraError(RecometerError, ImportError):
    """A package is not installed that only reports need."""


def need(module: str) -> Any:
    """Import a module of the extra.

    Raises
    ------
    MissingExtraError
        It is not installed; the message says which package, and how to install it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = PACKAGES[module]
        raise MissingExtraError(
            f"A report needs the package {package}, which is not installed ({error}). Hint: "
            'pip install "recometer[report]".'
        ) from error


PACKAGES = {"jinja2": "jinja2", "altair": "altair", "vl_convert": "vl-convert-python"}
