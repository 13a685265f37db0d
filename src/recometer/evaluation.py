"""The function `evaluate`, which returns an `Evaluation`, and `load`, which reads a saved one."""

from __future__ import annotations

import functools
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast, overload

from recometer.data.catalogue import Catalogue
from recometer.errors import DataWarning, InputError, naming
from recometer.evaluating.arguments import are_folds, check_no_train, each_fold
from recometer.evaluating.case import fields_of
from recometer.evaluating.preparation import Preparation, check_evaluable
from recometer.metrics.names import DEFAULT_METRICS, Metrics, of_groups
from recometer.protocol import Protocol
from recometer.reporting import Reported
from recometer.results.evaluation import EvaluationRecord
from recometer.results.folds import FoldedRecord, pool
from recometer.sources.base import Source
from recometer.tracking import Tracked

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from recometer.protocol import Rules
    from recometer.sources.models import Recommender
    from recometer.split.result import Folds, Split

Prepared = Callable[..., Preparation]  # makes a `Preparation` from test and train


class Evaluation(EvaluationRecord, Tracked, Reported):
    """The result of `evaluate`: every metric for every user.

    ``result["ndcg@10"]`` is the metric's value for each user, and ``result["ndcg@1..10"]`` has a
    column per cut-off; ``print(result)`` shows the means. Arrays are read-only.

    Attributes
    ----------
    values : mapping of str to float64 [n_users]
        For each metric that has a value per user, the values for all users. An undefined value is
        NaN, or the number that the rule ``undefined`` sets.
    reasons : mapping of str to uint8 [n_users]
        For each metric, the `Reason` why it is undefined for each user, or 0 if it is defined.
    user_ids : [n_users] or None
        The ids, in the order of all other arrays. None if positions identify the users.
    n_relevant, n_candidates, n_excluded, depth : int64 [n_users]
        For each user, the numbers of relevant items, ranked items, items excluded because they are
        in the training data, and known places (the length of the list). The last three are -1 if
        they are unknown, or if no metric reads them.
    flags : uint32 [n_users]
        `UserFlag` bits.
    metrics
        The metrics, in the requested order.
    protocol
        The rules that determined the values.
    seed
        The seed for all random choices.
    counts
        The numbers of users, items or rows that rules affected, for instance ``users_unknown``.
    definitions
        For each metric, named without the cut-off (``"f(beta=0.5)"``): the formula, the source and
        the meaning of the parameters, as strings.
    timings
        The time of each step, in seconds.
    versions
        The versions of recometer, Python and NumPy, the platform, and the instruction set.
    inputs
        For source, test, train and candidates: a description, the SHA-256 of the arrays, and in
        some cases a warning.
    over_rows
        Rating metrics computed over the rows (for fcp, over the pairs of rows) of all users
        together. `mean` returns them unless the rule ``average`` or weights say otherwise;
        ``mean(weights="users")`` is the mean over users.
    negative_gains : bool
        Whether any gain is below 0. If not, intervals of ndcg do not extend below 0.
    binary_gains : bool
        Whether every test value is 0 or 1, so that the range of dcg is known.
    activity : int64 [n_users] or None
        The number of training items of each user. None without training data.
    popularity : float64 [n_users] or None
        For each user, the mean popularity of the user's training items, that is, their mean number
        of training users; NaN if there are no training items.
    over_users : mapping of str to float
        Metrics with one value for all users, such as ``"coverage@10"``; `mean` returns them, too.
    chance : mapping of str to float64 [n_users]
        Expected values for a random order of the same candidates; empty without ``chance=True``.
    lists : TopLists or None
        The first places of each user's ranking, if a list metric was requested. Not saved.
    inputs_kept : mapping or None
        The arguments of `evaluate`, so that `recometer.explain` can repeat the evaluation. Not
        saved. None if they take more than 256 MB, or if the scores are a function.
    """

    def by_items(
        self, groups: object, *, column: str | None = None, item: str | None = None
    ) -> Evaluation:
        """Evaluate again for groups of items, such as new and old ones.

        Each metric that takes a group (recall, hit, ndcg, precision, ap, rr) is restricted to the
        relevant items of each group: all items are still ranked, but only the group's items count
        as relevant. The metric is undefined for users without a relevant item of the group.
        ``share@k[group]`` is the group's share of the first k places.

        Parameters
        ----------
        groups
            The group of each item: a dict from item to group, a data frame or the path of a table
            with an item column and a group column, an array if items are positions, or a
            `Catalogue` whose categories are the groups. None means that an item has no group. An
            item may have several groups, as in a column with ``"Comedy|Drama"``.
        column, item
            If `groups` is a table: the names of its group column and of its item column. By
            default, the item column is recognised by its name, and the group column is the only
            other column.

        Returns
        -------
        Evaluation
            An evaluation with the same rules, whose metrics are named ``recall@10[new]``.
            `compare`, gates and reports accept it like any other evaluation.

        Raises
        ------
        InputError
            If the result does not contain its inputs (because it was loaded from a file, or because
            they take more than 256 MB), if no metric takes a group, or if there are no groups.

        Examples
        --------
        >>> import recometer as rm
        >>> lists = rm.Lists({"ann": ["song", "film"], "bob": ["film", "book"]})
        >>> test = {"ann": ["film", "game"], "bob": ["book"]}
        >>> result = rm.evaluate(lists, test, metrics="recall@2")
        >>> by_age = result.by_items({"film": "old", "book": "new", "game": "new", "song": "new"})
        >>> by_age.mean()
        {'recall@2[new]': 0.5, 'recall@2[old]': 1.0, 'share@2[new]': 0.5, 'share@2[old]': 0.5}
        """
        inputs = self.inputs_kept
        if inputs is None:
            raise InputError(
                "This result does not contain its inputs: it was loaded from a file, "
                "or the inputs are large. Hint: rm.evaluate(..., metrics='recall@10[new]', "
                "catalogue=rm.Catalogue(frame, categories='age')) evaluates a group directly."
            )
        catalogue = Catalogue.of_groups(groups, inputs["catalogue"], column=column, item=item)
        return evaluate_again(
            {**inputs, "catalogue": catalogue},
            metrics=of_groups(self.metrics, catalogue.category_names),
            protocol=self.protocol,
            seed=self.seed,
            chance=bool(self.chance),
        )

    def _tags(self) -> dict[str, str]:
        tags = {"recometer.protocol": self.protocol.describe()}
        for name in ("source", "test", "train"):
            if name in self.inputs:
                tags[f"recometer.{name}"] = self.inputs[name]["description"]
        return tags

    def _save_artifacts(self, folder: str, prefix: str) -> None:
        self.save(os.path.join(folder, f"{prefix}evaluation.parquet"))


