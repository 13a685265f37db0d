"""Evaluation on Spark, where executors call the functions of the single-machine library.

`evaluate` takes DataFrames instead of arrays and files. `Factors`, `Lists`, `Pairs` and
`Interactions` describe the columns of DataFrames. Both classic Spark and Spark Connect work.
"""

from recometer.spark.evaluation import Evaluator, evaluate
from recometer.spark.result import SparkEvaluation, compare
from recometer.spark.sources import Factors, Interactions, Lists, Pairs
from recometer.spark.splitting import SparkSplit, audit, folds, split

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
