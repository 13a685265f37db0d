"""Conventions, which map the metric names of other libraries to recometer's metrics.

They are defined in conventions.toml. A convention needs no code of its own: each of its names is
translated into a `Metric` with parameters, which may override some rules of the `Protocol`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from recometer.errors import InputError, UnknownNameError, did_you_mean, rule_text
from recometer.metrics.cutoffs import cutoff_without_number
from recometer.metrics.names import (
    Metrics,
    names_in,
    parse,
    parse_cutoffs,
    read_name,
    split,
    without_group,
)
from recometer.metrics.registry import METRICS, Metric, meaning, rules_of
from recometer.protocol import Protocol
from recometer.remembered import cached_property

TABLE = Path(__file__).with_name("conventions.toml")
COMMON = "every_convention"
CUTOFF, NUMBER = "{k}", "{x}"
# Matches the cut-off in a name, which comes before or after the brackets, or before the "-" at the
# end of an XGBoost name.
CUTOFF_IN_NAME = re.compile(r"@([\d.,]+)(?=\(|-?$)")
OPTIONAL = re.compile(r"\[(.*?)\]")
# These rules apply to a whole call to `evaluate`, so a single name cannot change them: some of them
# affect the rankings, which are computed only once for all metrics, and the others do not affect
# any value.
OF_THE_CALL = {"name", "version", "defects", "shifted_ids", "interval", "confidence"}
OF_THE_CALL |= {"relevant_from", "nan_scores", "infinite_scores", "single_precision"}
OF_THE_CALL |= {"unranked", "unknown_items", "seen"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A library's name for a metric, and what it stands for."""

    # The library's name, in which ``{k}`` is the cut-off, ``{x}`` is a number, and the part in
    # square brackets is optional: ``"NDCG[@{k}]"``.
    name: str
    metric: str  # the name in recometer, written the same way: ``"ndcg[@{k}](discount=original)"``
    rules: Mapping[str, Any]  # the rules of the convention that this name changes
    says: str  # a sentence about unexpected behaviour
    # The metric that the library actually computes, if its documentation says otherwise; else
    # empty. `metric` is the documented metric.
    defect: str
    defect_rules: Mapping[str, Any]  # the rules of the convention that the defect changes
    from_source: bool  # whether the entry is based only on the source code

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """A regular expression that matches the name."""
        text = re.escape(_normal(self.name, CUTOFF))
        text = text.replace(re.escape("["), "(?:").replace(re.escape("]"), ")?")
        # trec_eval's option -m accepts ndcg_cut.10 as ndcg_cut_10.
        text = text.replace("_" + re.escape(CUTOFF), "[_.]" + re.escape(CUTOFF))
        text = text.replace(re.escape(CUTOFF), r"(?P<k>\d[\d.,]*)")
        return re.compile(text.replace(re.escape(NUMBER), r"(?P<x>[-+.\deE]+)"))

    @property
    def head(self) -> str:
        """The part of the name before any brackets or cut-off."""
        return re.split(r"[@(\[]", self.name)[0]

    @property
    def metric_name(self) -> str:
        """The name of the metric in recometer, without its cut-off and parameters."""
        return split(_plain(self.metric))[0]

    @property
    def example_number(self) -> str:
        """An example of a number that the name accepts, used to inspect the metric."""
        return "5" if f"0.{NUMBER}" in self.metric else "0.5"

    def ours(self, cutoff: int | None, number: str | None, defects: bool) -> Metric:
        """Return recometer's metric, with the rules that the name changes, but without a label."""
        faulty = defects and bool(self.defect)
        text = OPTIONAL.sub(
            r"\1" if cutoff is not None else "", self.defect if faulty else self.metric
        )
        if cutoff is not None:
            text = text.replace(CUTOFF, str(cutoff))
        (metric,) = parse(text if number is None else text.replace(NUMBER, number))
        changes = {**self.rules, **(self.defect_rules if faulty else {})}
        rules = {rule: cutoff if value == CUTOFF else value for rule, value in changes.items()}
        return dataclasses.replace(metric, rules=tuple(rules.items()))


