"""`RankingMetrics` works in TorchMetrics collections and across two processes."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import recometer as rm

pytestmark = pytest.mark.integrations

N_USERS, N_ITEMS = 40, 30
METRICS = "ndcg@5 recall@3 rr"


@pytest.fixture(scope="module")
def ranking_metrics(torchmetrics):
    from recometer.integrations.torchmetrics import RankingMetrics

    return RankingMetrics


@pytest.fixture(scope="module")
def case():
    """Return scores with many ties, test data, and an evaluator; users and items have no ids."""
    rng = np.random.default_rng(1)
    kind = rng.random((N_USERS, N_ITEMS))
    test = rm.Interactions.of((kind > 0.9).astype(np.float32))
    train = rm.Interactions.of((kind < 0.1).astype(np.float32))
    scores = rng.integers(0, 20, kind.shape).astype(np.float32)
    return scores, (kind > 0.9).astype(int), rm.Evaluator(test, train=train, metrics=METRICS)


def test_batches_give_the_same_evaluation_as_one_call(torch, ranking_metrics, case):
    scores, _, evaluator = case
    metric = ranking_metrics(evaluator)
    for rows in np.array_split(np.random.default_rng(0).permutation(N_USERS), 7):
        metric.update(torch.from_numpy(scores[rows]), users=torch.from_numpy(rows))
    expected = evaluator(rm.Scores(scores))
    values = metric.compute()
    assert {name: float(value) for name, value in values.items()} == {
        name.replace("@", "_at_"): mean for name, mean in expected.mean().items()
    }
    assert set(values) < set(expected.flat())
    np.testing.assert_array_equal(metric.evaluation()["rr"], expected["rr"])


def test_collection_can_contain_metrics_of_both_libraries(torch, torchmetrics, case):
    """TorchMetrics' metrics in the collection take the same arguments as recometer's."""
    from recometer.integrations.torchmetrics import RankingMetrics

    scores, truth, _ = case
    rng = np.random.default_rng(2)
    scores = torch.from_numpy(rng.permutation(scores.size).reshape(scores.shape).astype(np.float32))
    users = torch.arange(N_USERS)[:, None].expand(-1, N_ITEMS)
    collection = torchmetrics.MetricCollection(
        {
            "theirs": torchmetrics.retrieval.RetrievalMRR(empty_target_action="skip"),
            "ours": RankingMetrics(metrics="rr"),
            "others": RankingMetrics(metrics="ndcg@3"),
        },
        prefix="val/",
    )
    for rows in torch.arange(N_USERS).split(9):
        labelled = scores[rows].flatten(), torch.from_numpy(truth)[rows].flatten()
        collection.update(*labelled, indexes=users[rows].flatten())
    values = collection.compute()
    assert set(values) == {"val/theirs", "val/rr", "val/ndcg_at_3"}
    assert float(values["val/rr"]) == pytest.approx(float(values["val/theirs"]), abs=1e-6)


def test_labels_of_padding_are_ignored(torch, ranking_metrics):
    metric = ranking_metrics(metrics="rr")
    scores, labels = [[0.9, 0.5, 0.1], [0.9, 0.1, 0.5]], [[-100, 0, 1], [-100, 0, 1]]
    metric.update(torch.tensor(scores), torch.tensor(labels), padding=-100)
    assert float(metric.compute()["rr"]) == 0.75


def test_forward_returns_the_values_of_the_batch_and_keeps_all_batches(
    torch, ranking_metrics, case
):
    scores, _, evaluator = case
    metric = ranking_metrics(evaluator)
    expected = evaluator(rm.Scores(scores))["rr"]
    for rows in np.array_split(np.arange(N_USERS), 4):
        batch = metric(torch.from_numpy(scores[rows]), users=rows)
        assert float(batch["rr"]) == pytest.approx(np.nanmean(expected[rows]), abs=1e-15)
    assert float(metric.compute()["rr"]) == np.nanmean(expected)
    metric.reset()
    metric.update(torch.from_numpy(scores), users=np.arange(N_USERS))
    assert float(metric.compute()["rr"]) == np.nanmean(expected)


def test_copies_and_states_keep_past_updates(torch, ranking_metrics, case):
    scores, _, evaluator = case
    metric = ranking_metrics(evaluator)
    metric.update(scores[:20], users=np.arange(20))
    loaded = ranking_metrics(evaluator)
    metric.persistent(True)
    loaded.persistent(True)
    loaded.load_state_dict(metric.state_dict())
    copies = [metric.clone(), copy.deepcopy(metric), pickle.loads(pickle.dumps(metric)), loaded]
    for copy_of_metric in (metric, *copies):
        copy_of_metric.to("cpu").update(scores[20:], users=np.arange(20, N_USERS))
        assert float(copy_of_metric.compute()["rr"]) == evaluator(rm.Scores(scores)).mean()["rr"]
    rest = ranking_metrics(evaluator)
    rest.update(scores[:20], users=np.arange(20))
    second = ranking_metrics(evaluator)
    second.update(scores[20:], users=np.arange(20, N_USERS))
    rest.merge_state(second)
    assert float(rest.compute()["rr"]) == evaluator(rm.Scores(scores)).mean()["rr"]


def test_all_copies_in_a_collection_are_updated(torchmetrics, ranking_metrics, case):
    """TorchMetrics groups metrics with equal states, and updates only one metric of each group."""
    scores, _, evaluator = case
    metric = ranking_metrics(evaluator)
    collection = torchmetrics.MetricCollection({"one": metric, "two": metric.clone()})
    for rows in np.array_split(np.arange(N_USERS), 3):
        collection.update(scores[rows], users=rows)
    assert collection["one"].evaluation().n_users == collection["two"].evaluation().n_users
    np.testing.assert_array_equal(
        collection["one"].evaluation()["rr"], collection["two"].evaluation()["rr"]
    )
    assert len(collection.compute_groups) == 2


PROCESS = """
    import sys, warnings
    import numpy as np
    import torch, torch.distributed as dist
    import recometer as rm
    from recometer.integrations.torchmetrics import RankingMetrics

    rank, folder = int(sys.argv[1]), sys.argv[2]
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    data = np.load(f"{folder}/data.npz")
    scores, users = data["scores"], data["users"]
    evaluator = rm.Evaluator(
        rm.Interactions.of(data["test"]), train=rm.Interactions.of(data["train"]),
        metrics="ndcg@5 recall@3 rr",
    )
    metric = RankingMetrics(evaluator)
    empty = RankingMetrics(metrics="rr")
    if rank == 0:  # the other process gets no data
        empty.update(scores[:2], data["test"][:2], users=users[:2])
    stream = evaluator.stream(repeated="first")
    mine = users[rank::2]
    if rank:  # samplers repeat users to fill the last batch
        mine = np.append(mine, users[0])
    for rows in np.array_split(mine, 3 + rank):
        batch = torch.from_numpy(scores[rows])
        metric.update(batch, users=rows)
        stream.update(batch, users=rows)
    for _ in range(2):  # computing twice gives the same, and updates can follow
        found = metric.compute()
        metric._computed = None
    states = [None, None]
    dist.all_gather_object(states, stream.state())
    stream.reset()
    for state in states:
        stream.merge(state)
    np.savez(
        f"{folder}/found{rank}.npz", metric=[float(one) for one in found.values()],
        stream=list(stream.mean().values()), rr=metric.evaluation()["rr"],
        local=metric._stream.n_users, empty=float(empty.compute()["rr"]),
    )
    dist.destroy_process_group()
