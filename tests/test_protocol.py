"""Tests that each rule's checks and descriptions follow from its declaration."""

from __future__ import annotations

import dataclasses
import inspect
import math
import pickle
import typing
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest

import recometer as rm
from recometer.protocol import STEPS, Number, Rule, rule, ruled

LISTS = {"ann": {"song": 0.9, "film": 0.8}, "bob": {"film": 0.9, "book": 0.9, "game": 0.7}}
TEST = {"ann": {"film": 4.0}, "bob": {"game": 2.0, "song": 5.0}, "eve": {"song": 3.0}}


@ruled
@dataclasses.dataclass(frozen=True)
class WiderProtocol(rm.Protocol):
    """A protocol with an additional rule, which no other code mentions."""

    reading: Literal["down", "up"] = rule(
        "down",
        {"down": "Lists are read downwards.", "up": "Lists are read upwards."},
        step="ranking",
    )


def other_values(name: str) -> Iterator[Any]:
    """Yield a rule's valid values other than its default."""
    default = getattr(rm.Protocol(), name)
    for value in rm.Protocol.declared[name].says:
        if isinstance(value, Number):
            value = next(number for number in (0.5, 3) if value.takes(number))
        if value != default:
            yield value


CHANGES = [
    (name, value)
    for name, declared in rm.Protocol.declared.items()
    if declared.step
    for value in other_values(name)
]


@pytest.mark.parametrize(("name", "value"), CHANGES, ids=str)
def test_explain_has_a_step_for_every_value_of_a_rule(name: str, value: Any) -> None:
    metric = {"pooled": "recall@2", "parts": "f@2"}.get(value, "ndcg@2")
    result = rm.evaluate(rm.Lists(LISTS), TEST, metrics=metric)
    protocol = rm.Protocol(**{name: value})
    explanation = rm.explain(result, metric, protocol=protocol)
    assert [step.name for step in explanation.steps] == [rm.Protocol.declared[name].step]
    assert protocol.sentences() == [explanation.steps[0].change]
    assert explanation.right.rules == tuple(protocol.sentences())


def test_rule_without_a_step_or_a_reason_is_refused() -> None:
    """A rule must name a step of `explain`, or give a reason why it has none."""
    sentences = {False: "Lists are read once.", True: "Lists are read twice."}
    with pytest.raises(
        TypeError, match="must state a step of explain or, in no_step, why it has none"
    ):
        rule(False, sentences)
    with pytest.raises(TypeError, match="must state a step of explain"):
        rule(False, sentences, step="ranking", no_step="It changes nothing.")
    with pytest.raises(TypeError, match=r"declared with rule\(\.\.\.\), unlike twice"):

        @ruled
        @dataclasses.dataclass(frozen=True)
        class ProtocolWithoutStep(rm.Protocol):
            twice: bool = False

    for name, declared in rm.Protocol.declared.items():
        assert declared.step in STEPS or declared.no_step.endswith("."), name


def test_declaration_is_enough_to_add_a_rule() -> None:
    up = WiderProtocol("upwards", version="1", reading="up")
    assert up.sentences() == ["Lists are read upwards."]
    assert up.describe() == "upwards 1 reading='up'"
    with pytest.raises(
        rm.InputError,
        match=r"reading='in': the rule has no such value\. Hint: use one of 'down', 'up'",
    ):
        WiderProtocol(reading="in")
    # The rule appears in the protocol of a result and in explanations.
    result = rm.evaluate(
        rm.Lists(LISTS), TEST, metrics="rr", protocol=WiderProtocol(), reading="up"
    )
    assert result.protocol == WiderProtocol(reading="up")
    explanation = rm.explain(result, "rr", protocol=WiderProtocol())
    assert [(step.name, step.change) for step in explanation.steps] == [
        ("ranking", "Lists are read downwards.")
    ]
    # The rule appears in the description of a convention.
    convention = rm.Convention("upwards", "Upwards", "1", up, ())
    assert "\n  Lists are read upwards." in convention.describe()
    # The rule appears in the docstring.
    assert (
        "reading : default 'down'\n    * 'down': Lists are read downwards." in WiderProtocol.__doc__
    )


