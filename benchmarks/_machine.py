"""The machine and the versions used for a measurement."""

from __future__ import annotations

import datetime
import importlib.metadata
import platform
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from recometer import _kernel
from recometer.tasks import resolve_threads

PACKAGES = (
    *("numpy", "scipy", "polars", "pyarrow", "pandas", "torch", "recometrics", "implicit"),
    *("faiss-cpu", "ranx", "pytrec-eval-terrier", "rectools", "torchmetrics"),
    *("scikit-learn", "scikit-surprise", "recommenders", "torch-geometric", "numba"),
)


def describe() -> dict[str, Any]:
    """Return the processor, the memory, the instruction sets and the package versions."""
    return {
        "date": datetime.date.today().isoformat(),
        "processor": _first_line("/proc/cpuinfo", "model name") or platform.processor(),
        "processors": resolve_threads(None),
        "memory": _first_line("/proc/meminfo", "MemTotal"),
        "system": platform.platform(),
        "instruction_set": _kernel.instruction_set(),
        "blas": sorted(
            {
                f"{library['prefix']} {library['version']} {library.get('architecture')}"
                for library in threadpool_info()
                if library["user_api"] == "blas"
            }
        ),
        "versions": {"python": platform.python_version(), **_versions()},
    }


def _versions() -> dict[str, str]:
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "missing"
    return versions


def _first_line(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "")
