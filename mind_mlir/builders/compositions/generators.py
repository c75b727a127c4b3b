"""Bits of generators that count: Threefry 2x32 and Philox 4x32-10, the words that XLA makes of a state.

A block of words is a function of a key and a counter: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers:
As Easy as 1, 2, 3" (2011). The first number of a state is the key, the others count the blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.philox import KEY_STEPS, MULTIPLIERS, ROUNDS, WORD

if TYPE_CHECKING:
    from mind_mlir.builders.compositions.composer import Composer
    from mind_mlir.ir.value import Value

#: By how many bits Threefry turns a word, in rounds of four that take turns.
_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry(to: Composer, state: Value, type_: TensorType) -> tuple[Value, Value]:
    """Append random integers and the state after them.

    Args:
        to: Appends the operations.
        state: u64[2]: the key, and the number of the next block.
        type_: Of the integers; one takes a word of 32 bits, or two of them.

    Returns:
        The state, and integers of ``type_``.
    """
    key, counter = (to.reshaped(to.part(state, 0, at, at + 1), ()) for at in range(2))
    blocks = -(-_words_of(type_) // 2)
    keys = list(_halves(to, key))
    keys.append(_mixed(to, _mixed(to, *keys), to.number(_PARITY, DType.UI32)))
    words = list(_halves(to, _counted(to, counter, blocks)))
    words = [_sum(to, word, key) for word, key in zip(words, keys, strict=False)]
    for number in range(5):
        for turn in _TURNS[number % 2]:
            words[0] = _sum(to, *words)
            words[1] = _mixed(to, _turned(to, words[1], turn), words[0])
        words[0] = _sum(to, words[0], keys[(number + 1) % 3])
        step = _sum(to, keys[(number + 2) % 3], to.number(number + 1, DType.UI32))
        words[1] = _sum(to, words[1], step)
    after = _sum(to, counter, to.number(blocks, DType.UI64))
    return _joined(to, [key, after]), _integers(to, words, type_)


def philox(to: Composer, state: Value, type_: TensorType) -> tuple[Value, Value]:
    """Append random integers and the state after them, as `threefry`.

    The state is u64[2] or u64[3]: the key, and the number of the next block, least significant part first;
    where it has no second part, that is the key.
    """
    key, low, *high = (to.reshaped(to.part(state, 0, at, at + 1), ()) for at in range(state.type.extents[0]))
    blocks = -(-_words_of(type_) // 4)
    counters = _counted(to, low, blocks)
    carried = to.cast(_less(to, counters, low), DType.UI64)
    tops = _sum(to, carried, high[0] if high else key)
    wide = [*_wide_halves(to, counters), *_wide_halves(to, tops)]
    keys = [to.cast(half, DType.UI64) for half in _halves(to, key)]
    for _ in range(ROUNDS):
        first, third = (
            to.emit("Mul", word, to.like(factor, word))
            for word, factor in zip(wide[::2], MULTIPLIERS, strict=True)
        )
        wide = [
            _mixed(to, _mixed(to, _upper(to, third), wide[1]), keys[0]),
            _lower(to, third),
            _mixed(to, _mixed(to, _upper(to, first), wide[3]), keys[1]),
            _lower(to, first),
        ]
        steps = (to.number(step, DType.UI64) for step in KEY_STEPS)
        keys = [_lower(to, _sum(to, each, step)) for each, step in zip(keys, steps, strict=True)]
    after = _sum(to, low, to.number(blocks, DType.UI64))
    if high:
        high = [_sum(to, high[0], to.cast(_less(to, after, low), DType.UI64))]
    words = [to.cast(word, DType.UI32) for word in wide]
    return _joined(to, [key, after, *high]), _integers(to, words, type_)


def _words_of(type_: TensorType) -> int:
    return math.prod(type_.extents) * (2 if type_.dtype.bits == 64 else 1)


def _counted(to: Composer, first: Value, count: int) -> Value:
    """Append ``first`` and the numbers behind it."""
    return _sum(to, to.emit("Iota", shape=(count,), dtype=DType.UI64, axis=0), first)


def _integers(to: Composer, words: Sequence[Value], type_: TensorType) -> Value:
    """Append integers of the words of blocks: their lower bits, or two words each, the lower one first."""
    count, dtype = math.prod(type_.extents), type_.dtype
    if dtype.bits == 64:
        pairs = zip(words[::2], words[1::2], strict=True)
        words = [
            to.emit("Or", to.cast(low, DType.UI64), _shifted(to, "ShiftLeft", to.cast(high, DType.UI64), 32))
            for low, high in pairs
        ]
    columns = [to.reshaped(word, (word.type.extents[0], 1)) for word in words]
    flat = to.emit("Concat", *columns, axis=1)
    flat = to.part(to.reshaped(flat, (math.prod(flat.type.extents),)), 0, 0, count)
    if dtype.bits < 32:
        flat = to.emit("And", flat, to.like(2**dtype.bits - 1, flat))
    same = to.cast(flat, DType[f"UI{dtype.bits}"])
    same = same if same.type.dtype is dtype else to.emit("Bitcast", same, dtype=dtype)
    return to.reshaped(same, type_.extents)


def _joined(to: Composer, numbers: Sequence[Value]) -> Value:
    return to.emit("Concat", *(to.reshaped(each, (1,)) for each in numbers), axis=0)


def _broadcast(opcode: str) -> Callable[[Composer, Value, Value], Value]:
    def emit(to: Composer, one: Value, other: Value) -> Value:
        shape = max(one.type.extents, other.type.extents, key=len)
        return to.emit(opcode, to.stretched(one, shape), to.stretched(other, shape))

    return emit


_sum, _mixed = _broadcast("Add"), _broadcast("Xor")


def _less(to: Composer, one: Value, other: Value) -> Value:
    return to.emit("Compare", one, to.stretched(other, one.type.extents), op="Less")


def _shifted(to: Composer, opcode: str, value: Value, bits: int) -> Value:
    return to.emit(opcode, value, to.like(bits, value))


def _turned(to: Composer, word: Value, bits: int) -> Value:
    left, right = _shifted(to, "ShiftLeft", word, bits), _shifted(to, "ShiftRightLogical", word, 32 - bits)
    return to.emit("Or", left, right)


def _lower(to: Composer, value: Value) -> Value:
    return to.emit("And", value, to.like(WORD, value))


def _upper(to: Composer, value: Value) -> Value:
    return _shifted(to, "ShiftRightLogical", value, 32)


def _wide_halves(to: Composer, value: Value) -> tuple[Value, Value]:
    """Append the words of integers of 64 bits, least significant first, as such integers."""
    return _lower(to, value), _upper(to, value)


def _halves(to: Composer, value: Value) -> tuple[Value, Value]:
    """Append the words of integers of 64 bits, least significant first."""
    lower, upper = _wide_halves(to, value)
    return to.cast(lower, DType.UI32), to.cast(upper, DType.UI32)
