"""Save a result repeatedly, and kill the saving process (SIGKILL) one step later each time.

For each kill, `python killed.py WHAT FOLDER` prints `old` or `new`, whichever version is complete
on disk. At the end, it prints `ended`. A step is a system call that Python makes for a
file in the folder. `test_killed.py` runs this script. The script forks before Polars starts its
threads, since a forked process would not have these threads.
"""

import contextlib
import importlib
import io
import os
import re
import shutil
import signal
import sys
import warnings
from itertools import count
from pathlib import Path

import numpy as np

import recometer as rm

STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.listdir", "os.scandir"}


def scores(seed):
    return rm.Scores(np.random.default_rng(seed).normal(size=(20, 12)))


def evaluation(seed):
    test = (np.random.default_rng(0).random((20, 12)) < 0.3).astype(float)
    return rm.evaluate(scores(seed), test, metrics="ndcg@3 rr")


class SavedEvaluation:
    """An evaluation, which is saved as one file."""

    def save(self, folder, seed):
        evaluation(seed).save(folder / "result.parquet")

    def is_complete(self, folder, seed):
        values = rm.load(folder / "result.parquet")["rr"]
        return np.array_equal(values, evaluation(seed)["rr"], equal_nan=True)


def n_rows(part):
    return len(part.items) if isinstance(part, rm.Interactions) else len(part)


class SavedSplit:
    """A split, which is saved as several files; the old version includes id files."""

    def split_of(self, seed):
        import polars as pl

        rows = np.random.default_rng(1).integers(0, 9, (40, 2))
        data = pl.DataFrame({"user": rows[:, 0], "item": rows[:, 1], "time": np.arange(40)})
        if seed == 0:  # this is the old version
            return rm.split(rm.Interactions.of(data), rm.split.Last(1))
        return rm.split(data, rm.split.Last(2))

    def save(self, folder, seed):
        self.split_of(seed).save(folder)

    def is_complete(self, folder, seed):
        expected, loaded = self.split_of(seed), rm.Split.load(folder)
        sizes = [[n_rows(part) for part in (part.train, part.test)] for part in (expected, loaded)]
        expected_files = {"train.parquet", "test.parquet", "users.parquet", "split.json"}
        expected_files |= {"all_users.parquet", "all_items.parquet"} if seed == 0 else set()
        files = {path.name for path in folder.iterdir() if path.name[0] != "."}
        return sizes[0] == sizes[1] and files == expected_files | ({"remainder.parquet"} & files)


class Text:
    """A text file, written by a function of a seed and a path."""

    def __init__(self, name, write):
        self.name, self.write = name, write

    def save(self, folder, seed):
        self.write(seed, folder / self.name)

    def is_complete(self, folder, seed):
        expected = folder.with_name(f"expected-{seed}") / self.name
        # A report contains the elapsed time, which may differ.
        texts = [
            re.sub(r"\d+\.\d+ s\b", "", path.read_text()) for path in (folder / self.name, expected)
        ]
        return texts[0] == texts[1]


def comparison(seed):
    return rm.compare({"a": evaluation(7), "b": evaluation(seed)})


class CommandLine:
    """The output of `recometer evaluate --out`, which is an evaluation and a summary."""

    def save(self, folder, seed):
        from recometer.cli._app import app

        data = folder.with_name("data")
        data.mkdir(exist_ok=True)
        rng = np.random.default_rng(seed)
        for side, n in (("users", 9), ("items", 20)):
            np.save(data / f"{side}.npy", rng.normal(size=(n, 3)))
        (data / "test.csv").write_text("user,item\n" + "".join(f"{n},{2 * n}\n" for n in range(9)))
        ids = "positions,positions"
        model = ["--factors", f"als={data}/users.npy,{data}/items.npy,{ids}"]
        options = ["--test", f"{data}/test.csv", "--metrics", "rr", "--out", str(folder), "--quiet"]
        with contextlib.redirect_stdout(io.StringIO()):
            app(["evaluate", *model, *options], standalone_mode=False)

    def is_complete(self, folder, seed):
        def mean(folder):
            return rm.load(folder / "als.parquet").mean()

        return mean(folder) == mean(folder.with_name(f"expected-{seed}"))


WHAT = {
    "evaluation": SavedEvaluation(),
    "split": SavedSplit(),
    "csv": Text("table.csv", lambda seed, path: comparison(seed).to_csv(path)),
    "json": Text("table.json", lambda seed, path: comparison(seed).to_json(path)),
    "page": Text("report.html", lambda seed, path: comparison(seed).report(path)),
    "markdown": Text("report.md", lambda seed, path: evaluation(seed).report(path)),
    "command_line": CommandLine(),
    "chart": Text("chart.svg", lambda seed, path: save_chart(seed, path)),
}


def save_chart(seed, path):
    report = comparison(seed).report()
    report.save_chart(path, report.charts[0])


def in_child(function):
    """Call a function in a forked child; return its exit status or negated signal number."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = int(function())
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", flush=True)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_at(step, saved, folder):
    """Save, but kill the process before the given step."""
    steps = count()

    def watch(event, arguments):
        ours = event in STEPS and any(str(folder) in str(argument) for argument in arguments)
        if ours and next(steps) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    saved.save(folder, 1)
    return 0


def main():
    warnings.simplefilter("ignore")
    for module in ("polars", "recometer.cli._app", "recometer.report", "vl_convert"):
        importlib.import_module(module)  # children inherit the imported modules
    kind, base = WHAT[sys.argv[1]], Path(sys.argv[2])

    def saved(seed, folder):
        folder.mkdir()
        kind.save(folder, seed)
        return 0

    folder, old = base / "folder", base / "expected-0"
    for seed in (0, 1):
        assert in_child(lambda seed=seed: saved(seed, base / f"expected-{seed}")) == 0
    for step in count():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)
        status = in_child(lambda step=step: killed_at(step, kind, folder))
        if status == -signal.SIGKILL:
            complete_version = in_child(
                lambda: [kind.is_complete(folder, seed) for seed in (0, 1)].index(True)
            )
            print({0: "old", 1: "new"}.get(complete_version, f"broken at step {step}"), flush=True)
            # The killed process may have left files behind, but saving again must work.
            assert in_child(lambda: kind.save(folder, 1) or 0) == 0
            assert in_child(lambda: not kind.is_complete(folder, 1)) == 0
        else:
            assert status == 0, status
            assert in_child(lambda: not kind.is_complete(folder, 1)) == 0
            print("ended", flush=True)
            return


if __name__ == "__main__":
    main()
