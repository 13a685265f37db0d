"""Tests that small files with huge contents are refused before they fill memory."""

import gzip
import io
import zipfile
import zlib

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.data import unpacking
from recometer.data.array_files import open_sparse
from recometer.data.storage import seal
from recometer.errors import FileError

REFUSED = r"unpacks to \d+ GiB or more, and to 200 times its size.*Hint"


@pytest.fixture
def limit_of_one_mebibyte(monkeypatch):
    """Lower the limit for unpacked contents to one mebibyte."""
    monkeypatch.setattr(unpacking, "LIMIT", 2**20)
    unpacking._check_gzip.cache_clear()


def write_bomb(path, head, n=2**21):
    """Write a gzip file with two members: `head`, and `n` spaces."""
    path.write_bytes(gzip.compress(head) + gzip.compress(b" " * n))
    return path


def test_compressed_table_that_unpacks_to_a_huge_size_is_refused(limit_of_one_mebibyte, tmp_path):
    path = write_bomb(tmp_path / "ratings.csv.gz", b"user_id,item_id\n1,2\n")
    with pytest.raises(FileError, match=REFUSED + r".*gunzip"):
        rm.Interactions.of(path)
    text = b"user_id,item_id\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(150_000))
    path.write_bytes(gzip.compress(text, compresslevel=1))
    assert len(text) > 2**20
    assert rm.Interactions.of(path).n_users == 150_000


def test_compressed_qrels_that_unpack_to_a_huge_size_are_refused(limit_of_one_mebibyte, tmp_path):
    with pytest.raises(FileError, match=REFUSED):
        rm.Interactions.of(write_bomb(tmp_path / "qrels", b"1 0 2 1\n"))


def test_parquet_file_that_unpacks_to_a_huge_size_is_refused(limit_of_one_mebibyte, tmp_path):
    path = tmp_path / "ratings.parquet"
    pl.DataFrame({"user_id": [1], "item_id": [2]}).select(
        pl.all().repeat_by(300_000).explode()
    ).write_parquet(path)
    with pytest.raises(FileError, match=REFUSED):
        rm.Interactions.of(path)


def nested_file(path, **columns):
    """Write two rows; the lists in the first row have 300,000 entries each."""
    lists = {name: [[value] * 300_000, [value]] for name, value in columns.items()}
    ids = {name: [1, 2] for name in ("user_id", "item_id") if name not in columns}
    pl.DataFrame({**ids, **lists}).write_parquet(path)
    return path


READERS = {
    "interactions": lambda path: rm.Interactions.of(nested_file(path, item_id=7)),
    "lists": lambda path: rm.Lists(nested_file(path, item_id=7)),
    "catalogue": lambda path: rm.Catalogue(
        nested_file(path, categories="x"), categories="categories"
    ),
    "split": lambda path: rm.split(nested_file(path, tags="x"), rm.split.Last(1)),
    "factors": lambda path: rm.Factors.from_files(*[str(nested_file(path, factors=0.5))] * 2),
}


@pytest.mark.parametrize("read", READERS)
def test_huge_lists_in_a_small_parquet_file_are_refused(read, limit_of_one_mebibyte, tmp_path):
    with pytest.raises(FileError, match=REFUSED + r".*entries of its lists"):
        READERS[read](tmp_path / "nested.parquet")


def test_lists_that_take_exactly_the_limit_are_refused(monkeypatch, tmp_path):
    """The list has 2**17 entries of 8 bytes each, which is exactly the limit of 1 MiB."""
    path = tmp_path / "lists.parquet"
    pl.DataFrame({"user_id": [1], "item_id": [[7] * 2**17]}).write_parquet(path)
    monkeypatch.setattr(unpacking, "LIMIT", 2**20)
    with pytest.raises(FileError, match=r"entries of its lists"):
        rm.Lists(path)


