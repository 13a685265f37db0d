"""``python -m recometer``: the command line."""

from recometer.cli import main

if __name__ == "__main__":
    main()
