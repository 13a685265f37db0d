"""`Report`: a report of a comparison or an evaluation, as a page or in Markdown."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from recometer.data.paths import as_path
from recometer.errors import InputError, UnknownNameError, did_you_mean
from recometer.report import charts, markdown, page, writing
from recometer.report.model import Chart, ReportModel

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


class Report:
    """The result of `Comparison.report` and `Evaluation.report`.

    Attributes
    ----------
    model : recometer.report.model.ReportModel
        The content as frozen records: numbers, directions, the best models, texts.
    """

    def __init__(self, model: ReportModel) -> None:
        self.model = model

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the page, which needs no other files; also write it to a path if one is given.

        Raises
        ------
        FileError
            If the path cannot be written, or is an existing file that is not a report of recometer.
        MissingExtraError
            If the packages of the extra ``report`` are not installed.
        """
        text = page.to_html(self.model)
        return text if path is None else writing.write(path, text)

    def to_markdown(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the report in Markdown, without charts; also write it to a path if given."""
        text = markdown.to_markdown(self.model)
        return text if path is None else writing.write(path, text)

    @property
    def charts(self) -> tuple[str, ...]:
        """Return the names of the charts in this report."""
        return tuple(chart.name for chart in self.model.charts)

    def chart(self, name: str, *options: str) -> Any:
        """Return a chart as a Vega-Lite specification: a dict, which notebooks draw.

        Parameters
        ----------
        name
            One of `charts`.
        options
            An option for each choice of the chart, such as ``"ndcg@10"``. By default, these are the
            options that the page shows first.
        """
        return charts.Drawing(charts.with_rows(self._chart(name), options))

    def save_chart(self, path: str | os.PathLike[str], name: str, *options: str) -> None:
        """Write a chart to a file, as PNG or SVG depending on the name of the file.

        Raises
        ------
        InputError
            If the name has another ending.
        """
        suffix = as_path(path, "a chart").suffix.lower()
        if suffix not in charts.IMAGES:
            raise InputError(
                f"{os.fspath(path)!r}: charts are written as .png or .svg. Hint: "
                f"save_chart('{name}.svg', {name!r})."
            )
        image = charts.image(self._chart(name), options, suffix)
        writing.write_image(path, image, suffix)

    def __repr__(self) -> str:
        return f"<Report: {self.model.headline.verdict}>"

    def _chart(self, name: str) -> Chart:
        chart = self.model.chart(name)
        if chart is None:
            raise UnknownNameError(
                f"The report has no chart {name!r}. {did_you_mean(name, self.charts)}"
            )
        return chart


def made(content: Callable[[], ReportModel], path: str | os.PathLike[str] | None) -> Report:
    """Make a report of some content; if there is a path, check it first, and write to it."""
    if path is None:
        return Report(content())
    form = format_of(path)
    check_report(path)
    report = Report(content())
    writing.write(path, report.to_html() if form == "html" else report.to_markdown())
    return report


def check_report(path: str | os.PathLike[str], inputs: Sequence[str] = ()) -> None:
    """Raise an error early if no report can be written to a path, or would replace an input.

    Raises
    ------
    FileError
        If another file exists there, or there is no such folder.
    MissingExtraError
        If a package that pages need is missing.
    """
    writing.check(path, tuple(inputs))
    if format_of(path) == "html":
        page.check_extra()


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format that the name of a file stands for, or raise InputError."""
    suffix = as_path(path, "a report").suffix.lower()
    if suffix not in FORMATS:
        raise InputError(
            f"{os.fspath(path)!r}: a report is written as .html or .md. Hint: report.html."
        )
    return FORMATS[suffix]