class FoldedEvaluation(FoldedRecord, Evaluation):
    """The pooled evaluations of several folds.

    A user's value is the mean over the folds where it is defined. Every user counts once, no matter
    how many folds they are tested in. Intervals of means are therefore computed from users, who,
    unlike folds, are independent of each other. For each user, the number of relevant items is
    summed over the folds; for every other number, the largest value is kept. A metric with one
    value for all users is averaged over the folds. `save` stores the pooled values.

    Attributes
    ----------
    folds : tuple of Evaluation
        The evaluation of each fold.
    """

    def by_items(
        self, groups: object, *, column: str | None = None, item: str | None = None
    ) -> FoldedEvaluation:
        """Evaluate each fold with `Evaluation.by_items`, and pool the results."""
        folds = (cast(Evaluation, fold) for fold in self.folds)
        by_items = [fold.by_items(groups, column=column, item=item) for fold in folds]
        return pool(by_items, FoldedEvaluation)


def load(path: str | os.PathLike[str]) -> Evaluation:
    """Read an evaluation that `Evaluation.save` wrote to a Parquet file, exactly as it was saved.

    Raises
    ------
    FileError
        If the file does not exist, is not an evaluation, or was written by a newer version of
        recometer.
    """
    return Evaluation.read(path)


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
    baseline: Source | None = None,
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
    baseline: Source | None = None,
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
    baseline: Source | None = None,
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
    baseline: Source | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    chance: bool = False,
    **rules: Unpack[Rules],
) -> Evaluation | dict[str, Evaluation]:
    """Measure how well the output of a model finds the items that users chose.

    For each user, the whole catalogue is ranked, except for the user's training items and the items
    that `candidates` and `exclude` leave out. The formulas are in `Evaluation.definitions` and in
    the documentation.

    Parameters
    ----------
    source
        The model output to evaluate, for instance ``rm.Factors(user_factors, item_factors)``. It
        may also be a fitted model that `from_model` recognises without further options, such as
        a model with a method ``recommend(users, k)``, which is called for the test users. For
        folds, pass a list of sources, one per fold, or a function that fits a model to
        ``split.train`` (and ``split.remainder``) and returns a source. If you pass a dict from
        model names to any of these, all models are evaluated, and the data that they share (test,
        train, ...) are prepared only once.
    test
        The items that should have been recommended: an `Interactions`, or anything that
        `Interactions.of` takes (a SciPy sparse matrix, a data frame, a file, ...). Use None if
        the source contains the labels, as in ``rm.Pairs(frame, ...)``. A `Split` contains the
        training data as well. For `Folds`, or a list of `Split` objects, the result pools all
        folds, and contains the evaluation of each fold in ``.folds``.
    train
        Interactions to exclude from the ranking, in any form that `test` accepts. None excludes
        nothing.
    candidates
        The items that may be recommended. None stands for the whole catalogue. A list of items
        (ids, or positions if the source has no ids), or a data frame with a single column, applies
        to all users. An `Interactions`, or anything that `Interactions.of` takes, lists the
        candidates of each user (the values do not matter), as does an array of positions
        [n_users, n], padded with -1. `Negatives` adds the test items to such candidates, and
        `SampledCandidates` draws candidates at random. A relevant item that is not a candidate
        counts as a miss, and the result says how many such items there are. Values on sampled
        candidates differ from those on the whole catalogue, and the result says so.
    exclude
        A list of items that must not be recommended to any user.
    metrics
        Names with cut-offs, for instance ``"ndcg@10 recall@5,10,50 ap@1..10 roc_auc"``, or a
        dict, such as ``{"ndcg": [5, 10], "recall": range(1, 11), "roc_auc": None}``. Synonyms work
        as well: ``"MRR@10"`` is rr@10. Under a convention, you can also use the names of its
        library, such as ``"LinkPredMAP@10"``.
    protocol
        The rules that determine the values; pass ``other.protocol`` for those of another result.
        The name of a convention, such as ``"trec_eval"``, selects the rules and metric names of
        another library; see `recometer.conventions`.
    catalogue
        Data about the items: a `Catalogue`, or anything that `Catalogue` takes (the number of
        items, their ids, a data frame, a file). List metrics read categories, features and
        propensities from it. For `Lists`, it also says how many items could have been recommended;
        rules that need the number of candidates apply only if it is known. Sources that score every
        item already know this number.
    baseline
        Another source to compare the lists with, for metrics that need one (unexpectedness@k,
        overlap@k, rbo@k, serendipity@k).
    seed
        The seed for all random choices: the order of tied items under ``ties="random"``, and the
        resampling of users for intervals of metrics with one value for all users.
    threads
        Maximum number of threads. None uses all available processors. The result does not depend on
        this number.
    progress
        Whether to show a progress bar on standard error. None shows one only on a terminal, and
        only if the work takes a while.
    chance
        Whether to also compute the exact expected value of each metric under a random order of the
        same candidates (``result.chance``, and a column of the table). It shows whether a value
        such as 0.91 is better than chance. This requires ranking all candidates.
    **rules
        Individual rules, which override those of the protocol, for instance ``ties="random"``.

    Returns
    -------
    Evaluation, or a dict from model names to evaluations
        You can pass this dict to `Leaderboard` and `compare`.

    Raises
    ------
    InputError
        If the data do not match, test is empty, a cut-off is below 1, no test user is known, or no
        scores can be ranked because all of them are NaN or infinite. Also if the source does not
        support a metric (lists that end early do not support metrics of the whole ranking, and
        sources without ratings do not support rating metrics), or if data that the metric needs are
        missing (categories, a baseline, ...); the message then names the metric and the argument.
        Also if the ids of the source seem to be positions instead of the ids used in test and
        train, or the other way round (see the rule `shifted_ids`).
    InputTypeError
        If the type of an object is not supported, or ids cannot be matched.
    UnknownNameError
        If a metric, protocol or rule does not exist.

    Warns
    -----
    DataWarning
        For instance, if a rule that you pass has no effect on the result, such as ``duplicates``
        for `Factors`. There is no such warning for the rules of a convention. Also if more than a
        tenth of the test users, or of the relevant rows, are unknown to the source. That warning
        gives examples, and says so if ids seem to be spelled differently on the two sides.

    Examples
    --------
    Ann already had the book and then chose the song; Bob had the song and then chose the game.

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
    prepared = functools.partial(
        Preparation,
        candidates=candidates,
        exclude=exclude,
        metrics=metrics,
        protocol=protocol,
        catalogue=catalogue,
        baseline=baseline,
        seed=seed,
        threads=threads,
        progress=progress,
        chance=chance,
        **rules,
    )
    # A dict from users to lists of items is not a dict of models.
    if isinstance(source, Mapping) and any(map(_is_output, source.values())):
        return _evaluate_models(source, test, train, prepared)
    return _evaluate_one(source, test, train, prepared)


def evaluate_again(inputs: Mapping[str, Any], **changes: Any) -> Evaluation:
    """Evaluate the inputs of a result again, without repeating the first evaluation's warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result: Evaluation = evaluate(**inputs, **changes, progress=False)
        return result


