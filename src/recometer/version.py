"""The version of recometer."""

__version__ = "0.1.0"
