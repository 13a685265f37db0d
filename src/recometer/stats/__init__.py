"""Statistics of means over users: intervals, paired tests, effects. Arrays in, numbers out.

Means of users' values are sums of independent terms, so that what a bootstrap or a randomisation
test samples can be computed: no seed, no resampling, far into the tails.

`interval` and `intervals_of` give confidence intervals of means, `compare` and `compare_all`
compare models user by user; the modules hold the parts.
"""

from recometer.stats.comparing import Difference, compare, compare_all
from recometer.stats.data_sets import Friedman, friedman
from recometer.stats.effects import Effects, effects, most_changed, relative_difference
from recometer.stats.equivalence import Equivalence, equivalence
from recometer.stats.interval import Interval
from recometer.stats.means import interval, intervals_of
from recometer.stats.multiplicity import adjust
from recometer.stats.paired import paired_t, sign, wilcoxon
from recometer.stats.power import Power, power, power_of, smallest_difference, users_needed
from recometer.stats.published import Published, published
from recometer.stats.runs import Runs, over_folds, over_runs
from recometer.stats.sequential import ConfidenceSequence
from recometer.stats.several import Ranking, Tukey, rank_intervals, tukey
from recometer.stats.sign_flips import randomisation
from recometer.stats.test_result import TestResult

__all__ = [
    "ConfidenceSequence",
    "Difference",
    "Effects",
    "Equivalence",
    "Friedman",
    "Interval",
    "Power",
    "Published",
    "Ranking",
    "Runs",
    "TestResult",
    "Tukey",
    "adjust",
    "compare",
    "compare_all",
    "effects",
    "equivalence",
    "friedman",
    "interval",
    "intervals_of",
    "most_changed",
    "over_folds",
    "over_runs",
    "paired_t",
    "power",
    "power_of",
    "published",
    "randomisation",
    "rank_intervals",
    "relative_difference",
    "sign",
    "smallest_difference",
    "tukey",
    "users_needed",
    "wilcoxon",
]
