"""Sources with a row per user and a row or column per item, which ids tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from recometer.data.matching import SourceIndex
from recometer.sources._align import align
from recometer.sources.base import Apart, Request, Source


class IndexedSource(Source):
    """A source whose users and items stand in a `SourceIndex`."""

    _index: SourceIndex

    def apart(self, request: Request, blocks: Sequence[slice]) -> Sequence[Apart]:
        """Return the blocks, all of this source."""
        return [Apart(np.arange(block.start, block.stop), self) for block in blocks]

    def matched(self, request: Request) -> Mapping[str, int]:
        """Return what matching with test and train settles, as `Ranks.counts`."""
        return align(self._index, request).counts
