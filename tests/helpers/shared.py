"""The path of the folder with data from outside the repository."""

import os
import pathlib

SHARED = pathlib.Path(
    os.environ.get("RECOMETER_SHARED", pathlib.Path(__file__).parents[3] / "shared")
)
