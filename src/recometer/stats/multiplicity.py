"""Adjusted p-values of several comparisons."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from recometer.errors import InputError, UnknownNameError, did_you_mean

__all__ = ["Correction", "adjust"]

Float64 = npt.NDArray[np.float64]
Correction = Literal["holm", "benjamini-hochberg", "bonferroni", "none"]


def adjust(p_values: npt.ArrayLike, correction: Correction = "holm") -> Float64:
    """Return p-values adjusted for their number.

    With p(1) ≤ ... ≤ p(m): Holm's are max over j ≤ i of (m - j + 1) p(j), Bonferroni's m p, both
    of which bound the chance of a single error among all comparisons; those of Benjamini and
    Hochberg are min over j ≥ i of m p(j) / j and bound the share of errors among what is called
    significant. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian
    Journal of Statistics 6, 1979; Benjamini & Hochberg, Journal of the Royal Statistical Society B
    57, 1995.

    If you adjust the smallest possible p-values of tests (`TestResult.smallest_p`), you get the
    lower bounds of the adjusted ones.

    Parameters
    ----------
    p_values : [...]
        p-values in any shape. NaN stays NaN and does not count as a comparison.
    correction
        ``"holm"``, ``"benjamini-hochberg"``, ``"bonferroni"`` or ``"none"``.

    Returns
    -------
    float64 [...]
        At most 1.

    Raises
    ------
    InputError
        If a p-value is below 0 or above 1.
    UnknownNameError
        If there is no such correction.

    Examples
    --------
    >>> from recometer.stats import adjust
    >>> adjust([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    if correction not in get_args(Correction):
        hint = did_you_mean(str(correction), get_args(Correction))
        raise UnknownNameError(f"There is no correction {correction!r}. {hint}")
    try:
        given = np.array(p_values, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"p_values must be numbers: {error}.") from None
    known = ~np.isnan(given)
    p = given[known]
    wrong = p[(p < 0) | (p > 1)]
    if len(wrong):
        raise InputError(f"A p-value must lie between 0 and 1, found {wrong[0]:g}.")
    m = len(p)
    order = np.argsort(p, kind="stable")
    adjusted = p[order]
    if correction == "bonferroni":
        adjusted = adjusted * m
    elif correction == "holm":
        adjusted = np.maximum.accumulate(adjusted * np.arange(m, 0, -1))
    elif correction == "benjamini-hochberg":
        steps = adjusted * (m / np.arange(1, m + 1))
        adjusted = np.minimum.accumulate(steps[::-1])[::-1]
    found = np.empty(m)
    found[order] = np.minimum(adjusted, 1.0)
    given[known] = found
    return given
