"""The command line, a file per command; `main` is its entry point.

Exit codes: 0 done, 1 a failure that is stated on standard error, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line on the arguments of this process, and exit."""
    try:
        from recometer.cli._app import app

        app(prog_name="recometer")
    except KeyboardInterrupt:  # while the program was still loading
        sys.exit(130)
