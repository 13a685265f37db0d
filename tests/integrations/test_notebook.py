"""Ctrl-C in a notebook interrupts an evaluation, and the notebook's kernel stays usable."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

SETUP = """
import pathlib
import numpy as np, scipy.sparse, recometer as rm

def evaluated(n_users, n_items, begun):
    generator = np.random.default_rng(0)
    users, items = (generator.standard_normal((n, 64)) for n in (n_users, n_items))
    test = scipy.sparse.csr_array(
        (np.ones(n_users), (np.arange(n_users), generator.integers(0, n_items, n_users)))
    )
    source = rm.Factors(users, items)
    pathlib.Path(begun).touch()
    return rm.evaluate(source, test, metrics="mean_rank")
"""
# Without an interruption, this evaluation would take minutes.
LONG = "evaluated(200_000, 100_000, {!r})"
LATEST = 5.0  # even on a busy machine, the evaluation must end within this many seconds
PATIENCE = 120.0


@pytest.fixture
def kernel() -> Iterator[tuple[Any, Any]]:
    """Start a kernel; return its manager and its client."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=PATIENCE)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def reply(client: Any, cell: str) -> dict[str, Any]:
    """Wait for the reply to a cell."""
    while True:
        message = client.get_shell_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") == cell:
            content: dict[str, Any] = message["content"]
            return content


def wait_for(begun: pathlib.Path) -> None:
    """Wait until a cell has created a file; this is more reliable than waiting for output."""
    latest = time.monotonic() + PATIENCE
    while not begun.exists():
        assert time.monotonic() < latest
        time.sleep(0.05)


def test_evaluation_in_a_notebook_can_be_interrupted(
    kernel: tuple[Any, Any], tmp_path: pathlib.Path
) -> None:
    manager, client = kernel
    assert reply(client, client.execute(SETUP))["status"] == "ok"
    # Interrupt twice: after the first interruption, the kernel must still be able to evaluate.
    for time_of_two in ("first", "second"):
        begun = tmp_path / time_of_two
        # By default, an error in this cell would also abort any cell queued after it.
        cell = client.execute(LONG.format(str(begun)), stop_on_error=False)
        wait_for(begun)
        time.sleep(1)  # wait until ranking has started
        interrupted = time.monotonic()
        manager.interrupt_kernel()
        content = reply(client, cell)
        waited = time.monotonic() - interrupted
        assert (content["status"], content.get("ename")) == ("error", "KeyboardInterrupt")
        assert waited < LATEST
    after = f"evaluated(100, 50, {str(tmp_path / 'after')!r}).mean()['mean_rank'] > 0"
    cell = client.execute(f"found = bool({after})", user_expressions={"found": "found"})
    content = reply(client, cell)
    assert content["status"] == "ok"
    assert content["user_expressions"]["found"]["data"]["text/plain"] == "True"
