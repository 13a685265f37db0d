"""The evaluator for Sentence Transformers works with a tiny model that the tests build."""

from __future__ import annotations

import re

import numpy as np
import pytest

import recometer as rm

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

WORDS = [
    "red",
    "green",
    "blue",
    "cat",
    "dog",
    "bird",
    "runs",
    "sleeps",
    "sings",
    "here",
    "there",
    "now",
    "then",
]


@pytest.fixture(scope="module")
def model(torch, sentence_transformers):
    """Return a bag-of-words model with random vectors."""
    modules = sentence_transformers.models
    words = modules.tokenizer.WhitespaceTokenizer(WORDS, stop_words=[])
    weights = np.random.default_rng(0).standard_normal((len(WORDS), 6)).astype(np.float32)
    embeddings = modules.WordEmbeddings(words, weights)
    pooling = modules.Pooling(6, pooling_mode="mean")
    return sentence_transformers.SentenceTransformer(modules=[embeddings, pooling], device="cpu")


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(1)
    corpus = {f"d{n}": " ".join(rng.choice(WORDS, 3, replace=False)) for n in range(60)}
    queries = {f"q{n}": " ".join(rng.choice(WORDS, 2, replace=False)) for n in range(12)}
    queries["unjudged"] = "red cat"
    relevant = {
        query: {name for name, doc in corpus.items() if set(text.split()) <= set(doc.split())}
        | {"d0"}
        for query, text in queries.items()
        if query != "unjudged"
    }
    return queries, corpus, relevant


@pytest.fixture(scope="module")
def evaluator_class(sentence_transformers):
    from recometer.integrations.sentence_transformers import RecometerEvaluator

    return RecometerEvaluator


@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_values_match_the_evaluator_of_sentence_transformers(
    similarity, model, texts, evaluator_class, sentence_transformers, monkeypatch
):
    monkeypatch.setattr(model, "similarity_fn_name", similarity)
    queries, corpus, relevant = texts
    theirs = sentence_transformers.evaluation.InformationRetrievalEvaluator(
        queries, corpus, relevant, ndcg_at_k=[10], mrr_at_k=[10], precision_recall_at_k=[5]
    )(model)
    values = evaluator_class(queries, corpus, relevant, metrics="ndcg@10 rr@10 recall@5")(model)
    name = f"{similarity}_"
    assert values["ndcg_at_10"] == pytest.approx(theirs[f"{name}ndcg@10"], abs=0.03)
    assert values["rr_at_10"] == pytest.approx(theirs[f"{name}mrr@10"], abs=0.03)
    assert values["recall_at_5"] == pytest.approx(theirs[f"{name}recall@5"], abs=0.03)


def test_values_match_evaluate(model, texts, evaluator_class, tmp_path):
    queries, corpus, relevant = texts
    evaluator = evaluator_class(
        queries, corpus, relevant, metrics="ndcg@5 rr", primary_metric="rr", name="tiny"
    )
    values, _ = (evaluator(model, str(tmp_path), epoch, 7) for epoch in (1, 2))
    assert evaluator.primary_metric == "tiny_rr"
    assert evaluator.primary_metric in values
    names = [query for query in queries if query in relevant]
    scores = np.array(
        model.similarity(
            model.encode([queries[name] for name in names]), model.encode(list(corpus.values()))
        )
    )
    expected = rm.evaluate(
        rm.Scores(scores.astype(np.float64).round(6), user_ids=names, item_ids=list(corpus)),
        {query: sorted(docs) for query, docs in relevant.items()},
        metrics="ndcg@5 rr",
    )
    assert values["tiny_rr"] == pytest.approx(expected.mean()["rr"], abs=0.02)
    assert len(evaluator.result) == len(relevant)
    assert "ndcg@5" in evaluator.get_config_dict()["metrics"]


def test_model_card_shows_the_metrics(model, texts, evaluator_class):
    queries, corpus, relevant = texts
    evaluator = evaluator_class(queries, corpus, relevant, metrics="ndcg@5")
    evaluator(model)
    assert "ndcg_at_5" in str(model.model_card_data.eval_results_dict)


