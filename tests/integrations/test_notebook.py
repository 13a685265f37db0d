"""Ctrl-C in a notebook: the kernel interrupts an evaluation, and goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]

SETUP = """
import numpy as np, scipy.sparse, recometer as rm

def evaluated(n_users, n_items):
    generator = np.random.default_rng(0)
    users, items = (generator.standard_normal((n, 64)) for n in (n_users, n_items))
    test = scipy.sparse.csr_array(
        (np.ones(n_users), (np.arange(n_users), generator.integers(0, n_items, n_users)))
    )
    source = rm.Factors(users, items)
    print("begins", flush=True)
    return rm.evaluate(source, test, metrics="mean_rank")
"""
# Minutes of work, which the bound below is a small part of.
LONG = "evaluated(200_000, 100_000)"
LATEST = 5.0  # seconds of the clock, however busy the machine is
PATIENCE = 120.0


@pytest.fixture
def kernel() -> Iterator[tuple[Any, Any]]:
    """Start a kernel; return what manages it, and its client."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(startup_timeout=PATIENCE)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def reply(client: Any, cell: str) -> dict[str, Any]:
    """Wait for the reply to a cell that was sent."""
    while True:
        message = client.get_shell_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") == cell:
            found: dict[str, Any] = message["content"]
            return found


def printed(client: Any, cell: str, text: str) -> None:
    """Wait until a cell prints a text."""
    found = ""
    while text not in found:
        message = client.get_iopub_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") == cell and message["msg_type"] == "stream":
            found += message["content"]["text"]


def test_an_evaluation_in_a_kernel_is_interrupted(kernel: tuple[Any, Any]) -> None:
    manager, client = kernel
    assert reply(client, client.execute(SETUP))["status"] == "ok"
    # The second time shows that nothing is left of the first one.
    for _ in range(2):
        cell = client.execute(LONG)
        printed(client, cell, "begins")
        time.sleep(1)  # it reads the factors, and then ranks
        asked = time.monotonic()
        manager.interrupt_kernel()
        content = reply(client, cell)
        waited = time.monotonic() - asked
        assert (content["status"], content.get("ename")) == ("error", "KeyboardInterrupt")
        assert waited < LATEST
    cell = client.execute("print('mean:', evaluated(100, 50).mean()['mean_rank'] > 0)")
    printed(client, cell, "mean: True")
    assert reply(client, cell)["status"] == "ok"
