"""Writes functions of the LLVM dialect as text.

Micro-kernels are the same for every program, so they are written once, as text, which reads in a fraction of
the time that building and converting their operations would take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Loops are written as they are to run.
_AS_WRITTEN = (
    "#llvm.loop_annotation<vectorize = <disable = true>, unroll = <disable = true>, mustProgress = true>"
)

#: A value: its name and its type.
Typed = tuple[str, str]


def vector(lanes: int, element: str) -> str:
    """Return a vector type; the element type itself for no lanes."""
    return f"vector<{lanes}x{element}>" if lanes else element


class Text:
    """The body of one function, line by line; counts names and blocks."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names = 0
        self._blocks = 0
        self._constants: dict[str, str] = {}
        self._slots: list[tuple[str, str, str, str]] = []

    def function(self, name: str, buffers: Sequence[str], numbers: Sequence[str], start: str = "") -> str:
        """Return the function ``name``, which has this body and returns nothing.

        Args:
            name: Its symbol.
            buffers: The names of its pointers.
            numbers: Those of its integers, behind these.
            start: The type of ``%start``, what sums start from, if that and the flag ``%adds`` are arguments.
        """
        arguments = [f"%{each}: !llvm.ptr" for each in buffers] + [f"%{each}: i64" for each in numbers]
        head = ", ".join([*arguments, *([f"%start: {start}", "%adds: i1"] if start else [])])
        constants = [f"  {value} = {text}" for text, value in self._constants.items()]
        for place, one, first, type_ in self._slots:
            size = "{alignment = 64 : i64} : (i64) -> !llvm.ptr"
            constants.append(f"  {place} = llvm.alloca {one} x {type_} {size}")
            constants.append(f"  llvm.store {first}, {place} {{alignment = 64 : i64}} : {type_}, !llvm.ptr")
        return "\n".join(
            (
                f'llvm.func @{name}({head}) attributes {{sym_visibility = "private"}} {{',
                *constants,
                *self._lines,
                "  llvm.return",
                "}",
            )
        )

    def line(self, text: str) -> None:
        """Append an operation without a result."""
        self._lines.append(f"  {text}")

    def op(self, text: str) -> str:
        """Append an operation and return the name of its result."""
        self._names += 1
        name = f"%{self._names}"
        self._lines.append(f"  {name} = {text}")
        return name

    def constant(self, value: str, type_: str) -> str:
        """Return a constant, which stands at the head of the function: ``0`` of ``i64``, ``dense<0>``."""
        typed = value if type_ == "i1" else f"{value} : {type_}"
        text = f"llvm.mlir.constant({typed}) : {type_}"
        return self._constants.setdefault(text, f"%c{len(self._constants)}")

    def slot(self, type_: str, start: str) -> str:
        """Return memory of the function for a vector, aligned to 64 bytes, that holds ``start`` at first."""
        place = f"%s{len(self._slots)}"
        self._slots.append((place, self.constant("1", "i64"), self.constant(start, type_), type_))
        return place

    def number(self, value: int) -> str:
        """Return an i64 constant."""
        return self.constant(str(value), "i64")

    def zero(self, element: str, lanes: int = 0) -> str:
        """Return the constant zero, a vector of so many lanes if there are any."""
        value = "0" if element[0] == "i" else "0.0"
        return self.constant(f"dense<{value}>" if lanes else value, vector(lanes, element))

    def binary(self, op: str, left: str, right: str, type_: str = "i64") -> str:
        """Append ``llvm.<op>``."""
        return self.op(f"llvm.{op} {left}, {right} : {type_}")

    def sum(self, left: str, right: str, element: str, lanes: int) -> str:
        """Append an addition of elements of a type."""
        return self.binary("add" if element[0] == "i" else "fadd", left, right, vector(lanes, element))

    def multiply_add(self, left: str, right: str, sums: str, element: str, lanes: int, *, fma: bool) -> str:
        """Append ``sums`` plus a product, fused if that is said and they are floats."""
        type_ = vector(lanes, element)
        if fma and element[0] != "i":
            return self.op(f"llvm.intr.fma({left}, {right}, {sums}) : ({type_}, {type_}, {type_}) -> {type_}")
        product = self.binary("mul" if element[0] == "i" else "fmul", left, right, type_)
        return self.sum(sums, product, element, lanes)

    def add(self, left: str, right: str) -> str:
        """Append an addition of i64."""
        return self.binary("add", left, right)

    def mul(self, left: str, right: str) -> str:
        """Append a multiplication of i64."""
        return self.binary("mul", left, right)

    def minimum(self, left: str, right: str) -> str:
        """Append the minimum of two non-negative i64."""
        return self.op(f"llvm.intr.umin({left}, {right}) : (i64, i64) -> i64")

    def compare(self, predicate: str, left: str, right: str, type_: str = "i64") -> str:
        """Append a comparison."""
        return self.op(f'llvm.icmp "{predicate}" {left}, {right} : {type_}')

    def select(self, condition: str, on: str, off: str, type_: str, kind: str = "i1") -> str:
        """Append a selection by a condition of type ``kind``."""
        return self.op(f"llvm.select {condition}, {on}, {off} : {kind}, {type_}")

    def step(self, pointer: str, offset: str | int, element: str) -> str:
        """Append the pointer ``offset`` elements further on."""
        if isinstance(offset, int):
            if offset == 0:
                return pointer
            return self.op(f"llvm.getelementptr {pointer}[{offset}] : (!llvm.ptr) -> !llvm.ptr, {element}")
        return self.op(f"llvm.getelementptr {pointer}[{offset}] : (!llvm.ptr, i64) -> !llvm.ptr, {element}")

    def load(self, pointer: str, type_: str, alignment: int) -> str:
        """Append a load of memory aligned to ``alignment`` bytes."""
        return self.op(f"llvm.load {pointer} {{alignment = {alignment} : i64}} : !llvm.ptr -> {type_}")

    def store(self, value: str, pointer: str, type_: str, alignment: int) -> None:
        """Append a store to memory aligned to ``alignment`` bytes."""
        self.line(f"llvm.store {value}, {pointer} {{alignment = {alignment} : i64}} : {type_}, !llvm.ptr")

    def stream(self, value: str, pointer: str, lanes: int, element: str) -> None:
        """Append a store past the cache, of a vector to memory aligned to its size."""
        alignment = lanes * byte_width(element)
        self.line(
            f"llvm.store {value}, {pointer} {{alignment = {alignment} : i64, nontemporal}}"
            f" : {vector(lanes, element)}, !llvm.ptr"
        )

    def masked_load(self, pointer: str, mask: str, off: str, lanes: int, element: str) -> str:
        """Append a load of the lanes that are on; the others are those of ``off``."""
        type_ = vector(lanes, element)
        return self.op(
            f"llvm.intr.masked.load {pointer}, {mask}, {off} {{alignment = {byte_width(element)} : i32}}"
            f" : (!llvm.ptr, vector<{lanes}xi1>, {type_}) -> {type_}"
        )

    def read(self, pointer: str, conversions: str, lanes: int, mask: str | None = None) -> str:
        """Append elements as accumulators: a scalar for no lanes; zeros in lanes that ``mask`` has off.

        Args:
            pointer: Where they are.
            conversions: Their type in memory and what makes accumulators of them, as `convert` takes it.
            lanes: How many there are.
            mask: Which of them are there, if not all are.
        """
        stored = conversions.split(":", maxsplit=1)[0]
        if mask is None:
            value = self.load(pointer, vector(lanes, stored), byte_width(stored))
        else:
            value = self.masked_load(pointer, mask, self.zero(stored, lanes), lanes, stored)
        return convert(self, conversions, value, lanes)

    def masked_store(self, value: str, pointer: str, mask: str, lanes: int, element: str) -> None:
        """Append a store of the lanes that are on."""
        self.line(
            f"llvm.intr.masked.store {value}, {pointer}, {mask} {{alignment = {byte_width(element)} : i32}}"
            f" : {vector(lanes, element)}, vector<{lanes}xi1> into !llvm.ptr"
        )

    def prefetch(self, pointer: str, *, level: int = 1) -> None:
        """Append a hint that memory will be read, to the cache ``level``; it may be anywhere."""
        hints = f"<{{cache = 1 : i32, hint = {4 - level} : i32, rw = 0 : i32}}>"
        self.line(f'"llvm.intr.prefetch"({pointer}) {hints} : (!llvm.ptr) -> ()')

    def splat(self, scalar: str, lanes: int, element: str) -> str:
        """Append a vector of ``scalar`` in every lane."""
        type_ = vector(lanes, element)
        undefined = self.op(f"llvm.mlir.poison : {type_}")
        one = self.op(f"llvm.insertelement {scalar}, {undefined}[{self.number(0)} : i64] : {type_}")
        return self.shuffle(one, one, [0] * lanes, type_)

    def shuffle(self, left: str, right: str, lanes: Sequence[int], type_: str) -> str:
        """Append a shuffle of the lanes of two vectors."""
        return self.op(f"llvm.shufflevector {left}, {right} {list(lanes)} : {type_}")

    def mask(self, live: str, first: int, lanes: int) -> str:
        """Append the mask of a vector whose lanes are numbers ``first`` and up: on are those below ``live``.

        Its bits are computed as an integer: LLVM would repeat a comparison wherever the mask is used.
        """
        after = self.binary(
            "sub",
            self.op(f"llvm.intr.umax({live}, {self.number(first)}) : (i64, i64) -> i64"),
            self.number(first),
        )
        off = self.binary("sub", self.number(64), self.minimum(after, self.number(lanes)))
        # A shift by 64, where no lane is on, would be undefined: shift by one less, and then by one.
        some = self.minimum(off, self.number(63))
        bits = self.binary("lshr", self.number(-1), some)
        bits = self.binary("lshr", bits, self.binary("sub", off, some))
        if lanes < 64:
            bits = self.op(f"llvm.trunc {bits} : i64 to i{lanes}")
        return self.op(f"llvm.bitcast {bits} : i{lanes} to {vector(lanes, 'i1')}")

    def masks(self, live: str, count: int, lanes: int) -> list[str]:
        """Append the masks of ``count`` vectors side by side, as `mask`; of one lane or more, they are on.

        They are parts of one integer if that has a bit for each lane.
        """
        if count * lanes > 64:
            return [self.mask(live, v * lanes, lanes) for v in range(count)]
        off = self.binary("sub", self.number(64), self.minimum(live, self.number(64)))
        bits = self.binary("lshr", self.number(-1), off)
        found = []
        for v in range(count):
            part = self.binary("lshr", bits, self.number(v * lanes)) if v else bits
            if lanes < 64:
                part = self.op(f"llvm.trunc {part} : i64 to i{lanes}")
            found.append(self.op(f"llvm.bitcast {part} : i{lanes} to {vector(lanes, 'i1')}"))
        return found

    def loop(
        self,
        count: str,
        carried: Sequence[Typed],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """Append a loop of ``count`` iterations, one or more, and return what it carries out.

        Args:
            count: An i64.
            carried: Initial values of what it carries.
            body: Appends the body, given the number of the iteration and what is carried; returns the next.
        """
        head, end = self._block(), self._block()
        types = [type_ for _, type_ in carried]
        self._names += 1
        number = f"%{self._names}"
        inside = [self._name() for _ in carried]
        first = f"{head}{_list([(self.number(0), 'i64'), *carried])}"
        self.line(f"llvm.br {first}")
        self._lines.append(f"{head}{_list([(number, 'i64'), *zip(inside, types, strict=True)], ': ')}:")
        following = body(number, inside)
        after = self.add(number, self.number(1))
        more = self.compare("ult", after, count)
        again = f"{head}{_list([(after, 'i64'), *zip(following, types, strict=True)])}"
        self.line(f"llvm.cond_br {more}, {again}, {end} {{loop_annotation = {_AS_WRITTEN}}}")
        self._lines.append(f"{end}:")
        # Only the loop leads to its end: arguments there would be copies, and take LLVM its time.
        return following

    def either(
        self, condition: str, on: Callable[[], object], off: Callable[[], object] | None = None
    ) -> None:
        """Append a branch."""
        first, second, end = self._block(), self._block(), self._block()
        self.line(f"llvm.cond_br {condition}, {first}, {second}")
        for block, body in ((first, on), (second, off)):
            self._lines.append(f"{block}:")
            if body is not None:
                body()
            self.line(f"llvm.br {end}")
        self._lines.append(f"{end}:")

    def _name(self) -> str:
        self._names += 1
        return f"%{self._names}"

    def _block(self) -> str:
        self._blocks += 1
        return f"^bb{self._blocks}"


def _list(values: Sequence[Typed], colon: str = "") -> str:
    """Return values with their types: one by one as a block declares them, or together as a branch does."""
    if not values:
        return ""
    if colon:
        return f"({', '.join(f'{name}{colon}{type_}' for name, type_ in values)})"
    return f"({', '.join(name for name, _ in values)} : {', '.join(type_ for _, type_ in values)})"


#: Conversions of the bits of f16 and bf16 to f32 where no instruction does them, or code generators call for
#: help even where numbers are only moved.
HALF, SHORT = "half", "short"
#: A step that converts nothing: it says what type of a program the elements, which are only moved, are of.
OF = "of"
#: A step that takes two elements side by side as a word.
PAIR = "pair"


def byte_width(element: str) -> int:
    """Return the bytes of an element type: ``f32``, ``bf16``, ``i8``."""
    return int(element.lstrip("bfi")) // 8


def convert(t: Text, conversions: str, value: str, lanes: int) -> str:
    """Append the conversions of an element type, as in ``f32:fpext f64``, for a vector or a scalar."""
    element, *steps = conversions.split(":")
    for step in steps:
        op, result = step.split(" ")
        if op == OF:
            continue
        before, after = (vector(lanes, each) for each in (element, result))
        if op in (HALF, SHORT):
            value = _half(t, value, lanes) if op == HALF else _short(t, value, lanes)
            before = vector(lanes, "f32")
            op = "fpext"
        if before != after:
            value = t.op(f"llvm.{op} {value} : {before} to {after}")
        element = result
    return value


def _short(t: Text, value: str, lanes: int) -> str:
    """Append f32 of the bits of bf16, its upper half."""
    short, word, single = (vector(lanes, each) for each in ("i16", "i32", "f32"))
    wide = t.op(f"llvm.zext {value} : {short} to {word}")
    shifted = t.binary("shl", wide, t.constant("dense<16>" if lanes else "16", word), word)
    return t.op(f"llvm.bitcast {shifted} : {word} to {single}")


def _half(t: Text, value: str, lanes: int) -> str:
    """Append f32 of the bits of f16, with integers: what `lowering.narrow_floats` makes of it elsewhere."""
    short, word, single = (vector(lanes, each) for each in ("i16", "i32", "f32"))

    def number(bits: int) -> str:
        return t.constant(f"dense<{bits}>" if lanes else str(bits), word)

    def chosen(predicate: str, limit: int, on: str, off: str) -> str:
        flag = t.compare(predicate, shifted, number(limit), word)
        return t.select(flag, on, off, word, vector(lanes, "i1"))

    wide = t.op(f"llvm.zext {value} : {short} to {word}")
    sign = t.binary("shl", t.binary("and", wide, number(0x8000), word), number(16), word)
    shifted = t.binary("shl", t.binary("and", wide, number(0x7FFF), word), number(13), word)
    offset = 112 << 23  # between the exponents' biases
    normal = t.binary("add", shifted, number(offset), word)
    special = t.binary("or", normal, number(0x7F800000), word)  # infinity and NaN
    least, raised = (
        t.op(f"llvm.bitcast {each} : {word} to {single}")
        for each in (number(113 << 23), t.binary("add", shifted, number(113 << 23), word))
    )
    small = t.op(f"llvm.bitcast {t.binary('fsub', raised, least, single)} : {single} to {word}")
    normal = chosen("sge", 0x7C00 << 13, special, normal)
    number_bits = t.binary("or", chosen("slt", 1 << 23, small, normal), sign, word)
    return t.op(f"llvm.bitcast {number_bits} : {word} to {single}")
