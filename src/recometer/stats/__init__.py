"""Statistics of means over users: intervals, paired tests and effect sizes, computed from arrays.

The mean of the users' values is a sum of independent terms. The distribution that a bootstrap or a
randomisation test would sample can therefore be computed without resampling and without a seed,
even far into the tails.

`interval` computes a mean's confidence interval, and `compare` compares two models user by user.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recometer.stats.comparing import (
        Difference,
        Equivalence,
        compare,
        equivalence,
        most_changed,
    )
    from recometer.stats.ends import Interval
    from recometer.stats.means import interval
    from recometer.stats.planning import Power, power
    from recometer.stats.runs import Runs, over_folds, over_runs
    from recometer.stats.several import Ranking, Tukey, adjust, rank_intervals, tukey
    from recometer.stats.tests import TestResult, paired_t, randomisation, sign, wilcoxon
    from recometer.stats.two_groups import SampleRatio, compare_groups, sample_ratio

__all__ = [
    "Difference",
    "Equivalence",
    "Interval",
    "Power",
    "Ranking",
    "Runs",
    "SampleRatio",
    "TestResult",
    "Tukey",
    "adjust",
    "compare",
    "compare_groups",
    "equivalence",
    "interval",
    "most_changed",
    "over_folds",
    "over_runs",
    "paired_t",
    "power",
    "randomisation",
    "rank_intervals",
    "sample_ratio",
    "sign",
    "tukey",
    "wilcoxon",
]

# Names are imported on first use, because an evaluation needs only a few of them. No module may
# have the same name as a function, because the module would hide the function.
MODULES = {
    "comparing": "Difference Equivalence compare equivalence most_changed",
    "ends": "Interval",
    "means": "interval",
    "planning": "Power power",
    "runs": "Runs over_folds over_runs",
    "several": "Ranking Tukey adjust rank_intervals tukey",
    "tests": "TestResult paired_t randomisation sign wilcoxon",
    "two_groups": "SampleRatio compare_groups sample_ratio",
}
LAZY = dict(sorted((name, module) for module, names in MODULES.items() for name in names.split()))


def __getattr__(name: str) -> Any:
    if name in LAZY:
        attribute = getattr(importlib.import_module(f"recometer.stats.{LAZY[name]}"), name)
        globals()[name] = attribute  # so that Python does not call __getattr__ for this name again
        return attribute
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