"""


def test_two_processes_give_the_same_values_as_one(case, torchmetrics, tmp_path):
    scores, _, _ = case
    rng = np.random.default_rng(3)
    kind = rng.random(scores.shape)
    data = {"test": (kind > 0.9) * 1.0, "train": (kind < 0.1) * 1.0, "scores": scores}
    np.savez(tmp_path / "data.npz", users=rng.permutation(N_USERS), **data)
    command = [sys.executable, "-c", textwrap.dedent(PROCESS)]
    running = [subprocess.Popen([*command, str(rank), str(tmp_path)]) for rank in range(2)]
    assert [process.wait(timeout=120) for process in running] == [0, 0]
    evaluator = rm.Evaluator(
        rm.Interactions.of(data["test"]),
        train=rm.Interactions.of(data["train"]),
        metrics=METRICS,
    )
    expected = evaluator(rm.Scores(scores))
    for rank in range(2):
        saved = np.load(tmp_path / f"found{rank}.npz")
        assert (
            saved["metric"].tolist() == saved["stream"].tolist() == list(expected.mean().values())
        )
        np.testing.assert_array_equal(saved["rr"], expected["rr"])
        assert saved["local"] == N_USERS // 2 + rank
    assert not np.isnan(saved["empty"])


def test_mismatched_tensors_are_rejected(ranking_metrics, case):
    _, _, evaluator = case
    with pytest.raises(rm.InputTypeError, match="takes an Evaluator, found str"):
        ranking_metrics("ndcg@5")
    with pytest.raises(rm.InputError, match="metrics= does not apply"):
        ranking_metrics(evaluator, metrics="rr")
    with pytest.raises(rm.InputError, match="the same"):
        ranking_metrics(evaluator).update([[1.0]], users=[1], indexes=[1])
    with pytest.raises(rm.InputError, match="an option of torchmetrics"):
        ranking_metrics(evaluator, compute_on_cpu="yes")


def load_state_into(ranking_metrics, evaluator, other_evaluator, change=lambda state: state):
    """Save a metric's state, change it, and load it into a metric with another evaluator."""
    metric, loaded = ranking_metrics(evaluator), ranking_metrics(other_evaluator)
    metric.persistent(True)
    loaded.persistent(True)
    metric.update(np.tile(np.arange(N_ITEMS), (2, 1)), users=[0, 1])
    loaded.load_state_dict({name: change(state) for name, state in metric.state_dict().items()})
    return loaded.evaluation()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"test": np.eye(N_USERS, N_ITEMS)}, "they differ in test, which contains different data"),
        (
            {"train": np.eye(N_USERS, N_ITEMS)},
            "they differ in train, which contains different data",
        ),
        ({"train": None}, "they differ in train, which was passed only there"),
        ({"metrics": "ndcg@9"}, "metrics ('ndcg@9' here, 'ndcg@5 recall@3 rr' there)"),
        ({"ties": "item"}, "they differ in protocol"),
        ({"test": None}, "they differ in test, which was passed only there"),
    ],
)
def test_state_of_another_evaluator_is_rejected(ranking_metrics, case, changes, message):
    """Loading a state into a metric with another evaluator would give wrong results."""
    _, _, evaluator = case
    options = {
        "test": evaluator.sides.test_as_passed,
        "train": evaluator.arguments.train,
        "metrics": METRICS,
        **changes,
    }
    with pytest.raises(rm.InputError, match=re.escape(message)):
        load_state_into(ranking_metrics, evaluator, rm.Evaluator(**options))


