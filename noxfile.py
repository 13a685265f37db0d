"""Sessions that need more than the tests do: other libraries, each in an environment of its own."""

import pathlib

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

# The library's packages, in the order in which they are installed. The first of torch decides
# which build the others get.
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
    "warprec": [TORCH, "warprec"],  # from Python 3.12 on; there, lenskit is that of 2026, too
    "xgboost": ["xgboost"],
}
# The libraries that docs/ has a guide from. Spark needs Java, and R needs Matrix and reticulate.
GUIDES = ["implicit", "lenskit", "pyg", "pyspark", "pytrec_eval", "r", "ranx", "recommenders"]
GUIDES += ["recometrics", "rectools", "surprise", "torchmetrics"]


@nox.session(default=True)
def tests(session: nox.Session) -> None:
    """Run the tests."""
    session.install(".[test]")
    session.run("pytest", "-n", "auto", *session.posargs)


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation site in site/; a warning is an error."""
    session.install(".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "docs", "site", *session.posargs)


@nox.session(default=False)
def quality(session: nox.Session) -> None:
    """Run all checks of the code, and measure how much of it the tests reach."""
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
    """Return the files of C++ in a folder."""
    return [str(path) for path in sorted(pathlib.Path(folder).rglob("*.[ch]pp"))]


@nox.session(default=False)
def nightly(session: nox.Session) -> None:
    """Run the tests with five times as many generated cases, others each time."""
    session.install(".[test]")
    session.run("pytest", "-n", "auto", "--hypothesis-profile", "nightly", *session.posargs)


@nox.session(default=False)
def live(session: nox.Session) -> None:
    """Run the tests that evaluate models of other libraries."""
    session.install(".[live,test]")
    session.run("pytest", "-m", "live", *session.posargs)


@nox.session(default=False)
def audit(session: nox.Session) -> None:
    """Look up known vulnerabilities of the pinned packages, for which it takes the internet."""
    session.install("pip-audit")
    pinned = ("--disable-pip", "--require-hashes", "-r", ".ci/requirements.txt")
    session.run("pip-audit", "--strict", *pinned, *session.posargs)


@nox.session(default=False)
def mutation(session: nox.Session) -> None:
    """Make mistakes in the library, and see whether its tests notice: takes hours."""
    session.install("-e", ".[test]")
    session.run("python", "tests/mutation/run.py", *session.posargs)


@nox.session(default=False)
@nox.parametrize("library", sorted(set(RIVALS) - {"pyspark", "r"}))
def rivals(session: nox.Session, library: str) -> None:
    """Compare the convention and the drop-in of a library with the library, on random cases."""
    for package in RIVALS[library]:
        session.install(package)
    session.install(".", "pytest", "pytest-xdist")
    files = sorted(map(str, pathlib.Path("tests/rivals").glob(f"test_{library}*.py")))
    here = ["--confcutdir", "tests/rivals", "-n", "auto", *files]
    session.run("pytest", "-m", "rivals", *here, *session.posargs)


@nox.session(default=False)
@nox.parametrize("library", GUIDES)
def guides(session: nox.Session, library: str) -> None:
    """Run the guide from a library, and compute each line of its table by both."""
    for package in RIVALS[library]:
        session.install(package)
    session.install(".", "pytest")
    here = ["--confcutdir", "tests/rivals", "tests/rivals/test_guides.py", "-k", f"[{library}]"]
    session.run("pytest", "-m", "rivals", *here, *session.posargs)


if __name__ == "__main__":
    nox.main()
