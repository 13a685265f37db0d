"""evaluate: from model output and test to an Evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from recometer.evaluating.arguments import check_evaluable
from recometer.evaluating.asked import DEFAULT_METRICS
from recometer.evaluating.evaluator import Evaluator
from recometer.evaluating.folds import evaluate_made, is_made
from recometer.evaluating.until import Until
from recometer.metrics.names import Metrics
from recometer.protocol import Protocol
from recometer.results.evaluation import Evaluation
from recometer.sources.base import Source

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules
    from recometer.results.folds import FoldedEvaluation
    from recometer.sources.models import Recommender
    from recometer.split.result import Folds, Split


@overload
def evaluate(
    source: Callable[[Split[Any]], Source | Recommender] | Sequence[Source],
    test: Folds | Sequence[Split[Any]],
    *,
    train: None = None,
    candidates: object = None,
    exclude: object = None,
    metrics: Metrics = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    chance: bool = False,
    until: None = None,
    **rules: Unpack[Rules],
) -> FoldedEvaluation: ...


@overload
def evaluate(
    source: Source | Recommender,
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    metrics: Metrics = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    chance: bool = False,
    until: str | Until | None = None,
    **rules: Unpack[Rules],
) -> Evaluation: ...


def evaluate(
    source: Source | Recommender | Callable[[Split[Any]], Source | Recommender] | Sequence[Source],
    test: object = None,
    *,
    train: object = None,
    candidates: object = None,
    exclude: object = None,
    metrics: Metrics = DEFAULT_METRICS,
    protocol: str | Protocol = "recometer",
    catalogue: object = None,
    baseline: Source | Evaluation | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    chance: bool = False,
    until: str | Until | None = None,
    **rules: Unpack[Rules],
) -> Evaluation:
    """Measure how well model output finds what users went on to choose.

    The whole catalogue is ranked for each user, less the user's items in train (and what
    `candidates` and `exclude` leave out). The formulas are in `Evaluation.definitions` and in
    the documentation.

    Parameters
    ----------
    source
        What is evaluated, for instance ``rm.Factors(user_factors, item_factors)``; or a fitted
        model that `from_model` knows without more being said, such as one with a method
        ``recommend(users, k)``, which is asked for the lists of the users of test. For folds: a
        function that fits a model to ``split.train`` (and ``split.remainder``) and returns a
        source, or a list of sources, one per fold.
    test
        What should have been recommended: an `Interactions`, or what `Interactions.of`
        takes (a SciPy sparse matrix, a data frame, a file, ...). None where the truth comes
        with the source: ``rm.Pairs(frame, ...)``. A `Split` brings train along; of `Folds`, or a
        list of `Split`, the result has the evaluation of each in ``.folds``, and all of them
        pooled.
    train
        Interactions to exclude from the ranking, in any form that `test` takes. None excludes
        nothing.
    candidates
        What may be recommended. None stands for the whole catalogue. A list of items (ids, or
        positions if the source has no ids; also the only column of a data frame) is for all users;
        an `Interactions`, or what `Interactions.of` takes, holds a set for each user (values do not
        matter), as does an array of positions [n_users, n], padded with -1; `Negatives` adds the
        items of test to such sets, and `SampledCandidates` draws others. A relevant item that is
        no candidate is a miss, and counted. Where sets per user are a sample, the values are not
        those of the whole catalogue, which the result says; see the rule `correction`.
    exclude
        A list of items that must not be recommended to anybody.
    metrics
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``, or a
        dict: ``{"ndcg": [5, 10], "recall": range(1, 11), "roc_auc": None}``. Other names of a
        metric are known: ``"MRR@10"`` is rr@10. Under a convention also as its library writes
        them: ``"LinkPredMAP@10"``.
    protocol
        The rules that the numbers depend on; ``other.protocol`` repeats an evaluation. The name
        of a convention, such as ``"trec_eval"``, takes another library's rules and its names of
        metrics, see `recometer.conventions`.
    catalogue
        What is known of the items: a `Catalogue`, or what makes one: their number, their ids, a
        data frame, a file. Metrics of lists read their categories, features and propensities.
        Lists learn from it how many items could have been recommended: rules that need the
        number of candidates apply only where it is known. Sources that score every item know
        that, and do not read it here.
    baseline
        Lists to compare with, for metrics that do (unexpectedness@k, overlap@k, rbo@k,
        serendipity@k): another source, or an evaluation that has `lists`.
    seed
        Seed of everything random: ``ties="random"`` and ``interval="bootstrap"``.
    threads
        Maximum number of threads. None uses all available processors. The result does not
        depend on it.
    progress
        Whether to show a progress bar on standard error. None shows one only on a terminal, and
        only if the work takes a while.
    chance
        Also give the exact expected value of each metric under a random order of the same
        candidates (``result.chance``, and a column of the table): 0.91 may be no better than that.
        All candidates have to be ranked.
    until
        Read users in random order, by `seed`, until so much is known:
        ``"ndcg@10 ± 0.002"`` (or ``+-``, or ``± 2%`` of the mean), by an interval of the mean over
        all users of test that holds whenever one stops. The result has the users who were read,
        and its `users_read` says how many. None reads all. See `Until` for the size of batches.
    **rules
        Single rules that replace those of the protocol, for instance ``ties="random"``.

    Returns
    -------
    Evaluation

    Raises
    ------
    InputError
        Data that do not fit, an empty test, a cut-off below 1, users of test none of whom
        is known, scores none of which can be ranked because they are NaN or infinite, or
        metrics that the source cannot give (of the whole ranking, where lists end early; of
        ratings, where there are none), or whose side data are missing (categories, a
        baseline, ...): the message names the metric and the argument.
    InputTypeError
        An object of a kind that is not understood, or ids that cannot be matched.
    UnknownNameError
        A metric, protocol or rule that does not exist.

    Warns
    -----
    DataWarning
        Among others, a rule that was given and changes nothing of what is asked for, such as
        ``duplicates`` of `Factors`; those that a convention brings along are not mentioned.

    Examples
    --------
    Ann already has the book and went on to choose the song; Bob has the song and chose
    the game.

    >>> import recometer as rm
    >>> source = rm.Factors(
    ...     [[1.0, 0.0], [0.0, 1.0]],
    ...     [[0.9, 0.1], [0.8, 0.2], [0.4, 0.3], [0.7, 0.4]],
    ...     user_ids=["ann", "bob"],
    ...     item_ids=["book", "film", "game", "song"],
    ... )
    >>> train = {"ann": ["book"], "bob": ["song"]}
    >>> test = {"ann": ["song"], "bob": ["game"]}
    >>> result = rm.evaluate(source, test, train=train, metrics="ndcg@2 rr")
    >>> result["rr"]
    array([0.5, 1. ])
    >>> result.mean()["rr"]
    0.75
    """
    options = {**locals()}  # all parameters, by their names
    for name in ("source", "test", "rules", "until"):
        del options[name]
    if is_made(test):
        more = {} if until is None else {"until": until}
        return evaluate_made(evaluate, source, test, {**options, **more, **rules})
    begin = time.perf_counter()
    check_evaluable(source, test)
    return Evaluator(test, **options, **rules).evaluated(source, begin, until)
