"""Save each evaluation in a Parquet file, and read it back."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from recometer.arrays import Array
from recometer.data.paths import as_path
from recometer.errors import FileError
from recometer.metrics.registry import Metric
from recometer.protocol import Protocol
from recometer.stats.ends import Interval

KIND = "evaluation"  # the kind of content, which is stored in the header
PER_USER = ("n_relevant", "n_candidates", "n_excluded", "depth", "flags")
PROFILE = ("activity", "popularity")  # values per user that exist only with training data
HEADER = (
    *("seed", "counts", "definitions", "timings", "versions", "inputs", "over_rows"),
    *("negative_gains", "binary_gains"),
)
# The names of columns that do not contain metric values.
_chance_column = "{}: chance".format
_reason_column = "{}: reason".format


def write(
    fields: Mapping[str, Any], path: str | os.PathLike[str], together: Mapping[str, Interval]
) -> None:
    """Write an evaluation's fields, and the intervals of metrics with one value for all users."""
    from recometer.data import storage  # slow to import, rarely needed

    columns = {name: fields[name] for name in PER_USER}
    columns |= {name: fields[name] for name in PROFILE if fields[name] is not None}
    columns |= fields["values"]
    columns |= {_reason_column(name): codes for name, codes in fields["reasons"].items()}
    columns |= {_chance_column(name): column for name, column in fields["chance"].items()}
    header = {"kind": KIND, **{name: fields[name] for name in HEADER}}
    header["protocol"] = fields["protocol"].to_dict()
    header["over_users"] = {
        name: [value, *together[name]] for name, value in fields["over_users"].items()
    }
    of_rows = [name for name in fields["over_rows"] if name in together]
    header["over_rows_ends"] = {name: [*together[name]] for name in of_rows}
    header["metrics"] = [dataclasses.astuple(metric) for metric in fields["metrics"]]
    storage.write_table(path, columns, fields["user_ids"], header)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Interval]]:
    """Return the fields and the intervals of the evaluation that a file contains.

    Raises FileError if the file does not exist, is not an evaluation, is damaged, or was written by
    a newer version of recometer.
    """
    from recometer.data import storage

    path = as_path(path, "a saved evaluation")
    columns, user_ids, header = storage.read_table(path)
    if header.get("kind") != KIND:
        raise FileError(
            f"{str(path)!r} contains no evaluation, but {header.get('kind')}. "
            f"{storage.evaluations_hint()}"
        )
    try:
        return _read(columns, user_ids, header)
    except storage.DAMAGED as error:
        raise FileError(
            f"{str(path)!r} is damaged: {type(error).__name__}: {error}. Hint: save the "
            "evaluation again."
        ) from error


def _read(
    columns: Mapping[str, Array], user_ids: Array | None, header: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Interval]]:
    metrics = tuple(Metric(*entry) for entry in header["metrics"])
    names = [str(metric) for metric in metrics]
    over_users = header["over_users"]
    fields: dict[str, Any] = {name: columns[name] for name in PER_USER}
    fields |= {name: columns[name] for name in PROFILE if name in columns}
    fields |= {name: header[name] for name in HEADER}
    fields |= {
        "values": {name: columns[name] for name in names if name not in over_users},
        "reasons": {name: columns[_reason_column(name)] for name in names},
        "chance": {
            name: columns[_chance_column(name)] for name in names if _chance_column(name) in columns
        },
        "user_ids": user_ids,
        "metrics": metrics,
        "protocol": Protocol(**header["protocol"]),
        "over_users": {name: value for name, (value, _, _) in over_users.items()},
    }
    confidence, n = fields["protocol"].confidence, len(fields["n_relevant"])
    ends = {name: (low, high) for name, (_, low, high) in over_users.items()}
    ends |= header["over_rows_ends"]
    unknown = Interval.unknown(confidence, n, "No interval was saved.")
    return fields, {
        name: Interval(low, high, "bootstrap", confidence, n) if low <= high else unknown
        for name, (low, high) in ends.items()
    }
