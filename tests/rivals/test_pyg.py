"""recometer's convention for PyTorch Geometric gives the same values as PyTorch Geometric."""

import pytest
from _cases import CUTOFFS, ITEMS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES = ["Precision", "Recall", "F1", "MAP", "NDCG", "MRR", "HitRatio"]
WEIGHTED = ("Recall", "NDCG")


@pytest.mark.parametrize("case", cases(all_have_lists=True), ids=str)
def test_values_match_pytorch_geometric(case: Case) -> None:
    import torch
    from torch_geometric.metrics import link_pred

    def compute(name: str, k: int, users: list[str], weighted: bool) -> float:
        # Pad with items that do not exist, since PyTorch Geometric may count -1 as a hit.
        lists = len(ITEMS) + torch.arange(k).repeat(len(users), 1)
        edges, weights = [], []
        for row, user in enumerate(users):
            for place, item in enumerate(list(case.lists[user])[:k]):
                lists[row, place] = ITEMS.index(item)
            for item, grade in case.truth.get(user, {}).items():
                edges.append((row, ITEMS.index(item)))
                weights.append(float(grade))
        edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T
        options = {"weighted": True} if weighted else {}
        metric = getattr(link_pred, f"LinkPred{name}")(k, **options)
        metric.update(lists, edge_index, *([torch.tensor(weights)] if weighted else []))
        return float(metric.compute())

    users = sorted(case.lists)
    library_values = {}
    for name, weighted in [(name, False) for name in NAMES] + [(name, True) for name in WEIGHTED]:
        for k in CUTOFFS:
            values = {user: compute(name, k, [user], weighted) for user in case.truth}
            label = f"LinkPred{name}{'(weighted=True)' if weighted else ''}@{k}"
            library_values[label] = (values, compute(name, k, users, weighted))
    check("pyg", rm.Lists(case.lists), case.truth, library_values, tolerance=1e-6)
