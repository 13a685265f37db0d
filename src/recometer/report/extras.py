"""The packages of the extra ``report``, imported when they are needed."""

from __future__ import annotations

from typing import Any

from recometer import errors

PACKAGES = {"jinja2": "jinja2", "altair": "altair", "vl_convert": "vl-convert-python"}


def need(module: str) -> Any:
    """Import a module of the extra; MissingExtraError: it is not installed."""
    return errors.need(module, "A report", "report", PACKAGES[module])