@dataclasses.dataclass(frozen=True)
class Refused:
    """Numbers that are affected by a library's defect and not reproduced with ``defects=True``."""

    metrics: Sequence[str]  # the names of the affected metrics, without brackets and cut-offs
    users: str  # which users are affected, as a key of `recometer.evaluating.checks.DEFECTS`
    says: str  # what the library does
    hint: str  # another way to get the library's numbers


@dataclasses.dataclass(frozen=True, repr=False)
class Convention:
    """How one version of a library defines its metrics.

    Attributes
    ----------
    name
        The name by which ``evaluate(..., protocol=name)`` selects the convention.
    library, version
        The library and its version.
    protocol
        The rules that apply to all of the library's metrics.
    entries
        The library's metrics, under its own names.
    notes
        Further notes, for instance on what cannot be reproduced.
    float32
        Whether the library computes in single precision, so that its numbers agree with
        recometer's only to six digits.
    defect_rules
        The rules that the library's defects change for all metrics.
    refused
        The numbers that are refused with ``defects=True``, if there are any.
    """

    name: str
    library: str
    version: str
    protocol: Protocol
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    float32: bool = False
    defect_rules: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    refused: Refused | None = None

    @property
    def names(self) -> list[str]:
        """The names of the metrics, with ``@k`` for a cut-off."""
        return [_readable(entry.name) for entry in self.entries]

    def parse(self, metrics: Metrics, protocol: Protocol | None = None) -> list[Metric]:
        """Read metric names, either the library's or recometer's.

        A recometer name gets the parameters and rules of the first entry in the table that stands
        for the same metric. Parameters in brackets override these parameters individually.

        Parameters
        ----------
        metrics
            Metrics in any form that `recometer.metrics.parse` accepts.
        protocol
            The protocol of the convention, in which the user may have replaced individual rules.
            A rule that the user replaced applies to all metrics, even if a metric name changes it
            too. The rule `defects` decides whether defects are reproduced.

        Raises
        ------
        UnknownNameError
            If a name is known neither to the library nor to recometer.
        """
        protocol = self.protocol if protocol is None else protocol
        parsed: dict[Metric, None] = {}
        for request in names_in(metrics):
            if isinstance(request, Metric) and (request.label or request.rules):
                parsed[request] = None
                continue
            for metric in read_name(self._read, str(request), protocol.defects):
                parsed[self._under(metric, protocol)] = None
        return list(parsed) or parse([])

    def _under(self, metric: Metric, protocol: Protocol) -> Metric:
        """Drop those rules of a metric that the user replaced, except a larger `min_candidates`."""
        rules = tuple(
            (rule, value)
            for rule, value in metric.rules
            if not protocol.differs(rule, self.protocol)
            or (rule == "min_candidates" and int(value or 0) > protocol.min_candidates)
        )
        if protocol.defects:
            rules = tuple((dict(rules) | dict(self.defect_rules)).items())
        return metric if rules == metric.rules else dataclasses.replace(metric, rules=rules)

    def differences(self, metric: Metric) -> list[str]:
        """Describe how a metric differs from recometer's metric of the same name.

        Parameters
        ----------
        metric
            A metric that `parse` returned.

        Returns
        -------
        list of str
            The meanings of the parameters, the rules that differ from recometer's, and any
            unexpected behaviour.
        """
        sentences = [f"{text}: {meaning}" for text, meaning in metric.meanings.items()]
        sentences += rules_of(metric, self.protocol).sentences()
        entry, _ = self.entry(str(metric))
        refused = self.refused_for(metric)
        sentences += [entry.says] if entry is not None and entry.says else []
        return sentences + ([refused.says] if refused is not None else [])

    def refused_for(self, metric: Metric) -> Refused | None:
        """Return `refused`, or None if it does not apply to the metric."""
        if self.refused is None:
            return None
        entry, _ = self.entry(str(metric))
        return self.refused if entry is not None and entry.head in self.refused.metrics else None

    def entry(self, name: str) -> tuple[Entry | None, Mapping[str, str | None]]:
        """Find the entry for a library's name, and the cut-off ``k`` and number ``x`` in the name.

        Returns
        -------
        Entry or None
            None if the library has no such name.
        dict of str to str
        """
        normal_name = _normal(without_group(name)[0])
        for entry in self.entries:
            match = entry.pattern.fullmatch(normal_name)
            if match:
                return entry, match.groupdict()
        return None, {}

    def _read(self, text: str, defects: bool) -> list[Metric]:
        entry, parts = self.entry(text)
        if entry is None:
            text = self._with_capitals(text)
            entry, parts = self.entry(text)
        if entry is not None:
            return self._of_entry(entry, parts, text, defects)
        own_name, _, pairs = split(text)
        name = meaning(own_name)
        if name is None:
            if text in self.names:
                raise cutoff_without_number(text)
            raise UnknownNameError(
                f"{self.library} has no metric {text!r}, and neither has recometer. "
                f"{did_you_mean(text, self.names)} You can also use recometer's own names, such as "
                "'ndcg@10'."
            )
        entry_of = {entry.metric_name: entry for entry in reversed(self.entries)}
        metrics = []
        for plain in parse([text]):
            metric = plain
            if name in entry_of:
                entry = entry_of[name]
                default = entry.ours(plain.cutoff or 1, entry.example_number, False)
                parameters = dict(default.parameters) | dict(pairs)
                metric = dataclasses.replace(
                    default, cutoff=plain.cutoff, parameters=tuple(parameters.items())
                )
            metrics.append(dataclasses.replace(metric, label=str(plain)))
        return metrics

    def _with_capitals(self, text: str) -> str:
        """Return the library's spelling of a name that differs from it only in case.

        Raises
        ------
        UnknownNameError
            If the name is ambiguous: several of the library's names differ from it only in case, or
            it has another meaning outside the convention.
        """
        name = re.split(r"[@(]", text)[0]
        if name in METRICS:
            return text
        candidates = [entry for entry in self.entries if entry.head.lower() == name.lower()]
        metrics = {entry.metric_name for entry in candidates}
        elsewhere = set[str | None]()
        if metrics:
            with contextlib.suppress(UnknownNameError):  # the name is ambiguous elsewhere
                elsewhere = {meaning(name)} - {None, *metrics}
        if len(metrics | elsewhere) > 1:
            choices = [f"{_readable(entry.name)} ({entry.metric_name})" for entry in candidates]
            choices += map(str, elsewhere)
            raise UnknownNameError(
                f"The metric {text!r} is ambiguous under {self.name}: it may be "
                f"{' or '.join(choices)}. Hint: write one of these, with the same capitalisation."
            )
        spellings = {entry.head + text[len(name) :] for entry in candidates}
        valid = [spelling for spelling in sorted(spellings) if self.entry(spelling)[0] is not None]
        return valid[0] if valid else text

    def _of_entry(
        self, entry: Entry, parts: Mapping[str, str | None], text: str, defects: bool
    ) -> list[Metric]:
        cutoffs, number = parts.get("k"), parts.get("x")
        if cutoffs is None:
            return [dataclasses.replace(entry.ours(None, number, defects), label=text)]
        position = text.rindex(cutoffs) if "@" not in text else text.index("@" + cutoffs) + 1
        metrics = []
        for cutoff in parse_cutoffs(text[:position].removesuffix("@"), cutoffs):
            begin = f"{text[: position - 1]}_" if text[position - 1] == "." else text[:position]
            label = f"{begin}{cutoff}{text[position + len(cutoffs) :]}"
            metrics.append(dataclasses.replace(entry.ours(cutoff, number, defects), label=label))
        return metrics

    def describe(self) -> str:
        """Return a text that describes how the convention differs from recometer."""
        lines = [
            f"{self.name}: {self.library} {self.version}",
            "",
            "Rules that differ from recometer's:",
        ]
        lines += [f"  {sentence}" for sentence in self.protocol.sentences()]
        lines += ["", "Metrics, and their names in recometer:"]
        for entry in self.entries:
            lines += self._describe_entry(entry)
        if self.defect_rules:
            faulty = self.protocol.replace(**self.defect_rules)
            sentences = map(faulty.sentence, self.defect_rules)
            lines += [
                "",
                f"With {rule_text('defects', True)}, for all metrics: {' '.join(sentences)}",
            ]
        if self.refused is not None:
            names, users = ", ".join(self.refused.metrics), self.refused.users
            lines += [
                "",
                f"With {rule_text('defects', True)}, {names} are refused for users {users}. "
                f"{self.refused.says}",
            ]
        return "\n".join([*lines, *(f"\nNote: {note}" for note in self.notes)])

    def _describe_entry(self, entry: Entry) -> Iterator[str]:
        ours = entry.ours(5, entry.example_number, False)
        yield f"  {_readable(entry.name)} = {_readable(entry.metric)}"
        yield f"    Formula: {ours.definition.formula}"
        yield from (f"    {text}: {meaning}" for text, meaning in ours.meanings.items())
        changed = self.protocol.replace(**_without_cutoffs(entry.rules))
        yield from (f"    {sentence}" for sentence in changed.sentences(self.protocol))
        if entry.says:
            yield f"    {entry.says}"
        if entry.from_source:
            yield "    Taken from the library's source code; not compared with its output."
        if entry.defect:
            yield f"    With {rule_text('defects', True)}: {_readable(entry.defect)}"
            faulty = changed.replace(**_without_cutoffs(entry.defect_rules))
            yield from (f"      {sentence}" for sentence in faulty.sentences(changed))

    def __str__(self) -> str:
        return self.describe()

    def __repr__(self) -> str:
        return f"<Convention {self.name}: {self.library} {self.version}>"


