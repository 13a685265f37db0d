"""Run the smallest case of every benchmark to check that it still works, without measuring.

The scripts are copied to a separate folder, so that `results/` does not change.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ONCE = ["--repeats", "1"]
QUIET = ["--wait", "0"]
# The options for each script's smallest case.
SMALLEST = {
    "calls": ["--case", "one", *ONCE, "--threads", "1"],
    "dropins": ["--quick", "--library", "implicit", *ONCE],
    "factors": ["--quick", "--case", "base", "--no-others", *ONCE],
    "few_users": ["--repeats", "2", "--only", "clusters"],
    "generated_lists": ["--answers", "2000"],
    "gpu": ["--quick"],
    "impressions": ["--rows", "20000"],
    "list_files": ["--users", "200", *ONCE],
    "lists": ["--users", "200", "--case", "integer frame", *ONCE, "--others"],
    "metrics": ["--users", "500", "--users-with-others", "50", *ONCE, *QUIET],
    "peers": ["--quick", "--library", "ir_measures", *ONCE],
    "report": ["--users", "100", "--models", "2"],
    "scaling": ["--quick", *ONCE],
    "scores": ["--users", "50", "--items", "200", *ONCE],
    "size": ["rows", "--quick", *ONCE],
    "spark": ["compare", "--users", "200", *ONCE],
    "splits": ["--rows", "20000", "--large", "0", *ONCE, *QUIET, "--others"],
    "stats": ["--quick", "--only", "printing", *QUIET],
}
# The scripts that are skipped, with the reasons.
ELSEWHERE = {
    "instructions": "needs an emulator (.ci/check_aarch64)",
}
NEEDS = {
    "gpu": "torch",
    "peers": "ir_measures",
    "scaling": "matplotlib",
    "scores": "torch",
    "spark": "pyspark",
}


def main() -> None:
    """Run the named scripts, or all scripts; fail if a script fails or has no entry above."""
    scripts = {path.stem for path in HERE.glob("[!_]*.py")} - {Path(__file__).stem}
    unknown = scripts ^ (SMALLEST.keys() | ELSEWHERE.keys())
    if unknown:
        sys.exit(f"smoke.py does not match the scripts: {', '.join(sorted(unknown))}.")
    failed = [name for name in sys.argv[1:] or sorted(scripts) if not runs(name)]
    if failed:
        sys.exit(f"These benchmarks failed: {', '.join(failed)}.")


def runs(name: str) -> bool:
    """Return whether a script runs, or cannot run here."""
    need = NEEDS.get(name)
    reason = ELSEWHERE.get(name)
    if need is not None and importlib.util.find_spec(need) is None:
        reason = f"needs {need}"
    if reason is not None:
        print(f"{name}: skipped, {reason}", flush=True)
        return True
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder) / "benchmarks"
        shutil.copytree(HERE, here, ignore=shutil.ignore_patterns("results", "__pycache__"))
        (here / "results").mkdir()
        process = subprocess.run(
            [sys.executable, here / f"{name}.py", *SMALLEST[name]],
            cwd=folder,
            env=os.environ | {"MPLBACKEND": "agg"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
    if process.returncode != 0:
        print(process.stdout, flush=True)
    return process.returncode == 0


if __name__ == "__main__":
    main()
