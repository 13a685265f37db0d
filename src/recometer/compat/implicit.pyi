"""Written by tests/helpers/dropin_stubs.py from the module of the same name."""

from typing import Any

def AUC_at_k(
    model: Any,
    train_user_items: Any,
    test_user_items: Any,
    K: int = 10,
    show_progress: bool = True,
    num_threads: int = 1,
) -> float:
    """Calculate only the area under the ROC curve at K; see `ranking_metrics_at_k`."""

def mean_average_precision_at_k(
    model: Any,
    train_user_items: Any,
    test_user_items: Any,
    K: int = 10,
    show_progress: bool = True,
    num_threads: int = 1,
) -> float:
    """Calculate only the mean average precision at K; see `ranking_metrics_at_k`."""

def ndcg_at_k(
    model: Any,
    train_user_items: Any,
    test_user_items: Any,
    K: int = 10,
    show_progress: bool = True,
    num_threads: int = 1,
) -> float:
    """Calculate only NDCG at K; see `ranking_metrics_at_k`."""

def precision_at_k(
    model: Any,
    train_user_items: Any,
    test_user_items: Any,
    K: int = 10,
    show_progress: bool = True,
    num_threads: int = 1,
) -> float:
    """Calculate only precision at K; see `ranking_metrics_at_k`."""

def ranking_metrics_at_k(
    model: Any,
    train_user_items: Any,
    test_user_items: Any,
    K: int = 10,
    show_progress: bool = True,
    num_threads: int = 1,
) -> dict[str, float]:
    """Calculate ranking metrics of a model, like ``implicit.evaluation.ranking_metrics_at_k``.

    For factor models with implicit's own ``recommend``, this function ranks all items by their
    scores. For other models, it calls ``recommend(userids, user_items, N)`` as implicit does. The
    training and test data are sparse matrices of shape (n_users, n_items). Every stored entry of
    `test_user_items` is relevant, whatever its value. `show_progress` has no effect, and
    ``num_threads=0`` uses all processors.

    Returns
    -------
    dict of str to float
        ``"precision"`` (the total number of hits, divided by the total of min(K, number of relevant
        items)), ``"map"``, ``"ndcg"`` and ``"auc"`` (means over the users with a relevant item).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_matrix
    >>> from recometer.compat.implicit import ranking_metrics_at_k
    >>> class Popular:
    ...     def recommend(self, userid, user_items, N):
    ...         return np.tile(np.arange(N), (len(userid), 1)), np.ones((len(userid), N))
    >>> train = csr_matrix([[0, 0, 0, 1], [0, 0, 1, 0]])
    >>> test = csr_matrix([[1, 0, 0, 0], [0, 0, 0, 1]])
    >>> ranking_metrics_at_k(Popular(), train, test, K=2)["map"]
    0.5
    """
