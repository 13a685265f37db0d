from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Real = TypeVar("Real", np.float32, np.float64)
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

def instruction_sets() -> list[str]: ...
def best_first(indptr: Int64, above: Int64, before: Int64 | None, order: Int64) -> None: ...
def score_items(
    instruction_set: str,
    users: npt.NDArray[Any],
    items: npt.NDArray[Any],
    bias: npt.NDArray[Any] | None,
    rows: Int64 | None,
    indptr: Int64,
    listed: Int32,
    scores: npt.NDArray[Any],
) -> None: ...
def rank_factors(
    instruction_set: str,
    users: npt.NDArray[Any],
    items: npt.NDArray[Any],
    bias: npt.NDArray[Any] | None,
    rows: Int64 | None,
    first: int,
    last: int,
    excluded_indptr: Int64,
    excluded: Int32,
    judged_indptr: Int64,
    judged: Int32,
    judged_scores: npt.NDArray[Any],
    above: Int64,
    tied: Int64,
    before: Int64,
    limit: int,
    check: bool,
    nan_rule: int,
    flags: npt.NDArray[np.uint32],
) -> int: ...
def rank_scores(
    instruction_set: str,
    scores: npt.NDArray[Any],
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    judged_indptr: Int64,
    judged: Int32,
    judged_scores: npt.NDArray[Any],
    above: Int64,
    tied: Int64,
    before: Int64,
    limit: int,
    nan_rule: int,
    flags: npt.NDArray[np.uint32],
    no_candidates: Int64,
) -> int: ...
def top_factors(
    instruction_set: str,
    users: npt.NDArray[Any],
    items: npt.NDArray[Any],
    bias: npt.NDArray[Any] | None,
    rows: Int64 | None,
    first: int,
    last: int,
    excluded_indptr: Int64,
    excluded: Int32,
    order: int,
    keys: UInt64,
    top_scores: npt.NDArray[Any],
    top_items: Int32,
    n: Int64,
    left: Int64,
    check: bool,
    nan_rule: int,
    flags: npt.NDArray[np.uint32],
) -> None: ...
def top_scores(
    instruction_set: str,
    scores: npt.NDArray[Any],
    columns: Int64 | None,
    excluded_indptr: Int64,
    excluded: Int32,
    order: int,
    keys: UInt64,
    top_scores: npt.NDArray[Any],
    top_items: Int32,
    n: Int64,
    left: Int64,
    nan_rule: int,
    flags: npt.NDArray[np.uint32],
    no_candidates: Int64,
) -> None: ...
def rank_lists(
    items: Int32,
    scores: npt.NDArray[np.float64] | None,
    begin: Int64,
    end: Int64,
    n_items: int,
    excluded_indptr: Int64,
    excluded: Int32,
    judged_indptr: Int64,
    judged: Int32,
    input_order: bool,
    nan_rule: int,
    above: Int64,
    tied: Int64 | None,
    before: Int64 | None,
    flags: npt.NDArray[np.uint32],
    given: Int64,
    listed: Int64,
    removed: Int64,
    repeated: Int64,
    order: int,
    keys: UInt64,
    top: Int32,
    left: Int64,
) -> None: ...
def count_rows(list: Int32, counts: Int64) -> bool: ...
def group_rows(
    list: Int32, values: npt.NDArray[Any], next: Int64, grouped: npt.NDArray[Any]
) -> None: ...
def place_rows(
    list: Int32, items: Int32, places: Int32, first: int, indptr: Int64, sorted_items: Int32
) -> bool: ...
def hash_pieces(
    data: npt.NDArray[np.uint8], piece: int, hashes: npt.NDArray[np.uint64]
) -> None: ...
def hold_first(
    users: UInt32,
    items: UInt32,
    user_draws: UInt64,
    item_draws: UInt64,
    times: Int64 | None,
    float_times: bool,
    values: npt.NDArray[np.float64] | None,
    first: int,
    counts: Int64,
    order: int,
    sizes: Int64,
    held: UInt8,
) -> bool: ...
def number_rows(
    users: UInt32,
    items: UInt32,
    user_draws: UInt64,
    item_draws: UInt64,
    times: Int64 | None,
    float_times: bool,
    values: npt.NDArray[np.float64] | None,
    first: int,
    counts: Int64,
    order: int,
    places: UInt32,
) -> bool: ...
def hold_below(
    users: UInt32,
    items: UInt32,
    user_draws: UInt64,
    item_draws: UInt64,
    limit: int,
    held: UInt8,
) -> None: ...
def count_codes(codes: UInt32, counts: Int64) -> None: ...
def trim_core(
    users: UInt32,
    items: UInt32,
    user_counts: Int64,
    item_counts: Int64,
    least_user: int,
    least_item: int,
    backwards: bool,
    kept: UInt8,
) -> int: ...
def number_strings(column: Any, numbers: UInt32, rows: Int64) -> int: ...
