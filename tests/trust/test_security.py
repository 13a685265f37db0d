"""recometer never runs code contained in data, and never writes outside the given folder."""

import ast
import json
import pathlib
import pickle
import sys

import numpy as np
import polars as pl
import pytest
from command_line import run_command
from modules import FILES, nodes_of

import recometer as rm
from recometer.data.array_files import open_sparse
from recometer.data.storage import PLACEHOLDER, seal

# These modules and functions can run programs, or code that is contained in data.
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "code"}
MODULES |= {"subprocess", "ctypes", "yaml", "xml", "requests", "urllib", "http", "socket", "runpy"}
NAMES = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
ATTRIBUTES = {"system", "popen", "read_pickle", "to_pickle", "fork", "execv", "spawnv", "loadtxt"}
# These files use the modules and functions in harmless ways.
ALLOWED = {
    ("sources/models.py", "eval"),  # torch's method Module.eval ends training mode
    ("integrations/lightning.py", "eval"),  # this is also Module.eval
    # These files read the states of training processes, but only unpickle arrays and ids.
    ("integrations/torchmetrics.py", "pickle"),
    ("integrations/_plain.py", "pickle"),
    # Spark's driver and tasks exchange messages, which Spark itself pickles, too.
    ("spark/block.py", "pickle"),
    # These files parse the names of files and folders, but do not open URLs.
    ("data/files.py", "urllib.parse"),
    ("comparing/gates.py", "xml.etree"),  # this file only writes XML
}


def found_in(name):
    """Yield the forbidden modules and functions that a module uses."""
    for node in nodes_of(FILES[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module.split(".")[0] in MODULES:
                yield node.module
        elif isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id in NAMES:
                yield function.id
            if isinstance(function, ast.Attribute) and function.attr in {
                *ATTRIBUTES,
                "eval",
                "exec",
            }:
                yield function.attr
            allows = [keyword.value for keyword in node.keywords if keyword.arg == "allow_pickle"]
            if any(
                not (isinstance(value, ast.Constant) and value.value is False) for value in allows
            ):
                yield "allow_pickle"
            reads = isinstance(function, ast.Attribute) and ast.unparse(function) == "np.load"
            if reads and not allows:
                yield "np.load without allow_pickle=False"


def test_no_module_runs_code_from_data():
    uses = {(name, use) for name in FILES for use in found_in(name)}
    assert uses == ALLOWED


class Planted:
    """An object that writes a file when it is unpickled."""

    def __reduce__(self):
        return pathlib.Path.write_text, (pathlib.Path("planted"), "")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_arrays_of_objects_are_not_unpickled(here):
    objects = np.array([[Planted()]], dtype=object)
    np.save("users.npy", objects, allow_pickle=True)
    np.savez("model.npz", user_factors=objects, item_factors=np.zeros((1, 1)))
    (here / "pickled.npy").write_bytes(pickle.dumps(Planted()))
    for paths in (["users.npy", "users.npy"], ["model.npz"], ["pickled.npy", "pickled.npy"]):
        with pytest.raises(rm.FileError, match="Hint"):
            rm.Factors.from_files(*paths)
    with pytest.raises(rm.FileError, match="Hint"):
        open_sparse(here / "model.npz")
    assert not (here / "planted").exists()


@pytest.fixture
def split(here):
    """Save a split in a folder, next to an unrelated table."""
    table = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "time": [1, 2, 3, 4]})
    table.write_parquet("secret.parquet")
    rm.split(table, rm.split.Last(1)).save("split")
    return here / "split"


def test_split_reads_no_file_outside_its_folder(split):
    header = json.loads((split / "split.json").read_text())
    header = {**header, "parts": ["train", "../secret"], "checksum": PLACEHOLDER}
    (split / "split.json").write_bytes(seal(json.dumps(header).encode()))
    with pytest.raises(rm.FileError, match=r"damaged: no part is called '\.\./secret'"):
        rm.Split.load(split)
    assert rm.split(pl.read_parquet("secret.parquet"), rm.split.Last(1)) is not None


needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need rights on Windows")


@needs_links
def test_links_are_replaced_and_never_followed(here):
    """Saving replaces a link with a file, and does not change the link's target."""
    result = rm.evaluate(rm.Scores(np.eye(2)), np.eye(2), metrics="rr")
    for name, save in (("a.parquet", result.save), ("a.csv", result.to_csv)):
        target = here / f"target of {name}"
        target.write_text("other")
        (here / name).symlink_to(target)
        save(here / name)
        assert target.read_text() == "other"
        assert not (here / name).is_symlink()


@needs_links
def test_split_does_not_replace_links(split):
    secret = pathlib.Path("secret.parquet").read_bytes()
    (split / "test.parquet").unlink()
    (split / "test.parquet").symlink_to(pathlib.Path("secret.parquet").absolute())
    rm.split(pl.read_parquet("secret.parquet"), rm.split.Last(1)).save(split)
    assert pathlib.Path("secret.parquet").read_bytes() == secret
    assert not (split / "test.parquet").is_symlink()


@needs_links
@pytest.mark.parametrize("command", ["evaluate", "split"])
def test_fold_folders_cannot_be_links_out_of_the_folder(split, command):
    elsewhere = pathlib.Path("elsewhere")
    elsewhere.mkdir()
    table = pl.DataFrame({"user": [1, 2, 3, 4] * 4, "item": range(16), "time": range(16)})
    table.write_csv("data.csv")
    arguments = ["split", "data.csv", "--what", "folds=2", "--out"]
    if command == "evaluate":
        assert run_command([*arguments, "folds"]).exit_code == 0
        arguments = ["evaluate", "--split", "folds", "--baselines", "popular", "--metrics", "rr@2"]
        arguments += ["--out"]
    pathlib.Path("out").mkdir()
    pathlib.Path("out/fold_0").symlink_to(elsewhere.absolute(), target_is_directory=True)
    result = run_command([*arguments, "out"], env={"COLUMNS": "300"})
    assert result.exit_code != 0
    assert "link" in result.stderr
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("name", ["../als", "/tmp/als", "a/b", "..", "a\\..\\b"])
def test_model_names_cannot_lead_out_of_the_folder(split, name):
    before = {path for path in split.parent.rglob("*") if path.is_file()}
    pathlib.Path("run.csv").write_text("user,item,score\n1,1,2\n2,2,1\n")
    call = ["evaluate", "--run", f"{name}=run.csv", "--split", "split", "--metrics", "rr@2"]
    run_command([*call, "--out", "out"])
    after = {path for path in split.parent.rglob("*") if path.is_file()}
    out = split.parent / "out"
    assert {path for path in after - before if out not in path.parents} <= {
        split.parent / "run.csv"
    }
