"""Tests of arrays from any library, read through their `__dlpack__` or `__array__` method."""

import numpy as np
import pytest

import recometer as rm
import recometer.baselines
import recometer.split


class DlpackArray:
    """An array that other libraries can read only through `__dlpack__`."""

    def __init__(self, numbers):
        self._numbers = np.asarray(numbers)

    def __dlpack__(self, **options):
        return self._numbers.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._numbers.__dlpack_device__()


class NumpyProtocolArray:
    """An array that other libraries can read only through `__array__`, like h5py's and zarr's."""

    def __init__(self, numbers):
        self._numbers = np.asarray(numbers)

    def __array__(self, dtype=None, copy=None):
        return self._numbers if dtype is None else self._numbers.astype(dtype)


class GuardedArray(DlpackArray):
    """An array that refuses implicit conversion to NumPy, like CuPy's."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class BothProtocolsArray(NumpyProtocolArray, DlpackArray):
    """An array with `__array__` and `__dlpack__` whose entries cannot be hashed, like JAX's."""

    __hash__ = None

    @property
    def shape(self):
        return self._numbers.shape

    @property
    def dtype(self):
        return self._numbers.dtype

    def __len__(self):
        return len(self._numbers)

    def __getitem__(self, key):
        return BothProtocolsArray(self._numbers[key])

    def __iter__(self):
        return map(BothProtocolsArray, self._numbers)


PLACES = np.arange(3)
SCORES = np.array([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]], np.float32)
TEST = np.eye(3)
BY_ID = {0: [0], 1: [1], 2: [2]}
LISTS = np.array([[0, 1], [1, 2], [2, 0]])


@pytest.fixture(params=[DlpackArray, NumpyProtocolArray, GuardedArray, BothProtocolsArray])
def make(request):
    return request.param


def mean(source, test=TEST, **options):
    return rm.evaluate(source, test, metrics="rr", **options).mean()["rr"]


def test_sources_are_read_from_any_array(make) -> None:
    eye = make(np.eye(3, dtype=np.float32))
    assert mean(rm.Factors(eye, eye)) == 1
    assert mean(rm.Factors(eye, eye, item_bias=make(np.zeros(3, np.float32)))) == 1
    assert mean(rm.Scores(make(SCORES))) == 1
    assert mean(rm.Scores(lambda users: make(SCORES[users]), n_users=3, n_items=3)) == 1
    assert mean(rm.Lists(make(LISTS))) == 1
    lists_with_ids = rm.Lists(make(LISTS), user_ids=make(PLACES), item_ids=make(PLACES))
    assert mean(lists_with_ids, BY_ID) == 1
    assert mean(rm.Lists({user: make(LISTS[user]) for user in BY_ID}), BY_ID) == 1
    pairs = rm.Pairs.of(make([1, 0, 0, 1]), make([0.9, 0.1, 0.2, 0.8]), make([0, 0, 1, 1]))
    assert mean(pairs, None) == 1


def test_test_and_train_are_read_from_any_array(make) -> None:
    scores = rm.Scores(SCORES)
    assert mean(scores, make(TEST), train=make(np.zeros((3, 3)))) == 1
    test = rm.Interactions.of(make(TEST), user_ids=make(PLACES), item_ids=make(PLACES))
    assert test.user_ids.tolist() == [0, 1, 2]
    edges = rm.Interactions.of(
        make(np.array([[0, 1], [1, 2]])),
        n_users=3,
        n_items=3,
        value=make([4.0, 5.0]),
        time=make([7, 8]),
    )
    assert (edges.values.tolist(), edges.times.tolist()) == ([4, 5], [7, 8])
    assert edges.select_users(make([1])).items.tolist() == [2]
    from_dict = rm.Interactions.of({user: make(items) for user, items in BY_ID.items()})
    assert from_dict.item_ids.tolist() == [0, 1, 2]
    assert len(recometer.split.split(make(np.ones((4, 4))), recometer.split.Fraction(0.5)).test)


def test_candidates_are_read_from_any_array(make) -> None:
    scores = rm.Scores(-SCORES)
    assert mean(scores) == pytest.approx(1 / 3)
    assert mean(scores, candidates=make(LISTS)) == 1 / 2
    assert mean(scores, candidates=make(PLACES)) == pytest.approx(1 / 3)
    lists = rm.Lists(np.array([[2, 0], [2, 1]]))
    assert mean(lists, TEST[:2]) == 1 / 2
    assert mean(lists, TEST[:2], exclude=make([2])) == 1


def test_catalogue_is_read_from_any_array(make) -> None:
    catalogue = rm.Catalogue(
        make([7, 3, 5]),
        features=make(SCORES),
        categories=make(np.eye(3, dtype=int)),
        propensity=make([0.5, 0.25, 1.0]),
    )
    assert catalogue.item_ids.tolist() == [3, 5, 7]
    assert catalogue.features.tolist() == SCORES[[1, 2, 0]].tolist()
    assert catalogue.categories.toarray().argmax(axis=1).tolist() == [1, 2, 0]
    assert catalogue.propensity.tolist() == [0.25, 1.0, 0.5]
    assert mean(rm.Scores(SCORES), catalogue=make(PLACES)) == 1