def _evaluate_one(source: object, test: object, train: object, prepared: Prepared) -> Evaluation:
    """Evaluate one model, on a single test set or on folds."""
    if are_folds(test):
        check_no_train(test, train)
        by_fold = each_fold(source, test)
        folds = [_evaluate_one(own, split, None, prepared) for own, split in by_fold]
        return pool(folds, FoldedEvaluation)
    begin = time.perf_counter()
    if not isinstance(source, Source):
        check_evaluable(source, test)
    return Evaluation(**fields_of(prepared(test, train=train).case(source), begin))


def _is_output(argument: object) -> bool:
    if isinstance(argument, list | tuple):  # a source per fold
        return any(isinstance(entry, Source) for entry in argument)
    if isinstance(argument, Source) or callable(argument):
        return True
    from recometer.sources.models import is_model

    return is_model(argument)


def _evaluate_models(
    sources: Mapping[Any, Any], test: object, train: object, prepared: Prepared
) -> dict[str, Evaluation]:
    """Evaluate several models; warnings and errors begin with the name of the model.

    The preparation is shared, except for folds.
    """
    names = [str(name) for name in sources]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(
            f"Two models are called {repeated!r}. Hint: "
            'rm.evaluate({"als": source, "bpr": other}, test).'
        )
    named = dict(zip(names, sources.values(), strict=True))
    folded, results = are_folds(test), dict[str, Evaluation]()
    if not folded:
        for name, source in named.items():
            with naming(name):
                check_evaluable(source, test)
        preparation = prepared(test, train=train)
    for name, source in named.items():
        with naming(name):
            if folded:
                results[name] = _evaluate_one(source, test, train, prepared)
            else:
                begin = time.perf_counter()
                results[name] = Evaluation(**fields_of(preparation.case(source), begin))
    return results
