"""Tests that saved results are read exactly as they were written, or rejected as damaged."""

from __future__ import annotations

import pathlib
import threading
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
import pytest

import recometer as rm
from recometer.data.storage import PLACEHOLDER, is_sealed, seal


def result(seed: int) -> rm.Evaluation:
    rng = np.random.default_rng(seed)
    scores, test = rng.random((20, 30)), rng.random((20, 30)) < 0.1
    if seed:
        scores[:, :20] -= 5  # these items drop out of the lists, so the coverage differs
    return rm.evaluate(rm.Scores(scores), test, metrics="rr coverage@5", seed=seed)


def split(kind: str, seed: int, folder: pathlib.Path) -> rm.Split:
    """Split interactions whose item ids run from 10 * seed to 10 * seed + 7."""
    items = np.arange(8) + 10 * seed
    table = pl.DataFrame({"user": items // 3, "item": items, "time": items})
    if kind == "lazy":
        folder.mkdir(exist_ok=True)
        table.write_parquet(folder / f"{seed}.parquet")
        return rm.split(folder / f"{seed}.parquet", rm.split.Last(1))
    data = rm.Interactions.of(table) if kind == "interactions" else table
    return rm.split(data, rm.split.Last(1))


def seeds_of(split_result: rm.Split) -> set[int]:
    """Infer from the item ids which seeds a split's parts were made with."""
    of_parts = split_result.interactions()
    return {
        int(item_id) // 10 for part in (of_parts.train, of_parts.test) for item_id in part.item_ids
    }


def damaged(content: bytes) -> Iterator[bytes]:
    """Yield copies of the content with a byte changed, or with bytes missing or added."""
    for position in range(len(content)):
        yield (
            content[:position]
            + bytes([content[position] ^ (0x01, 0x80, 0xFF)[position % 3]])
            + content[position + 1 :]
        )
    for position in range(0, len(content), 40):
        yield content[:position]
        yield content[:position] + content[position + 1 :]
    for extra in (b"\0", b"PAR1", content, content[-200:]):
        yield content + extra


# The checksum is tested on every damaged copy, but only every 20th copy is written to a file and
# loaded, because reading files is slow.
READ_EVERY = 20


def test_any_damage_to_an_evaluation_is_detected(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result.parquet"
    result(0).save(path)
    for number, content in enumerate(damaged(path.read_bytes())):
        assert not is_sealed(content)
        if number % READ_EVERY == 0:
            path.write_bytes(content)
            with pytest.raises(rm.FileError, match="Hint"):
                rm.load(path)


@pytest.mark.parametrize("kind", ["frame", "interactions", "lazy"])
def test_any_damage_to_a_split_is_detected(kind: str, tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "split"
    split(kind, 0, tmp_path / "data").save(folder)
    for path in sorted(folder.iterdir()):
        before = path.read_bytes()
        for number, content in enumerate(damaged(before)):
            assert path.name != "split.json" or not is_sealed(content)
            if number % READ_EVERY == 0:
                path.write_bytes(content)
                with pytest.raises(rm.FileError, match="Hint"):
                    rm.Split.load(folder)
        path.write_bytes(before)
        assert seeds_of(rm.Split.load(folder)) == {0}


def test_file_without_a_checksum_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result.parquet"
    result(0).save(path)
    header = pl.read_parquet_metadata(path)["recometer"]
    pl.read_parquet(path).write_parquet(path, metadata={"recometer": header.partition("sha256")[0]})
    with pytest.raises(rm.FileError, match=r"has no checksum: .* Hint: evaluate and save again"):
        rm.load(path)


@pytest.mark.parametrize("header", ["[]", "{}", '{"version": 1}', "{" * 100_000, "1" * 10_000])
def test_invalid_header_is_reported_as_damaged(header: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result.parquet"
    metadata = {"recometer": header, "checksum": PLACEHOLDER}
    pl.DataFrame({"rr": [1.0]}).write_parquet(path, metadata=metadata)
    path.write_bytes(seal(path.read_bytes()))
    with pytest.raises(rm.FileError, match=r"is damaged: .* Hint"):
        rm.load(path)


def while_others_save(save: Callable[[int], object], check: Callable[[], None]) -> None:
    """Call `check` 50 times while two threads keep replacing the saved data."""
    ended = threading.Event()

    def save_repeatedly(number: int) -> None:
        while not ended.is_set():
            save(number)

    threads = [threading.Thread(target=save_repeatedly, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(50):
            check()
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_evaluation_is_read_completely_while_others_replace_it(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "result.parquet"
    results = [result(0), result(1)]
    means = [evaluation.mean() for evaluation in results]
    results[0].save(path)

    def check() -> None:
        loaded = rm.load(path)
        assert loaded.mean() == means[loaded.seed]

    while_others_save(lambda number: results[number].save(path), check)


@pytest.mark.parametrize("kind", ["lazy", "frame", "interactions"])
def test_split_is_read_completely_while_others_replace_it(
    kind: str, tmp_path: pathlib.Path
) -> None:
    splits = [split(kind, seed, tmp_path / "data") for seed in (0, 1)]
    splits[0].save(tmp_path / "split")
    seeds_read = []

    def check() -> None:
        seeds_read.append(seeds_of(rm.Split.load(tmp_path / "split")))

    while_others_save(lambda number: splits[number].save(tmp_path / "split"), check)
    assert all(seeds in ({0}, {1}) for seeds in seeds_read)


def test_loaded_split_does_not_change_when_files_are_replaced(tmp_path: pathlib.Path) -> None:
    for seed in (0, 1):
        split("lazy", seed, tmp_path / "data").save(tmp_path / "split")
        if not seed:
            loaded = rm.Split.load(tmp_path / "split")
    assert seeds_of(loaded) == {0}
    assert seeds_of(rm.Split.load(tmp_path / "split")) == {1}
