"""The speed of reading lists that a language model wrote as text.

The script reads a million answers of ten titles: as numbered lists, with one title per line, and as
JSON. One title in ten is not in the catalogue, which has 100,000 titles. The script prints a table.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import polars as pl
from _table import HEADERS, Measure, markdown, seconds

import recometer as rm

SECONDS = 30.0
N_TITLES, LENGTH = 100_000, 10


def title(number: int) -> str:
    """Return a title with punctuation and a year; it is invented if `number` >= `N_TITLES`."""
    return f"The {number:,}th Hour: A Story, Retold ({1950 + number % 75})"


def written(form: str, titles: list[str]) -> str:
    """Return the answer with these titles."""
    if form == "json":
        return json.dumps(titles)
    if form == "numbered":
        titles = [f"{place}. **{text}**" for place, text in enumerate(titles, 1)]
    return "\n".join(titles)


def main() -> None:
    """Time reading a million answers of each form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=1_000_000)
    n = parser.parse_args().answers
    rng = np.random.default_rng(0)
    texts = [title(number) for number in range(N_TITLES + N_TITLES // 9)]
    catalogue = rm.Catalogue({"item": np.arange(N_TITLES), "title": texts[:N_TITLES]})
    table = []
    for form in ("numbered", "lines", "json"):
        answers = []
        for first in range(0, n, 100_000):
            drawn = rng.integers(0, len(texts), (min(100_000, n - first), LENGTH))
            answers += [
                written(form, [texts[position] for position in row]) for row in drawn.tolist()
            ]
        frame = pl.DataFrame({"user": np.arange(n), "answer": answers})
        del answers
        start = time.perf_counter()
        lists = rm.Lists.from_text(frame, catalogue)
        duration = time.perf_counter() - start
        assert lists.invalid is not None
        label = f"{n:,} answers, {form}: {len(lists.invalid):,} invalid places (s)"
        table.append(Measure(label, seconds(duration), "", duration, SECONDS, True))
    print(markdown(HEADERS, [measure.cells() for measure in table]))


if __name__ == "__main__":
    main()
