"""Reported: what can be shown as a report and in charts."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from recometer.remembered import cached_property

if TYPE_CHECKING:
    Report = Any


class Plots:
    """The charts of a report, as ``altair.Chart``: ``result.plot.leaderboard()``.

    ``dir(result.plot)`` names those that there are. Each takes what is shown, an option of each of
    its choices, and shows the first ones by default: ``versus.plot.values("recall@10")``.
    """

    def __init__(self, of: Reported) -> None:
        self._of = of
        self._report: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        made = self._made()
        if name not in made.charts:
            raise AttributeError(
                f"There is no chart {name!r}. Hint: there are {', '.join(made.charts)}."
            )
        return lambda *options: made.chart(name, *options)

    def __dir__(self) -> list[str]:
        return list(self._made().charts)

    def _made(self) -> Any:
        if self._report is None:
            self._report = self._of.report()
        return self._report


class Reported:
    """What has a report, and charts for notebooks."""

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
        """Make a report: a page that opens from disk, without network, or Markdown.

        It says which model wins and how sure that is, shows means, distributions, groups and the
        lists of single users in charts and tables, and has the protocol in full.

        Parameters
        ----------
        path
            ``"report.html"`` or ``"report.md"``. None writes nothing. An earlier report is
            replaced; any other file is not.
        title
            None makes one from the models' names.
        lists
            Per model, the source of its lists, where results do not keep it: those that were
            loaded from files, and large ones.
        test, train, catalogue
            What `evaluate` was given. A `Catalogue` with titles names the items.
        audit
            What `audit` said of the split. None audits train and test if they are known and have at
            most 5 million rows, True whatever their size, False never.
        groups
            Groups of users, as `Evaluation.by` takes them. None groups by activity and popularity.
        users
            Ids of users whose lists are shown, beside those who gain and lose most and some at
            random.
        n_users
            Number of users shown who gain most, as many who lose most, and twice as many at random.
        depth
            Number of places shown of each list. None shows 10; of scored pairs all, at most 50.
        item_to_item
            Users are items, for which similar ones are recommended: they have the items' titles.
        seed
            Seed of the users that are drawn.
        threads
            Maximum number of threads. None uses all available processors.
        more
            For an evaluation, ``name="als"``, the name of the model.

        Returns
        -------
        recometer.report.Report
            With `to_html`, `to_markdown`, `chart` and `save_chart`.

        Raises
        ------
        FileError
            A path that cannot be written, or with a file that is not a report.
        InputError
            A path with another ending, or data that do not fit.
        MissingExtraError
            The extra ``report`` is not installed, and the page was asked for.

        Examples
        --------
        >>> import numpy as np, recometer as rm
        >>> rng = np.random.default_rng(0)
        >>> test, noise = rng.random((200, 50)) < 0.1, rng.random((200, 50))
        >>> good, bad = rm.Scores(noise + 0.4 * test), rm.Scores(noise)
        >>> results = {"good": rm.evaluate(good, test), "bad": rm.evaluate(bad, test)}
        >>> made = rm.compare(results, primary="ndcg@10").report()
        >>> made.model.headline.winner, made.model.headline.certain
        ('good', True)
        """
        given = {name: value for name, value in locals().items() if name not in OWN}
        # What makes the report stands above what is reported.
        make = importlib.import_module("recometer.report").report
        return make(self, path, **given, **more)

    @cached_property
    def plot(self) -> Plots:
        """Charts for notebooks: ``result.plot.leaderboard()``, see `Plots`."""
        return Plots(self)


OWN = ("self", "path", "more")
