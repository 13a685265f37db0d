"""Write docs/bad_input.md from the table that is tested: python docs/write_bad_input.py."""

import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = Path(__file__).parents[1] / "tests" / "bad_input.toml"

HEAD = """# Bad input

This page shows how recometer answers wrong input. A test makes each of these calls and commands,
and reads the message. Every error is a `rm.RecometerError` and derives from the built-in exception
that fits (an `rm.InputError` is also a `ValueError`). Its message says what was found and where,
what was expected, and what you can do about it. If you get an exception that is not a
`rm.RecometerError`, please report it.

If a function or a model of yours raises an exception, you get a `rm.ModelError`, whose cause is
that exception. If there is not enough memory, you get a `MemoryError`. A file that cannot be saved
is not left half-written: it appears as a whole, or not at all.

## Processes that are forked

Threads do not survive `fork`. If Polars has been used in a process, its threads are missing in a
process that is forked afterwards, which would wait for them forever. recometer needs Polars for
tables, files and ids that are texts. In such a process it raises an error instead of waiting (on
Linux, where the threads can be counted); NumPy arrays and sparse matrices are evaluated as usual.
Your own calls of Polars do wait. Python's `multiprocessing` forks by default on Linux before Python
3.14, and so do loaders of PyTorch with `num_workers`. Start their processes anew instead, with
`multiprocessing.get_context("spawn")` or `DataLoader(..., multiprocessing_context="spawn")`.

"""


def page() -> str:
    """Return the page."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    text = HEAD + f"## In Python\n\nThe calls use these names:\n\n```python\n{table['setup']}```\n"
    for section, entries in table["python"].items():
        rows = (
            f"| {code(call)} | {error} | {plain(said)} |\n"
            for call, error, said in entries["cases"]
        )
        text += f"\n### {section}\n\n| call | error | its message |\n|---|---|---|\n{''.join(rows)}"
    text += "\n## On the command line\n\n| case | command | exit code | its message |\n"
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
