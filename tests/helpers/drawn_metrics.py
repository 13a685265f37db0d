"""A Hypothesis strategy that draws ranking metrics."""

from __future__ import annotations

from hypothesis import strategies as st

from recometer.metrics import METRICS, Metric, reading
from recometer.metrics.parameters import Value
from recometer.testing import variants


@st.composite
def metrics(draw: st.DrawFn, *, max_cutoff: int = 6) -> Metric:
    """Draw a ranking metric with random parameters and, if it takes one, a cut-off."""
    name = draw(st.sampled_from(sorted(reading("ranks"))))
    parameters: dict[str, Value] = {}
    for variant in draw(st.lists(st.sampled_from(variants(name)), min_size=1, max_size=3)):
        parameters |= variant
    definition = METRICS[name].with_parameters(parameters.items())
    cutoffs: st.SearchStrategy[int | None] = st.integers(1, max_cutoff)
    if definition.cutoff == "none":
        cutoffs = st.none()
    elif definition.cutoff == "optional":
        cutoffs = st.none() | cutoffs
    return Metric(name, draw(cutoffs), tuple(parameters.items()))
