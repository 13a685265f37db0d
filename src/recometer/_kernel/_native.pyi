"""The functions of the kernel. The headers in cpp/ describe them."""

import enum
from typing import overload

import numpy
from numpy.typing import NDArray

class NanRule(enum.IntEnum):
    """How to treat a candidate whose score is NaN."""

    UNDEFINED = 0
    """The user's values are undefined."""

    FIRST = 1
    """The candidate ranks above all others."""

    LAST = 2
    """The candidate ranks below all others."""

class TieOrder(enum.IntEnum):
    """How to order candidates with equal scores."""

    ITEM = 0
    """Lower items first."""

    ITEM_DESCENDING = 1
    """Higher items first."""

    RANDOM = 2
    """In a random order that depends on the user's key."""

class RowOrder(enum.IntEnum):
    """How to order a user's rows."""

    LATEST = 0
    """Latest first; at equal times, lowest draw first."""

    DRAWN = 1
    """Lowest draw first."""

    PAIRS = 2
    """Grouped by item, latest first."""

    OLD_PAIRS = 3
    """Grouped by item, earliest first."""

class ScoreFlag(enum.IntEnum):
    """Flags for a user's candidates, as in recometer.ranks.UserFlag."""

    NAN_SCORE = 4
    """A candidate's score is NaN."""

    INFINITE_SCORE = 8
    """A candidate's score is infinite."""

def instruction_sets() -> dict[str, int]:
    """
    Return the instruction sets that this processor supports, best first.

    Each value is the number of users that the instruction set scores at a time.
    """