def test_streams_are_updated_with_any_array(make) -> None:
    stream = rm.Evaluator(TEST, metrics="rr").stream()
    stream.update(make(SCORES), users=make(PLACES))
    assert stream.mean() == {"rr": 1}
    stream = rm.Evaluator(TEST, metrics="rr").stream()
    stream.update(items=make(LISTS), users=make(PLACES))
    assert stream.mean() == {"rr": 1}
    stream = rm.Evaluator(metrics="rr").stream()
    stream.update(make(SCORES), make(TEST), padding=make(SCORES == 3))
    assert np.isnan(stream.mean()["rr"])
    stream.reset()
    stream.update(make(SCORES), make(TEST))
    assert stream.mean() == {"rr": 1}


def test_groups_and_clusters_are_read_from_any_array(make) -> None:
    results = {
        name: rm.evaluate(rm.Scores(k * SCORES), TEST, metrics="rr")
        for name, k in (("a", 1), ("b", -1))
    }
    assert results["a"].by(make([0, 0, 1])).groups == ("0", "1")
    assert rm.compare(results, cluster=make([0, 0, 1])).rows
    shares = rm.exposure(rm.Lists(LISTS), make([0, 1, 1]), TEST, k=2)
    assert shares.equals(rm.exposure(rm.Lists(LISTS), np.array([0, 1, 1]), TEST, k=2))


class DeviceArray:
    """An array on a device, which copies itself to the CPU on request."""

    def __dlpack__(self, *, dl_device=None, copy=None, **options):
        if dl_device != (1, 0):
            raise BufferError("on a device")
        return SCORES.__dlpack__()

    def __dlpack_device__(self):
        return (2, 0)


def test_arrays_on_devices_are_copied() -> None:
    if np.lib.NumpyVersion(np.__version__) < "2.1.0":
        with pytest.raises(rm.InputError, match=r"move it to the CPU, or install NumPy 2.1"):
            rm.Scores(DeviceArray())
    else:
        assert mean(rm.Scores(DeviceArray())) == 1


def test_error_about_an_unreadable_array_quotes_its_cause() -> None:
    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("deleted")

    for read in (rm.Interactions.of, rm.Scores, rm.Lists):
        with pytest.raises(rm.InputError, match="RuntimeError: deleted"):
            read(Broken())


# NumPy records

RECORDS = np.array(
    [(1, 20, 3.0), (1, 10, 5.0), (2, 30, 4.0)],
    [("user_id", "i4"), ("item_id", "i8"), ("rating", "f4")],
)


@pytest.mark.parametrize("records", [RECORDS, RECORDS.view(np.recarray), RECORDS[::-1]])
def test_structured_arrays_are_read_like_frames(records) -> None:
    data = rm.Interactions.of(records)
    assert data.to_csr().toarray().tolist() == [[5, 3, 0], [0, 0, 4]]
    assert data.columns.value == "rating"
    test = {1: [20], 2: [30]}
    lists = rm.Lists(records, score="rating")
    assert mean(lists, test) == 0.75
    assert mean(lists, {1: [20]}, candidates=records) == 0.5
    assert len(rm.Catalogue(records, features="rating")) == 3
    pairs = rm.Pairs(records, score="item_id", rating="rating", item=False)
    assert rm.evaluate(pairs, metrics="mae").mean() == {"mae": (17 + 5 + 26) / 3}
    assert sorted(rm.Lists.each(records, by="user_id", user="item_id", item="rating")) == [1, 2]
    parts = recometer.split.split(records, recometer.split.Fraction(0.5))
    assert len(parts.train) + len(parts.test) == 3


def test_unread_field_of_a_structured_array_causes_a_warning() -> None:
    plays = RECORDS.astype([("user_id", "i4"), ("item_id", "i8"), ("minutes", "f4")])
    with pytest.warns(rm.DataWarning, match="'minutes' is not read"):
        rm.Interactions.of(plays)


def test_masked_numbers_are_read_as_missing() -> None:
    scores = np.ma.masked_array([0.9, 0.1, 0.8, 0.2], [False, False, False, True])
    relevance = np.ma.masked_array([1, 0, 0, 1], [False, True, False, False])
    result = rm.evaluate(rm.Pairs.of(relevance, scores), metrics="rr", nan_scores="last")
    plain = rm.Pairs.of([1, np.nan, 0, 1], [0.9, 0.1, 0.8, np.nan])
    assert result.mean() == rm.evaluate(plain, metrics="rr", nan_scores="last").mean()
    with pytest.raises(rm.InputError, match=r"user ids .*have no value in row 1"):
        rm.Scores(SCORES, user_ids=np.ma.masked_array([1, 2, 3], [0, 1, 0]))
