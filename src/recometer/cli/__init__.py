"""The command line, a file per command; `main` is its entry point.

Exit codes: 0 done, 1 a failure that is stated on standard error, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import errno
import io
import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and exit; None takes the arguments of this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names that are not UTF-8, or characters the terminal lacks, must not raise errors.
            stream.reconfigure(errors="backslashreplace")
    try:
        from recometer.cli._app import app

        app(arguments, prog_name="recometer")
    except KeyboardInterrupt:  # while the program was still loading
        sys.exit(130)
    except OSError:
        _finish_output("\n")  # fails again if the error was that of standard output
        raise
    finally:
        _finish_output()


def _finish_output(text: str = "") -> None:
    """Flush standard output after `text`; if that fails, print an error and exit."""
    if sys.stdout is None:  # closed by the parent
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # the reader stopped early, as head does
            sys.stderr.write(f"Error: standard output cannot be written: {error.strerror}.\n")
        sys.exit(1)
