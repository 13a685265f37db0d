"""The documentation site: sphinx-build -W docs site."""

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import bad_input_tables  # noqa: E402
import metric_pages  # noqa: E402

from recometer import __version__  # noqa: E402

project = "recometer"
author = "The recometer developers"
release = version = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
]
exclude_patterns = ["_build", "__pycache__", "bad_input_tables.md"]
# .rst comes first: autosummary writes its pages with the first suffix.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
html_theme = "pydata_sphinx_theme"
html_title = "recometer"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": True,
    "header_links_before_dropdown": 6,
    # An icon instead of the search field keeps the header on one line at a width of 1,300 pixels.
    "navbar_persistent": ["search-button"],
}
# These pages have no sidebar, because their section has no other pages.
html_sidebars = {"index": [], "tutorial": [], "search": [], "genindex": []}
html_show_sourcelink = False

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# The notebooks in examples/ are executed for each build, which stops if a cell fails.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
# Links to files of the repository that are not pages; the tests check that these files exist.
suppress_warnings = ["myst.xref_missing"]

# Names in single backticks become links if Sphinx knows them, and code otherwise.
default_role = "py:obj"
autodoc_typehints = "none"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


def setup(app: Any) -> None:
    """Write a page for each metric, and the tables of bad input, before the site is built."""
    bad_input_tables.write(HERE / "bad_input_tables.md")
    metric_pages.write(HERE / "metric_pages")
