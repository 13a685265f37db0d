"""Sources with a row per user and a row or column per item, which ids tell apart."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recometer.arrays import Array
from recometer.data.matching import SourceIndex
from recometer.sources._align import align
from recometer.sources.base import Apart, Request, Source

if TYPE_CHECKING:
    from typing_extensions import Self


class IndexedSource(Source):
    """A source whose users and items stand in a `SourceIndex`."""

    _index: SourceIndex

    def with_user_ids(self, user_ids: Array) -> Self:
        """Return the same source, whose users have ids that were positions."""
        named = copy.copy(self)
        named._index = self._index.with_user_ids(user_ids)
        return named

    def apart(self, request: Request, blocks: Sequence[slice]) -> Sequence[Apart]:
        """Return the blocks, all of this source."""
        return [Apart(np.arange(block.start, block.stop), self) for block in blocks]

    def matched(self, request: Request) -> Mapping[str, int]:
        """Return what matching with test and train settles, as `Ranks.counts`."""
        return align(self._index, request).counts
