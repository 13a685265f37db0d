"""Write docs/bad_input.md from the table that is tested: python docs/write_bad_input.py."""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).parents[1] / "tests" / "bad_input.toml"

HEAD = """# Bad input

What recometer says to input that is wrong: each of these calls and commands is made by a test,
which reads the message. An error is a `rm.RecometerError` and the built-in that fits (an
`rm.InputError` is a `ValueError`, too); its message says what was found, where, what was expected
and what to do. Of an exception that is not one of these, please tell us.

A function or a model of yours that raises an exception is a `rm.ModelError`, whose cause is that
exception. What takes more memory than there is stays a `MemoryError`. Nothing half-written remains
of a file that cannot be saved: it appears whole, or not at all.

## Processes that are forked

Threads do not survive `fork`. recometer, Polars and NumPy have some, so that a process that was
forked after they were used may wait forever for one that is gone. Python's `multiprocessing`, and
loaders of PyTorch with `num_workers`, fork by default on Linux before Python 3.14: start their
processes anew instead, with `multiprocessing.get_context("spawn")` (or `"forkserver"`), or
`DataLoader(..., multiprocessing_context="spawn")`. `rm.evaluate` needs no processes of its own: it
uses all processors as it is, and what a loader reads can be prepared before.

"""


def page() -> str:
    """Return the page."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    text = HEAD + f"## In Python\n\nThe calls name\n\n```python\n{table['setup']}```\n"
    for section, entries in table["python"].items():
        rows = (
            f"| {code(call)} | {error} | {plain(said)} |\n"
            for call, error, said in entries["cases"]
        )
        text += f"\n### {section}\n\n| call | error | its message |\n|---|---|---|\n{''.join(rows)}"
    text += "\n## On the command line\n\n| what | command | exit code | its message |\n|---|---|---|---|\n"
    for what, command, exit_code, said in table["commands"]["cases"]:
        text += f"| {what} | {code('recometer ' + command)} | {exit_code} | {plain(said)} |\n"
    return text


def code(text: str) -> str:
    """Return a text as code in a cell of a table."""
    return f"`{text.replace('|', chr(92) + '|')}`"


def plain(text: str) -> str:
    """Return a text in a cell of a table, as it is written."""
    for letter in "\\|*_<>`":
        text = text.replace(letter, f"\\{letter}")
    return text


if __name__ == "__main__":
    TABLE.parents[1].joinpath("docs", "bad_input.md").write_text(page(), encoding="utf-8")
