"""The types of rules that are given by name: ``evaluate(..., ties="item", relevant_from=4)``."""

from __future__ import annotations

from typing import Literal, TypedDict

from recometer.protocol.rules import RelevantFrom, RepeatedTest, TieRule


class Rules(TypedDict, total=False):
    """The rules of `Protocol`, each as it is declared there: a test keeps both in step."""

    name: str
    ties: TieRule
    relevant_from: RelevantFrom
    negative_gains: Literal["zero", "counted"]
    undefined: Literal["nan"] | float
    constant_scores: Literal["undefined", "ties"]
    nan_scores: Literal["undefined", "undefined_for_all", "first", "last"]
    single_precision: bool
    infinite_scores: Literal["undefined", "ranked"]
    users: Literal["test", "all", "known", "relevant", "known_relevant", "listed", "positive"]
    min_positives: int
    min_candidates: int
    cold_start: bool
    interval: Literal["gaffke", "t", "percentile", "bca", "bootstrap"]
    confidence: float
    correction: Literal["none", "plug_in", "unbiased", "cv"]
    gamma: float
    no_relevant: Literal["undefined", "computed"] | float
    no_list: Literal["misses", "undefined"]
    deep_cutoffs: Literal["undefined", "undefined_below", "computed"]
    all_relevant: Literal["undefined", "undefined_beyond", "computed"]
    missing: Literal["skip", "zero", "nan"]
    average: Literal["usual", "users", "relevant", "pooled", "parts"]
    decimals: int | None
    percent: bool
    unranked: Literal["misses", "left_out"]
    unknown_items: Literal["misses", "left_out"]
    score_above: float | None
    duplicates: Literal["removed", "first", "counted", "joined"]
    repeated_test: RepeatedTest
    seen: Literal["removed", "kept_in_lists", "kept"]
    shifted_ids: Literal["refused", "kept"]
    version: str
    defects: bool
