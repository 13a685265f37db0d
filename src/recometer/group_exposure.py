"""`exposure` and `fairness` measure how attention is distributed among groups of items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from recometer.arrays import Array, Float64, Int64
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import read_interactions
from recometer.data.matching import in_train
from recometer.errors import InputError, brief
from recometer.evaluating.arguments import check_source, protocol_of, test_of
from recometer.evaluating.sides import merge_rows
from recometer.measuring.side_data import list_data, needed_by
from recometer.metrics import Metric
from recometer.metrics.listed.data import ListData, exposures, log2, needed, placed, places_discount
from recometer.metrics.sums import ratio
from recometer.protocol import Protocol
from recometer.ragged import sums_of, users_of
from recometer.ranks import TopLists
from recometer.sources.base import Memory, Request, Source
from recometer.tasks import resolve_threads

if TYPE_CHECKING:
    import polars
    import scipy.sparse
    from typing_extensions import Unpack

    from recometer.protocol import Rules

DISCOUNTS = ("log", "geometric", "none")


def exposure(
    source: Source,
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
    """Compare groups' shares of exposure with their shares of the catalogue and of relevant items.

    Parameters
    ----------
    source
        The source whose lists are read.
    item_groups
        The group of each item: a dict from item to group, an array if items are positions, or a
        `Catalogue` whose categories are the groups (an item with several categories counts towards
        each of them in equal parts). An item whose group is None belongs to no group.
    test
        The items that should have been recommended, and the users whose lists are read. None if
        the source contains the labels.
    train
        Interactions to exclude from the ranking; accepts the same types as `test`.
    k
        The number of places to read from each list.
    discount
        The weight of place j: 1 / log2(j + 1) for ``"log"``, patience^(j - 1) for
        ``"geometric"``, and 1 for ``"none"``.
    patience
        The parameter of the geometric discount, between 0 and 1.
    protocol, threads, **rules
        As in `recometer.evaluate`.

    Returns
    -------
    polars.DataFrame
        A row per group, sorted by group, and a row for items without a group (null) if any of them
        is listed, relevant or in the catalogue:

        ``items``, ``listed``
            The number of items in the group, and the number of places that these items take in the
            lists.
        ``exposure``, ``catalogue``, ``relevant``
            The group's shares of the exposure, of the items, and of the users' relevant items.
            Each column adds up to 1.
        ``per_item``, ``per_relevant``
            ``exposure / catalogue`` and ``exposure / relevant``. ``per_item`` is 1 if the group's
            exposure is proportional to its number of items (demographic parity), and
            ``per_relevant`` if it is proportional to its number of relevant items (treatment by
            merit; Singh & Joachims 2018).

    Raises
    ------
    InputError
        If only some of the arguments have ids, or if there are no groups.
    InputTypeError
        If the type of the groups or of the source is not supported.

    Examples
    --------
    >>> import recometer as rm
    >>> source = rm.Lists({"ann": ["film", "book"], "bob": ["film"]})
    >>> groups = {"film": "major", "book": "small", "song": "small"}
    >>> table = rm.exposure(source, groups, {"ann": ["book"], "bob": ["film"]}, k=2)
    >>> table["group"].to_list(), table["items"].to_list(), table["relevant"].to_list()
    (['major', 'small'], [1, 2], [0.5, 0.5])
    >>> table["exposure"].round(4).to_list(), table["per_item"].round(2).to_list()
    ([0.7602, 0.2398], [2.28, 0.36])
    """
    settled = protocol_of(protocol, rules, [*(exposure.__kwdefaults__ or ())])
    arguments = item_groups, test, train, k, discount, patience, settled, threads
    catalogue, (data,) = _list_data([source], *arguments)
    return _frame(catalogue, exposure_of_groups(data, k, discount, patience))


@dataclasses.dataclass(frozen=True)
class Fairness:
    """How fairly attention is distributed among groups of items and individual items.

    Attributes
    ----------
    ratio : float
        The smallest quotient divided by the largest, from 0 to 1, where each group's quotient is
        its share of the attention divided by its target share. 1 means that all groups get
        attention in proportion to the target. Groups with a target share of 0 are left out.
    difference : float
        The share of the attention that would have to move to other groups to match the target
        shares, from 0 to 1. It is half the sum of the absolute differences between the groups'
        shares of the attention and their target shares.
    rank_fairness : float
        Attention-weighted rank fairness: the mean over users of 1 minus the Jensen-Shannon
        divergence, in bits, between the groups' shares of the attention in the user's own list and
        their target shares. 1 means that every list matches the target shares.
    disparity : float
        Expected-exposure disparity (EE-D): the mean over users of the sum over items of e^2, where
        e is the attention that the item gets. Randomised lists have a lower disparity.
    relevance : float
        Expected-exposure relevance (EE-R): the mean over users of the sum over items of e t, where
        t is the attention that the item would get if the user's relevant items took the first
        places in random order, and all other items followed in random order.
    loss : float
        Expected-exposure loss (EE-L): the mean over users of the sum over items of (e - t)^2. 0 is
        ideal.
    """

    ratio: float
    difference: float
    rank_fairness: float
    disparity: float
    relevance: float
    loss: float


def fairness(
    sources: Source | Sequence[Source],
    item_groups: Catalogue | Mapping[Any, Any] | Sequence[Any] | Array,
    test: object = None,
    *,
    target: str | Mapping[Any, float] = "relevant",
    train: object = None,
    k: int = 10,
    discount: str = "log",
    patience: float = 0.85,
    protocol: str | Protocol = "recometer",
    threads: int | None = None,
    **rules: Unpack[Rules],
) -> Fairness:
    """Measure how fairly attention is distributed among groups of items and individual items.

    Parameters
    ----------
    sources
        The source whose lists are read. Pass several sources for a randomised model that showed the
        same users different lists; the attention is then averaged over the sources.
    item_groups, test, train, k, discount, patience, protocol, threads, **rules
        As in `exposure`. Items without a group are left out of `ratio`, `difference` and
        `rank_fairness`.
    target
        The share of the attention that each group should get: its share of the users' relevant
        items (``"relevant"``), its share of the items (``"catalogue"``), or a dict from group to
        share.

    Returns
    -------
    Fairness
        A number is NaN if it is undefined because no list contains an item that has a group, no
        group has a target share above 0, or no user has a relevant item.

    Raises
    ------
    InputError
        If `target` has any other value or lacks the share of a group, if the sources have lists for
        different users, or if `exposure` would raise this error.

    References
    ----------
    Singh & Joachims 2018, Fairness of exposure in rankings: ratio and difference. Sapiezynski et
    al. 2019, Quantifying the impact of user attention on fair group representation in ranked
    lists. Diaz et al. 2020, Evaluating stochastic rankings with expected exposure. Raj & Ekstrand
    2022, Measuring fairness in ranked results: a comparison.

    Examples
    --------
    >>> import recometer as rm
    >>> source = rm.Lists({"ann": ["film", "book"], "bob": ["film"]})
    >>> groups = {"film": "major", "book": "small", "song": "small"}
    >>> fair = rm.fairness(source, groups, {"ann": ["book"], "bob": ["film"]}, k=2)
    >>> round(fair.ratio, 4), round(fair.difference, 4), round(fair.rank_fairness, 4)
    (0.3155, 0.2602, 0.8397)
    """
    settled = protocol_of(protocol, rules, [*(fairness.__kwdefaults__ or ())])
    arguments = item_groups, test, train, k, discount, patience, settled, threads
    sources = [*sources] if isinstance(sources, Sequence) else [sources]
    if not sources:
        raise InputError(
            "There are no lists. Hint: pass a source, or several sources with the same users."
        )
    catalogue, of_sources = _list_data(sources, *arguments, of_train=True)
    exposures = [exposure_of_groups(data, k, discount, patience) for data in of_sources]
    # The last entry is for items without a group, which do not count.
    share = _normalised(np.mean([exposed.exposure[:-1] for exposed in exposures], axis=0))
    target_shares = _target(target, catalogue, exposures[0].relevant)
    worth = places_discount(k, discount, patience)
    attention: list[scipy.sparse.csr_array] = [
        placed(data, k, worth[: data.first(k).shape[1]]).T for data in of_sources
    ]
    fair = [
        rank_fairness(shares_of_groups(attention_of_users, data), target_shares)
        for attention_of_users, data in zip(attention, of_sources, strict=True)
    ]
    mean = sum(attention[1:], start=attention[0]) / len(attention)
    disparity, relevance, loss = expected_exposure(mean.tocsr(), of_sources[0], worth)
    entitled = target_shares > 0
    favour = share[entitled] / target_shares[entitled]
    return Fairness(
        ratio=float(favour.min() / favour.max()) if len(favour) else np.nan,
        difference=float(np.abs(share - target_shares).sum() / 2),
        rank_fairness=_mean(np.concatenate(fair)),
        disparity=_mean(disparity),
        relevance=_mean(relevance),
        loss=_mean(loss),
    )


def _mean(values: Float64) -> float:
    """Return the mean of the values that are not NaN."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else np.nan


