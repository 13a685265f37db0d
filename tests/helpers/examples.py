"""The number of Hypothesis cases for tests that need fewer or more than others."""

from hypothesis import settings


def examples(share: float) -> settings:
    """Return settings for a share of the profile's number of cases; see `conftest.py`."""
    return settings(max_examples=max(round(share * settings.default.max_examples), 1))
