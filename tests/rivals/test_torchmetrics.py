"""recometer's convention for TorchMetrics gives the same values as TorchMetrics."""

import pytest
from _cases import CUTOFFS, Case, cases
from _compare import check

import recometer as rm

pytestmark = [pytest.mark.rivals, pytest.mark.filterwarnings("ignore")]
NAMES = ["Precision", "Recall", "HitRate", "MRR", "MAP", "NormalizedDCG", "FallOut", "AUROC"]


@pytest.mark.parametrize("case", cases(all_have_truth=True), ids=str)
def test_values_match_torchmetrics(case: Case) -> None:
    import torch
    from torchmetrics import retrieval

    users = [user for user in case.lists if user in case.truth]
    index = torch.tensor([row for row, user in enumerate(users) for _ in case.lists[user]])
    scores = torch.tensor([score for user in users for score in case.lists[user].values()])
    grades = torch.tensor(
        [case.truth[user].get(item, 0) for user in users for item in case.lists[user]]
    )
    library_values = {}
    for name in NAMES:
        target = grades if name == "NormalizedDCG" else grades > 0
        for k in (*CUTOFFS, None):
            kind = getattr(retrieval, f"Retrieval{name}")
            metric = kind(empty_target_action="neg", top_k=k)
            mean = metric(scores, target, indexes=index).item()
            values = {}
            for row, user in enumerate(users):
                rows_of_query = index == row
                metric.reset()
                values[user] = metric(
                    scores[rows_of_query], target[rows_of_query], indexes=index[rows_of_query]
                ).item()
            library_values[f"Retrieval{name}" + (f"@{k}" if k else "")] = (values, mean)
    check("torchmetrics", rm.Lists(case.lists), case.truth, library_values, tolerance=1e-6)


@pytest.mark.parametrize("case", cases(all_have_truth=True), ids=str)
def test_values_match_torchmetrics_with_ties(case: Case) -> None:
    """The test covers the metrics that handle ties in a defined way."""
    import torch
    from torchmetrics import retrieval

    lists = {
        user: {item: round(score, 1) for item, score in scored_items.items()}
        for user, scored_items in case.lists.items()
        if user in case.truth
    }
    library_values = {}
    for name, places in (("AUROC", [None]), ("NormalizedDCG", [*CUTOFFS, None])):
        for k in places:
            metric, values = getattr(retrieval, f"Retrieval{name}")(top_k=k), {}
            for user, scored_items in lists.items():
                target = torch.tensor([case.truth[user].get(item, 0) for item in scored_items])
                target = target if name == "NormalizedDCG" else target > 0
                scores, index = (
                    torch.tensor([*scored_items.values()]),
                    torch.zeros(len(scored_items), dtype=int),
                )
                metric.reset()
                values[user] = metric(scores, target, indexes=index).item()
            library_values[f"Retrieval{name}" + (f"@{k}" if k else "")] = (values, None)
    check("torchmetrics", rm.Lists(lists), case.truth, library_values, tolerance=1e-6)