def _normalised(shares: Float64) -> Float64:
    total = shares.sum()
    return shares / total if total > 0 else np.full(len(shares), np.nan)


def _target(target: str | Mapping[Any, float], catalogue: Catalogue, relevant: Float64) -> Float64:
    """Return the target share of each group."""
    if isinstance(target, Mapping):
        names = [str(name) for name in catalogue.category_names]
        shares_by_group = {str(group): share for group, share in target.items()}
        if shares_by_group.keys() != set(names):
            raise InputError(
                f"target has the groups {', '.join(sorted(shares_by_group))}, but the groups of "
                f"items are {', '.join(sorted(names))}. Hint: pass a share for each of them."
            )
        shares = np.array([shares_by_group[name] for name in names])
        if shares.dtype.kind not in "iuf" or not (shares >= 0).all() or not shares.sum() > 0:
            raise InputError(
                "Every share of target must be at least 0, and at least one must be above 0."
            )
        return _normalised(shares.astype(np.float64))
    if target == "catalogue":
        groups = needed(catalogue.categories)
        return _normalised(_sums(groups, np.ones(groups.shape[0]))[:-1])
    if target == "relevant":
        return _normalised(relevant[:-1])
    raise InputError(
        f"target={brief(target)} must be 'relevant', 'catalogue', or a dict from group to share."
    )


