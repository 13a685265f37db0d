"""The codes of the reasons for undefined values do not change."""

import recometer as rm


def test_reason_codes_match_saved_evaluations():
    """Saved evaluations contain the codes, so the code of a reason must never change."""
    of_rankings = [
        *("DEFINED", "UNKNOWN_USER", "NO_RELEVANT", "FEW_CANDIDATES", "FEW_RELEVANT"),
        *("COLD_START", "NAN_SCORE", "INFINITE_SCORE", "CONSTANT_SCORES", "CUTOFF_TOO_DEEP"),
        *("ALL_RELEVANT", "NO_GAIN", "GAIN_NOT_FINITE", "NO_CANDIDATES"),
    ]
    also_of_rankings = ["WITHOUT_LIST", "ONE_KIND", "NOT_COUNTED", "FEW_FOR_CUTOFF"]
    of_ratings = [
        *("NO_RATINGS", "NOTHING_RECOMMENDED", "NO_VARIANCE", "NO_PAIRS", "NOT_PROBABILITY"),
    ]
    of_lists = [
        *("NO_LIST", "ONE_ITEM", "NOTHING_SEEN", "NO_HISTORY", "NO_BASELINE", "NO_CATEGORY"),
        *("NO_HISTORY_CATEGORY", "NO_RELEVANT_CATEGORY", "NO_FEATURES", "NO_HIT"),
    ]
    names_by_first_code = {0: of_rankings, 15: also_of_rankings, 20: of_ratings, 30: of_lists}
    expected = {
        name: first + number
        for first, names in names_by_first_code.items()
        for number, name in enumerate(names)
    }
    assert {name: reason.value for name, reason in rm.Reason.__members__.items()} == expected