def conventions() -> list[Convention]:
    """Return all conventions, sorted by name.

    Printing a convention shows how it differs from recometer. To compute metrics as a convention
    defines them, use ``evaluate(..., protocol=name)``.

    Examples
    --------
    >>> import recometer as rm
    >>> rm.conventions()[:2]
    [<Convention cornac: Cornac 3.0.1>, <Convention elliot: Elliot 0.3.1>]
    >>> [lightfm] = [entry for entry in rm.conventions() if entry.name == "lightfm"]
    >>> lightfm.names
    ['precision_at_k@k', 'recall_at_k@k', 'reciprocal_rank']
    """
    return list(_table().values())


@functools.lru_cache(maxsize=128)
def find_convention(name: str) -> Convention | None:
    """Return the convention with this name, or None if there is none."""
    return _table().get(name)


def protocol_names() -> list[str]:
    """Return the names that ``protocol=`` accepts."""
    return [Protocol().name, *(convention.name for convention in conventions())]


@functools.lru_cache(maxsize=64)
def named_protocol(name: str) -> Protocol:
    """Return recometer's rules or those of a convention; the case of the name does not matter."""
    own = Protocol()
    if as_listed(name) == own.name:
        return own
    convention = find_convention(as_listed(name))
    if convention is None:
        hint = did_you_mean(name, protocol_names())
        raise UnknownNameError(f"There is no protocol {name!r}. {hint}")
    return convention.protocol


