"""Sizes in memory, as people read them."""

from __future__ import annotations


def size_in_words(n_bytes: float) -> str:
    """Return a size with its unit: ``"12 kB"``, ``"3.4 MB"``."""
    if n_bytes >= 10**9:
        return f"{n_bytes / 1e9:,.1f} GB"
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes >= 10**6 else f"{n_bytes / 1e3:,.1f} kB"
