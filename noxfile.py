"""The nox sessions: tests, checks, documentation, and comparisons with other libraries."""

import pathlib

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

# The packages that each library needs, in the order in which they are installed. Torch comes first,
# so that the packages after it use this version.
TORCH = "torch==2.13.0"
RIVALS = {
    "implicit": ["implicit"],
    "lenskit": [TORCH, "lenskit"],
    "lightgbm": ["lightgbm"],
    "pyg": [TORCH, "torchmetrics", "torch-geometric"],
    "pytrec_eval": ["pytrec-eval-terrier", "ir-measures"],
    "pyspark": ["pyspark>=4", "pandas>=2.2,<3", "pyarrow>=18"],
    "r": ["numpy<2", "pandas<3"],
    "ranx": ["ranx"],
    "recommenders": ["recommenders", "setuptools<81"],
    "recometrics": ["recometrics==0.1.6.post13"],
    "recpack": [TORCH, "recpack"],
    "rectools": ["rectools"],
    "sklearn": ["scikit-learn"],
    "surprise": ["scikit-surprise"],
    "torchmetrics": [TORCH, "torchmetrics"],
    "warprec": [TORCH, "warprec"],  # needs Python 3.12, which also selects lenskit 2026
    "xgboost": ["xgboost"],
}
# Libraries with a migration guide in docs/ (from_*.md). Spark needs Java, and R needs Matrix and
# reticulate.
GUIDES = ["implicit", "lenskit", "pyg", "pyspark", "pytrec_eval", "r", "ranx", "recommenders"]
GUIDES += ["recometrics", "rectools", "surprise", "torchmetrics"]


@nox.session(default=True)
def tests(session: nox.Session) -> None:
    """Run the tests."""
    session.install(".[test]")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation site in site/, with warnings treated as errors."""
    session.install(".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "docs", "site", *session.posargs)


@nox.session(default=False)
def quality(session: nox.Session) -> None:
    """Run the linters and type checkers, and measure test coverage."""
    session.install(".[quality]", "nanobind")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("clang-format", "--dry-run", "--Werror", *sources("cpp"))
    session.run(".ci/check_tidy", session.virtualenv.location, external=True)
    session.run("codespell")
    session.run("sp-repo-review", ".")
    session.run("zizmor", "--offline", ".github")
    session.run("mypy")
    session.run("mypy", *map(str, pathlib.Path("src/recometer/compat").glob("*.pyi")))
    session.run("python", ".ci/check_public_types")
    session.run("pytest", "-n", "auto", "--cov", "--cov-report=term:skip-covered", *session.posargs)
    session.run(".ci/check_native_coverage", session.virtualenv.location, external=True)
    session.run("python", "benchmarks/smoke.py")


def sources(folder: str) -> list[str]:
    """Return the C++ files in a folder."""
    return [str(path) for path in sorted(pathlib.Path(folder).rglob("*.[ch]pp"))]


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Run the tests with 200 generated cases each instead of 12, different ones every time."""
    session.install(".[test]")
    session.run("pytest", "-n", "auto", "--hypothesis-profile", "nightly", *session.posargs)


@nox.session(default=False)
def live(session: nox.Session) -> None:
    """Run the tests that evaluate models from other libraries."""
    session.install(".[live,test]")
    session.run("pytest", "-m", "live", *session.posargs)


@nox.session(default=False)
def audit(session: nox.Session) -> None:
    """Look up known vulnerabilities of the pinned packages. This needs internet access."""
    session.install("pip-audit")
    pinned = ("--disable-pip", "--require-hashes", "-r", ".ci/requirements.txt")
    session.run("pip-audit", "--strict", *pinned, *session.posargs)


@nox.session(default=False)
def mutation(session: nox.Session) -> None:
    """Make mistakes in the library, and check that its tests notice them. This takes hours."""
    session.install("-e", ".[test]")
    session.run("python", "tests/mutation/run.py", *session.posargs)


@nox.session(default=False)
@nox.parametrize("library", sorted(set(RIVALS) - {"pyspark", "r"}))
def rivals(session: nox.Session, library: str) -> None:
    """Compare a library's convention and drop-in with the library itself, on random cases."""
    for package in RIVALS[library]:
        session.install(package)
    session.install(".", "pytest", "pytest-xdist")
    files = sorted(map(str, pathlib.Path("tests/rivals").glob(f"test_{library}*.py")))
    here = ["--confcutdir", "tests/rivals", "-n", "auto", *files]
    session.run("pytest", "-m", "rivals", *here, *session.posargs)


@nox.session(default=False)
@nox.parametrize("library", GUIDES)
def guides(session: nox.Session, library: str) -> None:
    """Run the guide for a library, and compute each row of its table with both libraries."""
    for package in RIVALS[library]:
        session.install(package)
    session.install(".", "pytest")
    here = ["--confcutdir", "tests/rivals", "tests/rivals/test_guides.py", "-k", f"[{library}]"]
    session.run("pytest", "-m", "rivals", *here, *session.posargs)


if __name__ == "__main__":
    nox.main()