def as_listed(name: str) -> str:
    """Return a protocol's name as `protocol_names` lists it: "trec-eval" becomes "trec_eval"."""
    return name.lower().replace("-", "_").replace(" ", "_")


def parse_under(metrics: Metrics, protocol: Protocol) -> list[Metric]:
    """Parse metric names under a protocol's convention, if it has one."""
    convention = find_convention(protocol.name)
    try:
        return parse(metrics) if convention is None else convention.parse(metrics, protocol)
    except UnknownNameError as error:
        raise UnknownNameError(f"{error}{_known_elsewhere(str(error), metrics)}") from None


def _known_elsewhere(error: str, metrics: Metrics) -> str:
    """Return a sentence that lists the conventions in which the unknown name exists, or ""."""
    for text in map(str, names_in(metrics)):
        if repr(text) in error or repr(re.split(r"[@(]", text)[0]) in error:
            protocols: dict[str, list[str]] = {}
            for convention in conventions():
                if convention.entry(text)[0] is not None:
                    ours = " ".join(metric.ours for metric in convention.parse(text))
                    protocols.setdefault(ours, []).append(f"protocol={convention.name!r}")
            if protocols:
                choices = (f"{' or '.join(names)}, as {ours}" for ours, names in protocols.items())
                return f" It exists under {'; under '.join(choices)}."
    return ""


