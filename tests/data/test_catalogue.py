"""Tests of catalogues read from every kind of data."""

import pathlib

import numpy as np
import polars as pl
import pytest
import scipy.sparse

import recometer as rm

ITEMS = {
    "item_id": ["c", "a", "b"],
    "title": ["Heat", "Antz", "Big"],
    "genres": ["Crime|Drama", "", "Comedy | Drama"],
    "popular": [True, False, True],
    "old": [1, 0, 0],
    "embedding": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "chance": [0.5, 0.25, 1.0],
}


def test_catalogue_is_read_from_a_dict_of_columns():
    assert rm.Catalogue(ITEMS).titles.tolist() == ["Antz", "Big", "Heat"]


def test_catalogue_is_read_from_any_frame(frame):
    catalogue = rm.Catalogue(frame(ITEMS), features="embedding", propensity="chance")
    assert len(catalogue) == 3
    assert catalogue.item_ids.tolist() == ["a", "b", "c"]
    assert catalogue.titles.tolist() == ["Antz", "Big", "Heat"]
    assert catalogue.category_names == ("Comedy", "Crime", "Drama")
    expected = [[False, False, False], [True, False, True], [False, True, True]]
    assert catalogue.categories.toarray().tolist() == expected
    assert catalogue.features.tolist() == [[3, 4], [5, 6], [1, 2]]
    assert catalogue.propensity.tolist() == [0.25, 1.0, 0.5]
    rounded = rm.Catalogue({"item_id": [1, 2]}, propensity=[0.1, 1 + 1e-12])
    assert rounded.propensity is not None
    assert rounded.propensity.tolist() == [0.1, 1.0]
    description = "3 items, titles, 3 categories, 2 features, propensities"
    assert repr(catalogue) == f"<Catalogue: {description}>"


@pytest.mark.parametrize("name", ["items.parquet", "items.csv", "items.tsv"])
def test_catalogue_is_read_from_files(tmp_path, name):
    path = tmp_path / name
    frame = pl.DataFrame(
        {
            "movieId": [30, 4],
            "genres": ["x|y", None],
            "f1": [1.5, 2.0],
            "f2": [0, 1],
            "p": [1.0, 0.5],
        }
    )
    if name.endswith("parquet"):
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="," if name.endswith("csv") else "\t")
    for source in (path, str(path)):
        catalogue = rm.Catalogue(source, features=["f1", "f2"], propensity="p")
        assert rm.Catalogue(source, features="f1").features.tolist() == [[2], [1.5]]
        with pytest.raises(rm.InputTypeError, match="must be numbers, found str"):
            rm.Catalogue(source, features="genres")
        assert catalogue.item_ids.tolist() == [4, 30]
        assert catalogue.features.tolist() == [[2, 1], [1.5, 0]]
        assert catalogue.propensity.tolist() == [0.5, 1]
        assert catalogue.categories.toarray().tolist() == [[False, False], [True, True]]


@pytest.mark.parametrize(
    "categories",
    [
        [["x", "y"], None, ["y", "y"]],
        ["x|y", "", "y"],
        [{"x", "y"}, (), np.array(["y"])],
        [["x", "y"], float("nan"), "y"],
    ],
)
def test_categories_may_be_lists_sets_or_text(categories):
    catalogue = rm.Catalogue(["c", "a", "b"], categories=categories)
    assert catalogue.category_names == ("x", "y")
    assert catalogue.categories.toarray().tolist() == [[False, False], [False, True], [True, True]]


@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
def test_categories_may_be_a_matrix(kind):
    matrix = kind(np.array([[1, 1], [0, 0], [0, 1]]))
    catalogue = rm.Catalogue(["c", "a", "b"], categories=matrix)
    assert catalogue.category_names == ("0", "1")
    assert catalogue.categories.dtype == bool
    assert catalogue.categories.toarray().tolist() == [[False, False], [False, True], [True, True]]


def test_categories_may_be_several_columns():
    catalogue = rm.Catalogue(ITEMS, categories=["popular", "old"])
    assert catalogue.category_names == ("popular", "old")
    assert catalogue.categories.toarray().tolist() == [[False, False], [True, False], [True, True]]


def test_items_may_have_one_category_each():
    assert rm.Catalogue(pl.DataFrame({"item": [1, 2], "category": ["b", "a"]})).category_names == (
        "a",
        "b",
    )
    assert rm.Catalogue({"item": [1, 2]}, categories=["b", "a"]).category_names == ("a", "b")