def test_damaged_state_is_rejected(torch, ranking_metrics, case):
    _, _, evaluator = case
    damages = {
        "is damaged (UnpicklingError": lambda state: [tensor[:-20] for tensor in state],
        "is damaged (EOFError": lambda state: [torch.zeros_like(tensor) for tensor in state],
        "which no RankingMetrics wrote": lambda state: ["abc" for _ in state],
        "The state counted is None": lambda state: None,
        "The state counted is tensor(7)": lambda state: torch.tensor(7),
    }
    for message, change in damages.items():
        with pytest.raises(rm.InputError, match=re.escape(message)):
            load_state_into(ranking_metrics, evaluator, evaluator, change)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_tensors_without_numbers_are_rejected(torch, ranking_metrics, case):
    scores, truth, evaluator = case
    meta = torch.empty(2, N_ITEMS, device="meta")
    for call in (
        lambda: ranking_metrics(evaluator).update(meta, users=[0, 1]),
        lambda: ranking_metrics(evaluator).update(scores[:2], users=torch.empty(2, device="meta")),
        lambda: ranking_metrics(metrics="rr").update(scores[:2], meta),
        lambda: rm.Factors(meta, meta),
    ):
        with pytest.raises(rm.InputTypeError, match="on the device meta, which stores no numbers"):
            call()
    nested = torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)])
    with pytest.raises(rm.InputTypeError, match="cannot be read as an array"):
        ranking_metrics(metrics="rr").update(nested, truth[:2])


def test_wrappers_that_merge_states_are_rejected(torchmetrics, ranking_metrics, case):
    scores, truth, _ = case
    running = torchmetrics.wrappers.Running(ranking_metrics(metrics="rr"), window=2)
    running.update(scores[:2], truth[:2])
    with pytest.raises(rm.InputError, match="wrappers that merge states"):
        running.compute()
