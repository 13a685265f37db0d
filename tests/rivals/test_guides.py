"""For each row of a guide's table, the other library and recometer compute the same number.

The test first runs the guide's code, including the calls to the other library. The library then
computes the metric in the first column. recometer computes the metric in the second column under
the library's convention, and the metric in the third column under recometer's own rules. The values
per user of the latter two metrics must match. The test does not compare means under recometer's own
rules, because they may cover different users.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas
import pytest
from _guides import lines, page, run

import recometer as rm

# Most guides are called from_LIBRARY.md; these two use a different name for the library.
PAGES = {"pyspark": "spark", "pytrec_eval": "trec_eval"}
pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
Names = dict[str, Any]
TOLERANCE = 1e-6  # some libraries compute in single precision


def _ranx(names: Names, convention: str, metric: str) -> float:
    from ranx import Qrels, Run, evaluate

    return float(evaluate(Qrels(names["qrels"]), Run(names["run"]), metric, make_comparable=True))


def _trec_eval(names: Names, convention: str, metric: str) -> float:
    import ir_measures

    if convention == "trec_eval":
        return float(np.mean([values[metric] for values in names["per_query"].values()]))
    measure = ir_measures.parse_measure(metric)
    return ir_measures.calc_aggregate([measure], names["qrels"], names["run"])[measure]


def _rectools(names: Names, convention: str, metric: str) -> float:
    from rectools import metrics

    metric_objects = {"it": eval(metric, vars(metrics))}
    frames = {"reco": names["reco"], "interactions": names["interactions"]}
    return metrics.calc_metrics(metric_objects, catalog=names["catalogue"], **frames)["it"]


def _recommenders(names: Names, convention: str, call: str) -> float:
    from recommenders.evaluation import python_evaluation

    return float(eval(call, {**names, **vars(python_evaluation)}))


def _torchmetrics(names: Names, convention: str, metric: str) -> float:
    import torch
    from torchmetrics import retrieval

    metric_object = eval(metric, vars(retrieval))
    tensors = [torch.tensor(names[name]) for name in ("scores", "relevant", "queries")]
    return float(metric_object(*tensors[:2], indexes=tensors[2]))


def _pyg(names: Names, convention: str, metric: str) -> float:
    import torch
    from torch_geometric import metrics

    metric_object = eval(metric, vars(metrics))
    metric_object.update(torch.tensor(names["predicted"]), torch.tensor(names["edges"]))
    return float(metric_object.compute())


def _surprise(names: Names, convention: str, function: str) -> float:
    from surprise import accuracy

    return float(eval(function, {"accuracy": accuracy})(names["converted"], verbose=False))


def _implicit(names: Names, convention: str, call: str) -> float:
    from implicit import evaluation

    def ranking_metrics_at_k(K: int) -> dict[str, float]:
        data = names["model"], names["train"], names["test"]
        return evaluation.ranking_metrics_at_k(*data, K=K, show_progress=False)

    return eval(call, {"ranking_metrics_at_k": ranking_metrics_at_k})


def _lenskit(names: Names, convention: str, metric: str) -> float:
    from lenskit import metrics

    analysis = metrics.RunAnalysis()
    analysis.add_metric(eval(metric, vars(metrics)))
    return float(
        analysis.measure(names["recommended"], names["truth"]).list_summary()["mean"].iloc[0]
    )


@pytest.fixture
def _small_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Spark use this Python interpreter, and few partitions for the guides' small tables."""
    settings = {"sql.shuffle.partitions": 2, "ui.enabled": "false", "driver.host": "127.0.0.1"}
    arguments = " ".join(f"--conf spark.{name}={value}" for name, value in settings.items())
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)


def _spark(names: Names, convention: str, metric: str) -> float:
    return float(eval(metric, names).evaluate(names["frame"]))


def _recometrics(names: Names, convention: str, metric: str) -> float:
    return float(names["values"][metric].mean())


# For each library in noxfile.py, the function that computes the metric in the first column, and the
# names of the guide's variables for the source and the test data.
GUIDES: dict[str, tuple[Callable[[Names, str, str], float], str, str | None]] = {
    "implicit": (_implicit, "source", "test"),
    "lenskit": (_lenskit, "lists", "test"),
    "pyg": (_pyg, "lists", "test"),
    "pyspark": (_spark, "lists", "relevant"),
    "surprise": (_surprise, "pairs", None),
    "torchmetrics": (_torchmetrics, "pairs", None),
    "ranx": (_ranx, "lists", "qrels"),
    "recometrics": (_recometrics, "source", "test"),
    "recommenders": (_recommenders, "lists", "test"),
    "rectools": (_rectools, "lists", "interactions"),
    "pytrec_eval": (_trec_eval, "lists", "qrels"),
}


@pytest.mark.parametrize("library", ["surprise"])
def test_predictions_are_converted_to_pairs(library: str) -> None:
    names = run(page(library))
    pairs = rm.Pairs(pandas.DataFrame(names["converted"]))
    assert rm.evaluate(pairs, metrics="rmse").mean()["rmse"] == pytest.approx(names["theirs"])


@pytest.mark.parametrize("library", ["r"])
def test_r_prints_the_output_in_the_guide(library: str) -> None:
    """The test runs the guide's code with Rscript, which needs Matrix and reticulate."""
    blocks = re.findall(r"^```(r|text)\n(.*?)^```$", page(library), re.DOTALL | re.MULTILINE)
    code = "".join(block for kind, block in blocks if kind == "r")
    printed = "".join(block for kind, block in blocks if kind == "text")
    process = subprocess.run(
        ["Rscript", "-e", code],
        env=os.environ | {"RETICULATE_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.split() == printed.split()


@pytest.mark.parametrize("library", sorted(GUIDES))
@pytest.mark.usefixtures("_small_spark")
def test_rows_of_the_guide_have_equal_values(library: str) -> None:
    theirs, source, test = GUIDES[library]
    text = page(PAGES.get(library, library))
    names = run(text)
    table = lines(text)
    assert len(table) > 3
    options = {"threads": 1, "progress": False}
    if test is not None:
        options["test"] = names[test]
    options |= {name: names[name] for name in ("train", "catalogue") if name in names}
    for convention, their_metric, name, own_metric in table:
        result = rm.evaluate(names[source], metrics=name, protocol=convention, **options)
        expected = theirs(names, convention, their_metric)
        assert result.mean()[name] == pytest.approx(expected, abs=TOLERANCE), their_metric
        ours = rm.evaluate(names[source], metrics=own_metric, **options)[own_metric]
        defined = ~np.isnan(ours) & ~np.isnan(result[name])
        assert defined.any()
        np.testing.assert_allclose(
            ours[defined], result[name][defined], atol=TOLERANCE, err_msg=own_metric
        )
