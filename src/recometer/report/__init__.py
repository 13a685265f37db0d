"""Reports about a comparison or an evaluation.

`build` makes the `ReportModel`, which is frozen and independent of formats. `page`, `markdown` and
`charts` turn it into the various formats.
"""

from recometer.report.result import Report

__all__ = ["Report"]
