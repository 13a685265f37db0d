"""Start the master and the workers of a standalone Spark cluster as processes on this machine."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import time

HOST = "127.0.0.1"
# These tests run little Java code, so the JVM should compile it quickly, with few optimisations.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.driver.extraJavaOptions": JAVA,
    "spark.executor.extraJavaOptions": JAVA,
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.executor.memory": "1g",
    "spark.sql.shuffle.partitions": "2000",  # results must not depend on the number of partitions
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextlib.contextmanager
def cluster(folder, environments=({}, {})):
    """Start a master, and a one-core worker per environment; yield the master's address.

    Parameters
    ----------
    folder : pathlib.Path
        The folder for logs and work files.
    environments
        The environment variables of each worker and its executors.
    """
    with contextlib.ExitStack() as stack:
        log = folder / "master.log"
        _start(stack, log, {}, "master.Master", "--port", "0")
        address = _waited_for(log, r"Starting Spark master at (spark://\S+)")
        for number, environment in enumerate(environments):
            log, work = folder / f"worker{number}.log", str(folder / f"work{number}")
            options = ["--cores", "1", "--memory", "2g", "--work-dir", work, address]
            _start(stack, log, environment, "worker.Worker", *options)
            _waited_for(log, r"Successfully (registered) with master")
        yield address


def session(address, **settings):
    """Start a Spark session on a cluster."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(address)
    for name, value in {**SETTINGS, **settings}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def _start(stack, log, environment, name, *options):
    import pyspark  # PySpark may not be installed

    home = pathlib.Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    command += ["--host", HOST, "--webui-port", "0", *options]
    settings = {
        "SPARK_LOCAL_IP": HOST,
        "SPARK_DAEMON_MEMORY": "512m",
        "PYSPARK_PYTHON": sys.executable,
    }
    settings["SPARK_DAEMON_JAVA_OPTS"] = JAVA
    file = stack.enter_context(log.open("wb"))
    env = {**os.environ, **settings, **environment, "SPARK_HOME": str(home)}
    process = stack.enter_context(
        subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=env)
    )
    stack.callback(process.terminate)


def _waited_for(log, pattern, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        match = re.search(pattern, log.read_text())
        if match is not None:
            return match[1]
        time.sleep(0.2)
    raise TimeoutError(f"{pattern} is not in {log.name}: {log.read_text()[-2000:]}")
