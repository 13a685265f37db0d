"""The installation check passes here, and detects a faulty kernel."""

from __future__ import annotations

import gzip
from typing import Any

import kernel_problems
import pytest

import recometer as rm
from recometer import _kernel
from recometer.checking import installation
from recometer.checking.installation import check_installation


def test_this_installation_passes_its_check() -> None:
    report = check_installation()
    assert report.works
    lines = {line.what: line.found for line in report.lines}
    assert lines["recometer"] == rm.__version__
    assert lines["a known result"].startswith("rr 0.75, ndcg@2 0.8154648767857")
    kernels = [name for name in lines if name.startswith("kernel, ")]
    assert kernels == [f"kernel, {name}" for name in _kernel.instruction_sets()]
    assert all("numbers equal NumPy's" in lines[name] for name in kernels)
    assert str(report).endswith("All is well.")
    assert report.to_dict()["works"] is True


def test_stored_results_match_the_numpy_version() -> None:
    stored = gzip.decompress(installation.PROBLEMS.read_bytes())
    is_equal = stored == kernel_problems.content()
    assert is_equal, "python tests/helpers/kernel_problems.py writes the file again"


def test_kernel_with_wrong_counts_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    right = _kernel.rank_scores

    def wrong(**options: Any) -> int:
        result = right(**options)
        options["above"][0] += options["instruction_set"] == "plain"
        return result

    monkeypatch.setattr(_kernel, "rank_scores", wrong)
    report = check_installation()
    assert not report.works
    assert "8 of" in next(line.found for line in report.lines if line.what == "kernel, plain")
    assert str(report).endswith("Wrong: kernel, plain. Please report this.")
    assert "WRONG" in str(report)


def test_wrong_result_of_an_evaluation_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(installation.EXPECTED, "rr", 0.5)
    assert "Wrong: a known result. Please report this." in str(check_installation())


def test_any_exception_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**_: Any) -> int:
        raise RuntimeError("illegal instruction")

    monkeypatch.setattr(_kernel, "score_items", fails)
    assert "raised RuntimeError: illegal instruction" in str(check_installation())


def test_unsupported_instruction_set_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOMETER_INSTRUCTION_SET", "mmx")
    report = check_installation()
    assert not report.works
    words = " ".join(str(report).replace("WRONG", "").split())
    assert "'mmx' is not an instruction set that this processor supports" in words
