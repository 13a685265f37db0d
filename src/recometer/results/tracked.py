"""Tracked: what can be logged in a tracker of experiments."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from recometer.results.flat import FlatName, Statistic, named

if TYPE_CHECKING:
    from recometer.results.evaluation import Evaluation


class Tracked:
    """What has values by flat names."""

    def flat(self, path: str | os.PathLike[str] | None = None) -> dict[str, float | int]:
        """Return means, the ends of their intervals and numbers of users, by flat names.

        A name has ASCII letters, digits and ``_`` alone, so that MLflow, W&B, TensorBoard and DVC
        take it: ``ndcg_at_10``, ``ndcg_at_10_low``, ``ndcg_at_10_high``, ``ndcg_at_10_counted``,
        ``ndcg_at_10_skipped``, and ``ndcg_at_10_chance`` where that is known.
        `recometer.results.flat.FlatName` reads names back. With several models, the means are
        ``ndcg_at_10_of_als``; a comparison has differences, too: ``ndcg_at_10_of_als_versus_bpr``
        with ``..._p_value`` and ``..._adjusted_p``.

        Parameters
        ----------
        path
            Write them to this file as JSON, too, for instance for ``dvc metrics``; what is
            undefined is null there.

        Returns
        -------
        dict of str to float or int
            NaN where a mean, or an end of its interval, is undefined. Numbers of users are whole.

        Raises
        ------
        FileError
            If the file cannot be written.

        Examples
        --------
        >>> import recometer as rm
        >>> lists = rm.Lists({"ann": ["film", "song"], "bob": ["game", "book"]})
        >>> result = rm.evaluate(lists, {"ann": ["song"], "bob": ["film"]}, metrics="recall@2")
        >>> result.flat()["recall_at_2"], result.flat()["recall_at_2_counted"]
        (0.5, 2)
        """
        return named(self._flat_values(), path)

    def log_mlflow(
        self,
        *,
        prefix: str = "",
        step: int | None = None,
        run_id: str | None = None,
        model_id: str | None = None,
        artifact: bool | None = None,
    ) -> None:
        """Log the values of `flat` as metrics of an MLflow run, and the whole as an artifact.

        Undefined values are logged as NaN. Tags such as ``recometer.protocol`` tell what the
        numbers depend on.

        Parameters
        ----------
        prefix
            The prefix of every name, for instance ``"valid/"``.
        step
            The step of training, for instance the epoch.
        run_id
            The run. None takes the active run, or a new one, like ``mlflow.log_metrics``.
        model_id
            The logged model that is evaluated. None takes the active one.
        artifact
            Whether to save an evaluation as ``recometer/evaluation.parquet``, which
            `recometer.load` reads, those of a leaderboard as ``recometer/als.parquet``, ..., and a
            comparison as ``recometer/comparison.json``. None saves it unless there is a step. The
            prefix also precedes the names of the files.

        Raises
        ------
        InputError, InputTypeError
            If `prefix`, `step` or `artifact` is of no use. What MLflow itself refuses, such as a
            prefix with other characters, or an unknown run, is an exception of MLflow.
        MissingExtraError
            If MLflow is not installed.
        """
        log = importlib.import_module("recometer.integrations.mlflow").log
        log(self, prefix=prefix, step=step, run_id=run_id, model_id=model_id, artifact=artifact)

    def _flat_values(self) -> Iterator[tuple[FlatName, float]]:
        raise NotImplementedError


class TrackedEvaluation(Tracked):
    """An evaluation, which has a mean for each metric."""

    def _flat_values(self: Evaluation) -> Iterator[tuple[FlatName, float]]:  # type: ignore[misc]
        known: tuple[Statistic, ...] = ("mean", "low", "high", "counted", "skipped")
        if self.chance:
            known += ("chance",)
        for row in self.summary():
            for statistic in known:
                yield FlatName(row.metric, statistic), getattr(row, statistic)