def _aligned(lists: list[TopLists]) -> list[TopLists]:
    """Give each item the same number in all lists."""
    if len(lists) == 1:
        return lists
    if len({top_lists.n_users for top_lists in lists}) > 1:
        raise InputError(
            "The lists are not for the same users. Hint: use the same test data for all of them."
        )
    if any(top_lists.item_ids is None for top_lists in lists):
        if len({top_lists.n_items for top_lists in lists}) > 1 or any(
            top_lists.item_ids is not None for top_lists in lists
        ):
            raise InputError(
                "The lists do not identify items in the same way. Hint: use sources with item ids."
            )
        return lists
    item_ids = np.unique(np.concatenate([needed(top_lists.item_ids) for top_lists in lists]))
    aligned, lacking = [], np.zeros(0, np.int64)
    for top_lists in lists:
        places = np.append(np.searchsorted(item_ids, needed(top_lists.item_ids)), -1)
        if top_lists.uncatalogued is not None:
            lacking = np.union1d(lacking, places[top_lists.uncatalogued])
        aligned.append(
            dataclasses.replace(
                top_lists, items=places[top_lists.items], item_ids=item_ids, n_items=len(item_ids)
            )
        )
    return [dataclasses.replace(top_lists, uncatalogued=lacking) for top_lists in aligned]