@overload
def score_items(
    *,
    instruction_set: str,
    users: NDArray[numpy.float32],
    items: NDArray[numpy.float32],
    bias: NDArray[numpy.float32] | None,
    rows: NDArray[numpy.int64] | None,
    indptr: NDArray[numpy.int64],
    listed: NDArray[numpy.int32],
    scores: NDArray[numpy.float32],
) -> None: ...
@overload
def score_items(
    *,
    instruction_set: str,
    users: NDArray[numpy.float64],
    items: NDArray[numpy.float64],
    bias: NDArray[numpy.float64] | None,
    rows: NDArray[numpy.int64] | None,
    indptr: NDArray[numpy.int64],
    listed: NDArray[numpy.int32],
    scores: NDArray[numpy.float64],
) -> None: ...
@overload
def rank_factors(
    *,
    instruction_set: str,
    users: NDArray[numpy.float32],
    items: NDArray[numpy.float32],
    bias: NDArray[numpy.float32] | None,
    rows: NDArray[numpy.int64] | None,
    by_place: NDArray[numpy.int32] | None,
    places: NDArray[numpy.int32] | None,
    item_bound: NDArray[numpy.float64] | None,
    user_bound: NDArray[numpy.float64] | None,
    first: int,
    last: int,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    judged_indptr: NDArray[numpy.int64],
    judged: NDArray[numpy.int32],
    judged_scores: NDArray[numpy.float32],
    above: NDArray[numpy.int64],
    tied: NDArray[numpy.int64],
    before: NDArray[numpy.int64],
    limit: int | None,
    check: bool,
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    finished: NDArray[numpy.uint8],
) -> int: ...
@overload
def rank_factors(
    *,
    instruction_set: str,
    users: NDArray[numpy.float64],
    items: NDArray[numpy.float64],
    bias: NDArray[numpy.float64] | None,
    rows: NDArray[numpy.int64] | None,
    by_place: NDArray[numpy.int32] | None,
    places: NDArray[numpy.int32] | None,
    item_bound: NDArray[numpy.float64] | None,
    user_bound: NDArray[numpy.float64] | None,
    first: int,
    last: int,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    judged_indptr: NDArray[numpy.int64],
    judged: NDArray[numpy.int32],
    judged_scores: NDArray[numpy.float64],
    above: NDArray[numpy.int64],
    tied: NDArray[numpy.int64],
    before: NDArray[numpy.int64],
    limit: int | None,
    check: bool,
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    finished: NDArray[numpy.uint8],
) -> int: ...
@overload
def top_factors(
    *,
    instruction_set: str,
    users: NDArray[numpy.float32],
    items: NDArray[numpy.float32],
    bias: NDArray[numpy.float32] | None,
    rows: NDArray[numpy.int64] | None,
    by_place: NDArray[numpy.int32] | None,
    places: NDArray[numpy.int32] | None,
    item_bound: NDArray[numpy.float64] | None,
    user_bound: NDArray[numpy.float64] | None,
    first: int,
    last: int,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    order: TieOrder,
    keys: NDArray[numpy.uint64],
    top_scores: NDArray[numpy.float32],
    top_items: NDArray[numpy.int32],
    n: NDArray[numpy.int64],
    left: NDArray[numpy.int64],
    check: bool,
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    finished: NDArray[numpy.uint8],
) -> None: ...
@overload
def top_factors(
    *,
    instruction_set: str,
    users: NDArray[numpy.float64],
    items: NDArray[numpy.float64],
    bias: NDArray[numpy.float64] | None,
    rows: NDArray[numpy.int64] | None,
    by_place: NDArray[numpy.int32] | None,
    places: NDArray[numpy.int32] | None,
    item_bound: NDArray[numpy.float64] | None,
    user_bound: NDArray[numpy.float64] | None,
    first: int,
    last: int,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    order: TieOrder,
    keys: NDArray[numpy.uint64],
    top_scores: NDArray[numpy.float64],
    top_items: NDArray[numpy.int32],
    n: NDArray[numpy.int64],
    left: NDArray[numpy.int64],
    check: bool,
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    finished: NDArray[numpy.uint8],
) -> None: ...
@overload
def rank_scores(
    *,
    instruction_set: str,
    scores: NDArray[numpy.float32],
    columns: NDArray[numpy.int64] | None,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    judged_indptr: NDArray[numpy.int64],
    judged: NDArray[numpy.int32],
    judged_scores: NDArray[numpy.float32],
    above: NDArray[numpy.int64],
    tied: NDArray[numpy.int64],
    before: NDArray[numpy.int64],
    limit: int | None,
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    no_candidates: NDArray[numpy.int64],
) -> int: ...
@overload
def rank_scores(
    *,
    instruction_set: str,
    scores: NDArray[numpy.float64],
    columns: NDArray[numpy.int64] | None,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    judged_indptr: NDArray[numpy.int64],
    judged: NDArray[numpy.int32],
    judged_scores: NDArray[numpy.float64],
    above: NDArray[numpy.int64],
    tied: NDArray[numpy.int64],
    before: NDArray[numpy.int64],
    limit: int | None,
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    no_candidates: NDArray[numpy.int64],
) -> int: ...
@overload
def top_scores(
    *,
    instruction_set: str,
    scores: NDArray[numpy.float32],
    columns: NDArray[numpy.int64] | None,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    order: TieOrder,
    keys: NDArray[numpy.uint64],
    top_scores: NDArray[numpy.float32],
    top_items: NDArray[numpy.int32],
    n: NDArray[numpy.int64],
    left: NDArray[numpy.int64],
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    no_candidates: NDArray[numpy.int64],
) -> None: ...
@overload
def top_scores(
    *,
    instruction_set: str,
    scores: NDArray[numpy.float64],
    columns: NDArray[numpy.int64] | None,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    order: TieOrder,
    keys: NDArray[numpy.uint64],
    top_scores: NDArray[numpy.float64],
    top_items: NDArray[numpy.int32],
    n: NDArray[numpy.int64],
    left: NDArray[numpy.int64],
    nan_rule: NanRule,
    flags: NDArray[numpy.uint32],
    no_candidates: NDArray[numpy.int64],
) -> None: ...
def best_first(
    indptr: NDArray[numpy.int64],
    above: NDArray[numpy.int64],
    before: NDArray[numpy.int64] | None,
    order: NDArray[numpy.int64],
) -> None: ...
def longest_first(
    lengths: NDArray[numpy.float64], order: NDArray[numpy.int32], bounds: NDArray[numpy.float64]
) -> None: ...
def rank_lists(
    *,
    items: NDArray[numpy.int32],
    scores: NDArray[numpy.float64] | None,
    begin: NDArray[numpy.int64],
    end: NDArray[numpy.int64],
    n_items: int,
    excluded_indptr: NDArray[numpy.int64],
    excluded: NDArray[numpy.int32],
    judged_indptr: NDArray[numpy.int64],
    judged: NDArray[numpy.int32],
    input_order: bool,
    nan_rule: NanRule,
    above: NDArray[numpy.int64],
    tied: NDArray[numpy.int64] | None,
    before: NDArray[numpy.int64] | None,
    flags: NDArray[numpy.uint32],
    given: NDArray[numpy.int64],
    listed: NDArray[numpy.int64],
    removed: NDArray[numpy.int64],
    repeated: NDArray[numpy.int64],
    order: TieOrder,
    keys: NDArray[numpy.uint64],
    top: NDArray[numpy.int32],
    left: NDArray[numpy.int64],
) -> None: ...
def count_rows(list: NDArray[numpy.int32], counts: NDArray[numpy.int64]) -> bool: ...
def place_rows(
    *,
    list: NDArray[numpy.int32],
    items: NDArray[numpy.int32],
    places: NDArray[numpy.int32],
    first: int,
    indptr: NDArray[numpy.int64],
    sorted_items: NDArray[numpy.int32],
) -> bool: ...
@overload
def group_rows(
    list: NDArray[numpy.int32],
    values: NDArray[numpy.int32],
    next: NDArray[numpy.int64],
    grouped: NDArray[numpy.int32],
) -> None: ...
@overload
def group_rows(
    list: NDArray[numpy.int32],
    values: NDArray[numpy.float64],
    next: NDArray[numpy.int64],
    grouped: NDArray[numpy.float64],
) -> None: ...
@overload
def take_lists(
    items: NDArray[numpy.int64],
    n_items: int,
    users: NDArray[numpy.int64],
    came: NDArray[numpy.bool_],
    first: int,
    taken: NDArray[numpy.int32],
    taken_users: NDArray[numpy.int64],
) -> bool: ...
@overload
def take_lists(
    items: NDArray[numpy.int32],
    n_items: int,
    users: NDArray[numpy.int64],
    came: NDArray[numpy.bool_],
    first: int,
    taken: NDArray[numpy.int32],
    taken_users: NDArray[numpy.int64],
) -> bool: ...
@overload
def rows_ascend(
    *,
    indptr: NDArray[numpy.int64],
    items: NDArray[numpy.int32],
    n_items: int,
    first: int,
    last: int,
) -> bool: ...
@overload
def rows_ascend(
    *,
    indptr: NDArray[numpy.int64],
    items: NDArray[numpy.int64],
    n_items: int,
    first: int,
    last: int,
) -> bool: ...
def find_rows(
    *,
    indptr: NDArray[numpy.int64],
    items: NDArray[numpy.int32],
    users: NDArray[numpy.int64] | None,
    other_indptr: NDArray[numpy.int64],
    other_items: NDArray[numpy.int32],
    found: NDArray[numpy.int64],
) -> None: ...

