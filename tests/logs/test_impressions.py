"""Tests that estimates of policies' values agree with other libraries and closed forms."""

from __future__ import annotations

import functools
import math
import operator
import pathlib
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

import recometer as rm
from recometer.logs import PolicyValues
from recometer.rendering import FORMATS, render

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PUBLISHED = tomllib.loads(
    pathlib.Path(__file__).with_name("other_libraries.toml").read_text("utf-8")
)
COLUMNS = {"user": "user", "item": "item", "reward": "click", "propensity": "shown"}
SLATES = {**COLUMNS, "position": "position", "slate": "slate"}
LOGGING = np.array([0.4, 0.3, 0.2, 0.1])
ALL = ("ips", "clipped_ips", "snips", "direct", "dr")


def small_log() -> tuple[pl.DataFrame, np.ndarray, np.ndarray]:
    """Return the log that Open Bandit Pipeline evaluated, a policy, and predicted rewards.

    The policy is an array of probabilities. This array and the predictions have one row per
    impression and one column per item.
    """
    row = np.arange(60)
    action = (7 * row + row // 5) % 4
    frame = pl.DataFrame(
        {
            "user": row // 6,
            "item": action,
            "click": ((5 * row + row // 3) % 7 < 3).astype(int),
            "shown": LOGGING[action],
            "slate": row // 3,
            "position": row % 3,
        }
    )
    probabilities = np.stack([np.roll([0.1, 0.2, 0.3, 0.4], -shift) for shift in row])
    predictions = np.outer(1 + row % 3, [1, 2, 3, 4]) / 16
    return frame, probabilities, predictions


def candidates(probabilities: np.ndarray, predictions: np.ndarray) -> pl.DataFrame:
    n, n_items = probabilities.shape
    return pl.DataFrame(
        {
            "impression": np.repeat(np.arange(n), n_items),
            "item": np.tile(np.arange(n_items), n),
            "target_probability": probabilities.ravel(),
            "predicted_reward": predictions.ravel(),
        }
    )


def draw_log(n_users: int = 300, per_user: int = 3, seed: int = 0) -> pl.DataFrame:
    """Draw a log of four items, with one policy better than the logging policy and one worse.

    Items with higher numbers earn more. The policy "good" prefers them, and "bad" prefers item 0.
    """
    rng = np.random.default_rng(seed)
    item = rng.choice(4, n_users * per_user, p=LOGGING)
    return pl.DataFrame(
        {
            "user": np.repeat(np.arange(n_users), per_user),
            "item": item,
            "click": (rng.random(len(item)) < 0.1 * (1 + item)).astype(int),
            "shown": LOGGING[item],
            "good": LOGGING[::-1][item],
            "bad": np.array([0.6, 0.2, 0.1, 0.1])[item],
        }
    )


@pytest.mark.parametrize("library", ["open_bandit_pipeline", "scikit_rec"])
def test_values_equal_those_of_other_libraries(library: str) -> None:
    frame, probabilities, predictions = small_log()
    row, item = np.arange(60), frame["item"].to_numpy()
    log = rm.Impressions(frame, **COLUMNS)
    columns = {
        "target_probability": probabilities[row, item],
        "predicted_reward": predictions[row, item],
        "policy_value": (probabilities * predictions).sum(axis=1),
    }
    for policy in (columns, pl.DataFrame(columns), candidates(probabilities, predictions)):
        values = log.evaluate({"new": policy}, estimators=ALL, clip=2, min_effective=1)
        for name, value in PUBLISHED[library].items():
            assert values["new", name].value == pytest.approx(value, abs=1e-12), name


def test_values_of_slates_equal_those_of_open_bandit_pipeline() -> None:
    frame, probabilities, _ = small_log()
    target = probabilities[np.arange(60), frame["item"].to_numpy()]
    marginal = rm.Impressions(frame, **SLATES)
    upward = frame.with_columns(shown=pl.col("shown").cum_prod().over("slate"))
    cumulative = target.reshape(-1, 3).cumprod(axis=1).ravel()
    order = np.random.default_rng(1).permutation(60)  # the rows of a log may be in any order
    for log, policy, kind in (
        (marginal, target, "independent"),
        (rm.Impressions(upward, **SLATES), cumulative, "cascade"),
        (rm.Impressions(upward[order], **SLATES), cumulative[order], "cascade"),
    ):
        values = log.evaluate({"new": policy}, slates=kind, min_effective=1)  # type: ignore[arg-type]
        assert values.to_dict()["unit"] == "slate"
        for name, value in PUBLISHED[kind].items():
            assert values["new", name].value == pytest.approx(value, abs=1e-12), (kind, name)


def test_intervals_equal_those_of_a_ratio_of_sums_over_users() -> None:
    frame = draw_log()
    values = rm.Impressions(frame, **COLUMNS).evaluate({"good": "good"}, estimators="snips ips")
    sums = (
        frame.with_columns(w=pl.col("good") / pl.col("shown"))
        .group_by("user")
        .agg((pl.col("w") * pl.col("click")).sum().alias("reward"), pl.col("w").sum(), n=pl.len())
    )
    x, w, n = (sums[name].to_numpy().astype(float) for name in ("reward", "w", "n"))
    for name, y in (("snips", w), ("ips", n)):
        value = x.sum() / y.sum()
        users = len(x)
        error = math.sqrt(users / (users - 1) * ((x - value * y) ** 2).sum()) / y.sum()
        arm = stdtrit(users - 1, 0.975) * error
        estimate = values["good", name]
        assert estimate.value == pytest.approx(value, rel=1e-12)
        assert tuple(estimate.interval) == pytest.approx((value - arm, value + arm), rel=1e-9)
        assert values["logged", name].value == pytest.approx(frame["click"].mean())


def test_empirical_bernstein_interval_equals_the_published_formula() -> None:
    frame = draw_log(per_user=1)
    log = rm.Impressions(frame, **COLUMNS)
    values = log.evaluate({"good": "good"}, estimators="clipped_ips", clip=2, reward_range=(0, 1))
    z = np.minimum(frame["good"] / frame["shown"], 2).to_numpy() * frame["click"].to_numpy()
    n, scale = len(z), math.log(2 / 0.025)
    arm = math.sqrt(2 * z.var(ddof=1) * scale / n) + 7 * 2 * scale / (3 * (n - 1))
    interval = values["good"].interval
    assert (interval.low, interval.high) == pytest.approx((max(0, z.mean() - arm), z.mean() + arm))
    assert interval.method == "bernstein"


def test_logging_policy_has_weights_of_one_and_the_mean_reward() -> None:
    frame = draw_log()
    values = rm.Impressions(frame, **COLUMNS).evaluate({"same": "shown"})
    weights = values.weights["same"]
    assert weights.effective_users == pytest.approx(300)
    assert weights.largest == (1.0, 1.0, 1.0)
    assert (weights.mean, 1.0 in weights.interval) == (1.0, True)
    assert "The mean weight" not in str(values)
    for estimator in values.estimators:
        assert values["same", estimator].value == pytest.approx(frame["click"].mean())
    (row, *_) = values.compare(baseline="logged").rows
    assert (row.difference, row.verdict) == (0.0, "no difference shown")


def test_weights_are_printed_first_and_wrong_propensities_are_reported() -> None:
    frame = draw_log().with_columns(halved=pl.col("shown") / 2)
    values = rm.Impressions(frame, **COLUMNS | {"propensity": "halved"}).evaluate({"good": "good"})
    assert 1.0 not in values.weights["good"].interval
    text = str(values)
    assert text.index("effective users") < text.index("snips")
    assert "The mean weight of good should be 1, but its interval is" in text
    assert values.to_dict()["notes"][0].startswith("The mean weight of good")


def test_unsupported_share_needs_all_logging_probabilities() -> None:
    frame = draw_log()
    table = candidates(np.tile(LOGGING[::-1], (900, 1)), np.zeros((900, 4)))
    log = rm.Impressions(frame, **COLUMNS)
    assert math.isnan(log.evaluate({"good": table}).weights["good"].unsupported)
    with_all_probabilities = table.with_columns(logging_probability=np.tile(LOGGING, 900))
    assert log.evaluate({"good": with_all_probabilities}).weights["good"].unsupported == 0
    # This log never shows item 3, but the policy shows it with a probability of 0.4.
    logging = np.array([0.4, 0.3, 0.3, 0.0])
    shown_items = frame.filter(pl.col("item") < 3).with_columns(
        shown=logging[frame["item"].filter(frame["item"] < 3)]
    )
    n = len(shown_items)
    table = candidates(np.tile(LOGGING[::-1], (n, 1)), np.zeros((n, 4)))
    values = rm.Impressions(shown_items, **COLUMNS).evaluate(
        {"good": table.with_columns(logging_probability=np.tile(logging, n))}
    )
    assert values.weights["good"].unsupported == pytest.approx(0.4)
    assert "40.0%" in str(values)


def test_gates_agree_with_the_comparison_of_policies() -> None:
    log = rm.Impressions(draw_log(), **COLUMNS)
    values = log.evaluate({"good": "good", "bad": "bad"}, estimators="snips ips")
    pairs = values.compare()
    assert [(row.model, row.other) for row in pairs.rows[:3]] == [
        ("good", "logged"), ("bad", "logged"), ("bad", "good"),
    ]  # fmt: skip
    for row in pairs.rows:
        difference = values[row.model, row.metric].value - values[row.other, row.metric].value
        assert row.difference == pytest.approx(difference)
        assert (0.0 in row.interval) == (row.p_value > 0.05)
        assert math.isnan(row.adjusted_p) == (row.metric != "snips")
    assert [row.verdict for row in pairs.rows[:3]] == ["better", "worse", "worse"]
    versus = values.compare(baseline="logged")
    gates = versus.gate(["snips >= 0%", "ips >= 0"])
    assert [row.verdict for row in gates.rows] == ["passed", "failed", "passed", "failed"]
    assert [row.verdict for row in versus.gate("snips >= -90%").rows] == ["passed"] * 2
    costs = log.evaluate({"good": "good", "bad": "bad"}, estimators="snips", maximise=False)
    versus = costs.compare(baseline="logged")
    assert [row.verdict for row in versus.rows] == ["worse", "better"]
    assert [row.verdict for row in versus.gate("snips <= 0%").rows] == ["failed", "passed"]
    with pytest.raises(rm.InputError, match="Lower is better for snips"):
        versus.gate("snips >= 0%")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_contains_the_values(form: str) -> None:
    values = rm.Impressions(draw_log(), **COLUMNS).evaluate({"good": "good"}, estimators="snips")
    for printed_object in (values, values.compare(baseline="logged")):
        text = render(printed_object, form)
        assert "good" in text
        assert "snips" in text


@pytest.mark.parametrize("kind", ["pandas", "arrow", "dict", "parquet", "csv"])
def test_any_table_can_be_a_log(kind: str, tmp_path: pathlib.Path) -> None:
    frame = draw_log().with_columns(user=pl.format("u{}", "user"))
    table: Any = {
        "pandas": frame.to_pandas,
        "arrow": frame.to_arrow,
        "dict": frame.to_dict,
        "parquet": lambda: tmp_path / "log.parquet",
        "csv": lambda: tmp_path / "log.csv",
    }[kind]()
    frame.write_parquet(tmp_path / "log.parquet")
    frame.write_csv(tmp_path / "log.csv")
    expected = rm.Impressions(frame, **COLUMNS).evaluate({"good": "good"})
    values = rm.Impressions(table, **COLUMNS).evaluate({"good": "good"})
    assert values.to_dict() == expected.to_dict()


def test_policies_may_be_columns_or_lists() -> None:
    frame = pd.DataFrame(draw_log().to_dict(as_series=False))
    log = rm.Impressions(frame, **COLUMNS)
    expected = log.evaluate({"good": "good"})["good"].value
    for policy in (frame["good"], frame["good"].tolist(), {"target_probability": "good"}):
        assert log.evaluate({"good": policy})["good"].value == expected


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_policy_may_be_a_file(end: str, tmp_path: pathlib.Path) -> None:
    path, frame = tmp_path / f"good.{end}", draw_log()
    policy = frame.select(pl.col("good").alias("target_probability"))
    getattr(policy, f"write_{end}")(path)
    log = rm.Impressions(frame, **COLUMNS)
    expected = log.evaluate({"good": "good"})["good"].value
    assert log.evaluate({"good": path})["good"].value == expected


@st.composite
def logs(draw: st.DrawFn) -> pl.DataFrame:
    n = draw(st.integers(4, 40))
    lists_of_n = functools.partial(st.lists, min_size=n, max_size=n)
    return pl.DataFrame(
        {
            "user": [0, 1, *draw(lists_of_n(st.integers(0, 5)))[2:]],
            "item": draw(lists_of_n(st.integers(0, 3))),
            "click": draw(lists_of_n(st.floats(0, 4, width=16))),
            "shown": draw(lists_of_n(st.floats(0.125, 1, width=16))),
            "new": draw(lists_of_n(st.floats(0.0625, 1, width=16))),
            "other": draw(lists_of_n(st.floats(0, 1, width=16))),
        }
    )


def assert_close(left: PolicyValues, right: PolicyValues) -> None:
    for key, estimate in left.estimates.items():
        assert right.estimates[key].value == pytest.approx(
            estimate.value, rel=1e-9, abs=1e-12, nan_ok=True
        )
        ends = [
            tuple(values_of_policies.estimates[key].interval)
            for values_of_policies in (left, right)
        ]
        assert ends[1] == pytest.approx(ends[0], rel=1e-6, abs=1e-9, nan_ok=True)
    for name, weights in left.weights.items():
        assert right.weights[name].largest == weights.largest
        for statistic in ("effective_users", "mean"):
            assert getattr(right.weights[name], statistic) == pytest.approx(
                getattr(weights, statistic)
            )


@given(logs(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_sums_of_blocks_equal_those_of_the_whole_log(
    frame: pl.DataFrame, n_blocks: int, random: Any
) -> None:
    policies = {"new": "new", "other": "other"}
    expected = rm.Impressions(frame, **COLUMNS).sums(policies, clip=2)
    block_of_row = [random.randrange(n_blocks) for _ in range(len(frame))]
    blocks = [frame.filter(pl.Series(block_of_row) == block) for block in range(n_blocks)]
    random.shuffle(blocks)
    parts = [
        rm.Impressions(block, **COLUMNS).sums(policies, clip=2) for block in blocks if len(block)
    ]
    merged = functools.reduce(operator.add, parts)
    assert_close(expected.values(min_effective=0), merged.values(min_effective=0))


@given(logs())
def test_order_of_rows_changes_nothing(frame: pl.DataFrame) -> None:
    ordered, shuffled = (
        rm.Impressions(rows, **COLUMNS).evaluate({"new": "new"}, clip=3, min_effective=0)
        for rows in (frame, frame.reverse())
    )
    assert_close(ordered, shuffled)


@given(logs(), st.sampled_from([0.5, 2.0, 8.0]))
def test_values_scale_with_rewards(frame: pl.DataFrame, factor: float) -> None:
    scaled = frame.with_columns(click=factor * pl.col("click"))
    original, scaled_values = (
        rm.Impressions(rows, **COLUMNS).evaluate({"new": "new"}, min_effective=0)
        for rows in (frame, scaled)
    )
    for key, estimate in original.estimates.items():
        assert scaled_values.estimates[key].value == pytest.approx(factor * estimate.value)


@given(logs())
def test_snips_lies_within_the_rewards_and_clipping_lowers_ips(frame: pl.DataFrame) -> None:
    values = rm.Impressions(frame, **COLUMNS).evaluate({"new": "new"}, clip=1.5, min_effective=0)
    rewards = frame["click"].to_numpy()
    assert rewards.min() - 1e-9 <= values["new", "snips"].value <= rewards.max() + 1e-9
    assert values["new", "clipped_ips"].value <= values["new", "ips"].value + 1e-12


@given(logs())
def test_dr_with_exact_predictions_equals_the_direct_method(frame: pl.DataFrame) -> None:
    policy = {
        "target_probability": frame["new"],
        "predicted_reward": frame["click"],
        "policy_value": frame["other"],
    }
    values = rm.Impressions(frame, **COLUMNS).evaluate({"new": policy}, min_effective=0)
    assert values["new", "dr"].value == pytest.approx(values["new", "direct"].value)


def test_sums_of_blocks_of_slates_equal_those_of_the_whole_log() -> None:
    frame, probabilities, _ = small_log()
    frame = frame.with_columns(new=probabilities[np.arange(60), frame["item"].to_numpy()])
    # In the last block, one position of a slate is missing.
    blocks = [frame[:30], frame[30:57], frame[57:59]]
    parts = [
        rm.Impressions(block, **SLATES).sums({"new": "new"}, slates="independent")
        for block in blocks
    ]
    expected = rm.Impressions(frame[:59], **SLATES).evaluate(
        {"new": "new"}, slates="independent", min_effective=1
    )
    assert_close(expected, functools.reduce(operator.add, parts).values(min_effective=1))


def test_intervals_cover_the_true_value() -> None:
    """The test draws 200 logs with three impressions per user; the policy's true value is 0.3."""
    inside = dict.fromkeys(("snips", "ips"), 0)
    for seed in range(200):
        log = rm.Impressions(draw_log(seed=seed), **COLUMNS)
        values = log.evaluate({"good": "good"})
        for name in inside:
            inside[name] += 0.3 in values["good", name].interval
    assert all(180 <= count <= 199 for count in inside.values()), inside
