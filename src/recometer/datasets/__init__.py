"""Real data that come with the package, for experiments and examples.

Anonymous Microsoft Web Data: Breese, Heckerman & Kadie (1998), UCI Machine Learning
Repository, https://doi.org/10.24432/C5VS3Q, CC BY 4.0. ``msweb/ATTRIBUTION.md`` lists the
changes.
"""

from __future__ import annotations

import importlib.resources
from typing import TYPE_CHECKING

from recometer.data.interactions import Interactions

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MSWEB_ATTRIBUTION", "msweb", "msweb_items"]

MSWEB_ATTRIBUTION = (
    "Anonymous Microsoft Web Data (Breese, Heckerman & Kadie 1998), "
    "UCI Machine Learning Repository, CC BY 4.0"
)


def msweb() -> Interactions:
    """Return the areas of a web site that 32,710 users visited in one week of February 1998.

    Returns
    -------
    Interactions
        98,653 visits by 32,710 users to 285 areas, without values or times. `msweb_items` returns
        the titles of the areas.
    """
    return Interactions.of(_read("interactions"), user="user_id", item="item_id")


def msweb_items() -> pl.DataFrame:
    """Return the titles of the web site's areas.

    Returns
    -------
    polars.DataFrame
        285 rows: ``item_id`` (int16), ``title`` (string).
    """
    return _read("items")


def _read(table: str) -> pl.DataFrame:
    import polars as pl

    path = importlib.resources.files("recometer.datasets").joinpath("msweb", f"{table}.parquet")
    with path.open("rb") as file:
        return pl.read_parquet(file)
