"""Hypothesis settings for tests that need fewer or more cases than the profile specifies."""

from hypothesis import settings


def examples(share: float) -> settings:
    """Return settings with `share` times as many cases as the profile (see `conftest.py`)."""
    return settings(max_examples=max(round(share * settings.default.max_examples), 1))
