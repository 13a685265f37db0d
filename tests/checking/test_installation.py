"""The check of the installation passes here, and detects a faulty kernel."""

from __future__ import annotations

import gzip
from typing import Any

import kernel_problems
import pytest

from recometer import _kernel
from recometer.checking import installation
from recometer.checking.installation import check_installation
from recometer.version import __version__


def test_this_installation_works() -> None:
    found = check_installation()
    assert found.works
    lines = {line.what: line.found for line in found.lines}
    assert lines["recometer"] == __version__
    assert lines["a known result"].startswith("rr 0.75, ndcg@2 0.8154648767857")
    kernels = [what for what in lines if what.startswith("kernel, ")]
    assert kernels == [f"kernel, {name}" for name in _kernel.instruction_sets()]
    assert all("numbers are those of NumPy" in lines[what] for what in kernels)
    assert str(found).endswith("All is well.")
    assert found.to_dict()["works"] is True


def test_stored_results_match_the_twin() -> None:
    stored = gzip.decompress(installation.PROBLEMS.read_bytes())
    found = stored == kernel_problems.content()
    assert found, "python tests/helpers/kernel_problems.py writes the file again"


def test_a_kernel_that_counts_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    right = _kernel.rank_scores

    def wrong(**options: Any) -> int:
        found = right(**options)
        options["above"][0] += options["instruction_set"] == "plain"
        return found

    monkeypatch.setattr(_kernel, "rank_scores", wrong)
    found = check_installation()
    assert not found.works
    assert "8 of" in next(line.found for line in found.lines if line.what == "kernel, plain")
    assert str(found).endswith("Wrong: kernel, plain. Please report this.")
    assert "WRONG" in str(found)


def test_a_result_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(installation.EXPECTED, "rr", 0.5)
    assert "Wrong: a known result. Please report this." in str(check_installation())


def test_any_exception_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: Any) -> int:
        raise RuntimeError("illegal instruction")

    monkeypatch.setattr(_kernel, "score_items", fails)
    assert "raised RuntimeError: illegal instruction" in str(check_installation())


def test_unsupported_instruction_set_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOMETER_INSTRUCTION_SET", "mmx")
    found = check_installation()
    assert not found.works
    assert "'mmx' is not one that this processor has" in str(found).replace("\n", " ")
