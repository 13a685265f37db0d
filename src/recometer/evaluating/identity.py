"""What two evaluators must have in common, so that what one counted is counted by the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from recometer.data.fingerprints import Fingerprinting
from recometer.evaluating.asked import Asked
from recometer.evaluating.truth import Truth, arrays_beside_test


def identity_of(asked: Asked, truth: Truth | None) -> dict[str, str]:
    """Return the metrics and rules of an evaluator, and digests of its data, by argument."""
    if truth is None:
        prints = _prints(asked, arrays_beside_test(asked, None))
        texts = {} if asked.catalogue is None else {"catalogue": asked.catalogue.describe()}
    else:
        if not truth.fingerprints:
            truth.fingerprints.update(_prints(asked, truth.arrays()))
        prints = truth.fingerprints
        texts = {name: one["description"] for name, one in truth.descriptions.items()}
    return {
        "metrics": " ".join(map(str, asked.metrics)),
        "protocol": asked.protocol.describe(),
        "seed": str(asked.seed),
        **{
            name: _digest(texts.get(name, ""), prints.get(name, {}))
            for name in {*texts, *(name for name, of in prints.items() if of)}
        },
    }


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Say what differs between two evaluators, the test first; "" if nothing does."""
    for name in sorted({*one, *other}, key=lambda name: (name != "test", name)):
        mine, theirs = one.get(name), other.get(name)
        if mine == theirs:
            continue
        if name in ("metrics", "protocol", "seed"):
            return f"{name} ({mine!r} here, {theirs!r} there)"
        if mine is None or theirs is None:
            return f"{name}, which is {'given there' if mine is None else 'given here'} only"
        return f"{name}, which has other data"
    return ""


def _prints(asked: Asked, arrays: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, str]]:
    with Fingerprinting(arrays, asked.threads) as found:
        return found.result()


def _digest(description: str, prints: Mapping[str, str]) -> str:
    """Return one short digest of an argument: of its fingerprints, or else what it is called."""
    # A description may name a path, or where an object lies: another one of the same data.
    text = json.dumps(prints, sort_keys=True) if prints else description
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
