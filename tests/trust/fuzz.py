"""Fuzz targets: the parser of metric names, and the readers of every kind of file.

`python tests/trust/fuzz.py TARGET -max_total_time=20 CORPUS` runs one target under Atheris (the
extra `fuzz`), which looks for inputs that reach new code and keeps them in the folder CORPUS; see
`.ci/check_fuzz`. Every input must lead to a result or to a `RecometerError`. In the test suite,
`test_corpus.py` replays `corpus/`.
"""

import contextlib
import importlib
import pathlib
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator

FOLDER = tempfile.TemporaryDirectory(prefix="recometer-fuzz-")


def import_recometer() -> None:
    """Import the code under test, which Atheris instruments on import."""
    data = (f"data.{name}" for name in ("catalogue", "factor_files", "files", "ids"))
    for name in (*data, "metrics.names", "sources.lists", "sources.pairs", "split.saving"):
        importlib.import_module(f"recometer.{name}")


def file_of(data: bytes, name: str) -> pathlib.Path:
    """Write the data to a file with this name, and return its path."""
    path = pathlib.Path(FOLDER.name) / name
    path.write_bytes(data)
    return path


def answer(call: Callable[[], object]) -> None:
    """Make a call, which must either return or raise a `RecometerError`."""
    from recometer.errors import RecometerError

    with contextlib.suppress(RecometerError):
        call()


def names(data: bytes) -> None:
    """Parse metric names; printing and parsing the result must not change it."""
    from recometer.metrics import parse

    text = data.decode(errors="surrogateescape")
    metrics = parse(text)
    if len(metrics) <= 1000:  # a short text such as 1..9999 can contain many cut-offs
        assert parse(" ".join(map(str, metrics))) == metrics


def calls_on(path: pathlib.Path) -> Iterator[Callable[[], object]]:
    """Yield all calls that read a table of interactions, lists or pairs."""
    import recometer as rm

    yield lambda: rm.Interactions.of(path)
    yield lambda: rm.Lists(path)
    yield lambda: rm.Pairs(path, threshold=1)
    yield lambda: rm.Catalogue(path)


def read_in_every_way(path: pathlib.Path) -> None:
    """Read a table in every way, each of which may raise an error."""
    for call in calls_on(path):
        answer(call)


def csv(data: bytes) -> None:
    """Read a text file with a header."""
    read_in_every_way(file_of(data, "table.csv"))


def gzipped(data: bytes) -> None:
    """Read a compressed text file."""
    read_in_every_way(file_of(data, "table.tsv.gz"))


def trec(data: bytes) -> None:
    """Read runs and qrels from files without an extension."""
    read_in_every_way(file_of(data, "run"))


def parquet(data: bytes) -> None:
    """Read Parquet files, both as tables and as saved results."""
    import recometer as rm

    path = file_of(data, "table.parquet")
    read_in_every_way(path)
    for call in (lambda: rm.load(path), lambda: rm.Split.load(path.parent)):
        answer(call)


def header(data: bytes) -> None:
    """Load a split and an evaluation with arbitrary headers."""
    import polars as pl

    import recometer as rm

    folder = pathlib.Path(FOLDER.name) / "split"
    folder.mkdir(exist_ok=True)
    table = pl.DataFrame({"user": ["1", "2"], "item": [1, 2], "rr": [0.5, 1.0]})
    for name in ("train", "test", "users", "all_users", "all_items"):
        table.write_parquet(folder / f"{name}.parquet")
    (folder / "split.json").write_bytes(data)
    path = folder / "result.parquet"
    table.write_parquet(path, metadata={"recometer": data.decode(errors="replace")})
    for call in (lambda: rm.Split.load(folder), lambda: rm.load(path)):
        answer(call)


def arrays(data: bytes) -> None:
    """Read factors (arrays and archives), sparse matrices, and id files."""
    import recometer as rm
    from recometer.data.array_files import open_sparse
    from recometer.data.factor_files import read_ids

    archive, array = file_of(data, "model.npz"), file_of(data, "users.npy")
    texts = file_of(data, "ids.txt")
    calls: list[Callable[[], object]] = [
        lambda: rm.Factors.from_files(str(archive)),
        lambda: rm.Factors.from_files(str(array), str(array)),
        lambda: open_sparse(archive),
        lambda: read_ids(array, "user", None, None),
        lambda: read_ids(texts, "user", None, None),
    ]
    for call in calls:
        answer(call)


TARGETS = {
    function.__name__: function for function in (names, csv, gzipped, trec, parquet, header, arrays)
}


def run(target: Callable[[bytes], None], data: bytes) -> None:
    """Run a target and ignore warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer(lambda: target(data))


def main() -> None:
    """Fuzz the target named by the first argument."""
    import atheris

    target = TARGETS[sys.argv.pop(1)]
    with atheris.instrument_imports(include=["recometer"]):
        import_recometer()
    atheris.Setup(sys.argv, lambda data: run(target, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
