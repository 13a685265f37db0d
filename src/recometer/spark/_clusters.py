"""Users who are not independent of each other, as `cluster=` of compare gives them."""

from __future__ import annotations

from recometer.data.columns import choose_columns
from recometer.errors import InputError, InputTypeError
from recometer.spark import _frames
from recometer.spark._frames import Frame, Table, quoted
from recometer.spark.result import SparkEvaluation


def joined(rows: Frame, cluster: object, first: SparkEvaluation) -> tuple[Frame, bool]:
    """Return rows of users with their clusters as column ``g``, whole clusters in one partition.

    Parameters
    ----------
    rows
        A row per user ``u``, or per session ``s`` of a user.
    cluster
        None, False, or a DataFrame of users and their clusters.
    first
        A result of these users.

    Returns
    -------
    rows, and whether they have clusters

    Raises
    ------
    InputError, InputTypeError
        If a user has no cluster or several, or the argument does not name clusters.
    """
    if cluster is False or (cluster is None and first.session is None):
        return rows, False
    found = rows.selectExpr("*", "u AS g") if cluster is None else _with(rows, cluster, first)
    by = ["u"] if first.session is None else ["u", "s"]
    return found.repartition("g").sortWithinPartitions("g", *by), True


def _with(rows: Frame, cluster: object, first: SparkEvaluation) -> Frame:
    if not _frames.is_frame(cluster):
        raise InputTypeError(
            "cluster= on Spark is None, False, or a DataFrame with a column of users and one of "
            f"their clusters, found {type(cluster).__name__}."
        )
    table = _table(cluster, first)
    kinds = {"the models": rows.schema["u"].dataType.simpleString()}
    kinds["cluster"] = _frames.kind_of(table, "user")
    user, kind = _frames.same_kind(kinds, "user"), _frames.kind_of(table, "cluster")
    by, columns = ["u"], [f"CAST({table['user']} AS {user}) AS u"]
    if table.has("session"):
        by.append("s")
        columns.append(
            f"CAST({table['session']} AS {rows.schema['s'].dataType.simpleString()}) AS s"
        )
    own = table.frame.selectExpr(*columns, f"CAST({table['cluster']} AS {kind}) AS g").distinct()
    twice = own.groupBy(*by).count().where("count > 1").limit(1).collect()
    if twice:
        raise InputError(f"The user {twice[0][0]!r} is in {twice[0]['count']} clusters.")
    found = rows.join(own, by, "left")
    without = found.where("g IS NULL")
    example = without.limit(1).collect()
    if example:
        raise InputError(
            f"{without.count():,} of {rows.count():,} users have no cluster, for instance "
            f"{example[0]['u']!r}. Hint: a single user can be a cluster."
        )
    return found


def _table(cluster: Frame, first: SparkEvaluation) -> Table:
    """Return the columns of users (and sessions), and the only other one."""
    names = list(cluster.columns)
    user = first.user if first.user in names else None
    columns = choose_columns(names, {"user": user}, required=("user",))
    if first.session in names:
        columns["session"] = first.session
    others = [name for name in names if name not in columns.values()]
    if len(others) != 1:
        raise InputError(
            f"cluster= has {len(others)} columns besides the users: "
            f"{', '.join(map(quoted, others)) or 'none'}. Hint: select the users and one of them."
        )
    return Table("cluster", cluster, {**columns, "cluster": others[0]})
