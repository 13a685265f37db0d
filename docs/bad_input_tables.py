"""Tables of bad input and messages, from the cases that are tested."""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).parents[1] / "tests" / "bad_input.toml"


def write(path: Path) -> None:
    """Write the tables, which docs/bad_input.md includes."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    text = f"### In Python\n\nThe calls use these names:\n\n```python\n{table['setup']}```\n"
    for section, entries in table["python"].items():
        rows = (
            f"| {code(call)} | {error} | {plain(message)} |\n"
            for call, error, message in entries["cases"]
        )
        text += (
            f"\n#### {section}\n\n| call | error | its message |\n|---|---|---|\n{''.join(rows)}"
        )
    text += "\n### On the command line\n\n| case | command | exit code | its message |\n"
    text += "|---|---|---|---|\n"
    for case, command, exit_code, message in table["commands"]["cases"]:
        text += f"| {case} | {code('recometer ' + command)} | {exit_code} | {plain(message)} |\n"
    path.write_text(text, encoding="utf-8")


def code(text: str) -> str:
    """Return a string as code in a cell of a table."""
    return f"`{text.replace('|', chr(92) + '|')}`"


def plain(text: str) -> str:
    """Escape a string so that a cell of a table shows it unchanged."""
    for letter in "\\|*_<>`":
        text = text.replace(letter, f"\\{letter}")
    return text
