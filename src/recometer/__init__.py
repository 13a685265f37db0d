"""Measure how good recommendations are: exactly, comparably and fast.

`evaluate` ranks the whole catalogue for every test user and returns an `Evaluation`; `Factors`,
`Scores`, `Lists` and `Pairs` wrap the output of a model; `Interactions` reads interaction data;
`recometer.baselines` contains simple models for comparison.
"""

import importlib
from typing import TYPE_CHECKING, Any

from recometer.errors import (
    ColumnError,
    DataWarning,
    FileError,
    InputError,
    InputTypeError,
    InternalError,
    MissingExtraError,
    ModelError,
    RecometerError,
    UnknownNameError,
)
from recometer.version import __version__

if TYPE_CHECKING:
    from recometer.auditing import Audit, audit
    from recometer.checking.preflight import Preflight, check
    from recometer.comparison import Comparison, compare
    from recometer.data.catalogue import Catalogue
    from recometer.data.interactions import Interactions
    from recometer.evaluation import Evaluation, evaluate, load
    from recometer.evaluator import Evaluator
    from recometer.explanation import explain
    from recometer.group_exposure import Fairness, exposure, fairness
    from recometer.leaderboard import Leaderboard
    from recometer.logs.impressions import Impressions
    from recometer.measuring.reasons import Reason
    from recometer.metrics.conventions import Convention, conventions
    from recometer.protocol import Protocol
    from recometer.ranks import Ranks, TopLists, UserFlag
    from recometer.sources.candidates import Negatives, SampledCandidates
    from recometer.sources.factors import Factors
    from recometer.sources.lists import Lists
    from recometer.sources.models import from_model
    from recometer.sources.pairs import Pairs
    from recometer.sources.scores import Scores
    from recometer.split.calling import split as split
    from recometer.split.result import Folds, Split

__all__ = [
    "Audit",
    "Catalogue",
    "ColumnError",
    "Comparison",
    "Convention",
    "DataWarning",
    "Evaluation",
    "Evaluator",
    "Factors",
    "Fairness",
    "FileError",
    "Folds",
    "Impressions",
    "InputError",
    "InputTypeError",
    "Interactions",
    "InternalError",
    "Leaderboard",
    "Lists",
    "MissingExtraError",
    "ModelError",
    "Negatives",
    "Pairs",
    "Preflight",
    "Protocol",
    "Ranks",
    "Reason",
    "RecometerError",
    "SampledCandidates",
    "Scores",
    "Split",
    "TopLists",
    "UnknownNameError",
    "UserFlag",
    "__version__",
    "audit",
    "check",
    "compare",
    "conventions",
    "evaluate",
    "explain",
    "exposure",
    "fairness",
    "from_model",
    "load",
    "split",
]

# Imported on first use, so that `import recometer` stays fast. No module shares its name with a
# function, because importing the module would hide the function.
SUBMODULES = ("baselines", "compat", "integrations", "spark", "split")
LAZY = {
    "Audit": "auditing",
    "Catalogue": "data.catalogue",
    "Comparison": "comparison",
    "Convention": "metrics.conventions",
    "Evaluation": "evaluation",
    "Evaluator": "evaluator",
    "Factors": "sources.factors",
    "Fairness": "group_exposure",
    "Folds": "split.result",
    "Impressions": "logs.impressions",
    "Interactions": "data.interactions",
    "Leaderboard": "leaderboard",
    "Lists": "sources.lists",
    "Negatives": "sources.candidates",
    "Pairs": "sources.pairs",
    "Preflight": "checking.preflight",
    "Protocol": "protocol",
    "Ranks": "ranks",
    "Reason": "measuring.reasons",
    "SampledCandidates": "sources.candidates",
    "Scores": "sources.scores",
    "Split": "split.result",
    "TopLists": "ranks",
    "UserFlag": "ranks",
    "audit": "auditing",
    "check": "checking.preflight",
    "compare": "comparison",
    "conventions": "metrics.conventions",
    "evaluate": "evaluation",
    "explain": "explanation",
    "exposure": "group_exposure",
    "fairness": "group_exposure",
    "from_model": "sources.models",
    "load": "evaluation",
}


def __getattr__(name: str) -> Any:
    if name in SUBMODULES:
        return importlib.import_module(f"recometer.{name}")
    if name in LAZY:
        value = getattr(importlib.import_module(f"recometer.{LAZY[name]}"), name)
        globals()[name] = value  # later accesses bypass this function
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *SUBMODULES})