ROWS_OF_PART: int = 1024

ROWS_WITHOUT_PARTS: int = 2048

def add_within(
    indptr: NDArray[numpy.int64],
    place: NDArray[numpy.int64],
    terms: NDArray[numpy.float64],
    cutoffs: NDArray[numpy.int64],
    sums: NDArray[numpy.float64],
) -> None: ...
def add_hits(
    indptr: NDArray[numpy.int64],
    place: NDArray[numpy.int64],
    cutoffs: NDArray[numpy.int64],
    sums: NDArray[numpy.float64],
) -> None: ...
def add_precisions(
    indptr: NDArray[numpy.int64],
    place: NDArray[numpy.int64],
    cutoffs: NDArray[numpy.int64],
    sums: NDArray[numpy.float64],
) -> None: ...
def add_discounted(
    indptr: NDArray[numpy.int64],
    place: NDArray[numpy.int64],
    gains: NDArray[numpy.float64],
    logarithms: NDArray[numpy.float64],
    cutoffs: NDArray[numpy.int64],
    sums: NDArray[numpy.float64],
) -> None: ...
def count_within(
    indptr: NDArray[numpy.int64],
    place: NDArray[numpy.int64],
    limits: NDArray[numpy.int64],
    counts: NDArray[numpy.int64],
) -> None: ...
def count_items(
    *,
    indptr: NDArray[numpy.int64],
    items: NDArray[numpy.int32],
    users: NDArray[numpy.int64] | None,
    counts: NDArray[numpy.int64],
    sums: NDArray[numpy.int64],
) -> None: ...
def hold_first(
    *,
    users: NDArray[numpy.uint32],
    items: NDArray[numpy.uint32],
    user_draws: NDArray[numpy.uint64],
    item_draws: NDArray[numpy.uint64],
    times: NDArray[numpy.int64] | None,
    float_times: bool,
    values: NDArray[numpy.float64] | None,
    first: int,
    counts: NDArray[numpy.int64],
    order: RowOrder,
    sizes: NDArray[numpy.int64],
    held: NDArray[numpy.uint8],
) -> bool: ...
def number_rows(
    *,
    users: NDArray[numpy.uint32],
    items: NDArray[numpy.uint32],
    user_draws: NDArray[numpy.uint64],
    item_draws: NDArray[numpy.uint64],
    times: NDArray[numpy.int64] | None,
    float_times: bool,
    values: NDArray[numpy.float64] | None,
    first: int,
    counts: NDArray[numpy.int64],
    order: RowOrder,
    places: NDArray[numpy.uint32],
) -> bool: ...
def hold_below(
    *,
    users: NDArray[numpy.uint32],
    items: NDArray[numpy.uint32],
    user_draws: NDArray[numpy.uint64],
    item_draws: NDArray[numpy.uint64],
    limit: int,
    held: NDArray[numpy.uint8],
) -> None: ...
def count_codes(codes: NDArray[numpy.uint32], counts: NDArray[numpy.int64]) -> None: ...
def trim_core(
    *,
    users: NDArray[numpy.uint32],
    items: NDArray[numpy.uint32],
    user_counts: NDArray[numpy.int64],
    item_counts: NDArray[numpy.int64],
    least_user: int,
    least_item: int,
    backwards: bool,
    kept: NDArray[numpy.uint8],
) -> int: ...
def hash_pieces(data: NDArray[numpy.uint8], piece: int, hashes: NDArray[numpy.uint64]) -> None: ...
def number_strings(
    column: object, numbers: NDArray[numpy.uint32], rows: NDArray[numpy.int64]
) -> int: ...

class Background:
    """Runs steps on threads that do not hold Python's interpreter lock."""

    def __init__(self) -> None: ...
    def hash_pieces(
        self, data: NDArray[numpy.uint8], piece: int, hashes: NDArray[numpy.uint64]
    ) -> None:
        """Add a call to the function of the same name as a step."""

    def count_items(
        self,
        *,
        indptr: NDArray[numpy.int64],
        items: NDArray[numpy.int32],
        users: NDArray[numpy.int64] | None,
        counts: NDArray[numpy.int64],
        sums: NDArray[numpy.int64],
    ) -> None:
        """Add a call to the function of the same name as a step."""

    def start(self, threads: int) -> None:
        """Start the steps."""

    def wait(self, seconds: float) -> bool:
        """Wait at most this many seconds. Return whether all steps have ended."""

    def stop(self) -> None:
        """Skip the steps that have not started, and wait for the others."""
