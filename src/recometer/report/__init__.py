"""Reports about a comparison or an evaluation.

The module `build` makes a `ReportModel`, which does not depend on the format of the report. `page`,
`markdown` and `charts` turn it into the various formats.
"""

from recometer.report.result import Report

__all__ = ["Report"]
