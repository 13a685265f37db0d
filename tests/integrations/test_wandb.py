"""Offline W&B runs have the expected contents and files."""

from __future__ import annotations

import re

import numpy as np
import pytest

import recometer as rm

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]


def test_values_are_logged_under_sortable_names(wandb, tmp_path):
    scores = np.random.default_rng(0).random((20, 30))
    result = rm.evaluate(rm.Scores(scores[::-1]), scores > 0.8, metrics="ndcg@10 rbp(p=0.95)")
    with wandb.init(project="test", mode="offline", dir=tmp_path) as run:
        run.log(result.flat())
        logged = dict(run.summary)
    values = {name: value for name, value in logged.items() if not name.startswith("_")}
    assert values == result.flat()
    assert all(re.fullmatch("[_a-zA-Z][_a-zA-Z0-9]*", name) for name in values)
    wandb.teardown()  # this waits until all files are written
    (run_file,) = tmp_path.glob("wandb/offline-run-*/run-*.wandb")
    assert b"rbp_with_p_is_0_95_low" in run_file.read_bytes()