def test_type_hints_match_the_declared_values() -> None:
    for name, hint in typing.get_type_hints(rm.Protocol).items():
        if name == "declared" or not rm.Protocol.declared[name].says:
            continue
        kinds = typing.get_args(hint) if typing.get_origin(hint) is not Literal else (hint,)
        values_of_type = [value for kind in kinds for value in typing.get_args(kind)]
        numbers = {int, float} & {hint, *kinds}
        sentences = rm.Protocol.declared[name].says
        assert values_of_type == [value for value in sentences if isinstance(value, str)], name
        assert bool(numbers) == any(isinstance(value, Number) for value in sentences), name
        assert (type(None) in kinds) == (None in sentences), name
        assert (hint is bool) == (set(sentences) == {False, True}), name


def test_every_value_has_a_different_sentence() -> None:
    sentences = [
        sentence
        for declared in rm.Protocol.declared.values()
        for sentence in declared.says.values()
    ]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence.endswith(".") and sentence[0].isupper() for sentence in sentences)
    (sentence,) = rm.Protocol(no_relevant=0.5).sentences()
    assert sentence == "The value of a user without a relevant item is 0.5."
    assert rm.Protocol().sentences() == []


@pytest.mark.parametrize("make", [rm.Protocol, rm.Protocol().replace])
def test_unknown_rule_is_refused(make: Callable[..., rm.Protocol]) -> None:
    with pytest.raises(rm.UnknownNameError, match=r"no rule 'tie'\. Hint: Did you mean 'ties'"):
        make(tie="item")


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"ties": ["item"]},
            r"ties=\['item'\]: the rule has no such value\. Hint: use one of 'expec",
        ),
        ({"min_positives": -1}, "min_positives=-1 must be a whole number, 0 or more"),
        ({"min_candidates": False}, "min_candidates=False must be a whole number, 0 or more.$"),
        ({"min_candidates": 2.0}, "min_candidates=2.0 must be a whole number"),
        ({"decimals": 1.5}, "decimals=1.5 must be a whole number from 0 to 15 or None"),
        (
            {"cold_start": 1},
            "cold_start=1: the rule has no such value. Hint: use one of True, False",
        ),
        ({"confidence": 1}, "confidence=1 must be a number between 0 and 1"),
        (
            {"relevant_from": math.inf},
            "relevant_from=inf must be a number or None or -inf",
        ),
        ({"no_relevant": "zero"}, "no_relevant='zero' must be a number or 'undefined' or 'comp"),
        ({"undefined": "zero"}, "undefined='zero' must be a number or 'nan'"),
    ],
)
def test_invalid_values_of_rules_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(rm.InputError, match=message):
        rm.Protocol(**rules)


def test_undefined_accepts_nan_as_a_float() -> None:
    assert rm.Protocol(undefined=math.nan) == rm.Protocol()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("relevant_from", "-inf", -math.inf),
        ("relevant_from", "none", None),
        ("relevant_from", "3", 3),
        ("undefined", "nan", "nan"),
        ("undefined", "0.5", 0.5),
        ("cold_start", "FALSE", False),
        ("ties", "luck", "luck"),
        ("name", "5", "5"),
    ],
)
def test_text_is_parsed_into_values_of_rules(name: str, text: str, value: Any) -> None:
    read_value = rm.Protocol.declared[name].read(text)
    assert (type(read_value), read_value) == (type(value), value)


def test_protocol_prints_its_rules_and_can_be_copied() -> None:
    assert list(inspect.signature(rm.Protocol).parameters) == list(rm.Protocol.declared)
    assert all(isinstance(declared, Rule) for declared in rm.Protocol.declared.values())
    protocol = rm.Protocol("mine", "item", users="known")
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert (protocol.name, protocol.ties) == ("mine", "item")
