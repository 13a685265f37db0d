"""Tests that a release reads files saved by earlier versions and has valid metadata."""

import importlib.util
import math
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import recometer as rm
from recometer.cli._messages import MEANINGS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_SPEC = importlib.util.spec_from_file_location(
    "recometer_metadata", ROOT / "release" / "recometer_metadata.py"
)
metadata = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(metadata)
WHEELS = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")


def test_evaluation_saved_by_0_1_is_read():
    result = rm.load(GOLDEN / "evaluation.parquet")
    assert result.mean() == pytest.approx(
        {
            "ndcg@5": 0.2112204815485546,
            "recall@5": 0.29,
            "roc_auc": 0.5881691919191919,
            "coverage@5": 0.8,
        }
    )
    assert result["ndcg@5"].tolist() == pytest.approx(
        [
            0.425817999363283,
            0.21398626473452756,
            0.23463936301137822,
            0.18165878063358418,
            0.0,
            math.nan,
        ],
        nan_ok=True,
    )


def test_split_saved_by_0_1_is_read():
    split = rm.Split.load(GOLDEN / "split")
    rows = {"train": split.train, "test": split.test}
    times = {name: sorted(part["time"].to_list()) for name, part in rows.items()}
    assert times == {"train": list(range(35)), "test": list(range(35, 40))}
    assert isinstance(split.train, pl.DataFrame)


def test_links_of_the_description_are_absolute():
    text = "[a](docs/a.md#b) [![c](docs/c.png)](docs/c.md) [d](https://d.org/) [e](#e)"
    repository = "https://code.org/me/it"
    assert metadata.absolute(text, repository, "1.2.3") == (
        f"[a]({repository}/blob/v1.2.3/docs/a.md#b) "
        f"[![c]({repository}/raw/v1.2.3/docs/c.png)]({repository}/blob/v1.2.3/docs/c.md) "
        "[d](https://d.org/) [e](#e)"
    )
    readme = metadata.absolute(metadata.text_of("README.md"), repository, "1.2.3")
    assert re.findall(r"\]\((?!https?:|#)", readme) == []


def test_metadata_contains_links_only_if_the_address_is_known(monkeypatch, capsys):
    assert metadata.address() == PROJECT["tool"]["recometer"]["address"]
    monkeypatch.setattr(metadata, "address", lambda: "https://github.com/me/recometer")
    assert metadata.dynamic_metadata("urls")["Repository"] == "https://github.com/me/recometer"
    assert "](docs/" not in metadata.dynamic_metadata("readme")["text"]
    assert "uses: me/recometer@v" in metadata.followers()["docs/compare-workflow.yml"]
    monkeypatch.setattr(metadata, "address", lambda: "")
    assert metadata.dynamic_metadata("urls") == {}
    assert metadata.dynamic_metadata("readme")["text"] == metadata.text_of("README.md")
    assert "lacks the address" in capsys.readouterr().err


def test_files_with_the_address_or_the_version_are_up_to_date():
    assert metadata.version() == rm.__version__
    assert metadata.problems(None) == []
    assert any("tag v99" in problem for problem in metadata.problems("v99"))


def test_release_waits_for_all_jobs_except_optional_ones():
    jobs = dict(
        re.findall(r"^  (\S+):\n((?:    .*\n|\n)+)", WHEELS.partition("\njobs:\n")[2], re.MULTILINE)
    )
    optional = {name for name, job in jobs.items() if "continue-on-error: true" in job}
    needs = re.search(r"needs: \[(.*)\]", jobs["publish"])[1].split(", ")
    assert optional == {"windows-arm"}
    assert set(needs) == jobs.keys() - optional - {"publish"}


def test_actions_are_pinned_by_commit():
    for workflow in (ROOT / ".github" / "workflows").iterdir():
        for action in re.findall(r"uses: (\S+)", workflow.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[^@]+@[0-9a-f]{40}", action), action


def test_page_on_stability_lists_all_exit_codes():
    page = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == [f"{code:d}" for code in MEANINGS]
