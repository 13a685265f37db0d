"""The path of the folder with data that is not part of the repository."""

import os
import pathlib

SHARED = pathlib.Path(
    os.environ.get("RECOMETER_SHARED", pathlib.Path(__file__).parents[3] / "shared")
)
