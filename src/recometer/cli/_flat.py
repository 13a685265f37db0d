"""The option --flat: values by names that trackers of experiments take, as JSON in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from recometer.cli import _options as options
from recometer.data.storage import DAMAGED, check_replaced
from recometer.errors import InputError
from recometer.results.flat import FlatName

Flat = Annotated[
    Path | None,
    options.output_option(
        metavar="FILE",
        help="Also write means, interval ends and numbers of users to this file, as flat JSON "
        "for experiment trackers such as dvc metrics: ndcg_at_10, ndcg_at_10_low, ...",
    ),
]


def check_flat(path: Path | None, inputs: Iterable[str]) -> None:
    """Raise if the file of --flat would replace an input, or what recometer did not write."""
    if path is not None:
        check_replaced([path], _is_flat, inputs)


def _is_flat(path: Path) -> bool:
    """Return whether a file holds nothing but values by flat names."""
    try:
        content = json.loads(path.read_bytes())
        return isinstance(content, dict) and all(FlatName.read(name) for name in content)
    except (OSError, InputError, *DAMAGED):
        return False
