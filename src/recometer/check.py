"""``python -m recometer.check``: check this installation, like ``recometer check``.

Run this module; do not import it. An import would replace the function `recometer.check` with the
module, so the module raises an exception when it is imported.
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
