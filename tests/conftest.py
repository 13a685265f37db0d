"""Settings that all tests share."""

from hypothesis import settings

# Generated cases are the same in every run, and a busy machine makes no test fail.
settings.register_profile("recometer", deadline=None, derandomize=True)
settings.load_profile("recometer")
