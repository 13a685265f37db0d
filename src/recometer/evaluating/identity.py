"""What two evaluators must have in common, so that what one counted is counted by the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from recometer.data.fingerprints import Fingerprinting
from recometer.evaluating.arguments import Arguments
from recometer.evaluating.sides import Sides, arrays_beside_test


def identity_of(arguments: Arguments, sides: Sides | None) -> dict[str, str]:
    """Return the metrics and rules of an evaluator, and digests of its data, by argument."""
    if sides is None:
        prints = _prints(arguments, arrays_beside_test(arguments, None))
        texts = {} if arguments.catalogue is None else {"catalogue": arguments.catalogue.describe()}
    else:
        if not sides.fingerprints:
            sides.fingerprints.update(_prints(arguments, sides.arrays()))
        prints = sides.fingerprints
        texts = {name: one["description"] for name, one in sides.descriptions.items()}
    return {
        "metrics": " ".join(map(str, arguments.metrics)),
        "protocol": arguments.protocol.describe(),
        "seed": str(arguments.seed),
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


def _prints(
    arguments: Arguments, arrays: Mapping[str, Mapping[str, object]]
) -> dict[str, dict[str, str]]:
    with Fingerprinting(arrays, arguments.threads) as found:
        return found.result()


def _digest(description: str, prints: Mapping[str, str]) -> str:
    """Return one short digest of an argument: of its fingerprints, or else what it is called."""
    # A description may name a path, or where an object lies: another one of the same data.
    text = json.dumps(prints, sort_keys=True) if prints else description
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
