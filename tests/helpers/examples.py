"""Settings for tests that need fewer or more Hypothesis cases than others."""

from hypothesis import settings


def examples(share: float) -> settings:
    """Return settings that multiply the number of cases of the profile (see `conftest.py`)."""
    return settings(max_examples=max(round(share * settings.default.max_examples), 1))