def describe(protocol: Protocol) -> str:
    """Describe a protocol by its name and the rules that the user changed."""
    convention = find_convention(protocol.name)
    return protocol.describe(None if convention is None else convention.protocol)


@functools.cache
def _table() -> Mapping[str, Convention]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    content = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    common = content.pop(COMMON)
    parts = {}
    for name in sorted(content):
        base = content.get(content[name].get("like"), {})
        metrics = {**base.get("metrics", {}), **content[name].get("metrics", {})}
        parts[name] = {**base, **content[name], "metrics": metrics}
    return MappingProxyType({name: _read(name, part, common) for name, part in parts.items()})


def _read(name: str, part: dict[str, Any], common: Mapping[str, Any]) -> Convention:
    rules = {**common, **part.get("rules", {})}
    protocol = Protocol(name=name, version=part["version"], **rules)
    uncompared = part.get("read", ())
    entries = tuple(
        _entry(
            key,
            value,
            part.get("defects", {}).get(key, {}),
            "all" in uncompared or key in uncompared,
        )
        for key, value in part["metrics"].items()
    )
    rules_by_entry = {entry.name: {*entry.rules, *entry.defect_rules} for entry in entries}
    for key, changed in {**rules_by_entry, "defect_rules": {*part.get("defect_rules", ())}}.items():
        if changed & OF_THE_CALL:
            raise InputError(
                f"conventions.toml states the rule {min(changed & OF_THE_CALL)} for {key!r} of "
                f"{name}, but this rule applies to all metrics of a call. Hint: put it under rules."
            )
    return Convention(
        name,
        part["library"],
        part["version"],
        protocol,
        entries,
        tuple(part.get("notes", ())),
        part.get("float32", False),
        part.get("defect_rules", {}),
        Refused(**part["refused"]) if "refused" in part else None,
    )


def _entry(
    name: str, value: str | dict[str, Any], defect: dict[str, Any], from_source: bool
) -> Entry:
    rules = {"metric": value} if isinstance(value, str) else dict(value)
    defect_rules = {"metric": defect} if isinstance(defect, str) else dict(defect)
    metric, says = rules.pop("metric"), rules.pop("says", "")
    sentence = " ".join(filter(None, [says, defect_rules.pop("says", "")]))
    defect_metric = defect_rules.pop("metric", "")
    return Entry(name, metric, rules, sentence, defect_metric, defect_rules, from_source)


def _normal(name: str, cutoff: str | None = None) -> str:
    """Normalise a name: remove spaces and quotes, and put the cut-off after the brackets."""
    text = re.sub(r"[\s'\"]", "", name)
    if cutoff is not None:
        optional = f"[@{cutoff}]"
        if optional in text:
            return text.replace(optional, "") + optional
        return text.replace(f"@{cutoff}", "") + f"@{cutoff}" if f"@{cutoff}" in text else text
    match = CUTOFF_IN_NAME.search(text)
    return text if match is None else text[: match.start()] + text[match.end() :] + match[0]


def _readable(name: str) -> str:
    return name.replace(CUTOFF, "k").replace(NUMBER, "x")


def _plain(metric: str) -> str:
    return OPTIONAL.sub("", metric).replace(CUTOFF, "1").replace(NUMBER, "0.5")


def _without_cutoffs(rules: Mapping[str, Any]) -> dict[str, Any]:
    return {rule: value for rule, value in rules.items() if value != CUTOFF}