def test_false_number_of_entries_in_the_footer_has_no_effect(limit_of_one_mebibyte, tmp_path):
    """The test falsifies the entry count in the footer, but not the counts in the page headers."""
    path = nested_file(tmp_path / "nested.parquet", item_id=7)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8]
    true_length, wrong_length = (b"\x16" + varint(2 * n) for n in (300_001, 150_001))
    assert true_length in footer
    path.write_bytes(
        content[: -8 - length] + footer.replace(true_length, wrong_length) + content[-8:]
    )
    with pytest.raises(FileError, match=REFUSED):
        rm.Lists(path)


def varint(number):
    """Encode a number as Parquet does, with seven bits in each byte."""
    encoded = b""
    while number > 127:
        encoded += bytes([number & 127 | 128])
        number >>= 7
    return encoded + bytes([number])


def test_long_lists_in_a_large_file_are_read(limit_of_one_mebibyte, tmp_path):
    path = tmp_path / "lists.parquet"
    rng = np.random.default_rng(0)
    lists = rng.integers(0, 2**40, (200, 1000))
    pl.DataFrame({"user_id": range(200), "item_id": lists.tolist()}).write_parquet(
        path, data_page_size=2**10, row_group_size=50
    )
    assert rm.Interactions.of(path).n_users == 200


def test_saved_evaluation_that_unpacks_to_a_huge_size_is_refused(limit_of_one_mebibyte, tmp_path):
    path = tmp_path / "result.parquet"
    rm.evaluate(rm.Scores(np.eye(2)), np.eye(2), metrics="rr").save(path)
    header = pl.read_parquet_metadata(path)["recometer"]
    frame = pl.read_parquet(path).head(1)
    for larger in (
        frame.select(pl.all().repeat_by(300_000).explode()),
        frame.with_columns(rr=pl.col("rr").repeat_by(300_000)),
    ):
        larger.write_parquet(path, metadata={"recometer": header})
        path.write_bytes(seal(path.read_bytes()))
        with pytest.raises(FileError, match=REFUSED):
            rm.load(path)


def test_archives_that_unpack_to_a_huge_size_are_refused(limit_of_one_mebibyte, tmp_path):
    path = tmp_path / "model.npz"
    np.savez_compressed(path, user_factors=np.zeros((400, 400)), item_factors=np.zeros((4, 400)))
    with pytest.raises(FileError, match=REFUSED):
        rm.Factors.from_files(str(path))
    with pytest.raises(FileError, match=REFUSED):
        open_sparse(path)


def test_array_whose_header_promises_too_much_data_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**20)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user_factors.npy", header.getvalue() + bytes(80))
    with pytest.raises(FileError, match=r"is damaged: user_factors.npy has \d+ bytes.*Hint"):
        rm.Factors.from_files(str(path))


def test_impossible_array_headers_are_refused(tmp_path):
    path = tmp_path / "scores.npy"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (-2, 3)}
    )
    path.write_bytes(header.getvalue() + bytes(48))
    with pytest.raises(FileError, match=r"scores.npy cannot be read as a NumPy array.*Hint"):
        rm.Scores(path)
    path = tmp_path / "test.npz"
    arrays = {"indices": [0], "indptr": [0, 1], "shape": (1, 1), "data": [1.0]}
    np.savez(path, format=1.5, **arrays)
    with pytest.raises(FileError, match=r"test.npz cannot be read as a sparse matrix.*Hint"):
        rm.Interactions.of(path)


def test_damaged_compressed_files_are_refused(tmp_path):
    text = gzip.compress(b"1 0 2 1\n" * 1000)
    for name in ("qrels", "ratings.csv.gz"):
        (tmp_path / name).write_bytes(text[:20] + b"\xff" * 10 + text[30:])
        with pytest.raises(FileError, match="Hint"):
            rm.Interactions.of(tmp_path / name)
    with pytest.raises(zlib.error):
        gzip.decompress(text[:20] + b"\xff" * 10 + text[30:])
