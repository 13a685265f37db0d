"""exposure(): the share of attention that groups of items get, beside their share of items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer.arrays import Array
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions, read_interactions
from recometer.data.matching import in_train
from recometer.errors import InputError, InputTypeError, brief
from recometer.evaluating.arguments import check_source, protocol_of, test_of
from recometer.measuring.side_data import list_data, needed_by
from recometer.metrics import Metric
from recometer.metrics.listed.exposure import exposure_of_groups
from recometer.protocol import Protocol
from recometer.ranks import TopLists
from recometer.results.evaluation import Evaluation
from recometer.sources.base import Request, Source
from recometer.sources.memory import Memory
from recometer.tasks import resolve_threads

if TYPE_CHECKING:
    import polars
    from typing_extensions import Unpack

    from recometer.protocol import Rules

DISCOUNTS = ("log", "geometric", "none")


def exposure(
    lists: Source | Evaluation,
    item_groups: Catalogue | Mapping[Any, Any] | Sequence[Any] | Array,
    test: object = None,
    *,
    train: object = None,
    k: int = 10,
    discount: str = "log",
    patience: float = 0.85,
    protocol: str | Protocol = "recometer",
    threads: int | None = None,
    **rules: Unpack[Rules],
) -> polars.DataFrame:
    """Compare the exposure of groups of items with their share of all and of relevant items.

    Parameters
    ----------
    lists
        A source, or an evaluation that has `lists`.
    item_groups
        The group of each item: a dict from item to group, an array if items are positions, or a
        `Catalogue` whose categories are the groups (an item with several categories counts for
        each of them with the same share). None means that the item has no group.
    test
        The items that should have been recommended, and the users whose lists are read. For an
        evaluation, pass its own test; without it there are no columns of relevant items.
    train
        Interactions to exclude from the ranking, in any form that `test` takes.
    k
        The number of places to read.
    discount
        The weight of place j: 1 / log2(j + 1) for ``"log"``, patience^(j - 1) for
        ``"geometric"``, and 1 for ``"none"``.
    patience
        Parameter of the geometric discount, between 0 and 1.
    protocol, threads, **rules
        As for `recometer.evaluate`.

    Returns
    -------
    polars.DataFrame
        A row per group, sorted, and one for items without a group (null) if any is listed,
        relevant or in the catalogue:

        ``items``, ``listed``
            The number of items of the group, and the number of places that they have in the lists.
        ``exposure``, ``catalogue``, ``relevant``
            The group's shares of the exposure, of the items, and of the users' relevant items.
            Each column adds up to 1.
        ``per_item``, ``per_relevant``
            ``exposure / catalogue`` and ``exposure / relevant``. They are 1 if the exposure of a
            group equals its share (Singh & Joachims 2018: demographic parity, and treatment by
            merit).

    Raises
    ------
    InputError
        If k is beyond the lists of an evaluation, only one side has ids, or there are no groups.
    InputTypeError
        If the type of the groups or lists is not supported.

    Examples
    --------
    >>> import recometer as rm
    >>> source = rm.Lists({"ann": ["film", "book"], "bob": ["film"]})
    >>> groups = {"film": "major", "book": "small", "song": "small"}
    >>> found = rm.exposure(source, groups, {"ann": ["book"], "bob": ["film"]}, k=2)
    >>> found["group"].to_list(), found["items"].to_list(), found["relevant"].to_list()
    (['major', 'small'], [1, 2], [0.5, 0.5])
    >>> found["exposure"].round(4).to_list(), found["per_item"].round(2).to_list()
    ([0.7602, 0.2398], [2.28, 0.36])
    """
    catalogue = _catalogue(item_groups)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < 2**63:
        raise InputError(f"k={brief(k)} must be a whole number, at least 1 (and less than 2^63).")
    if discount not in DISCOUNTS:
        raise InputError(f"discount={discount!r} must be one of {', '.join(DISCOUNTS)}.")
    if not isinstance(patience, int | float) or not 0 < patience < 1:
        raise InputError(f"patience={brief(patience)} must lie between 0 and 1.")
    settled = protocol_of(protocol, rules, [*(exposure.__kwdefaults__ or ())])
    trained = None if train is None else read_interactions(train, "train", warns=False)
    truth: Interactions | None
    if isinstance(lists, Evaluation):
        truth = None if test is None else read_interactions(test, "test")
        found = _lists_of(lists, truth, k)
    else:
        check_source(lists, test)
        truth = test_of(lists, test)
        request = Request(truth, trained, settled, threads=resolve_threads(threads))
        found = lists.top(request, k)
    # Metrics that read the same: the groups, and with test what is relevant.
    reads = Metric("category_entropy" if truth is None else "subtopic_recall", k)
    empty = Interactions.of(np.zeros((found.n_users, 0))) if truth is None else truth
    removes_train = isinstance(lists, Evaluation) or lists.removes_train(settled)
    data = list_data(
        found,
        needed_by([reads]),
        test=empty,
        train=trained,
        relevant_from=settled.relevant_from,
        ranks=None,
        catalogue=catalogue,
        baseline=None,
        in_train=in_train(empty, trained) if removes_train and trained is not None else None,
        memory=Memory(),
    )
    return _frame(catalogue, exposure_of_groups(data, k, discount, patience))


def _catalogue(item_groups: object) -> Catalogue:
    """Return the groups as categories."""
    if isinstance(item_groups, Mapping | list | tuple | np.ndarray):
        if not len(item_groups):
            raise InputError("item_groups is empty. Hint: the group of each item.")
        by_id = isinstance(item_groups, Mapping)
        groups = item_groups.values() if isinstance(item_groups, Mapping) else item_groups
        table: dict[str, Any] = {"item": list(item_groups)} if by_id else {}
        table["group"] = [[] if group is None else [str(group)] for group in groups]
        item = "item" if by_id else False
        return Catalogue(table, item=item, title=False, categories="group")
    if not isinstance(item_groups, Catalogue):
        raise InputTypeError(
            f"item_groups is of type {type(item_groups).__name__}. Hint: a dict from item to "
            "group, an array with the group of each position, or rm.Catalogue(frame, "
            "categories=...)."
        )
    if item_groups.categories is None:
        raise InputError(
            "The catalogue in item_groups has no categories. Hint: rm.Catalogue(frame, "
            "categories=...)."
        )
    return item_groups


def _lists_of(evaluation: Evaluation, test: Interactions | None, k: int) -> TopLists:
    lists = evaluation.lists
    if lists is None or lists.depth < min(k, lists.n_items):
        found = "no lists" if lists is None else f"lists of {lists.depth} places"
        raise InputError(
            f"The evaluation keeps {found}, but {k} places are read. Hint: it keeps them if you "
            f"ask for a metric of lists, such as coverage@{k}, but a file does not contain them; "
            "or pass the source itself."
        )
    if test is not None and test.n_users != evaluation.n_users:
        raise InputError(
            f"The evaluation has {evaluation.n_users:,} users, test has {test.n_users:,}. Hint: "
            "the test that was evaluated."
        )
    return lists


def _frame(catalogue: Catalogue, found: Any) -> polars.DataFrame:
    import polars as pl

    groups = catalogue.categories
    assert groups is not None
    width = np.diff(groups.indptr)
    part = np.repeat(1 / np.maximum(width, 1), width)
    size = np.bincount(groups.indices, weights=part, minlength=groups.shape[1])
    size = np.append(size, np.count_nonzero(width == 0))
    columns: dict[str, Any] = {
        "group": [*catalogue.category_names, None],
        "items": np.append(np.diff(groups.tocsc().indptr), np.count_nonzero(width == 0)),
        "listed": found.listed,
        "exposure": found.exposure,
        "catalogue": size / size.sum(),
        "relevant": found.relevant,
    }
    if found.relevant is None:
        del columns["relevant"]
    frame = pl.DataFrame(columns, schema_overrides={"group": pl.String})
    ratios = {"per_item": "catalogue", "per_relevant": "relevant"}
    frame = frame.with_columns(
        (pl.col("exposure") / pl.col(share)).alias(name)
        for name, share in ratios.items()
        if share in columns
    )
    there = pl.any_horizontal(pl.col("items") > 0, pl.col("listed") > 0)
    if found.relevant is not None:
        there = pl.any_horizontal(there, pl.col("relevant") > 0)
    return frame.filter(pl.col("group").is_not_null() | there)
