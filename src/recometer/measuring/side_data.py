"""Converts metrics' side data to the item positions that their records use."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from recometer import _kernel, ragged
from recometer.arrays import Array, Bool, Float64, Int64
from recometer.data import ids
from recometer.data.catalogue import Catalogue
from recometer.data.interactions import Interactions, gains
from recometer.data.matching import SourceIndex, both_have_ids, in_train, relevant_rows
from recometer.errors import (
    InputError,
    InternalError,
    UnknownNameError,
    did_you_mean,
    python_or_command,
    warn,
)
from recometer.metrics import ListData, Metric, Side
from recometer.metrics.ranked.counterfactual import with_propensities
from recometer.metrics.registry import SIDE_DATA, SideData
from recometer.protocol import RelevantFrom
from recometer.ranks import Ranks, TopLists
from recometer.sources.base import Memory

if TYPE_CHECKING:
    import scipy.sparse


def needed_by(metrics: Sequence[Metric]) -> dict[SideData, Metric]:
    """Return the kinds of side data that metrics read, each with the first metric that needs it."""
    needed: dict[SideData, Metric] = {}
    for metric in metrics:
        for side in metric.definition.side:
            needed.setdefault(side, metric)
        if metric.group:
            needed.setdefault("categories", metric)
    return needed


def check_side_data(
    metrics: Sequence[Metric],
    *,
    train: object,
    baseline: object,
    catalogue: Catalogue | None,
) -> None:
    """Refuse metrics whose side data are missing."""
    side_data: dict[str, object] = {"train": train, "baseline": baseline}
    for name in ("categories", "features", "propensity"):
        side_data[name] = None if catalogue is None else getattr(catalogue, name)
    side_data["catalogue_items"] = catalogue
    for side, metric in needed_by(metrics).items():
        if side in side_data and side_data[side] is None:
            raise _without_side_data(metric, side)
    for metric in metrics:
        if metric.group and catalogue is not None and metric.group not in catalogue.category_names:
            raise UnknownNameError(
                f"The metric {str(metric)!r} is restricted to the items of the group "
                f"{metric.group!r}, but no item of the catalogue is in it. "
                f"{did_you_mean(metric.group, catalogue.category_names)}"
            )


def warn_of_propensity(metrics: Iterable[Metric], catalogue: Catalogue | None) -> None:
    """Warn if the catalogue has propensities, but metrics use popularity instead."""
    weighted = [metric for metric in metrics if "propensity" in metric.definition.parameters]
    used = any(dict(metric.parameters).get("propensity") == "given" for metric in weighted)
    if weighted and not used and catalogue is not None and catalogue.propensity is not None:
        name = weighted[0].name
        warn(
            f"The propensities of the catalogue are not used: {weighted[0]} computes them from the "
            f"popularity in the training data. Hint: {name}@k(propensity=given) uses the "
            "propensities from the catalogue."
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Popularity:
    """The number of users who interacted with each item in the full training data.

    Attributes
    ----------
    item_ids
        The ids of the items; None if items are positions.
    users : int64 [n_items]
        The number of training users of each item.
    n_users, n_interactions
        The numbers of training users and of user-item pairs in train.
    """

    item_ids: Array | None
    users: Int64
    n_users: int
    n_interactions: int

    @classmethod
    def of(cls, train: Interactions) -> Popularity:
        """Count the users of each item."""
        users = np.zeros(train.n_items, np.int64)
        _kernel.count_rows(train.items, users)
        n_users = int(np.count_nonzero(np.diff(train.indptr)))
        return cls(train.item_ids, users, n_users, len(train))


def list_data(
    lists: TopLists,
    needed: Mapping[SideData, Metric],
    *,
    test: Interactions,
    train: Interactions | None,
    relevant_from: RelevantFrom,
    ranks: Ranks | None,
    catalogue: Catalogue | None,
    baseline: TopLists | None,
    in_train: Bool | None,
    memory: Memory,
    popularity: Popularity | None = None,
) -> ListData:
    """Convert the input of list metrics to the item positions that the lists use.

    Items that are not in the lists get positions after all listed items. `check_side_data` must
    have checked that the `needed` data exist. If the source contains the test data, they are read
    from `ranks`. The test rows in the mask `in_train` are left out. `memory` keeps results for
    other lists of the same items. If `train` has only some users, `popularity` is computed from the
    full training data.
    """
    if "catalogue" in needed and lists.n_catalogue is None:
        raise _without_side_data(needed["catalogue"], "catalogue")

    def convert() -> tuple[dict[str, Any], int]:
        # Return the data that do not depend on lists, and the number of items.
        items = _Items(lists.item_ids, lists.n_items)
        side_data: dict[str, Any] = {}
        if "test" in needed and ranks is not None:
            side_data["test"], side_data["relevant"] = _side_of_ranks(ranks)
        elif "test" in needed:
            mask = np.ones(len(test), bool) if in_train is None else ~in_train
            indptr = ragged.offsets(mask, test.indptr)
            side_data["test"] = Side(indptr, items.of(test, "test")[mask], gains(test)[mask])
            side_data["relevant"] = relevant_rows(test, relevant_from)[mask]
        if "train" in needed and train is not None:
            positions = items.of(train, "train")
            users = SourceIndex.of_data(train, "train").places_of_users(test)
            indptr, rows = ragged.take(train.indptr, users)
            side_data["train"] = Side(indptr, positions[rows], gains(train)[rows])
            popular = Popularity.of(train) if popularity is None else popularity
            side_data["n_train_users"] = popular.n_users
            side_data["n_train_interactions"] = popular.n_interactions
            side_data["item_users"] = items.of_ids(popular.item_ids, len(popular.users), "train")
        if "baseline" in needed and baseline is not None:
            side_data["baseline"] = items.of_lists(baseline)
        catalogue_positions: Int64 | None = None
        of_catalogue = {"categories", "features", "propensity"}
        if lists.uncatalogued is None:  # not computed by the source
            of_catalogue.add("catalogue_items")
        if catalogue is not None and not needed.keys().isdisjoint(of_catalogue):
            nameless = catalogue.item_ids is None and lists.item_ids is not None
            if nameless and "catalogue_items" in needed:
                raise _without_side_data(needed["catalogue_items"], "catalogue_items")
            catalogue_positions = items.of_catalogue(catalogue)

        # From here on, all items have positions.
        n_items = items.n_items
        if "item_users" in side_data:
            side_data["item_users"] = _spread(popular.users, side_data["item_users"], n_items)
        if catalogue_positions is not None and catalogue is not None:
            row = np.full(n_items, -1)
            row[catalogue_positions] = np.arange(len(catalogue_positions))
            for name in ("categories", "features"):
                if name in needed:
                    side_data[name] = _rows(getattr(catalogue, name), row)
            if "propensity" in needed and catalogue.propensity is not None:
                side_data["propensity"] = np.where(row >= 0, catalogue.propensity[row], np.nan)
            if "catalogue_items" in needed:
                side_data["in_catalogue"] = row >= 0
        if "catalogue_items" in needed and lists.uncatalogued is not None:
            side_data["in_catalogue"] = np.ones(n_items, bool)
            side_data["in_catalogue"][lists.uncatalogued] = False
        return side_data, n_items

    side_data, n_items = memory.find(
        "side data",
        (frozenset(needed), lists.n_items, relevant_from),
        convert,
        same=(test, train, ranks, catalogue, baseline, in_train),
        equal=(lists.item_ids, lists.uncatalogued),
    )
    lists_of_all = dataclasses.replace(lists, n_items=n_items)
    return ListData(lists_of_all, n_catalogue=lists.n_catalogue, **side_data)


def ranks_with(
    ranks: Ranks,
    needed: Mapping[SideData, Metric],
    *,
    test: Interactions,
    train: Interactions | None,
    catalogue: Catalogue | None,
    popularity: Popularity | None = None,
) -> Ranks:
    """Add the side data of each judged item, including items that the source does not know."""
    if needed.keys().isdisjoint(("train", "propensity")):
        return ranks
    items = _Items(ranks.item_ids, test.n_items)
    judged = _judged_items(ranks, items, test, train)
    users = propensity = None
    if "train" in needed and train is not None:
        popular = Popularity.of(train) if popularity is None else popularity
        positions = items.of_ids(popular.item_ids, len(popular.users), "train")
        users = _spread(popular.users, positions, items.n_items)
    if "propensity" in needed and catalogue is not None and catalogue.propensity is not None:
        catalogue_positions = items.of_catalogue(catalogue)
        propensity = np.full(items.n_items, np.nan)
        propensity[catalogue_positions] = catalogue.propensity
    result = with_propensities(dataclasses.replace(ranks, item=judged), users, propensity)
    return dataclasses.replace(result, item=ranks.item)


def ranks_of_groups(
    ranks: Ranks,
    groups: Iterable[str],
    *,
    test: Interactions,
    train: Interactions | None,
    catalogue: Catalogue,
) -> dict[str, Ranks]:
    """For each group (a category of the catalogue), return the ranks of its judged items.

    The other judged items remain candidates, as if they were not in test.
    """
    items = _Items(ranks.item_ids, test.n_items)
    judged = _judged_items(ranks, items, test, train)
    catalogue_positions = items.of_catalogue(catalogue)
    ranks_by_group = {}
    for group in groups:
        in_group = np.zeros(items.n_items, bool)
        in_group[catalogue_positions[members(catalogue, group)]] = True
        # An item that the source does not know has no position, even if the catalogue has it.
        of_group = ranks.rows(in_group[judged] & (judged >= 0))
        counted = of_group.relevant
        if of_group.repeated is not None:
            counted = counted & ~of_group.repeated
        n_relevant = np.diff(ragged.offsets(counted, of_group.indptr))
        rankable = ranks.n_rankable
        ranks_by_group[group] = dataclasses.replace(
            of_group,
            n_relevant=n_relevant,
            n_rankable=None if rankable is None else np.minimum(n_relevant, rankable),
        )
    return ranks_by_group


def members(catalogue: Catalogue, group: str) -> Int64:
    """Return the positions of the items in a category."""
    assert catalogue.categories is not None
    column = catalogue.category_names.index(group)
    return np.flatnonzero(catalogue.categories[:, [column]].toarray()[:, 0])


def with_copies(ranks: Ranks, test: Interactions, train: Interactions | None) -> Ranks:
    """Add the number of test rows of each judged pair, unless the source already did."""
    if test.copies is None or ranks.copies is not None:
        return ranks
    items = _Items(ranks.item_ids, test.n_items)
    judged = _judged_items(ranks, items, test, train)
    positions = items.of(test, "test")
    pairs = ragged.pairs(ragged.users_of(test.indptr), positions, items.n_items)
    order = np.argsort(pairs)
    judged_pairs = ragged.pairs(ranks.user, judged, items.n_items)
    places = np.searchsorted(pairs[order], judged_pairs)
    return dataclasses.replace(ranks, copies=test.copies[order][places])


def _judged_items(
    ranks: Ranks, items: _Items, test: Interactions, train: Interactions | None
) -> Int64:
    """Return the positions of judged items, including those unknown to the source (-1 in `ranks`).

    A user's unknown items are the remaining test items, which are matched by their gains.
    """
    unknown = np.flatnonzero(ranks.item < 0)
    if not len(unknown):
        return ranks.item
    positions = items.of(test, "test")
    user = ragged.users_of(ranks.indptr)
    known_pairs = np.sort(ragged.pairs(user, ranks.item, items.n_items)[ranks.item >= 0])
    test_user = ragged.users_of(test.indptr)
    missing = ~ragged.among(ragged.pairs(test_user, positions, items.n_items), known_pairs)
    if train is not None and len(ranks.item) < len(test):  # training items are not judged
        missing &= ~in_train(test, train)
    rows = np.flatnonzero(missing)
    if not np.array_equal(np.sort(user[unknown]), test_user[rows]):
        raise InternalError("Ranks.item is -1 except for items that the source lacks.")
    gain = gains(test)
    judged = ranks.item.copy()
    order = np.lexsort((gain[rows], test_user[rows]))
    judged[unknown[np.lexsort((ranks.gain[unknown], user[unknown]))]] = positions[rows[order]]
    return judged


class _Items:
    """Item positions: first the listed items, then other items in the order of first use."""

    def __init__(self, item_ids: Array | None, n_items: int) -> None:
        self.item_ids = item_ids
        self.n_own = self.n_items = n_items if item_ids is None else len(item_ids)
        self.extra_ids: list[Any] = []

    def of(self, data: Interactions, side: str) -> Int64:
        """Return the position of each row's item."""
        return self.of_ids(data.item_ids, data.n_items, side)[data.items]

    def of_catalogue(self, catalogue: Catalogue) -> Int64:
        """Return the position of each item of the catalogue."""
        return self.of_ids(catalogue.item_ids, catalogue.n_items, "the catalogue")

    def of_lists(self, lists: TopLists) -> TopLists:
        """Convert lists to these positions."""
        positions = np.append(self.of_ids(lists.item_ids, lists.n_items, "baseline"), -1)
        return dataclasses.replace(
            lists,
            items=positions[lists.items],
            n_items=self.n_items,
            item_ids=None,
            uncatalogued=None,
        )

    def of_ids(self, item_ids: Array | None, n_items: int, side: str) -> Int64:
        """Return the position of each id, and give new items the next positions."""
        if not both_have_ids("item", "the source", self.item_ids, side, item_ids):
            self.n_items = max(self.n_items, n_items)
            return np.arange(n_items)
        assert item_ids is not None
        assert self.item_ids is not None
        index = ids.match(item_ids, self.item_ids, f"item ids of {side}", "item ids of the source")
        unknown = np.flatnonzero(index < 0)
        if len(unknown):
            number = {name: self.n_own + position for position, name in enumerate(self.extra_ids)}
            names = item_ids[unknown].tolist()
            new = [name for name in names if name not in number]
            number |= {name: self.n_items + position for position, name in enumerate(new)}
            self.extra_ids += new
            self.n_items += len(new)
            index[unknown] = [number[name] for name in names]
        return index


