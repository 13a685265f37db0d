"""Start the Spark sessions that tests share: a classic session and a Spark Connect session."""

import os
import sys
import warnings

import pytest

# Tests need little memory and few partitions; Spark tries each task up to 4 times.
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
MASTER = "local[2,4]"

os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ["PYSPARK_PYTHON"] = sys.executable


def make(kind):
    """Start a session; if PySpark or Java is missing, tests fail instead of being skipped."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        if kind == "classic":
            return builder.master(MASTER).getOrCreate()
        # With this variable, the Spark Connect server uses any free port, so test runs can overlap.
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SPARK_TESTING", "1")
            return builder.remote(MASTER).getOrCreate()


def stop(session):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()


@pytest.fixture(scope="session", params=["classic", "connect"])
def spark(request):
    """Return a classic Spark session, or a session on a local Spark Connect server."""
    session = make(request.param)
    yield session
    stop(session)


@pytest.fixture
def table(spark):
    """Return a function that converts columns to a DataFrame with several partitions."""

    def frame(columns, schema, n=3):
        rows = list(zip(*(map(plain, column) for column in columns.values()), strict=True))
        return spark.createDataFrame(rows, schema).repartition(n)

    return frame


def plain(value):
    """Convert a NumPy scalar to a plain Python object."""
    return value.tolist() if hasattr(value, "tolist") else value
