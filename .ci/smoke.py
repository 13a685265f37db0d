"""Run a small evaluation with exact scores, which must give the same values on every processor."""

import sys

import numpy as np

import recometer as rm
from recometer import _kernel
from recometer.checking.installation import check_installation

rng = np.random.default_rng(0)
users = rng.integers(-3, 4, (40, 5)).astype(np.float32)
items = rng.integers(-3, 4, (700, 5)).astype(np.float32)
test = np.zeros((40, 700))
test[np.arange(40), rng.integers(0, 700, 40)] = 1
result = rm.evaluate(rm.Factors(users, items), test, metrics="ndcg@10 rr roc_auc", threads=2)
for user in range(40):
    scores = users[user] @ items.T
    own = scores[test[user] > 0]
    lower, same = (scores < own).sum(), (scores == own).sum() - 1
    assert result["roc_auc"][user] == (lower + same / 2) / 699, (user, sys.argv)
found = check_installation()
assert found.works, found
print(sys.argv[1], _kernel.instruction_sets(), result.mean())
