"""How time and memory grow with users, items, factors and relevant items.

The script prints a table, and writes ``results/scaling.json`` and the plot ``results/scaling.png``.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import _machine
from _cases import BASE
from _probe import probe
from _table import markdown, number, seconds

RESULTS = Path(__file__).parent / "results"
MIB = 2**20
SIZES = {
    "n_users": [512, 2_048, 8_192, 32_768, 131_072],
    "n_items": [2_000, 10_000, 50_000, 250_000, 1_000_000],
    "n_factors": [8, 16, 32, 64, 128, 256, 512],
    "n_relevant": [1, 3, 10, 30, 100, 300],
}
TITLES = {
    "n_users": "users",
    "n_items": "items",
    "n_factors": "factors",
    "n_relevant": "relevant items per user",
}


def measure(threads: int, repeats: int, shrink: int) -> list[dict[str, Any]]:
    """Return a record per size: the varied parameter, seconds, and peak bytes."""
    records = []
    for varied, sizes in SIZES.items():
        for size in sizes[: len(sizes) - shrink]:
            case = BASE.but(varied, **{varied: size})
            measurements = probe("memory", case, threads, repeats)
            records.append(
                {
                    "varied": varied,
                    "size": size,
                    "seconds": measurements["seconds"],
                    "peak": measurements["peak"],
                    "outputs": measurements["outputs"],
                }
            )
            print(
                f"  {case.size}: {seconds(statistics.median(measurements['seconds']))}", flush=True
            )
    return records


def table(records: list[dict[str, Any]]) -> str:
    """Return the records as a Markdown table."""
    lines = [
        [
            TITLES[record["varied"]],
            f"{record['size']:,}",
            seconds(statistics.median(record["seconds"])),
            f"{number(record['peak'] / MIB)} MiB",
            f"{number(record['outputs'] / MIB)} MiB",
        ]
        for record in records
    ]
    return markdown(["varied", "size", "time", "memory above inputs and outputs", "outputs"], lines)


def plot(records: list[dict[str, Any]], path: Path, threads: int) -> None:
    """Plot time above memory, with a column for each varied parameter."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FormatStrFormatter, LogLocator

    figure, axes = pyplot.subplots(2, len(SIZES), figsize=(13, 6), sharex="col", sharey="row")
    for column, (varied, title) in enumerate(TITLES.items()):
        of_parameter = [record for record in records if record["varied"] == varied]
        sizes = [record["size"] for record in of_parameter]
        times = [statistics.median(record["seconds"]) for record in of_parameter]
        peaks = [record["peak"] / MIB for record in of_parameter]
        above, below = axes[0, column], axes[1, column]
        above.loglog(sizes, times, "o-", color="tab:blue", label="measured")
        line = [times[-1] * size / sizes[-1] for size in sizes]
        above.loglog(sizes, line, "--", color="gray", linewidth=1, label="proportional")
        below.loglog(sizes, peaks, "o-", color="tab:orange")
        below.set_xlabel(title)
        below.set_xticks(sizes, [short(size) for size in sizes])
        for axis in (above, below):
            axis.minorticks_off()
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
            axis.grid(visible=True, alpha=0.3)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("MiB above inputs and outputs")
    axes[0, 0].legend(frameon=False)
    figure.suptitle(f"evaluate, all metrics, {threads} threads; otherwise {BASE.size}", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def short(size: int) -> str:
    """Format 2,048 as 2k, 1,000,000 as 1M."""
    if size >= 1_000_000:
        return f"{size / 1e6:.3g}M"
    return f"{size / 1e3:.3g}k" if size >= 1_000 else str(size)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="number of repeats per median (3)")
    parser.add_argument("--quick", action="store_true", help="leave out the larger sizes")
    parser.add_argument("--output", type=Path, default=RESULTS, help="output folder")
    options = parser.parse_args()
    records = measure(options.threads, options.repeats, shrink=3 if options.quick else 0)
    options.output.mkdir(parents=True, exist_ok=True)
    results = {"machine": _machine.describe(), "threads": options.threads, "records": records}
    (options.output / "scaling.json").write_text(json.dumps(results, indent=1) + "\n")
    plot(records, options.output / "scaling.png", options.threads)
    print("\n" + table(records))
    print(f"\nWritten to {options.output}")


if __name__ == "__main__":
    main()
