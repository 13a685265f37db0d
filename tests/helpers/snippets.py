"""Read the code blocks of documentation pages."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def blocks_of(page: str) -> list[str]:
    """Return the Python blocks of a page in docs/."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
