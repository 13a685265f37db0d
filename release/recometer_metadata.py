"""Derive metadata from the project's address, which is only stated in pyproject.toml.

scikit-build-core asks for the description and the links of the package when it builds it.
``python release/recometer_metadata.py`` writes the other files that contain the address or the
version, ``--check`` only compares them, and ``--tag v1.2.3`` also lists what is missing for a
release.
"""

from __future__ import annotations

import pathlib
import re
import sys
from collections.abc import Mapping
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
UNSET = "OWNER/recometer"
LACKING = 'pyproject.toml lacks the address of the project: address = "" in [tool.recometer].'


def text_of(name: str) -> str:
    """Return the text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def address() -> str:
    """Return the address of the repository, empty until its owner has set it."""
    found = re.search(
        r'^\[tool\.recometer\]\naddress = "(.*)"', text_of("pyproject.toml"), re.MULTILINE
    )
    assert found is not None
    return found[1].rstrip("/")


def version() -> str:
    """Return the version of this tree."""
    found = re.search(r'^__version__ = "(.+)"', text_of("src/recometer/version.py"), re.MULTILINE)
    assert found is not None
    return found[1]


def released() -> str | None:
    """Return the release date of this version according to the changelog."""
    found = re.search(
        rf"^## {re.escape(version())} \((\d{{4}}-\d\d-\d\d)\)",
        text_of("CHANGELOG.md"),
        re.MULTILINE,
    )
    return found and found[1]


def absolute(text: str, address: str, version: str) -> str:
    """Return Markdown in which links to files of the project point to its repository."""

    def lead(link: re.Match[str]) -> str:
        kind = "raw" if link[1].endswith(".png") else "blob"
        return f"]({address}/{kind}/v{version}/{link[1]})"

    return re.sub(r"\]\((?![a-z]+:|#)([^)\s]+)\)", lead, text)


def dynamic_metadata(field: str, settings: Mapping[str, Any] | None = None) -> Any:
    """Return the description or the links of the package, for scikit-build-core."""
    here = address()
    if field == "urls":
        if not here:
            return {}
        pages = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
        blob = f"{here}/blob/v{version()}"
        return {"Repository": here, "Issues": f"{here}/issues"} | {
            name: f"{blob}/{page}" for name, page in pages.items()
        }
    text = text_of("README.md")
    if here:
        text = absolute(text, here, version())
    else:
        print(f"warning: {LACKING} Links of the description lead nowhere.", file=sys.stderr)
    return {"text": text, "content-type": "text/markdown"}


def followers() -> dict[str, str]:
    """Return the correct contents of the files that contain the address or the version."""
    workflow = re.sub(
        r"uses: \S+/recometer@\S+",
        f"uses: {address().removeprefix('https://github.com/') or UNSET}@v{version()}",
        text_of("docs/compare-workflow.yml"),
    )
    citation = re.sub(
        r"^(version|date-released|repository-code): .*\n",
        "",
        text_of("CITATION.cff"),
        flags=re.MULTILINE,
    )
    citation += f"version: {version()}\n"
    if day := released():
        citation += f"date-released: {day}\n"
    if here := address():
        citation += f"repository-code: {here}\n"
    return {"docs/compare-workflow.yml": workflow, "CITATION.cff": citation}


def problems(tag: str | None) -> list[str]:
    """Return the faults, and what is missing for a release with a tag."""
    stale = [
        f"{name} is stale: python release/recometer_metadata.py"
        for name, text in followers().items()
        if text_of(name) != text
    ]
    if tag is None:
        return stale
    lacking = {
        LACKING: address(),
        f"The tag {tag} is not that of version {version()}.": tag == f"v{version()}",
        f"CHANGELOG.md has no line like ## {version()} (2026-01-31).": released(),
    }
    return stale + [sentence for sentence, there in lacking.items() if not there]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        for name, text in followers().items():
            (ROOT / name).write_text(text, encoding="utf-8")
    else:
        found = problems(sys.argv[2] if sys.argv[1] == "--tag" else None)
        print(*found, sep="\n")
        sys.exit(bool(found))
