"""``python -m recometer.check``: check this installation, like ``recometer check``.

This module is run and never imported: as an attribute of the package, it would take the place of
the function `recometer.check`. A module whose import fails does not become an attribute.
"""

import sys

if __name__ == "recometer.check":
    raise ImportError(
        "recometer.check is a module to run and a function to call, not a module to import. "
        "Hint: python -m recometer.check, or from recometer import check."
    )

if __name__ == "__main__":
    from recometer.cli import main

    main(["check", *sys.argv[1:]])
