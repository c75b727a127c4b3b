"""Philox 4x32-10, the counter-based generator behind random numbers (docs/random.md).

A block of four 32-bit words is a function of a counter of 128 bits and a key of 64 bits: Salmon, Moraes,
Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011). So any part of a tensor can be had without
the rest, by any thread. It stands here twice, for numpy and as what linalg bodies compute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: What the first and the third word of a counter are multiplied by.
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
#: What the two words of the key grow by from round to round.
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

#: The bits of a word.
WORD = 2**32 - 1


def philox(counter: Sequence[Array], key: tuple[int, int]) -> tuple[Array, Array, Array, Array]:
    """Return the blocks of counters: four arrays of ui64 that hold 32-bit words.

    Args:
        counter: The four words of each counter, least significant first: arrays of ui64 of one shape.
        key: The two words of the key, least significant first.
    """
    word, half = np.uint64(WORD), np.uint64(32)
    first, second, third, fourth = counter
    for round_ in range(ROUNDS):
        keys = [np.uint64((part + round_ * step) & WORD) for part, step in zip(key, KEY_STEPS, strict=True)]
        left, right = first * np.uint64(MULTIPLIERS[0]), third * np.uint64(MULTIPLIERS[1])
        first, second, third, fourth = (
            (right >> half) ^ second ^ keys[0],
            right & word,
            (left >> half) ^ fourth ^ keys[1],
            left & word,
        )
    return first, second, third, fourth


def words(seed: int, stream: int, count: int) -> Array:
    """Return the first ``count`` words of a stream, as ui64 (docs/random.md, "Words")."""
    block = np.arange(-(-count // 4), dtype=np.uint64)
    counter = (
        block & np.uint64(WORD),
        block >> np.uint64(32),
        *(np.full_like(block, each) for each in halves(stream)),
    )
    return np.stack(philox(counter, halves(seed)), axis=-1).reshape(-1)[:count]


def halves(number: int) -> tuple[int, int]:
    """Return the two words of a 64-bit integer, least significant first; negative in two's complement."""
    return number & WORD, number >> 32 & WORD


@dataclass(frozen=True, slots=True)
class BlockEmitter:
    """Emits Philox on scalars of i64, in the body of a linalg operation.

    Of words, only the lower halves count: what lies above them is arbitrary. Processors multiply the lower
    halves of 64-bit integers at no more cost than that of integers of 32 bits.

    Attributes:
        mlir: The bindings.
    """

    mlir: Any

    def constant(self, value: int) -> Any:
        """Emit an integer of 64 bits."""
        type_ = self.mlir.ir.IntegerType.get_signless(64)
        signed = value - 2**64 if value >= 2**63 else value
        return self.mlir.arith.constant(type_, signed)

    def lower(self, value: Any) -> Any:
        """Emit the lower half of an integer."""
        return self.mlir.arith.andi(value, self.constant(WORD))

    def upper(self, value: Any) -> Any:
        """Emit the upper half of an integer."""
        return self.mlir.arith.shrui(value, self.constant(32))

    def block(self, number: Any, stream: int, seed: Any) -> tuple[Any, Any, Any, Any]:
        """Emit the four words of block ``number`` of a stream, for a seed: both integers of 64 bits."""
        arith = self.mlir.arith
        low, high = halves(stream)
        counter = (number, self.upper(number), self.constant(low), self.constant(high))
        key = (seed, self.upper(seed))
        for _ in range(ROUNDS):
            counter = self._round(counter, key)
            key = tuple(
                arith.addi(part, self.constant(step)) for part, step in zip(key, KEY_STEPS, strict=True)
            )
        return counter

    def _round(self, counter: tuple[Any, ...], key: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
        arith = self.mlir.arith
        first, second, third, fourth = counter
        left, right = (
            arith.muli(self.lower(word), self.constant(factor))
            for word, factor in zip((first, third), MULTIPLIERS, strict=True)
        )
        return (
            arith.xori(self.upper(right), arith.xori(second, key[0])),
            right,
            arith.xori(self.upper(left), arith.xori(fourth, key[1])),
            left,
        )
