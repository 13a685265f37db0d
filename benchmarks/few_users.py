"""The coverage of intervals with few users or clusters, near the switch between methods.

The script draws differences with known means, and prints the tables in docs/statistics.md.
"""

from __future__ import annotations

import argparse
import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from _table import markdown

from recometer import stats
from recometer.stats.comparing import consistent, inverted
from recometer.stats.grouping import group
from recometer.stats.means import student

Float64 = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Float64]

USERS, SHARES = (10, 25, 50, 100), (0.1, 0.3, 0.5, 0.7, 1.0)
CLUSTERS = (5, 10, 20, 50, 200)


def hits(generator: np.random.Generator, n: int) -> Float64:
    """Draw differences in hits: three in four users gain a hit, and all other users lose one."""
    return np.where(generator.random(n) < 0.75, 1.0, -1.0)


def laplace(generator: np.random.Generator, n: int) -> Float64:
    return generator.laplace(0.1, 0.1, n).clip(-1, 1)


def losses(generator: np.random.Generator, n: int) -> Float64:
    """Draw differences with rare losses: users gain up to 0.1, or one in twelve loses 0.5 to 1."""
    lost = generator.random(n) < 1 / 12
    return np.where(lost, -0.5 - 0.5 * generator.random(n), 0.1 * generator.random(n))


MEANS: dict[Draw, float] = {hits: 0.5, laplace: 0.1, losses: 11 / 12 * 0.05 - 1 / 12 * 0.75}


def drawn(draw: Draw, n: int, share: float, repeats: int) -> Iterator[Float64]:
    """Yield samples of differences; on average, `share` of the differences is not 0."""
    seed = [zlib.crc32(draw.__name__.encode()), n, round(100 * share)]
    generator = np.random.default_rng(seed)
    for _ in range(repeats):
        yield np.where(generator.random(n) < share, draw(generator, n), 0.0)


def both_methods(draw: Draw, n: int, share: float, repeats: int) -> Float64:
    """Return how often the inverted test and Gaffke's bound cover the mean, and exclude 0."""
    truth, outcomes = share * MEANS[draw], []
    for sample in drawn(draw, n, share, repeats):
        differences = group(sample)
        test = stats.randomisation(differences)
        ends = [
            consistent(inverted(differences, 0.95), test.p_value),
            stats.interval(differences, "gaffke", bounds=(-1, 1)),
        ]
        outcomes.append([*(truth in end for end in ends), *(0.0 not in end for end in ends)])
    shares: Float64 = np.mean(outcomes, axis=0)
    return shares


def methods(repeats: int) -> list[list[str]]:
    """Return a row per number of users and share of differing users."""
    lines = []
    for n, share in itertools.product(USERS, SHARES):
        usual, of_hits, rare = (both_methods(d, n, share, repeats) for d in MEANS_IN_ORDER)
        lines.append(
            [
                f"{n}",
                f"{share:.0%}",
                *(f"{min(usual[at], of_hits[at]):.2f}" for at in (0, 1)),
                *(f"{usual[at]:.2f}" for at in (2, 3)),
                *(f"{rare[at]:.2f}" for at in (0, 1)),
            ]
        )
    return lines


MEANS_IN_ORDER = (laplace, hits, losses)

SIZES: dict[str, Draw] = {
    "geometric, 5 on average": lambda generator, n: generator.geometric(0.2, n).astype(np.float64),
    "heavy tails, 5 on average": lambda generator, n: np.ceil(
        1.5 * generator.pareto(1.5, n) + 1
    ).clip(1, 200),
}


def cluster_means(how: str, n: int, repeats: int) -> list[str]:
    """Return a row: the coverage of intervals for means over clusters of unequal size."""
    generator = np.random.default_rng([zlib.crc32(how.encode()), n])
    truth, outcomes = 0.2, []
    for _ in range(repeats):
        sizes = SIZES[how](generator, n)
        # Users in a cluster are similar: 0 in most clusters, up to 1 in some.
        of_cluster = generator.beta(0.3, 1.2, n)
        clusters = np.repeat(np.arange(n), sizes.astype(np.int64))
        values = (generator.random(len(clusters)) < of_cluster[clusters]).astype(np.float64)
        ends = [
            stats.interval(values, kind, bounds=(0, 1), clusters=clusters)
            for kind in ("auto", "bca", "t")
        ]
        widths = ends[0].width / ends[2].width if ends[2].width else np.nan
        outcomes.append([*(truth in value for value in ends), widths])
    covered, width = np.mean(outcomes, axis=0)[:3], float(np.nanmedian(np.array(outcomes)[:, 3]))
    return [how, f"{n}", *(f"{value:.2f}" for value in covered), f"{width:.2f}"]


def unseen(repeats: int, sizes: Sequence[int] = (50, 200, 1_000)) -> list[list[str]]:
    """Return a row per number of users: how often no loss is seen, and the coverage in that case.

    All users gain up to 0.04, except for 1 % who lose everything.
    """
    lines = []
    for n in sizes:
        generator, covered = np.random.default_rng(n), []
        truth = 0.99 * 0.02 - 0.01
        for _ in range(repeats):
            gains, lost = 0.04 * generator.random(n), generator.random(n) < 0.01
            sample = group(np.where(lost, -1.0, gains))
            test = stats.randomisation(sample)
            ends = consistent(inverted(sample, 0.95), test.p_value)
            covered.append([truth in ends, truth in student(sample, 0.95)])
        lines.append(
            [f"{n:,}", f"{0.99**n:.2g}", *(f"{share:.2f}" for share in np.mean(covered, 0))]
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=1_000, help="samples per setting")
    parser.add_argument("--only", choices=("methods", "clusters", "unseen"))
    options = parser.parse_args()
    of = {
        "methods": (
            [
                *("users", "differ", "covers: inverted", "Gaffke's", "finds: inverted", "Gaffke's"),
                *("covers with rare losses: inverted", "Gaffke's"),
            ],
            methods,
        ),
        "clusters": (
            ["sizes", "clusters", "default", "BCa", "Student's t", "width, default / t"],
            lambda repeats: [
                cluster_means(how, n, repeats) for how, n in itertools.product(SIZES, CLUSTERS)
            ],
        ),
        "unseen": (["users", "nobody loses", "inverted", "Student's t"], unseen),
    }
    for name, (headers, lines) in of.items():
        if options.only in (None, name):
            print(markdown(headers, lines(options.repeats)), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