def _list_data(
    sources: Sequence[Source],
    item_groups: object,
    test: object,
    train: object,
    k: int,
    discount: str,
    patience: float,
    protocol: Protocol,
    threads: int | None,
    *,
    of_train: bool = False,
) -> tuple[Catalogue, list[ListData]]:
    """Check and read the arguments that `exposure` and `fairness` share.

    Returns the groups, and the lists of each source with the relevant items and (if `of_train`) the
    training items.
    """
    catalogue = Catalogue.of_groups(item_groups)
    # A dict may assign groups to only some of the items.
    item_ids = catalogue.item_ids if isinstance(item_groups, Catalogue) else None
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k < 2**63:
        raise InputError(f"k={brief(k)} must be a whole number, at least 1 (and less than 2^63).")
    if discount not in DISCOUNTS:
        raise InputError(f"discount={discount!r} must be one of {', '.join(DISCOUNTS)}.")
    if not isinstance(patience, int | float | np.floating) or not 0 < patience < 1:
        raise InputError(f"patience={brief(patience)} must lie between 0 and 1.")
    trained = None if train is None else read_interactions(train, "train", warns=False)
    check_source(sources[0], test)
    truth = merge_rows(test_of(sources[0], test), (), protocol)
    threads = resolve_threads(threads)
    request = Request(truth, trained, protocol, item_ids, threads=threads)
    lists = [check_source(source, test).top(request, int(k)) for source in sources]
    # `list_data` prepares the data that these metrics read: the groups and the relevant items.
    reads, removed = [Metric("subtopic_recall", int(k))], None
    if trained is not None and sources[-1].facts.removes_train(protocol):
        reads += [Metric("popularity", int(k))] if of_train else []
        removed = in_train(truth, trained)
    return catalogue, [
        list_data(
            top_lists,
            needed_by(reads),
            test=truth,
            train=trained,
            relevant_from=protocol.relevant_from,
            ranks=None,
            catalogue=catalogue,
            baseline=None,
            in_train=removed,
            memory=Memory(),
        )
        for top_lists in _aligned(lists)
    ]


def _frame(catalogue: Catalogue, exposures: Any) -> polars.DataFrame:
    import polars as pl

    groups = needed(catalogue.categories)
    width = np.diff(groups.indptr)
    size = _sums(groups, np.ones(groups.shape[0]))
    columns: dict[str, Any] = {
        "group": [*catalogue.category_names, None],
        "items": np.append(np.diff(groups.tocsc().indptr), np.count_nonzero(width == 0)),
        "listed": exposures.listed,
        "exposure": exposures.exposure,
        "catalogue": size / size.sum(),
        "relevant": exposures.relevant,
    }
    frame = pl.DataFrame(columns, schema_overrides={"group": pl.String})
    frame = frame.with_columns(
        per_item=pl.col("exposure") / pl.col("catalogue"),
        per_relevant=pl.col("exposure") / pl.col("relevant"),
    )
    present = pl.any_horizontal(pl.col("items", "listed", "relevant") > 0)
    return frame.filter(pl.col("group").is_not_null() | present)


class GroupExposure(NamedTuple):
    """The exposure and the shares of each group; the last entry is for items without a group."""

    listed: Float64  # the number of places that the group's items take in the lists
    exposure: Float64  # the group's share of the exposure, which is the sum of place discounts
    relevant: Float64  # the group's share of all users' relevant items


def exposure_of_groups(
    data: ListData, cutoff: int, discount: str, patience: float
) -> GroupExposure:
    """Add up the exposure of each group's items.

    The exposure of an item is the sum of ``d(its place)`` over the lists that contain it in the
    first k places. An item in n groups counts 1 / n for each.

    Parameters
    ----------
    data
        The lists, the relevant items, and the groups as `categories`.
    cutoff
        The cut-off k.
    discount, patience
        The weight d(j) of place j: 1 / log2(j + 1) for ``"log"``, patience^(j - 1) for
        ``"geometric"``, and 1 for ``"none"``.

    References
    ----------
    Singh & Joachims 2018, Fairness of exposure in rankings. Raj & Ekstrand 2022, Measuring
    fairness in ranked results.
    """
    width = data.first(cutoff).shape[1]
    d = places_discount(width, discount, patience)
    items, groups = needed(data.test).items[needed(data.relevant)], needed(data.categories)
    return GroupExposure(
        listed=_sums(groups, exposures(data, cutoff)),
        exposure=_normalised(_sums(groups, exposures(data, cutoff, discount=d))),
        relevant=_normalised(_sums(groups, np.bincount(items, minlength=data.lists.n_items))),
    )


def _sums(groups: scipy.sparse.csr_array, values: Float64 | Int64) -> Float64:
    """Add up the values of each group's items; the last entry is for items without a group."""
    width = np.diff(groups.indptr)
    part = np.repeat(values / np.maximum(width, 1), width)
    sums = sums_of(groups.indices, part, groups.shape[1])
    return np.append(sums, values[width == 0].sum())


