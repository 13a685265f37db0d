"""Run a script in a separate process."""

import os
import subprocess
import sys
from pathlib import Path


def run_script(name, *arguments, timeout=None, **environment):
    """Run a script in this folder; check that it succeeds, and return its output."""
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(name)), *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout
