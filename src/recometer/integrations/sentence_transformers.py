"""Sentence Transformers: an evaluator for retrieval on the whole corpus."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.errors import InputError, InputTypeError, need
from recometer.evaluating.evaluator import Evaluator
from recometer.metrics.names import Metrics
from recometer.results.evaluation import Evaluation
from recometer.results.flat import FlatName
from recometer.sources.base import Source
from recometer.sources.factors import Factors
from recometer.sources.scores import Scores

NAME = "sentence_transformers"
evaluation: Any = need(
    f"{NAME}.evaluation", "RecometerEvaluator", "sentence-transformers", "sentence-transformers"
)


class RecometerEvaluator(evaluation.SentenceEvaluator):  # type: ignore[misc]
    """Rank the whole corpus for each query, and return the means of recometer's metrics.

    Pass it to ``SentenceTransformerTrainer(..., evaluator=...)``, or call it with a model. It
    replaces ``InformationRetrievalEvaluator``, and takes the same arguments. Equal scores and
    undefined values follow the rules of recometer. Texts are compared by the similarity of the
    model (``model.similarity_fn_name``).

    Parameters
    ----------
    queries, corpus : dict of id to text
    relevant_docs : dict of id of a query to ids of documents
        A set or list of relevant documents, or a dict from ids to grades.
    metrics
        As `recometer.evaluate` takes them.
    primary_metric
        The metric that determines the best checkpoint. None takes the first one.
    name
        The prefix of the names of metrics, which are those of `Evaluation.flat`:
        ``name_ndcg_at_10``.
    batch_size, show_progress_bar
        Options for encoding the texts.
    write_csv
        Whether to append the means to a file ``recometer_<name>.csv`` in the folder that the
        trainer gives.
    **options
        Options of `Evaluator`: ``train=`` (documents that are not retrieved for a query),
        ``protocol=``, single rules.

    Attributes
    ----------
    result : Evaluation or None
        The latest evaluation, with values for each query.

    Raises
    ------
    InputError
        If a query of `relevant_docs` is not among `queries`, or the primary metric is not
        among the metrics.
    MissingExtraError
        On import, if sentence-transformers is not installed.
    """

    def __init__(
        self,
        queries: Mapping[Any, str],
        corpus: Mapping[Any, str],
        relevant_docs: Mapping[Any, Any],
        *,
        metrics: Metrics = "ndcg@10 rr@10 ap@100 recall@10",
        primary_metric: str | None = None,
        name: str = "",
        batch_size: int = 32,
        show_progress_bar: bool = False,
        write_csv: bool = True,
        **options: Any,
    ) -> None:
        super().__init__()
        for what, given in (("queries", queries), ("corpus", corpus)):
            if not isinstance(given, Mapping) or not given:
                raise InputTypeError(f"{what} must be a dict of ids and texts that is not empty.")
        unknown = [query for query in relevant_docs if query not in queries]
        if unknown:
            raise InputError(f"relevant_docs names {unknown[0]!r}, which is not a query.")
        judged = {
            query: dict(found) if isinstance(found, Mapping) else list(found)
            for query, found in relevant_docs.items()
        }
        self.evaluator = Evaluator(judged, metrics=metrics, **options)
        names = [str(FlatName(str(metric))) for metric in self.evaluator.asked.metrics]
        primary = names[0] if primary_metric is None else str(FlatName(primary_metric))
        if primary not in names:
            raise InputError(
                f"primary_metric={primary_metric!r} is not asked for. Hint: one of "
                f"{', '.join(names)}."
            )
        self.queries = {query: queries[query] for query in judged}
        self.corpus, self.primary_metric, self.name = dict(corpus), primary, name
        self.batch_size, self.show_progress_bar = batch_size, show_progress_bar
        self.write_csv = write_csv
        self.result: Evaluation | None = None

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Encode queries and corpus, evaluate, and return the means by their names."""
        result = self.result = self.evaluator(self._source(model))
        means = {str(FlatName(name)): mean for name, mean in result.mean().items()}
        if output_path is not None and self.write_csv:
            self._write(output_path, epoch, steps, means)
        found: dict[str, float] = self.prefix_name_to_metrics(means, self.name)
        self.store_metrics_in_model_card_data(model, found, epoch, steps)
        return found

    def _source(self, model: Any) -> Source:
        """Return the scores of all documents for each query."""
        queries = self._encoded(model, "encode_query", self.queries)
        corpus = self._encoded(model, "encode_document", self.corpus)
        names: dict[str, Any] = {"user_ids": list(self.queries), "item_ids": list(self.corpus)}
        similarity = str(getattr(model, "similarity_fn_name", "cosine") or "cosine")
        if similarity == "cosine":
            queries, corpus = _unit(queries), _unit(corpus)
        if similarity in ("cosine", "dot"):
            return Factors(queries, corpus, **names)
        return Scores(lambda rows: model.similarity(queries[rows], corpus), **names)

    def _encoded(self, model: Any, method: str, texts: Mapping[Any, str]) -> Any:
        encode = getattr(model, method, model.encode)
        return encode(
            list(texts.values()),
            batch_size=self.batch_size,
            show_progress_bar=self.show_progress_bar,
            convert_to_numpy=True,
        )

    def _write(self, folder: str, epoch: int, steps: int, means: Mapping[str, float]) -> None:
        os.makedirs(folder, exist_ok=True)
        stem = f"recometer_{self.name}" if self.name else "recometer"
        path = os.path.join(folder, f"{stem}.csv")
        begins = not os.path.exists(path)
        with open(path, "a", encoding="utf-8") as file:
            if begins:
                print("epoch", "steps", *means, sep=",", file=file)
            print(epoch, steps, *map(repr, means.values()), sep=",", file=file)

    def get_config_dict(self) -> dict[str, Any]:
        """Return the description of the evaluation for the model card."""
        metrics = " ".join(map(str, self.evaluator.asked.metrics))
        return {"metrics": metrics, "protocol": self.evaluator.asked.protocol.describe()}


def _unit(vectors: Any) -> Any:
    """Return vectors of length 1, as the cosine compares them; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
