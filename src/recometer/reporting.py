"""`Reported`, the base class of results that have a report and charts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from recometer.remembered import cached_property

if TYPE_CHECKING:
    from recometer.report.result import Report


class Plots:
    """The charts of a report for use in notebooks, such as ``result.plot.leaderboard()``.

    ``dir(result.plot)`` lists the available charts. Where a chart offers a choice, such as the
    metric, its method takes the chosen option as an argument, as in
    ``versus.plot.values("recall@10")``. The default is the first option.
    """

    def __init__(self, result: Reported) -> None:
        self._result = result
        self._report: Report | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        report = self._built_report()
        if name not in report.charts:
            raise AttributeError(
                f"There is no chart {name!r}. Hint: the charts are {', '.join(report.charts)}."
            )
        return lambda *options: report.chart(name, *options)

    def __dir__(self) -> list[str]:
        return list(self._built_report().charts)

    def _built_report(self) -> Report:
        if self._report is None:
            self._report = self._result.report()
        return self._report


class Reported:
    """A result that has a report, and charts for notebooks."""

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        lists: Any = None,
        test: Any = None,
        train: Any = None,
        catalogue: Any = None,
        audit: Any = None,
        groups: Any = None,
        users: Any = (),
        n_users: int = 10,
        depth: int | None = None,
        item_to_item: bool = False,
        seed: int = 0,
        threads: int | None = None,
        **more: Any,
    ) -> Report:
        """Make a report, either in Markdown or as an HTML page that works offline.

        The report says which model wins and how certain that is. Its charts and tables show means,
        distributions, groups and some users' lists. It also contains the full protocol.

        Parameters
        ----------
        path
            ``"report.html"`` or ``"report.md"``. None writes nothing. An earlier report is
            overwritten; any other file is not.
        title
            The title of the page. By default, it names the models or, if there are more than two,
            says how many there are.
        lists
            For each model, the source of its lists. Pass sources for results that do not keep their
            own source, because they were loaded from a file or because the source is large.
        test, train, catalogue
            The arguments of `evaluate`. If `catalogue` is a `Catalogue`, items are shown by their
            titles.
        audit
            The result of `audit` for the split. None audits the split if its data are known and
            have at most 5 million rows; True always audits it, and False never does.
        groups
            Groups of users, in any form that `Evaluation.by` accepts. None groups by activity and
            popularity.
        users
            Ids of users whose lists are shown, in addition to the users who gain and lose most and
            to users drawn at random.
        n_users
            The report shows this many of the users who gain most, as many of those who lose most,
            and twice as many drawn at random.
        depth
            How many places of each list to show. None shows 10, or up to 50 for scored pairs.
        item_to_item
            Whether users are themselves items, for which similar items are recommended; they are
            then shown by title.
        seed
            Seed for drawing users.
        threads
            Maximum number of threads. None uses all available processors.
        more
            For an evaluation, ``name="als"`` sets the model's name.

        Returns
        -------
        recometer.report.Report
            The report, with the methods `to_html`, `to_markdown`, `chart` and `save_chart`.

        Raises
        ------
        FileError
            If the path cannot be written to, or is an existing file that is not a report.
        InputError
            If the path is not that of an HTML or Markdown file, or if the data do not match the
            results.
        MissingExtraError
            If you request the HTML page, but the extra ``report`` is not installed.

        Examples
        --------
        >>> import numpy as np, recometer as rm
        >>> rng = np.random.default_rng(0)
        >>> test, noise = rng.random((200, 50)) < 0.1, rng.random((200, 50))
        >>> good, bad = rm.Scores(noise + 0.4 * test), rm.Scores(noise)
        >>> results = {"good": rm.evaluate(good, test), "bad": rm.evaluate(bad, test)}
        >>> report = rm.compare(results, primary="ndcg@10").report()
        >>> report.model.headline.winner, report.model.headline.certain
        ('good', True)
        """
        arguments = {name: value for name, value in locals().items() if name not in OWN}
        from recometer.report.build import build  # many results need no report
        from recometer.report.result import make_report

        of: Any = self  # a comparison or an evaluation
        return make_report(lambda: build(of, **arguments, **more), path)

    @cached_property
    def plot(self) -> Plots:
        """Charts for notebooks, such as ``result.plot.leaderboard()``; see `Plots`."""
        return Plots(self)


OWN = ("self", "path", "more")
