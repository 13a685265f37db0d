"""Evaluate retrieval by Sentence Transformers models on the whole corpus."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from recometer.data.numbers import as_array
from recometer.errors import InputError, InputTypeError, ModelError, brief, need
from recometer.evaluation import Evaluation
from recometer.evaluator import Evaluator
from recometer.integrations._shared import logged, wrong_type
from recometer.metrics.names import Metrics
from recometer.results.flat import FlatName
from recometer.sources.base import Source
from recometer.sources.factors import Factors
from recometer.sources.scores import Scores
from recometer.stats.checks import check_whole

NAME = "sentence_transformers"
evaluation: Any = need(
    f"{NAME}.evaluation", "RecometerEvaluator", "sentence-transformers", "sentence-transformers"
)


class RecometerEvaluator(evaluation.SentenceEvaluator):  # type: ignore[misc]
    """Rank the whole corpus for each query, and return the means of recometer's metrics.

    Pass the evaluator to ``SentenceTransformerTrainer(..., evaluator=...)``, or call it with a
    model. It replaces ``InformationRetrievalEvaluator`` and takes the same data. Recometer's rules
    apply to equal scores and undefined values. Texts are compared with the model's own similarity
    function (``model.similarity_fn_name``).

    Parameters
    ----------
    queries, corpus : dict
        The texts of queries and documents, keyed by their ids.
    relevant_docs : dict
        For each query's id, a set or list of the relevant documents' ids, or a dict from ids to
        grades.
    metrics
        The metrics, as in `recometer.evaluate`.
    primary_metric
        The metric that determines the best checkpoint, such as ``"rr@10"``. None means the first
        one.
    name
        The prefix that is added to the names of `Evaluation.flat`, as in ``name_ndcg_at_10``.
    batch_size, show_progress_bar
        Options that the evaluator passes to the model when it encodes the texts.
    **options
        Options of `Evaluator`: ``train=`` (documents that must not be retrieved for a query),
        ``protocol=``, or individual rules.

    Attributes
    ----------
    result : Evaluation or None
        The latest evaluation, with values for each query.

    Raises
    ------
    InputError
        If a query in `relevant_docs` is not in `queries`, or `primary_metric` is not in `metrics`.
        When called, if the model does not return a vector for each text.
    InputTypeError
        If an argument or the model has the wrong type.
    ModelError
        When called, if the model raises an exception.
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
        **options: Any,
    ) -> None:
        super().__init__()
        for label, texts in (("queries", queries), ("corpus", corpus)):
            if not isinstance(texts, Mapping) or not texts:
                raise InputTypeError(f"{label} must be a non-empty dict of ids and texts.")
        if not isinstance(relevant_docs, Mapping):
            expected = 'a dict of queries. Hint: {"q1": ["d3"]}, or {"q1": {"d3": 2}} with grades.'
            raise wrong_type("relevant_docs", relevant_docs, expected)
        if not isinstance(name, str | None):
            raise InputTypeError(f'name={brief(name)} must be a string. Hint: use "test".')
        check_whole("batch_size", batch_size, 1)
        unknown = [query for query in relevant_docs if query not in queries]
        if unknown:
            raise InputError(
                f"relevant_docs names {brief(unknown[0])}, which is not a query. Hint: queries "
                "must contain the text of each query."
            )
        self.evaluator = Evaluator(dict(relevant_docs), metrics=metrics, **options)
        self.queries = {query: queries[query] for query in relevant_docs}
        self.corpus, self.name = dict(corpus), name or ""
        self.primary_metric = self._primary(primary_metric)
        self.batch_size, self.show_progress_bar = batch_size, show_progress_bar
        self.result: Evaluation | None = None

    def _primary(self, metric: str | None) -> str:
        """Return the flat name of the metric that determines the best checkpoint."""
        names = [str(metric) for metric in self.evaluator.arguments.metrics]
        if metric is not None and metric not in names:
            raise InputError(
                f"primary_metric={brief(metric)} is not requested. Hint: use one of "
                f"{', '.join(names)}."
            )
        return str(FlatName(names[0] if metric is None else metric))

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
    ) -> dict[str, float]:
        """Encode the queries and the corpus, evaluate the model, and return the means by name.

        No file is written to `output_path`; ``evaluator.result.save(path)`` writes all values.
        """
        self.result = self.evaluator(self._source(model))
        means = logged(self.result.mean())
        named_means: dict[str, float] = self.prefix_name_to_metrics(means, self.name)
        self.store_metrics_in_model_card_data(model, named_means, epoch, steps)
        return named_means

    def _source(self, model: Any) -> Source:
        """Return a source with each query's scores for all documents."""
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
        encode = getattr(model, method, None) or getattr(model, "encode", None)
        called = f"{type(model).__name__}.{getattr(encode, '__name__', 'encode')}"
        if not callable(encode):
            raise InputTypeError(
                f"The model is of type {type(model).__name__}, which has no method encode. Hint: "
                "evaluator(model) takes a SentenceTransformer."
            )
        try:
            returned = encode(
                list(texts.values()),
                batch_size=self.batch_size,
                show_progress_bar=self.show_progress_bar,
                convert_to_numpy=True,
            )
        except Exception as error:
            raise ModelError(
                f"{called} raised {type(error).__name__}: {error}. Hint: it is called with the "
                f"{len(texts):,} texts, and batch_size={self.batch_size}."
            ) from error
        vectors = as_array(returned, f"What {called} returned")
        if vectors.dtype.kind not in "fiu" or vectors.ndim != 2 or len(vectors) != len(texts):
            raise InputError(
                f"{called} returned {vectors.dtype} of shape {vectors.shape} for {len(texts):,} "
                "texts. Hint: a model must return a vector of numbers for each."
            )
        return vectors

    def get_config_dict(self) -> dict[str, Any]:
        """Return the metrics and rules of the evaluation, for the model card."""
        metrics = " ".join(map(str, self.evaluator.arguments.metrics))
        return {"metrics": metrics, "protocol": self.evaluator.arguments.protocol.describe()}


def _unit(vectors: Any) -> Any:
    """Scale vectors to length 1 for the cosine similarity; leave vectors of length 0 unchanged."""
    vectors = vectors.astype(np.result_type(vectors, np.float32))  # so that squares do not overflow
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)
