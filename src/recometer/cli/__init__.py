"""The command line, with one module per command; `main` is its entry point.

Exit codes are 0 for success, 1 for a failure that is explained on standard error, 2 for wrong
usage, and 130 for Ctrl-C.
"""

from __future__ import annotations

import errno
import io
import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. None means the arguments of this process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names that are not UTF-8, and characters that the terminal cannot show, must not raise
            # errors.
            stream.reconfigure(errors="backslashreplace")
    try:
        from recometer.cli._app import app

        app(arguments, prog_name="recometer")
    except KeyboardInterrupt:  # the program was still loading
        sys.exit(130)
    except OSError:
        _finish_output("\n")  # fails again if standard output caused the error
        raise
    finally:
        _finish_output()


def _finish_output(text: str = "") -> None:
    """Write `text` and flush standard output; if that fails, print an error and exit."""
    if sys.stdout is None:  # the parent process closed it
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes again on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # no error if the reader stopped early, like head
            sys.stderr.write(f"Error: standard output cannot be written: {error.strerror}.\n")
        sys.exit(1)
