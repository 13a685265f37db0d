"""evaluate: from model output and test to an Evaluation, or several."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, overload

from recometer.errors import InputError, naming
from recometer.evaluating.arguments import check_evaluable
from recometer.evaluating.asked import DEFAULT_METRICS
from recometer.evaluating.evaluator import Evaluator
from recometer.evaluating.folds import evaluate_made, is_made, parts_of
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
    source: Callable[[Split], Source | Recommender] | Sequence[Source],
    test: Folds | Sequence[Split],
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
    **rules: Unpack[Rules],
) -> Evaluation: ...


@overload
def evaluate(
    source: Mapping[str, Source | Recommender],
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
    **rules: Unpack[Rules],
) -> dict[str, Evaluation]: ...


def evaluate(
    source: Any,
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
    **rules: Unpack[Rules],
) -> Evaluation | dict[str, Evaluation]:
    """Measure how well the output of a model finds the items that users chose.

    For each user, the whole catalogue is ranked, without the user's items in train and the
    items that `candidates` and `exclude` leave out. The formulas are in
    `Evaluation.definitions` and in the documentation.

    Parameters
    ----------
    source
        The model output to evaluate, for instance ``rm.Factors(user_factors, item_factors)``. It
        may also be a fitted model that `from_model` recognises without further options, such as
        one with a method ``recommend(users, k)``, which is called for the users of test. For
        folds, pass a function that fits a model to ``split.train`` (and ``split.remainder``) and
        returns a source, or a list of sources, one per fold. A dict from the names of models to any
        of these evaluates them all, and prepares only once what they share: test, train, ...
    test
        The items that should have been recommended: an `Interactions`, or anything that
        `Interactions.of` takes (a SciPy sparse matrix, a data frame, a file, ...). Use None if
        the source contains the truth, as in ``rm.Pairs(frame, ...)``. A `Split` contains train
        as well. For `Folds`, or a list of `Split`, the result has the evaluation of each fold in
        ``.folds``, and pools all of them.
    train
        Interactions to exclude from the ranking, in any form that `test` takes. None excludes
        nothing.
    candidates
        The items that may be recommended. None stands for the whole catalogue. A list of items
        (ids, or positions if the source has no ids; also the only column of a data frame)
        applies to all users. An `Interactions`, or anything that `Interactions.of` takes, has a
        set for each user (its values do not matter), as does an array of positions [n_users, n],
        padded with -1. `Negatives` adds the items of test to such sets, and `SampledCandidates`
        draws others. A relevant item that is not a candidate is a miss, and the result counts
        it. If the sets of users are a sample, the values differ from those on the whole
        catalogue, and the result says so; see the rule `correction`.
    exclude
        A list of items that must not be recommended to any user.
    metrics
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``, or a
        dict, such as ``{"ndcg": [5, 10], "recall": range(1, 11), "roc_auc": None}``. Other names
        of a metric work as well: ``"MRR@10"`` is rr@10. Under a convention you can also use the
        names of its library, such as ``"LinkPredMAP@10"``.
    protocol
        The rules that the numbers depend on; pass ``other.protocol`` to repeat an evaluation.
        The name of a convention, such as ``"trec_eval"``, selects the rules of another library
        and its names of metrics; see `recometer.conventions`.
    catalogue
        Data about the items: a `Catalogue`, or anything that one can be made from (the number of
        items, their ids, a data frame, a file). Metrics of lists read their categories, features
        and propensities. `Lists` also read how many items could have been recommended; rules
        that need the number of candidates apply only if it is known. Sources that score every
        item know this number, and do not read it here.
    baseline
        Lists to compare with, for metrics that need them (unexpectedness@k, overlap@k, rbo@k,
        serendipity@k): another source, or an evaluation that has `lists`.
    seed
        Seed of everything that is random: ``ties="random"`` and ``interval="bootstrap"``.
    threads
        Maximum number of threads. None uses all available processors. The result does not
        depend on it.
    progress
        Whether to show a progress bar on standard error. None shows one only on a terminal, and
        only if the work takes a while.
    chance
        Whether to compute the exact expected value of each metric under a random order of the
        same candidates as well (``result.chance``, and a column of the table). It shows whether a
        value such as 0.91 is better than chance. All candidates have to be ranked for it.
    **rules
        Single rules that replace those of the protocol, for instance ``ties="random"``.

    Returns
    -------
    Evaluation, or a dict of them by the names of the models
        For several models, `Leaderboard` and `compare` take the dict.

    Raises
    ------
    InputError
        If data do not fit, test is empty, a cut-off is below 1, no user of test is known, or no
        scores can be ranked because they are all NaN or infinite. Also if the source cannot
        provide a metric (of the whole ranking, if lists end early; of ratings, if there are
        none), or if its side data are missing (categories, a baseline, ...). The message names
        the metric and the argument. Also if ids of the source look like positions of those of test
        and train (see the rule `shifted_ids`).
    InputTypeError
        If the type of an object is not supported, or ids cannot be matched.
    UnknownNameError
        If a metric, protocol or rule does not exist.

    Warns
    -----
    DataWarning
        If, among others, a rule that you pass has no effect on the result, such as
        ``duplicates`` for `Factors`. There is no such warning for the rules of a convention.
        Also if more than a tenth of the users of test, or of the relevant rows, are unknown to the
        source: with examples, and with what seems to be written differently on both sides, if
        anything does.

    Examples
    --------
    Ann already has the book and then chose the song; Bob has the song and then chose the game.

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
    for name in ("source", "test", "rules"):
        del options[name]
    if _are_models(source):
        return _evaluate_models(source, test, {**options, **rules})
    if is_made(test):
        return evaluate_made(evaluate, source, test, {**options, **rules})
    begin = time.perf_counter()
    check_evaluable(source, test)
    return Evaluator(test, **options, **rules).evaluated(source, begin)


def _are_models(given: object) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether outputs of models, or functions that make these, are given by names.

    Lists of items by users are none of it.
    """
    return isinstance(given, Mapping) and any(map(_is_output, given.values()))


def _is_output(given: object) -> bool:
    if isinstance(given, list | tuple):  # of folds
        return any(isinstance(one, Source) for one in given)
    if isinstance(given, Source) or callable(given):
        return True
    from recometer.sources.models import is_model

    return is_model(given)


def _evaluate_models(
    sources: Mapping[Any, Any], test: object, options: Mapping[str, Any]
) -> dict[str, Evaluation]:
    """Evaluate each of several models; messages of warnings and errors begin with its name.

    Only folds are prepared for each model by itself.
    """
    names = [str(name) for name in sources]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(
            f"Two models are called {repeated!r}. Hint: "
            'rm.evaluate({"als": source, "bpr": other}, test).'
        )
    named = dict(zip(names, sources.values(), strict=True))
    if is_made(test) and not hasattr(test, "interactions"):
        return {name: _named(name, evaluate, one, test, **options) for name, one in named.items()}
    for name, one in named.items():
        _named(name, check_evaluable, one, test)
    made = test
    if is_made(test):
        made, train = parts_of(test, options["train"])
        options = {**options, "train": train}
    evaluator = Evaluator(made, **options)
    return {name: _named(name, evaluator, one) for name, one in named.items()}


def _named(name: str, function: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Call a function for a model, whose name warnings and errors then tell."""
    with naming(name):
        return function(*given, **options)
