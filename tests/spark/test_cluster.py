"""On a cluster with two workers, values stay the same even if executors are killed."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from spark_cases import MARKS
from spark_cluster import cluster

pytestmark = MARKS

SCRIPT = pathlib.Path(__file__).with_name("on_cluster.py")
HELPERS = pathlib.Path(__file__).parents[1] / "helpers"


def run(address, folder, *cases):
    """Run cases of `on_cluster` in a new process, in a single session."""
    path = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(SCRIPT), address, str(folder), *cases]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-4000:]
    return json.loads(process.stdout.splitlines()[-1])


def test_values_match_a_single_machine(tmp_path):
    cases = ["factors_in_a_file", "many_partitions", "many_rows_of_a_user", "executor_killed"]
    refused = {
        "more_rows_than_the_limit": r"user \d+ has \d+ rows\. Hint: .*leave it out",
        "out_of_memory": r"Spark seems to have run out of memory\. Hint: .* who has the most",
    }
    with cluster(tmp_path) as address:
        answers = run(address, tmp_path, *refused, *cases)
    for case, message in refused.items():
        error = answers.pop(case)
        assert error["type"] == "InputError"
        assert re.search(message, error["message"]), case
    assert answers == {case: {"same": True} for case in cases}


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise ImportError(\"No module named 'recometer'\")", "has no recometer"),
        ("__version__ = '0.0.1'", "has recometer 0.0.1, but the driver has recometer"),
    ],
    ids=["without", "another version"],
)
def test_worker_without_recometer_is_reported_in_one_line(code, message, tmp_path):
    package = tmp_path / "other" / "recometer"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "version.py").write_text(code)
    with cluster(tmp_path, [{"PYTHONPATH": str(package.parent)}]) as address:
        answers = run(address, tmp_path, "evaluated", "split")
    for case, answer in answers.items():
        assert answer["type"] == "InputError", case
        assert "Hint: install recometer in the Python environment of the exec" in answer["message"]
        assert "\n" not in answer["message"]
    assert message in answers["evaluated"]["message"]
