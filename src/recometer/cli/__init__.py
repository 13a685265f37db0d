"""The command line: a module for each command, and the entry point `main`.

The exit codes are 0 for success, 1 for a failure (explained on standard error), 2 for a usage
error, 3 for a bad or undecided verdict, and 130 for Ctrl-C.
"""

from __future__ import annotations

import errno
import io
import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line with `arguments` (by default, those of this process), then exit."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Instead of raising an error, escape characters that the stream cannot encode.
            stream.reconfigure(errors="backslashreplace")
    try:
        from recometer.cli._app import app

        app(arguments, prog_name="recometer")
    except KeyboardInterrupt:  # the program was still loading
        sys.exit(130)
    except OSError:
        _finish_output("\n")  # this exits with a message if standard output caused the error
        raise
    finally:
        _finish_output()


def _finish_output(text: str = "") -> None:
    """Write `text` to standard output and flush it; if this fails, print an error and exit."""
    if sys.stdout is None:  # the parent process closed it
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes standard output again on exit, and that flush must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:  # a reader such as head may stop early
            sys.stderr.write(f"Error: standard output cannot be written: {error.strerror}.\n")
        sys.exit(1)
