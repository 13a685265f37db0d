"""A simple source for testing the steps after ranking."""

from __future__ import annotations

import threading

import numpy as np

import recometer as rm
from recometer.sources.base import Facts, Request, Source
from recometer.tasks import run_tasks


class Sorting(Source):
    """A source with a score matrix [n_users, n_items], which compares all of a user's scores."""

    def __init__(self, scores: object, pause: float = 0.0) -> None:
        self.scores = np.asarray(scores, dtype=float)
        self.pause = pause
        self.requests: list[Request] = []

    def describe(self) -> str:
        return f"Sorting, {self.scores.shape[0]} x {self.scores.shape[1]}"

    @property
    def facts(self) -> Facts:
        return Facts({"scores": self.scores, "bias": None})

    def rank(self, request: Request) -> rm.Ranks:
        self.requests.append(request)
        users = run_tasks(
            lambda user, ticker: self.rank_user(request, user),
            range(request.test.n_users),
            threads=request.threads,
            progress=request.progress,
            label="Ranking",
        )
        judged = [np.array(rows, dtype=float).reshape(-1, 6) for rows, _ in users]
        facts = np.array([facts for _, facts in users])
        table = np.concatenate(judged)
        columns = table[:, :4].astype(np.int64)
        return rm.Ranks(
            np.concatenate([[0], np.cumsum([len(rows) for rows in judged])]),
            *columns.T,
            gain=table[:, 4],
            relevant=table[:, 5] != 0,
            n_relevant=facts[:, 0],
            n_candidates=facts[:, 1],
            n_excluded=facts[:, 2],
            depth=facts[:, 1],
            flags=facts[:, 3].astype(np.uint32),
            counts={
                "users_unknown": int((facts[:, 3] & rm.UserFlag.KNOWN == 0).sum()),
                "items_unknown": 0,
                "relevant_unranked": 0,
                "train_test_overlap": int(facts[:, 4].sum()),
            },
        )

    def rank_user(self, request: Request, user: int) -> tuple[list[tuple[float, ...]], list[int]]:
        threading.Event().wait(self.pause)
        test, train = request.test, request.train
        rows = range(test.indptr[user], test.indptr[user + 1])
        values = {int(test.items[r]): 1.0 if test.values is None else test.values[r] for r in rows}
        train_items = (
            set() if train is None else set(train.items[slice(*train.indptr[user : user + 2])])
        )
        overlap = len(train_items & set(values))
        values = {item: value for item, value in values.items() if item not in train_items}
        flags = rm.UserFlag.TRAINED if train_items else rm.UserFlag(0)
        candidates: dict[int, float] = {}
        if user < len(self.scores):
            flags |= rm.UserFlag.KNOWN
            candidates = {i: s for i, s in enumerate(self.scores[user]) if i not in train_items}
            scores = np.array(list(candidates.values()))
            if np.isnan(scores).any():
                flags |= rm.UserFlag.NAN_SCORE
            if np.isinf(scores).any():
                flags |= rm.UserFlag.INFINITE_SCORE
            if len(set(scores)) == 1:
                flags |= rm.UserFlag.CONSTANT_SCORES
        ranked = []
        for item, value in values.items():
            above = sum(score > candidates[item] for score in candidates.values())
            tied_items = [
                i for i, score in candidates.items() if score == candidates[item] and i != item
            ]
            ranked.append(
                (item, above, len(tied_items), sum(i < item for i in tied_items), value, value != 0)
            )
        ranked.sort(key=lambda row: (row[1], row[3]))
        n_relevant = sum(value != 0 for value in values.values())
        return ranked, [n_relevant, len(candidates), len(train_items), int(flags), overlap]
