"""Compile the kernels for a card that need not be there, and print a line about the code of each.

Run: python compiled.py CAPABILITY PRECISION, for instance 80 ieee.
"""

import json
import re
import sys
from typing import ClassVar

import numpy as np
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from recometer.sources import _triton


class Card:
    """What Triton asks of the driver of a card."""

    def get_current_target(self):
        return GPUTarget("cuda", int(sys.argv[1]), 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0


class Tiles(_triton.Tiles):
    """Tiles whose kernels are compiled as they are called, but not launched."""

    compiled: ClassVar = {}

    def _launch(self, kernel, grid, *arguments, **constants):
        constants |= {**self._constants, **_triton.OPTIONS}
        made = kernel.warmup(*self._factors, *arguments, grid=grid, **constants)
        self.compiled[made.hash] = made


def lengths_of_chains(ptx):
    """Return how many fused multiply-adds are added up one after the other, in a loop.

    -1 stands for those that are no part of a loop.
    """
    added = re.findall(r"fma\.rn\.f32\s+(%\w+), %\w+, %\w+, (%\w+);", ptx)
    before, lengths = dict(added), set()
    while before:
        last, one = before.popitem()
        length = 1
        while one in before:
            one, length = before.pop(one), length + 1
        lengths.add(length if one == last else -1)
    return sorted(lengths)


def main():
    driver.set_active(Card())
    users, items, bias = torch.ones(70, 64), torch.ones(300, 64), np.ones(300, np.float32)
    tiles = Tiles(users, items, bias, sys.argv[2] == "tf32")
    for n in (5, 16):  # the same code for any number
        some = torch.arange(n)
        rows, item_rows = tiles.rows(some, some, some.int()), torch.arange(10 * n).int()
        tiles.scores(np.arange(n))
        tiles.of_pairs(some, some)
        tiles.count(rows, None, range(n, 10 * n), torch.ones(n))
        tiles.count_before(rows, item_rows, range(10 * n), torch.ones(n), some.int())
    for kernel in tiles.compiled.values():
        ptx = kernel.asm["ptx"]
        found = {
            "fused": len(re.findall(r"fma\.rn\.f32", ptx)),
            "chains": lengths_of_chains(ptx),
            "tf32": len(re.findall(r"tf32", ptx)),
            "products": len(re.findall(r"mul\.(rn\.)?f32", ptx)),
            "float atomics": len(re.findall(r"\b(atom|red)\.\S*\.f32", ptx)),
            "bytes": len(kernel.asm["cubin"]),
        }
        print(json.dumps(found))


if __name__ == "__main__":
    main()
