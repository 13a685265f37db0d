"""Evaluation on Spark: Spark carries data to the functions of one machine, and nothing else.

`evaluate` takes DataFrames where `recometer.evaluate` takes arrays and files; `Factors`, `Lists`,
`Pairs` and `Interactions` say what these contain. It runs on classic Spark and on Spark Connect.
"""

from recometer.spark.auditing import audit
from recometer.spark.comparing import compare
from recometer.spark.evaluation import Evaluator, evaluate
from recometer.spark.result import SparkEvaluation
from recometer.spark.sources import Factors, Interactions, Lists, Pairs
from recometer.spark.splitting import SparkSplit, folds, split

__all__ = [
    "Evaluator",
    "Factors",
    "Interactions",
    "Lists",
    "Pairs",
    "SparkEvaluation",
    "SparkSplit",
    "audit",
    "compare",
    "evaluate",
    "folds",
    "split",
]