def shares_of_groups(attention: scipy.sparse.csr_array, data: ListData) -> Float64:
    """Return the groups' shares of the attention in each list: float64 [n_users, n_groups].

    Items without a group do not count. The shares are NaN if no item of the list has a group.
    """
    groups = needed(data.categories).astype(np.float64)
    width = np.maximum(np.diff(groups.indptr), 1)
    by_group = attention @ (groups / width[:, np.newaxis]).tocsr()
    sums: Float64 = by_group.toarray()
    total = sums.sum(axis=1, keepdims=True)
    shares: Float64 = np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 0)
    return shares


def rank_fairness(shares: Float64, target: Float64) -> Float64:
    """Return 1 minus the Jensen-Shannon divergence from a target: float64 [n_users].

    Parameters
    ----------
    shares : float64 [n_users, n_groups]
    target : float64 [n_groups]
        The target adds up to 1, and so do each user's shares.

    Notes
    -----
    ``1 - (KL(p, m) + KL(q, m)) / 2`` in bits with ``m = (p + q) / 2``. It is 1 if the shares equal
    the target, and 0 if all items of the list are from groups with a target share of 0.

    References
    ----------
    Sapiezynski et al. 2019, Quantifying the impact of user attention on fair group representation
    in ranked lists. Ekstrand et al. 2023, Overview of the TREC 2022 fair ranking track (for the
    divergence).
    """
    middle = (shares + target) / 2
    divergence = (_divergence(shares, middle) + _divergence(target, middle)) / 2
    return np.where(np.isnan(shares).any(axis=1), np.nan, 1 - divergence)


def _divergence(shares: Float64, middle: Float64) -> Float64:
    parts = np.broadcast_to(shares, middle.shape)
    positive = parts > 0
    terms = np.zeros(middle.shape)
    terms[positive] = parts[positive] * log2(parts[positive] / middle[positive])
    divergence: Float64 = terms.sum(axis=1)
    return divergence


def expected_exposure(
    attention: scipy.sparse.csr_array, data: ListData, worth: Float64
) -> tuple[Float64, ...]:
    """Compare the attention that each item gets with its attention in an ideal, randomised ranking.

    Returns each user's disparity, relevance and loss, as float64 [n_users]; they are NaN for users
    without a relevant item.

    Parameters
    ----------
    attention : sparse [n_users, n_items]
        Each item's mean attention over all lists that a user is shown.
    data
        The lists and their side data, which must include `test`. Training items are not
        candidates. Listed items that are not in the catalogue are not candidates either, unless
        they are test items.
    worth : float64 [k]
        The attention that each place gets.

    Notes
    -----
    Let e be the attention that an item gets, and t the attention that it would get if the user's R
    relevant items took the first R places in random order, and the other n - R items the following
    places. The disparity is ``sum of e^2``, the relevance is ``sum of e t``, and the loss is
    ``sum of (e - t)^2``.

    References
    ----------
    Diaz et al. 2020, Evaluating stochastic rankings with expected exposure.
    """
    test, relevant = needed(data.test), needed(data.relevant)
    users, items = users_of(test.indptr)[relevant], test.items[relevant]
    n_relevant = np.bincount(users, minlength=data.n_users)
    absent = data.lists.uncatalogued
    invented = np.setdiff1d(np.zeros(0, np.int64) if absent is None else absent, test.items)
    candidates = np.full(data.n_users, data.n_items - len(invented))
    if data.train is not None:
        candidates -= np.diff(data.train.indptr)
    cumulative = np.cumsum(worth)
    top_worth = cumulative[np.minimum(n_relevant, len(worth)) - 1]
    n_others = candidates - n_relevant
    other_worth = cumulative[np.minimum(candidates, len(worth)) - 1] - top_worth
    of_relevant, of_others = ratio(top_worth, n_relevant), ratio(other_worth, n_others)

    attention_to_relevant = np.bincount(
        users, np.asarray(attention[users, items]).ravel(), data.n_users
    )
    total = np.asarray(attention.sum(axis=1)).ravel()
    if len(invented):
        total = total - np.asarray(attention[:, invented].sum(axis=1)).ravel()
    disparity = np.asarray(attention.multiply(attention).sum(axis=1)).ravel()
    relevance = attention_to_relevant * of_relevant + (total - attention_to_relevant) * of_others
    ideal = n_relevant * of_relevant**2 + n_others * of_others**2
    sums = disparity, relevance, disparity - 2 * relevance + ideal
    return tuple(np.where(n_relevant > 0, values, np.nan) for values in sums)
