"""Evaluate Parquet with more rows than memory: `python many_rows.py IDS FOLDER`.

Prints how many bytes of anonymous memory it took, in a process whose data are limited, and whether
all is as in memory. Run by `test_streamed.py`.
"""

import json
import resource
import sys
from pathlib import Path

import numpy as np
import polars as pl
from streamed import Watch, anonymous

import recometer as rm

LIMIT = 2**30  # of the data of the process
BUDGET = 20 * 10**6
N_USERS, N_ITEMS, N_FACTORS = 60_000, 5_000, 8
FILES = {"test": (4, 750_000), "train": (4, 2_250_000)}  # and the rows of each


def write(folder, named):
    """Write rows in any order, so that each user is in all files; some repeat a pair."""
    for number, (side, (n_files, n_rows)) in enumerate(FILES.items()):
        (folder / side).mkdir()
        for part in range(n_files):
            rng = np.random.default_rng([number, part])
            users, items = (rng.integers(0, n, n_rows) for n in (N_USERS, N_ITEMS))
            frame = pl.DataFrame({"user_id": users, "item_id": items})
            if named:
                frame = frame.select(pl.format("user-{}", "user_id").alias("user_id"), "item_id")
                frame = frame.with_columns(pl.format("item-{}", "item_id").alias("item_id"))
            frame = frame.with_columns(rating=pl.Series(rng.integers(0, 6, n_rows)) / 2)
            frame.write_parquet(folder / side / f"part-{part}.parquet")


def source(named):
    rng = np.random.default_rng(5)
    factors = [rng.standard_normal((n, N_FACTORS), np.float32) for n in (N_USERS, N_ITEMS)]
    ids = [np.arange(n) for n in (N_USERS, N_ITEMS)]
    if named:
        ids = [
            [f"{what}-{n}" for n in some] for what, some in zip(("user", "item"), ids, strict=True)
        ]
    return rm.Factors(*factors, user_ids=ids[0], item_ids=ids[1])


def evaluated(folder, model, memory):
    """Evaluate; return the result and the growth of the anonymous memory."""
    before, watch = anonymous(), Watch()
    watch.start()
    sides = [rm.Interactions.of(folder / side, memory=memory) for side in FILES]
    result = rm.evaluate(
        model, sides[0], train=sides[1], metrics="ndcg@10 recall@100 roc_auc novelty@10", threads=2
    )
    watch.ended.set()
    watch.join()
    return result, watch.most - before


def main(ids, folder):
    """Evaluate within limits, and then in memory."""
    named = ids == "texts"
    write(folder, named)
    model = source(named)
    pl.DataFrame({"a": [1]}).group_by("a").len()  # starts the threads of Polars
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, hard))
    part, took = evaluated(folder, model, BUDGET)
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
    whole, would = evaluated(folder, model, None)
    same = part.inputs == whole.inputs and part.counts == whole.counts
    for name in whole.values:
        same &= np.array_equal(part[name], whole[name], equal_nan=True)
    print(json.dumps({"took": took, "would": would, "same": same, "mean": whole.mean()}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