@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_matrix, scipy.sparse.coo_array])
@pytest.mark.parametrize("items", [3, ["c", "a", "b"]])
def test_features_may_be_a_matrix(kind, items):
    matrix = kind(np.array([[1, 2], [3, 0], [5, 6]]))
    array = rm.Catalogue(items, features=matrix).features
    assert array.dtype == np.float64
    dense = array if isinstance(array, np.ndarray) else array.toarray()
    expected = [[1, 2], [3, 0], [5, 6]] if items == 3 else [[3, 0], [5, 6], [1, 2]]
    assert dense.tolist() == expected


def test_missing_fixed_size_lists_are_read_as_nan():
    values = pl.Series([[1, 2], None, [3, 4]], dtype=pl.Array(pl.Float32, 2))
    frame = pl.DataFrame({"item": [1, 2, 3], "vector": values})
    array = rm.Catalogue(frame, features="vector").features
    np.testing.assert_array_equal(array, [[1, 2], [np.nan, np.nan], [3, 4]])


def test_columns_of_a_catalogue_can_be_left_out():
    catalogue = rm.Catalogue(ITEMS, title=False, categories=False)
    assert catalogue.titles is None
    assert catalogue.categories is None
    assert repr(catalogue) == "<Catalogue: 3 items>"
    assert rm.Catalogue(ITEMS, item=False).item_ids is None
    assert rm.Catalogue(1).describe() == "1 item"


ONES = np.ones((2, 1))


@pytest.mark.parametrize(
    ("items", "options", "error", "message"),
    [
        (0, {}, rm.InputError, "from 1 to"),
        ([], {}, rm.InputError, "no items"),
        (True, {}, rm.InputTypeError, "of type bool"),
        (3.5, {}, rm.InputTypeError, "of type float"),
        ("no.parquet", {}, rm.FileError, "no file no.parquet"),
        (["a", "b", "a"], {}, rm.InputError, "distinct, but 'a' occurs 2 times"),
        ({"item": ["a", None]}, {}, rm.InputError, "no value in row 1"),
        ({"n": ["a"]}, {}, rm.ColumnError, "No column has a common name for items.*item="),
        (ITEMS, {"item": "itm"}, rm.ColumnError, "no column 'itm'.*item_id"),
        (ITEMS, {"title": "titel"}, rm.ColumnError, "no column 'titel'.*title"),
        (ITEMS, {"categories": ["popular", "od"]}, rm.ColumnError, "no column 'od'"),
        (ITEMS, {"categories": ["chance"]}, rm.InputTypeError, "True and False"),
        (ITEMS, {"features": "title"}, rm.InputTypeError, "must be numbers, found str"),
        (ITEMS, {"features": ["title"]}, rm.InputTypeError, "features .* must be numbers"),
        (ITEMS, {"features": "genre"}, rm.ColumnError, "no column 'genre'"),
        ({**ITEMS, "tags": ITEMS["genres"]}, {}, rm.ColumnError, "Several columns.*categories="),
        (3, {"features": ONES}, rm.InputError, "features .* 2 rows, but there are 3 items"),
        (3, {"categories": ONES}, rm.InputError, "categories .* 2 rows, but there are 3 items"),
        (3, {"propensity": [1, 1]}, rm.InputError, "propensities .* 2 rows"),
        (3, {"propensity": ONES}, rm.InputError, "shape"),
        (2, {"propensity": [1, 0]}, rm.InputError, "propensity of item 1 is 0"),
        (["x", "y"], {"propensity": [np.nan, 1]}, rm.InputError, "propensity of item 'x' is nan"),
        (2, {"features": [1, 2]}, rm.InputTypeError, "shape"),
        (2, {"features": [["a"], ["b"]]}, rm.InputTypeError, "dtype"),
        (2, {"features": [[1, np.nan], [1, 1]]}, rm.InputError, "NaN or infinite.*item 0"),
        (["b", "a"], {"features": [[1], [np.inf]]}, rm.InputError, "first is item 'a'"),
        (2, {"title": ["x"]}, rm.InputError, "titles .* 1 rows"),
        (2, {"title": "x"}, rm.ColumnError, "no column 'x'"),
        (2, {"categories": [["a"], object()]}, rm.InputTypeError, "row 1 .* of type object"),
    ],
)
def test_invalid_catalogues_are_refused(items, options, error, message):
    with pytest.raises(error, match=message):
        rm.Catalogue(items, **options)


def test_feature_lists_of_different_lengths_are_refused():
    frame = {"item": [1, 2], "vector": [[1.0], [1.0, 2.0]]}
    with pytest.raises(rm.InputError, match=r"'vector'.* lists of 1 to 2"):
        rm.Catalogue(frame, features="vector")


def test_bundled_catalogue_has_titles():
    folder = pathlib.Path(rm.__file__).parent / "datasets" / "msweb"
    assert rm.Catalogue(folder / "items.parquet").describe() == "285 items, titles"
