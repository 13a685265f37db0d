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

Threads do not survive `fork`. Those of Polars, once it has worked, are missing in a process that
is forked afterwards, where it would wait for them forever. recometer needs Polars for tables,
files and ids that are texts, and says so in such a process (on Linux, where the threads can be
counted) instead of waiting; NumPy arrays and sparse matrices are evaluated there as usual. What
you do with Polars yourself does wait. Python's `multiprocessing` forks by default on Linux before
Python 3.14, and so do loaders of PyTorch with `num_workers`: start their processes anew, with
`multiprocessing.get_context("spawn")` or `DataLoader(..., multiprocessing_context="spawn")`.

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
    text += "\n## On the command line\n\n| what | command | exit code | its message |\n"
    text += "|---|---|---|---|\n"
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
