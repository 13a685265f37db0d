"""Settings for tests that need fewer or more Hypothesis cases than others."""

from hypothesis import settings


def examples(share: float) -> settings:
    """Return settings with a multiple of the profile's number of cases; see `conftest.py`."""
    return settings(max_examples=max(round(share * settings.default.max_examples), 1))