def test_mismatched_queries_and_documents_are_rejected(texts, evaluator_class):
    queries, corpus, relevant = texts
    with pytest.raises(rm.InputError, match="'q', which is not a query"):
        evaluator_class(queries, corpus, {"q": ["d1"]})
    with pytest.raises(rm.InputError, match="not requested"):
        evaluator_class(queries, corpus, relevant, primary_metric="ap@3")
    with pytest.raises(rm.InputTypeError, match="corpus must be a non-empty dict"):
        evaluator_class(queries, {}, relevant)


QUERIES, CORPUS, RELEVANT = {"q": "red cat"}, {"d1": "red", "d2": "cat"}, {"q": ["d1"]}


class Encoder:
    """A model that encodes texts with a given function."""

    similarity_fn_name = "cosine"
    model_card_data = None

    def __init__(self, encode=lambda texts: [[len(text), 1.0] for text in texts]):
        self._encode = encode

    def encode(self, texts, **options):
        return self._encode(texts)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("x", CORPUS, RELEVANT), {}, rm.InputTypeError, "queries must be a non-empty dict"),
        ((QUERIES, {}, RELEVANT), {}, rm.InputTypeError, "corpus must be a non-empty dict"),
        ((QUERIES, CORPUS, None), {}, rm.InputTypeError, "relevant_docs is of type NoneType"),
        ((QUERIES, CORPUS, ["q"]), {}, rm.InputTypeError, "relevant_docs is of type list"),
        (
            (QUERIES, CORPUS, {"q": "d1"}),
            {},
            rm.InputTypeError,
            "items of user 'q' are of type str",
        ),
        ((QUERIES, CORPUS, {"q": None}), {}, rm.InputTypeError, "are of type NoneType"),
        ((QUERIES, CORPUS, RELEVANT), {"name": 3}, rm.InputTypeError, "name=3 must be a string"),
        ((QUERIES, CORPUS, RELEVANT), {"batch_size": 0}, rm.InputError, "batch_size=0 must be"),
        (
            (QUERIES, CORPUS, RELEVANT),
            {"primary_metric": 3},
            rm.InputError,
            "one of ndcg@10, rr@10",
        ),
    ],
)
def test_wrong_arguments_are_refused(evaluator_class, arguments, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        evaluator_class(*arguments, **options)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (None, rm.InputTypeError, "of type NoneType, which has no method encode"),
        (Encoder(lambda texts: None), rm.InputError, "returned object of shape () for 1 texts"),
        (Encoder(lambda texts: np.ones(2)), rm.InputError, "returned float64 of shape (2,)"),
        (
            Encoder(lambda texts: [["a"]] * len(texts)),
            rm.InputError,
            "a vector of numbers for each",
        ),
        (
            Encoder(lambda texts: [[1], [1, 2]]),
            rm.InputError,
            "row 0 has 1 entries, but row 1 has 2",
        ),
        (Encoder(lambda texts: 1 / 0), rm.ModelError, "Encoder.encode raised ZeroDivisionError"),
    ],
)
def test_return_values_of_models_are_checked(evaluator_class, model, error, message):
    with pytest.raises(error, match=re.escape(message)):
        evaluator_class(QUERIES, CORPUS, RELEVANT, metrics="rr")(model)


def test_half_precision_vectors_are_normalised_without_overflow(evaluator_class):
    """The squares of the vectors' entries are beyond the range of float16."""
    rows = {"red cat": [300, 0], "red": [200, 100], "cat": [0, 300]}
    model = Encoder(lambda texts: np.array([rows[text] for text in texts], np.float16))
    evaluator = evaluator_class(QUERIES, CORPUS, RELEVANT, metrics="rr")
    evaluator.store_metrics_in_model_card_data = lambda *_: None
    assert evaluator(model) == {"rr": 1.0}
