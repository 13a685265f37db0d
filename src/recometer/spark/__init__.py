"""Evaluation on Spark: users are distributed over machines, and nothing is approximated.

`evaluate` takes DataFrames where `recometer.evaluate` takes arrays and files; `Factors`, `Lists`,
`Pairs` and `Interactions` say what these contain. It runs on classic Spark and on Spark Connect.
"""

from recometer.spark.auditing import audit
from recometer.spark.comparing import SparkComparison, compare
from recometer.spark.evaluation import evaluate
from recometer.spark.evaluator import Evaluator
from recometer.spark.given import Factors, Interactions, Lists, Pairs
from recometer.spark.pooling import SparkFoldedEvaluation
from recometer.spark.result import SparkEvaluation
from recometer.spark.splitting import SparkSplit, folds, split

__all__ = [
    "Evaluator",
    "Factors",
    "Interactions",
    "Lists",
    "Pairs",
    "SparkComparison",
    "SparkEvaluation",
    "SparkFoldedEvaluation",
    "SparkSplit",
    "audit",
    "compare",
    "evaluate",
    "folds",
    "split",
]
