"""recometer reproduces the values that libraries print for small cases, under the same names."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from convention_numbers import evaluate, our_value, printed_values

import recometer as rm

# These libraries print numbers in single precision.
SINGLE_PRECISION = {"keras_rs", "warprec"}


@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
@pytest.mark.parametrize(("convention", "case", "printed"), list(printed_values()), ids=str)
def test_printed_numbers_are_reproduced(
    convention: str, case: str, printed: Mapping[str, Mapping[str, float]]
) -> None:
    result = evaluate(convention, case, " ".join(printed))
    tolerance = 1e-6 if convention in SINGLE_PRECISION else 1e-12
    expected = {
        (metric, user): number for metric in printed for user, number in printed[metric].items()
    }
    assert {
        (metric, user): our_value(result, metric, user) for metric, user in expected
    } == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("convention", rm.conventions(), ids=lambda item: item.name)
@pytest.mark.filterwarnings("ignore::recometer.errors.DataWarning")
def test_every_advertised_name_can_be_requested(convention: rm.Convention) -> None:
    """Every name in `recometer conventions` can be requested with and without a cut-off."""
    names: dict[str, list[str]] = {}
    for entry in convention.entries:
        plain = entry.name.replace("{x}", entry.example_number).replace("{k}", "2")
        for name in {re.sub(r"\[.*?\]", "", plain), re.sub(r"[][]", "", plain)}:
            (metric,) = convention.parse(name)
            case = "ratings" if metric.definition.record == "ratings" else "all items"
            names.setdefault(case, []).append(name)
    for case, names_of_case in names.items():
        for defects in (False, True):
            result = evaluate(
                convention.protocol.replace(defects=defects), case, " ".join(names_of_case)
            )
            assert list(map(str, result.metrics)) == names_of_case
            assert list(result.mean()) == names_of_case
