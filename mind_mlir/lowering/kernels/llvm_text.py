"""The values of functions that are written as text, in the LLVM dialect."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.lowering.kernels.llvm_function import Text

#: Conversions of the bits of f16 and bf16 to f32 where no instruction does them, or code generators call for
#: help even where numbers are only moved.
HALF, SHORT = "half", "short"
#: A step that converts nothing: it says what type of a program the elements, which are only moved, are of.
OF = "of"
#: A step that takes two elements side by side as a word.
PAIR = "pair"

#: What stands for a value: a number, or the spelling of one, is a constant of the other operand's type.
Number: TypeAlias = "TextValue | float | str"


@functools.cache
def byte_width(element: str) -> int:
    """Return the bytes of an element type: ``f32``, ``bf16``, ``i8``."""
    return int(element.lstrip("bfi")) // 8


@functools.cache
def vector(lanes: int, element: str) -> str:
    """Return a vector type; the element type itself for no lanes."""
    return f"vector<{lanes}x{element}>" if lanes else element


@functools.cache
def stored(conversions: str) -> str:
    """Return the type in memory of elements with ``conversions``, as in ``f32:fpext f64``."""
    return conversions.split(":", maxsplit=1)[0]


def float_conversions(element: str, accumulator: str, *, half: bool) -> str:
    """Return a float type in memory with conversions to accumulators: floats of 16 bits are their bits.

    One instruction converts f16 if there is one for a ``half``.
    """
    if element in ("bf16", "f16"):
        how = SHORT if element == "bf16" else "bitcast f16:fpext" if half else HALF
        return f"i16:{how} {accumulator}"
    return element if element == accumulator else f"{element}:fpext {accumulator}"


def _operator(op: str) -> Callable[[TextValue, Number], TextValue]:
    return lambda self, other: self.binary(op, other)


def _intrinsic(name: str) -> Callable[[TextValue, Number], TextValue]:
    return lambda self, other: self.intrinsic(name, self.like(other))


class TextValue:
    """A value of a function: operators on it append operations, those of integers without a sign.

    Attributes:
        name: Its name, ``%12``.
        element: The type of its elements, ``i64``. For a pointer, that of what it points to, and conversions
            to accumulators: ``f32:fpext f64``.
        lanes: The elements of a vector; 0 for a single one.
        type: Its type.
    """

    __slots__ = ("_t", "element", "is_pointer", "lanes", "name", "type")

    def __init__(self, t: Text, name: str, element: str, lanes: int = 0, *, is_pointer: bool = False) -> None:
        self._t, self.name, self.element, self.lanes = t, name, element, lanes
        self.is_pointer = is_pointer
        self.type = "!llvm.ptr" if is_pointer else vector(lanes, element)

    def __str__(self) -> str:
        return self.name

    def like(self, number: Number) -> TextValue:
        """Return ``number`` as a value of this one's type."""
        if isinstance(number, TextValue):
            return number
        return self._t.constant(number, self.element, self.lanes)

    def binary(self, op: str, other: Number) -> TextValue:
        """Append ``llvm.<op>``, of floats ``llvm.f<op>``."""
        op = op if self.element[0] == "i" else f"f{op}"
        text = f"llvm.{op} {self.name}, {self.like(other).name} : {self.type}"
        return self._t.op(text, self.element, self.lanes)

    __sub__, __mul__ = _operator("sub"), _operator("mul")
    __floordiv__, __mod__, __truediv__ = _operator("udiv"), _operator("urem"), _operator("div")
    __and__, __or__, __xor__ = _operator("and"), _operator("or"), _operator("xor")
    __lshift__, __rshift__ = _operator("shl"), _operator("lshr")
    minimum, maximum = _intrinsic("umin"), _intrinsic("umax")

    def __add__(self, other: Number) -> TextValue:
        """Append a sum; of a pointer, that to the element so many further on."""
        if not self.is_pointer:
            return self.binary("add", other)
        if other == 0:
            return self
        types = "(!llvm.ptr, i64)" if isinstance(other, TextValue) else "(!llvm.ptr)"
        text = f"llvm.getelementptr {self.name}[{other}] : {types} -> !llvm.ptr, {stored(self.element)}"
        return self._t.op(text, self.element, is_pointer=True)

    def intrinsic(self, name: str, *others: TextValue) -> TextValue:
        """Append ``llvm.intr.<name>`` of this value and ``others`` of its type."""
        given = ", ".join([self.name, *[each.name for each in others]])
        types = ", ".join([self.type] * (1 + len(others)))
        return self._t.op(f"llvm.intr.{name}({given}) : ({types}) -> {self.type}", self.element, self.lanes)

    def blocks(self, size: int) -> TextValue:
        """Append how many blocks of ``size`` it takes to cover this extent."""
        return (self + (size - 1)) // size

    def multiply_add(self, factor: TextValue, sums: TextValue, *, fma: bool) -> TextValue:
        """Append ``sums`` plus the product with ``factor``, fused if that is said and they are floats."""
        if fma and self.element[0] != "i":
            return self.intrinsic("fma", factor, sums)
        return sums + self * factor

    def compare(self, predicate: str, other: Number) -> TextValue:
        """Append a comparison."""
        op = "icmp" if self.element[0] == "i" else "fcmp"
        text = f'llvm.{op} "{predicate}" {self}, {self.like(other)} : {self.type}'
        return self._t.op(text, "i1", self.lanes)

    def select(self, on: TextValue, off: TextValue) -> TextValue:
        """Append a selection by this flag, or by these."""
        text = f"llvm.select {self}, {on}, {off} : {self.type}, {on.type}"
        return self._t.op(text, on.element, on.lanes, is_pointer=on.is_pointer)

    # Types and lanes

    def cast(self, op: str, element: str, lanes: int | None = None) -> TextValue:
        """Append a conversion to ``element``, of as many lanes if nothing else is said."""
        lanes = self.lanes if lanes is None else lanes
        return self._t.op(f"llvm.{op} {self} : {self.type} to {vector(lanes, element)}", element, lanes)

    def converted(self, conversions: str) -> TextValue:
        """Append the conversions of an element type, as in ``f32:fpext f64``."""
        value = self
        for step in conversions.split(":")[1:]:
            op, result = step.split(" ")
            if op == OF:
                continue
            if op in (HALF, SHORT):
                value = (
                    _half(value) if op == HALF else (value.cast("zext", "i32") << 16).cast("bitcast", "f32")
                )
                op = "fpext"
            if value.element != result:
                value = value.cast(op, result)
        return value

    def splat(self, lanes: int) -> TextValue:
        """Append a vector of this number in every lane."""
        one = self._t.poison(self.element, lanes).insert(self, 0)
        return one.shuffle(one, [0] * lanes)

    def insert(self, value: TextValue, lane: int) -> TextValue:
        """Append this vector with ``value`` in a lane."""
        place = f"{self}[{self._t.number(lane)} : i64]"
        return self._t.op(f"llvm.insertelement {value}, {place} : {self.type}", self.element, self.lanes)

    def shuffle(self, other: TextValue, lanes: Sequence[int]) -> TextValue:
        """Append a shuffle of the lanes of two vectors."""
        text = f"llvm.shufflevector {self}, {other} {list(lanes)} : {self.type}"
        return self._t.op(text, self.element, len(lanes))

    def part(self, first: int, lanes: int) -> TextValue:
        """Append so many lanes from ``first`` on."""
        return self.shuffle(self, range(first, first + lanes))

    def reduced(self, name: str) -> TextValue:
        """Append a reduction of all lanes, of LLVM's ``name``."""
        return self._t.call(f"llvm.vector.reduce.{name}", [self], self.element)

    def lane_sum(self) -> TextValue:
        """Append the sum of all lanes, pair by pair."""
        value = self
        while value.lanes > 1:
            half = value.lanes // 2
            value = value.part(0, half) + value.part(half, half)
        text = f"llvm.extractelement {value}[{self._t.number(0)} : i64] : {value.type}"
        return self._t.op(text, self.element)

    def mask(self, first: int, lanes: int) -> TextValue:
        """Append the mask of a vector whose lanes are numbers ``first`` and up: on are those below this.

        Its bits are computed as an integer: LLVM would repeat a comparison wherever the mask is used.
        """
        number = self._t.number
        off = number(64) - (self.maximum(first) - first).minimum(lanes)
        # A shift by 64, where no lane is on, would be undefined: shift by one less, and then by one.
        some = off.minimum(63)
        return _flags((number(-1) >> some) >> (off - some), lanes)

    def masks(self, count: int, lanes: int) -> list[TextValue]:
        """Append the masks of ``count`` vectors side by side, as `mask`; of one lane or more, they are on.

        They are parts of one integer if that has a bit for each lane.
        """
        if count * lanes > 64:
            return [self.mask(v * lanes, lanes) for v in range(count)]
        bits = self._t.number(-1) >> (self._t.number(64) - self.minimum(64))
        return [_flags(bits >> v * lanes if v else bits, lanes) for v in range(count)]

    # Pointers

    def load(
        self,
        lanes: int = 0,
        mask: TextValue | None = None,
        *,
        off: Number = 0,
        element: str = "",
        alignment: int = 0,
    ) -> TextValue:
        """Append a load of elements as they are stored: a single one for no lanes.

        Args:
            lanes: How many there are.
            mask: Which lanes are there, if not all are.
            off: What the others are.
            element: Their type, if not that of what this points to.
            alignment: The bytes that memory is aligned to, if not those of an element.
        """
        element = element or stored(self.element)
        type_ = vector(lanes, element)
        hint = f"{{alignment = {alignment or byte_width(element)} :"
        if mask is None:
            text = f"llvm.load {self.name} {hint} i64}} : !llvm.ptr -> {type_}"
        else:
            others = off if isinstance(off, TextValue) else self._t.constant(off, element, lanes)
            given = f"{self}, {mask}, {others}"
            types = f"(!llvm.ptr, {mask.type}, {type_}) -> {type_}"
            text = f"llvm.intr.masked.load {given} {hint} i32}} : {types}"
        return self._t.op(text, element, lanes)

    def read(self, lanes: int = 0, mask: TextValue | None = None) -> TextValue:
        """Append elements as accumulators; zeros in lanes that ``mask`` has off."""
        return self.load(lanes, mask).converted(self.element)

    def store(
        self, value: TextValue, mask: TextValue | None = None, *, alignment: int = 0, streams: bool = False
    ) -> None:
        """Append a store, of the lanes that ``mask`` has on; past the cache if it ``streams``."""
        hint = f"{{alignment = {alignment or byte_width(value.element)} :"
        if mask is None:
            past = ", nontemporal" if streams else ""
            self._t.line(f"llvm.store {value.name}, {self.name} {hint} i64{past}}} : {value.type}, !llvm.ptr")
        else:
            types = f"{value.type}, {mask.type} into !llvm.ptr"
            self._t.line(f"llvm.intr.masked.store {value}, {self}, {mask} {hint} i32}} : {types}")

    def prefetch(self, *, level: int = 1) -> None:
        """Append a hint that memory will be read, to the cache ``level``; it may be anywhere."""
        hints = f"<{{cache = 1 : i32, hint = {4 - level} : i32, rw = 0 : i32}}>"
        self._t.line(f'"llvm.intr.prefetch"({self}) {hints} : (!llvm.ptr) -> ()')


def _flags(bits: TextValue, lanes: int) -> TextValue:
    """Append the lowest bits of an i64 as flags."""
    if lanes < 64:
        bits = bits.cast("trunc", f"i{lanes}")
    return bits.cast("bitcast", "i1", lanes)


def _half(value: TextValue) -> TextValue:
    """Append f32 of the bits of f16, with integers: what `lowering.narrow_floats` makes of it elsewhere."""
    wide = value.cast("zext", "i32")
    sign = (wide & 0x8000) << 16
    shifted = (wide & 0x7FFF) << 13
    normal = shifted + (112 << 23)  # between the exponents' biases
    special = normal | 0x7F800000  # infinity and NaN
    bits = shifted.like(113 << 23), shifted + (113 << 23)
    least, raised = (each.cast("bitcast", "f32") for each in bits)
    small = (raised - least).cast("bitcast", "i32")
    normal = shifted.compare("sge", 0x7C00 << 13).select(special, normal)
    return (shifted.compare("slt", 1 << 23).select(small, normal) | sign).cast("bitcast", "f32")
