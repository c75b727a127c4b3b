"""Emits arithmetic on floats and on their bits, for scalars and vectors alike, as LLVM dialect text."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


#: Bits of the vectors that are scaled by an instruction.
_WIDE = 512


def _binary(
    operation: str, kind: Literal["type", "bits", "flags"]
) -> Callable[[FloatEmitter, str, str], str]:
    """Return a method that emits an operation of LLVM on two floats, integers or truth values."""

    def emit(emitter: FloatEmitter, x: str, y: str) -> str:
        return emitter.emit_binary(operation, kind, x, y)

    return emit


class FloatEmitter:
    """Emits arithmetic on one type, f32, f64 or a vector of either, and on integers of the same width.

    Values are their names in the text. Everything is rounded on its own, but for `fma` where the target
    fuses; constants are emitted once.

    Args:
        bits: The width of the floats, 32 or 64.
        lanes: How many there are in a vector; None for scalars.
        fma: Whether multiplication and addition are fused.
        scales: Whether there are instructions that multiply vectors of 64 bytes by powers of two, and that
            take them apart.

    Attributes:
        fuses: Whether `fma` rounds once.
        type: The type of the floats, as text.
        lines: What has been emitted.
        scales: Whether `scaled`, `exponent`, `significand` and `replaced` are instructions.
        width: How many bits a float has.
    """

    def __init__(self, bits: int, lanes: int | None, *, fma: bool, scales: bool = False) -> None:
        self.width = bits
        self._lanes = lanes
        self.fuses = fma
        #: How many vectors of 64 bytes there are side by side.
        self._parts = 0 if lanes is None else lanes * bits // _WIDE
        self.scales = scales and self._parts in (1, 2, 4) and self._parts * _WIDE == (lanes or 0) * bits
        self._element, self._integer = f"f{bits}", f"i{bits}"
        self.type, self._bits, self._flags = (self._of(each) for each in (self._element, self._integer, "i1"))
        self._types = {"type": self.type, "bits": self._bits, "flags": self._flags}
        self._constants: dict[tuple[str, str], str] = {}
        self.lines: list[str] = []
        #: The function that is called for rare lanes, if any; `{}` stands for attributes of it.
        self.rare = ""

    def _of(self, element: str) -> str:
        return element if self._lanes is None else f"vector<{self._lanes}x{element}>"

    def _emit(self, operation: str) -> str:
        name = f"%{len(self.lines)}"
        self.lines.append(f"{name} = llvm.{operation}")
        return name

    def number(self, value: float) -> str:
        """Emit a constant, rounded to the format."""
        return self._constant(self._element, f"0x{self.bits_of(value):0{self.width // 4}X}")

    def integer(self, value: int) -> str:
        """Emit a constant integer."""
        return self._constant(self._integer, str(value))

    def _constant(self, element: str, literal: str) -> str:
        key = (element, literal)
        if key not in self._constants:
            type_ = self._of(element)
            value = literal if self._lanes is None else f"dense<{literal}>"
            self._constants[key] = self._emit(f"mlir.constant({value} : {type_}) : {type_}")
        return self._constants[key]

    def bits_of(self, value: float) -> int:
        """Return the bits of ``value``, rounded to the format."""
        code = {32: "<f", 64: "<d"}[self.width]
        return int.from_bytes(struct.pack(code, value), "little")

    def bits(self, x: str) -> str:
        """Emit the bits of a float, as an integer."""
        return self._emit(f"bitcast {x} : {self.type} to {self._bits}")

    def float_of(self, bits: str) -> str:
        """Emit the float that has these bits."""
        return self._emit(f"bitcast {bits} : {self._bits} to {self.type}")

    def widened(self, *values: str) -> tuple[FloatEmitter, tuple[str, ...]]:
        """Return an emitter of f64 behind the same lines, and f32 ``values`` as emitted there."""
        wide = FloatEmitter(64, self._lanes, fma=self.fuses)
        wide.lines = self.lines
        return wide, tuple([self._emit(f"fpext {each} : {self.type} to {wide.type}") for each in values])

    def narrowed(self, wide: FloatEmitter, x: str) -> str:
        """Emit an f64 of another emitter, rounded to f32."""
        return self._emit(f"fptrunc {x} : {wide.type} to {self.type}")

    def in_f64(self, emit: Callable[..., str], *operands: str) -> str:
        """Emit a function of f64, or of f32 widened; ``emit`` is given an emitter and the bits of results."""
        if self.width == 64:
            return emit(self, self.width, *operands)
        wide, widened = self.widened(*operands)
        return self.narrowed(wide, emit(wide, self.width, *widened))

    def narrowed_bits(self, wide: FloatEmitter, x: str) -> str:
        """Emit the lower 32 bits of an integer of another emitter."""
        return self._emit(f"trunc {x} : {wide._bits} to {self._bits}")

    def rarely(self, condition: str, arguments: Sequence[str], usual: str, emit: Callable[..., str]) -> str:
        """Emit ``usual`` but, where the condition holds, what ``emit`` does; this is to be emitted last.

        Where it holds in no lane, that is not computed. It is a function that is not inlined, which ``emit``
        is given another emitter for, and names for the ``arguments``.
        """
        any_lane = condition
        if self._lanes is not None:
            called = f'call_intrinsic "llvm.vector.reduce.or"({condition})'
            any_lane = self._emit(f"{called} : ({self._flags}) -> i1")
        inside = FloatEmitter(self.width, self._lanes, fma=self.fuses)
        names = [f"%arg{place}" for place in range(len(arguments))]
        result = emit(inside, *names)
        parameters = ", ".join(f"{name}: {self.type}" for name in names)
        body = "\n".join(inside.lines)
        self.rare = (
            f"llvm.func internal @name.rare({parameters}) -> {self.type}"
            ' attributes {no_inline, {}, sym_visibility = "private"} {\n'
            f"{body}\nllvm.return {result} : {self.type}\n}}"
        )
        types = ", ".join([self.type] * len(arguments))
        signature = f"({', '.join(arguments)}) : ({types}) -> {self.type}"
        self.lines.append(f"llvm.cond_br {any_lane} weights([1, 4095]), ^rare, ^done({usual} : {self.type})")
        self.lines.append("^rare:")
        found = self._emit(f"call @name.rare{signature}")
        chosen = self.select(condition, found, usual)
        self.lines += [f"llvm.br ^done({chosen} : {self.type})", f"^done(%done: {self.type}):"]
        return "%done"

    def emit_binary(self, operation: str, kind: str, x: str, y: str) -> str:
        """Emit ``operation`` of two operands of a ``kind`` of types."""
        return self._emit(f"{operation} {x}, {y} : {self._types[kind]}")

    add, subtract = _binary("fadd", "type"), _binary("fsub", "type")
    multiply, divide = _binary("fmul", "type"), _binary("fdiv", "type")
    #: What a truncated division leaves, which is a call for each lane.
    remainder = _binary("frem", "type")
    #: Comparisons that are false for NaN, and one that is true.
    less, equal = _binary('fcmp "olt"', "type"), _binary('fcmp "oeq"', "type")
    not_less_equal = _binary('fcmp "ugt"', "type")
    #: Of truth values.
    both, either = _binary("and", "flags"), _binary("or", "flags")
    #: Of integers, which wrap around.
    add_bits, subtract_bits = _binary("add", "bits"), _binary("sub", "bits")
    and_bits, or_bits, xor_bits = _binary("and", "bits"), _binary("or", "bits"), _binary("xor", "bits")

    def fma(self, x: str, y: str, z: str) -> str:
        """Emit ``x * y + z``, rounded once where the target fuses, else twice."""
        # On other targets a fused multiply-add is a call of libm.
        if not self.fuses:
            return self.add(self.multiply(x, y), z)
        return self._emit(f"intr.fma({x}, {y}, {z}) : ({self.type}, {self.type}, {self.type}) -> {self.type}")

    def scaled(self, x: str, power: str) -> str:
        """Emit ``x`` times two to an integral ``power``, rounded once; only where there is an instruction."""
        return self._instruction("scalef", x, power, x)

    def exponent(self, x: str) -> str:
        """Emit the exponent of a positive number as a float; only where there is an instruction."""
        return self._instruction("getexp", x, x)

    def significand(self, x: str) -> str:
        """Emit the significand of a positive number, from 1 to 2; only where there is an instruction."""
        return self._instruction("getmant", x, 0, x)

    def replaced(self, x: str, of: str, table: int) -> str:
        """Emit ``x`` but where ``of`` is of a class that ``table`` has another result for (VFIXUPIMM).

        Only where there is an instruction.
        """
        return self._instruction("fixupimm", x, of, (self.integer(table),), 0)

    def _instruction(self, name: str, *operands: str | tuple[str] | int) -> str:
        """Emit an instruction of AVX-512 for each 64 bytes: of floats, integers in a tuple, an immediate."""
        assert self.scales, "there is an instruction"
        kind, count = ("ps", 16) if self.width == 32 else ("pd", 8)
        found = []
        for part in range(self._parts):
            lanes, given = list(range(part * count, (part + 1) * count)), []
            for each in operands:
                if isinstance(each, int):
                    given.append(self._immediate(each, "i32"))
                    continue
                value, element = (each, self._element) if isinstance(each, str) else (each[0], self._integer)
                given.append((self._part(value, value, lanes, element), f"vector<{count}x{element}>"))
            # All lanes, and rounding as the processor is set to.
            given += [self._immediate(-1, f"i{count}"), self._immediate(4, "i32")]
            names, types = (", ".join(each) for each in zip(*given, strict=True))
            called = f'call_intrinsic "llvm.x86.avx512.mask.{name}.{kind}.{_WIDE}"({names})'
            found.append(self._emit(f"{called} : ({types}) -> vector<{count}x{self._element}>"))
        while len(found) > 1:
            lanes = list(range(2 * count))
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [self._part(*pair, lanes, self._element, count) for pair in pairs]
            count *= 2
        return found[0]

    def _immediate(self, value: int, type_: str) -> tuple[str, str]:
        return self._emit(f"mlir.constant({value} : {type_}) : {type_}"), type_

    def _part(self, x: str, y: str, lanes: list[int], element: str, count: int | None = None) -> str:
        """Emit a shuffle of two vectors of ``count`` elements, all lanes by default, unless it is ``x``."""
        count = count or self._lanes or 1
        is_first = count == len(lanes) and lanes[0] == 0
        return x if is_first else self._emit(f"shufflevector {x}, {y} {lanes} : vector<{count}x{element}>")

    def polynomial(self, x: str, coefficients: Sequence[float]) -> str:
        """Emit a polynomial of ``x`` by Horner's rule; coefficients are given lowest power first."""
        *lower, highest = coefficients
        total = self.number(highest)
        for coefficient in reversed(lower):
            total = self.fma(total, x, self.number(coefficient))
        return total

    def negation(self, condition: str) -> str:
        """Emit whether a condition does not hold."""
        return self._emit(f"xor {condition}, {self._constant('i1', '1')} : {self._flags}")

    def intrinsic(self, name: str, *values: str) -> str:
        """Emit one of LLVM's functions of floats, which for vectors may be a call for each lane."""
        types = ", ".join([self.type] * len(values))
        return self._emit(f"intr.{name}({', '.join(values)}) : ({types}) -> {self.type}")

    def magnitude(self, x: str) -> str:
        """Emit ``x`` without its sign."""
        return self.float_of(self.and_bits(self.bits(x), self.integer((1 << (self.width - 1)) - 1)))

    def with_sign(self, magnitude: str, x: str) -> str:
        """Emit ``magnitude``, which has no sign, with the sign of ``x``."""
        sign = self.and_bits(self.bits(x), self.integer(-1 << (self.width - 1)))
        return self.float_of(self.or_bits(self.bits(magnitude), sign))

    def is_negative(self, x: str) -> str:
        """Emit whether the sign bit of ``x`` is set."""
        return self._emit(f'icmp "slt" {self.bits(x)}, {self.integer(0)} : {self._bits}')

    def select(self, condition: str, x: str, y: str) -> str:
        """Emit ``x`` where the condition holds, else ``y``."""
        return self._emit(f"select {condition}, {x}, {y} : {self._flags}, {self.type}")

    def chosen_bits(self, mask: str, x: str, y: str) -> str:
        """Emit the float ``x`` where all bits of an integer are set, and ``y`` where none is."""
        # Three operations on bits, where comparing integers takes old processors longer.
        x, y = self.bits(x), self.bits(y)
        return self.float_of(self.xor_bits(y, self.and_bits(mask, self.xor_bits(x, y))))

    def shift_left(self, x: str, places: int) -> str:
        """Emit an integer with its bits moved up; those that leave at the top are dropped."""
        return self._emit(f"shl {x}, {self.integer(places)} : {self._bits}")

    def shift_right(self, x: str, places: int) -> str:
        """Emit an integer with its bits moved down; zeros enter at the top."""
        return self._emit(f"lshr {x}, {self.integer(places)} : {self._bits}")
