"""The kernel agrees with its NumPy twin if items are ranked one range at a time, in any order.

A Hypothesis state machine passes the ranges to the kernel in random order, and draws an instruction
set for each call. In between, it makes invalid calls, which the kernel must reject without changing
any array.
"""

import kernel_twin
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from orders_of_items import OWN_ORDER, in_order

from recometer import _kernel

SETS = list(_kernel.instruction_sets())
COUNTS = ("above", "tied", "before")


class Written:
    """The output arrays of the kernel calls."""

    def __init__(self, n_users, n_judged, k, dtype):
        self.counts = {name: np.zeros(n_judged, np.int64) for name in COUNTS}
        self.flags, self.finished = np.zeros(n_users, np.uint32), np.zeros(n_users, np.uint8)
        self.lists = {
            "top_scores": np.full((n_users, k), -9, dtype),
            "top_items": np.full((n_users, k), -1, np.int32),
            "n": np.zeros(n_users, np.int64),
            "left": np.zeros(n_users, np.int64),
        }
        self.list_flags, self.list_finished = self.flags.copy(), self.finished.copy()

    def all(self):
        return {**self.counts, **self.lists, "flags": self.flags, "list_flags": self.list_flags}


class Ranges(RuleBasedStateMachine):
    """A state machine that ranks one range of items per step and fills counts and lists."""

    @initialize(
        seed=st.integers(0, 2**31),
        n_users=st.sampled_from([0, 1, 5, 15]),
        n_items=st.sampled_from([0, 1, 16, 65, 257, 520]),
        n_factors=st.sampled_from([0, 1, 17]),
        dtype=st.sampled_from([np.float32, np.float64]),
        k=st.sampled_from([1, 4, 40]),
        order=st.sampled_from(_kernel.TieOrder),
        special=st.booleans(),
    )
    def begin(self, seed, n_users, n_items, n_factors, dtype, k, order, special):
        rng = np.random.default_rng(seed)
        self.users = rng.integers(-2, 3, (n_users, n_factors)).astype(dtype)
        self.items = rng.integers(-2, 3, (n_items, n_factors)).astype(dtype)
        self.bias = rng.integers(-2, 3, n_items).astype(dtype)
        if special and n_items:
            self.bias[rng.integers(n_items, size=3)] = [np.nan, np.inf, -np.inf]
        # A user's judged and excluded items are disjoint.
        items_of_users = [rng.permutation(n_items)[: rng.integers(0, 60)] for _ in range(n_users)]
        self.judged, self.excluded = (
            self.table([user_items[part::2] for user_items in items_of_users]) for part in (0, 1)
        )
        self.ties, self.check = order, special
        self.keys = rng.integers(0, 2**64, n_users, dtype=np.uint64)
        self.shuffled = in_order(
            rng.permutation(n_items), np.full(n_items, np.inf), np.full(n_users, np.inf)
        )
        self.mine, self.twins = (Written(n_users, len(self.judged[1]), k, dtype) for _ in range(2))
        # A range refers to positions in an item order, so all calls must use the same order.
        self.order = self.shuffled if seed % 2 else OWN_ORDER
        self.left = [(0, n_items)]
        self.scores = np.zeros(len(self.judged[1]), dtype)
        self.call("score_items", SETS[seed % len(SETS)], self.scoring(self.scores))
        expected = self.scores.copy()
        kernel_twin.score_items(**self.scoring(expected))
        np.testing.assert_array_equal(self.scores, expected)

    @staticmethod
    def table(rows):
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        return indptr, np.concatenate([*map(np.sort, rows), []]).astype(np.int32)

    def factors(self):
        return {"users": self.users, "items": self.items, "bias": self.bias, "rows": None}

    def scoring(self, scores):
        indptr, items = self.judged
        return {**self.factors(), "indptr": indptr, "listed": items, "scores": scores}

    @staticmethod
    def call(name, instruction_set, arguments):
        return getattr(_kernel, name)(instruction_set=instruction_set, **arguments)

    def common(self, first, last):
        return {
            **self.factors(),
            **self.order,
            "first": first,
            "last": last,
            "excluded_indptr": self.excluded[0],
            "excluded": self.excluded[1],
            "check": self.check,
            "nan_rule": _kernel.NanRule.UNDEFINED,
        }

    def ranking(self, outputs, first, last):
        arguments = {"judged_indptr": self.judged[0], "judged": self.judged[1], "limit": None}
        arguments |= {"judged_scores": self.scores, "flags": outputs.flags}
        return {
            **self.common(first, last),
            **arguments,
            **outputs.counts,
            "finished": outputs.finished,
        }

    def listing(self, outputs, first, last):
        arguments = {"order": self.ties, "keys": self.keys, "flags": outputs.list_flags}
        return {
            **self.common(first, last),
            **arguments,
            **outputs.lists,
            "finished": outputs.list_finished,
        }

    @precondition(lambda self: self.left)
    @rule(number=st.integers(0, 99), share=st.floats(0, 1), instruction_set=st.sampled_from(SETS))
    def rank_a_range(self, number, share, instruction_set):
        first, last = self.left.pop(number % len(self.left))
        middle = first + round(share * (last - first))
        if middle < last:
            self.left.append((middle, last))
        with np.errstate(invalid="ignore"):
            kernel_twin.rank_factors(**self.ranking(self.twins, first, middle))
            kernel_twin.top_factors(**self.listing(self.twins, first, middle))
        inaccurate_user = self.call(
            "rank_factors", instruction_set, self.ranking(self.mine, first, middle)
        )
        assert inaccurate_user == -1
        self.call("top_factors", instruction_set, self.listing(self.mine, first, middle))

    @rule(
        name=st.sampled_from([*COUNTS, "flags", "judged_scores", "excluded_indptr", "finished"]),
        instruction_set=st.sampled_from(SETS),
    )
    def arrays_of_another_size_are_rejected(self, name, instruction_set):
        arguments = self.ranking(self.mine, 0, len(self.items))
        arguments[name] = np.zeros(len(arguments[name]) + 1, arguments[name].dtype)
        with pytest.raises(ValueError, match=r"one |indptr"):
            self.call("rank_factors", instruction_set, arguments)

    @rule(beyond=st.sampled_from([(-1, 0), (1, 0), (0, 2**40)]))
    def invalid_ranges_are_rejected(self, beyond):
        with pytest.raises(ValueError, match="no such items"):
            self.call("rank_factors", SETS[0], self.ranking(self.mine, *beyond))
        with pytest.raises(ValueError, match="no such items"):
            self.call("top_factors", SETS[0], self.listing(self.mine, *beyond))

    @invariant()
    def counts_and_lists_agree_with_the_twin(self):
        for name, array in self.mine.all().items() if hasattr(self, "mine") else ():
            np.testing.assert_array_equal(array, self.twins.all()[name], err_msg=name)


TestRanges = Ranges.TestCase
TestRanges.settings = settings(max_examples=settings.default.max_examples, stateful_step_count=12)
