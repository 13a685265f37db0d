"""`Tracked`, the base class of results that experiment trackers can log under flat names."""

from __future__ import annotations

import os
from collections.abc import Iterator

from recometer.errors import InputError, InputTypeError, brief, need
from recometer.results.flat import FlatName, by_flat_name
from recometer.stats.checks import check_whole
from recometer.version import __version__

FOLDER = "recometer"
"""The folder of the artifacts in a run."""
LARGEST_STEP = 2**63 - 1


class Tracked:
    """A result whose values have flat names."""

    def flat(self, path: str | os.PathLike[str] | None = None) -> dict[str, float | int]:
        """Return means, the ends of their intervals, and numbers of users, keyed by flat names.

        A name consists only of ASCII letters, digits and ``_``, so that MLflow, W&B, TensorBoard
        and DVC accept it: ``ndcg_at_10``, ``ndcg_at_10_low``, ``ndcg_at_10_high``,
        ``ndcg_at_10_counted``, ``ndcg_at_10_skipped``, and ``ndcg_at_10_chance`` if it is known.
        `recometer.results.flat.FlatName` parses such names. With several models, a mean is called
        ``ndcg_at_10_of_als``. A comparison also has differences, called
        ``ndcg_at_10_of_als_versus_bpr``, with ``..._p_value`` and ``..._adjusted_p``.

        Parameters
        ----------
        path
            A JSON file to which the values are also written, for instance for ``dvc metrics``.
            Undefined values are null.

        Returns
        -------
        dict of str to float or int
            The values by flat name. A mean, or an end of its interval, is NaN if undefined. Numbers
            of users are integers.

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
        return by_flat_name(self.flat_values(), path)

    def log_mlflow(
        self,
        *,
        prefix: str = "",
        step: int | None = None,
        run_id: str | None = None,
        model_id: str | None = None,
        artifact: bool | None = None,
    ) -> None:
        """Log the values of `flat` as metrics of an MLflow run, and the result as an artifact.

        Undefined values are logged as NaN. Tags such as ``recometer.protocol`` record what
        determined the values.

        Parameters
        ----------
        prefix
            The prefix for every name, for instance ``"valid/"``.
        step
            The training step, for instance the epoch.
        run_id
            The run. None uses the active run or starts one, as ``mlflow.log_metrics`` does.
        model_id
            The logged model that was evaluated. None uses the active model.
        artifact
            Whether to save the result as files: an evaluation as ``recometer/evaluation.parquet``,
            the evaluations of a leaderboard as ``recometer/als.parquet``, ..., and a comparison as
            ``recometer/comparison.json``. `recometer.load` reads the Parquet files. None saves the
            files unless `step` is given. The names of the files also begin with the prefix.

        Raises
        ------
        InputError, InputTypeError
            If `prefix`, `step` or `artifact` is not valid. MLflow raises its own exceptions, for
            instance for an unknown run or for characters that it does not allow in a prefix.
        MissingExtraError
            If MLflow is not installed.
        """
        for name, argument in (("prefix", prefix), ("run_id", run_id), ("model_id", model_id)):
            if not isinstance(argument, str) and (argument is not None or name == "prefix"):
                raise InputTypeError(
                    f'{name}={brief(argument)} must be a string. Hint: for instance "valid".'
                )
        if step is not None:
            check_whole("step", step, -LARGEST_STEP)
            if step > LARGEST_STEP:
                raise InputError(f"step={brief(step)} must be below 2^63, as MLflow stores it.")
        if not isinstance(artifact, bool | None):
            raise InputTypeError(f"artifact={brief(artifact)} must be True, False or None.")
        mlflow = need("mlflow", "log_mlflow", "mlflow")
        values = {f"{prefix}{name}": float(value) for name, value in self.flat().items()}
        if run_id is None:  # like MLflow, use the active run or start one
            run_id = (mlflow.active_run() or mlflow.start_run()).info.run_id
        mlflow.log_metrics(values, step=step, run_id=run_id, model_id=model_id)
        client = mlflow.MlflowClient()
        for name, value in {"recometer.version": __version__, **self._tags()}.items():
            client.set_tag(run_id, name, value)
        if artifact or (artifact is None and step is None):
            import tempfile  # imported only here, because it is rarely needed

            with tempfile.TemporaryDirectory() as folder:
                self._save_artifacts(folder, safe_name(prefix))
                client.log_artifacts(run_id, folder, FOLDER)

    def flat_values(self) -> Iterator[tuple[FlatName, float]]:
        """Yield the values of `flat`, with their names."""
        raise NotImplementedError

    def _tags(self) -> dict[str, str]:
        """Return tags with the protocol and other facts that determined the values."""
        return {}

    def _save_artifacts(self, folder: str, prefix: str) -> None:
        """Write the result to files that recometer can read."""
        raise NotImplementedError


def safe_name(text: str) -> str:
    """Replace the characters that are not allowed in file names."""
    return "".join(character if character.isalnum() else "_" for character in text)