def _spread(numbers: Int64, positions: Int64, n_items: int) -> Int64:
    """Return an array with the numbers at the given positions, and 0 elsewhere."""
    result = np.zeros(n_items, np.int64)
    result[positions] = numbers
    return result


def _side_of_ranks(ranks: Ranks) -> tuple[Side, Bool]:
    """Return each user's judged items, sorted by id as in test, and a mask of relevant items."""
    order = np.lexsort((ranks.item, ranks.user))
    return Side(ranks.indptr, ranks.item[order], ranks.gain[order]), ranks.relevant[order]


def _rows(matrix: Any, row: Int64) -> Float64 | scipy.sparse.csr_array:
    """Return the given rows of a matrix; -1 means an item without data."""
    has_data = row >= 0
    if isinstance(matrix, np.ndarray):
        return np.where(has_data[:, np.newaxis], matrix[row], np.nan)
    import scipy.sparse

    # Append an empty row for items without data.
    indptr = np.append(matrix.indptr, matrix.indptr[-1])
    shape = (matrix.shape[0] + 1, matrix.shape[1])
    padded = scipy.sparse.csr_array((matrix.data, matrix.indices, indptr), shape=shape)
    return padded[np.where(has_data, row, matrix.shape[0])]


def _without_side_data(metric: Metric, side: SideData) -> InputError:
    noun, python, command = SIDE_DATA[side]
    argument = python_or_command(python, command)
    return InputError(f"The metric {str(metric)!r} needs {noun}. Hint: pass {argument}.")
