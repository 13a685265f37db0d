"""Small files that unpack to much are refused before they fill the memory."""

import gzip
import io
import zipfile
import zlib

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.cli._factors import read_factors
from recometer.data import unpacking
from recometer.data.array_files import open_sparse
from recometer.errors import FileError

REFUSED = r"unpacks to more than \d+ GiB, and to more than 200 times its size.*Hint"


@pytest.fixture
def a_megabyte(monkeypatch):
    """Make the limits those of small files."""
    monkeypatch.setattr(unpacking, "MOST", 2**20)
    unpacking._check_gzip.cache_clear()


def bomb(path, head, n=2**21):
    """Write a gzip file of a text that goes on with spaces, in two members."""
    path.write_bytes(gzip.compress(head) + gzip.compress(b" " * n))
    return path


def test_a_table(a_megabyte, tmp_path):
    path = bomb(tmp_path / "ratings.csv.gz", b"user_id,item_id\n1,2\n")
    with pytest.raises(FileError, match=REFUSED + r".*gunzip"):
        rm.Interactions.of(path)
    text = b"user_id,item_id\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(150_000))
    path.write_bytes(gzip.compress(text, compresslevel=1))
    assert len(text) > 2**20
    assert rm.Interactions.of(path).n_users == 150_000


def test_qrels(a_megabyte, tmp_path):
    with pytest.raises(FileError, match=REFUSED):
        rm.Interactions.of(bomb(tmp_path / "qrels", b"1 0 2 1\n"))


def test_a_parquet_file(a_megabyte, tmp_path):
    path = tmp_path / "ratings.parquet"
    pl.DataFrame({"user_id": [1], "item_id": [2]}).select(
        pl.all().repeat_by(300_000).explode()
    ).write_parquet(path)
    with pytest.raises(FileError, match=REFUSED):
        rm.Interactions.of(path)


def test_a_saved_evaluation(a_megabyte, tmp_path):
    path = tmp_path / "result.parquet"
    rm.evaluate(rm.Scores(np.eye(2)), np.eye(2), metrics="rr").save(path)
    header = pl.read_parquet_metadata(path)["recometer"]
    pl.read_parquet(path).head(1).select(pl.all().repeat_by(300_000).explode()).write_parquet(
        path, metadata={"recometer": header}
    )
    with pytest.raises(FileError, match=REFUSED):
        rm.load(path)


def say(*_):
    """Take a note."""


def test_archives(a_megabyte, tmp_path):
    path = tmp_path / "model.npz"
    np.savez_compressed(path, user_factors=np.zeros((400, 400)), item_factors=np.zeros((4, 400)))
    with pytest.raises(FileError, match=REFUSED):
        read_factors([str(path)], None, say, {})
    with pytest.raises(FileError, match=REFUSED):
        open_sparse(path)


def test_an_array_that_says_to_be_larger_than_it_is(tmp_path):
    path = tmp_path / "model.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**20)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("user_factors.npy", header.getvalue() + bytes(80))
    with pytest.raises(FileError, match=r"is damaged: user_factors.npy has \d+ bytes.*Hint"):
        read_factors([str(path)], None, say, {})


def test_damaged_files_say_so(tmp_path):
    text = gzip.compress(b"1 0 2 1\n" * 1000)
    for name in ("qrels", "ratings.csv.gz"):
        (tmp_path / name).write_bytes(text[:20] + b"\xff" * 10 + text[30:])
        with pytest.raises(FileError, match="Hint"):
            rm.Interactions.of(tmp_path / name)
    with pytest.raises(zlib.error):
        gzip.decompress(text[:20] + b"\xff" * 10 + text[30:])
