"""Micro-kernels as functions of the LLVM dialect, what they have in common, and the writer of their text.

They are the same for every program, so they are written once, as text, which reads in a fraction of the time
that building and converting their operations would take.
"""

from __future__ import annotations

import dataclasses
import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from mind_mlir.lowering.kernels.llvm_text import TextValue, vector

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Loops are written as they are to run.
_AS_WRITTEN = (
    "#llvm.loop_annotation<vectorize = <disable = true>, unroll = <disable = true>, mustProgress = true>"
)


class TextLoop:
    """The body of a loop, while it is appended.

    Attributes:
        number: The number of the iteration.
        following: What the next one begins with. The loop carries that out, too: it alone leads to its end,
            where arguments would be copies, and take LLVM its time.
    """

    def __init__(self, number: TextValue) -> None:
        self.number = number
        self.following: Sequence[TextValue] = ()

    def next(self, *values: TextValue) -> None:
        """Say what the next iteration begins with."""
        self.following = values


class Text:
    """The body of one function, line by line; ``t["rows"]`` is an integer that it is given."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._names = 0
        self._blocks = 0
        self._constants: dict[str, str] = {}
        self._slots: list[tuple[TextValue, TextValue]] = []

    def __getitem__(self, name: str) -> TextValue:
        return TextValue(self, f"%{name}", "i64")

    def begin(self, name: str, element: str) -> TextValue:
        """Append where buffer ``name`` begins, of elements with conversions to accumulators."""
        return self.at(name, element) + self[f"{name}_first"]

    def at(self, name: str, element: str) -> TextValue:
        """Return the pointer of buffer ``name``, to such elements."""
        return TextValue(self, f"%{name}", element, is_pointer=True)

    @property
    def adds(self) -> TextValue:
        """Whether sums are added to what is in memory."""
        return TextValue(self, "%adds", "i1")

    def start(self, element: str) -> TextValue:
        """Return what sums start from else."""
        return TextValue(self, "%start", element)

    def function(self, kernel: MicroKernel) -> str:
        """Return the function of ``kernel``, whose body this is: pointers are its first arguments."""
        arguments = [f"%{each}: !llvm.ptr" for each in kernel.buffers]
        arguments += [f"%{each}: i64" for each in kernel.arguments]
        arguments += [f"%start: {kernel.element}", "%adds: i1"] if kernel.adds else []
        head = f"@{kernel.name}({', '.join(arguments)})"
        lines = [f'llvm.func {head} attributes {{sym_visibility = "private"}} {{']
        lines += [f"  {value} = {text}" for text, value in self._constants.items()]
        for place, first in self._slots:
            size = "{alignment = 64 : i64} : (i64) -> !llvm.ptr"
            lines.append(f"  {place} = llvm.alloca {self.number(1)} x {first.type} {size}")
            lines.append(f"  llvm.store {first}, {place} {{alignment = 64 : i64}} : {first.type}, !llvm.ptr")
        return "\n".join([*lines, *self._lines, "  llvm.return", "}"])

    def line(self, text: str) -> None:
        """Append an operation without a result."""
        self._lines.append(f"  {text}")

    def block(self) -> str:
        """Return the name of a new block."""
        self._blocks += 1
        return f"^bb{self._blocks}"

    def named(self, element: str, lanes: int = 0, is_pointer: bool = False) -> TextValue:
        """Return a new value."""
        self._names += 1
        return TextValue(self, f"%{self._names}", element, lanes, is_pointer=is_pointer)

    def op(self, text: str, element: str, lanes: int = 0, *, is_pointer: bool = False) -> TextValue:
        """Append an operation and return its result."""
        value = self.named(element, lanes, is_pointer)
        self._lines.append(f"  {value.name} = {text}")
        return value

    def call(self, name: str, operands: Sequence[TextValue], element: str, lanes: int = 0) -> TextValue:
        """Append a call of the intrinsic ``name``."""
        given, types = (
            ", ".join(each) for each in zip(*((one.name, one.type) for one in operands), strict=True)
        )
        text = f'llvm.call_intrinsic "{name}"({given}) : ({types}) -> {vector(lanes, element)}'
        return self.op(text, element, lanes)

    def poison(self, element: str, lanes: int) -> TextValue:
        """Append a vector of anything."""
        return self.op(f"llvm.mlir.poison : {vector(lanes, element)}", element, lanes)

    def constant(self, value: float | str, element: str, lanes: int = 0) -> TextValue:
        """Return a constant, which stands at the head of the function: a number, or how it is spelled."""
        text = value if isinstance(value, str) else str(value if element[0] == "i" else float(value))
        typed = f"dense<{text}>" if lanes else text
        type_ = vector(lanes, element)
        key = f"llvm.mlir.constant({typed if element == 'i1' else f'{typed} : {type_}'}) : {type_}"
        return TextValue(self, self._constants.setdefault(key, f"%c{len(self._constants)}"), element, lanes)

    def number(self, value: int) -> TextValue:
        """Return an i64 constant."""
        return self.constant(value, "i64")

    def slot(self, start: TextValue) -> TextValue:
        """Return memory of the function for a vector, aligned to 64 bytes, that holds ``start`` at first."""
        self.number(1)
        place = TextValue(self, f"%s{len(self._slots)}", start.element, is_pointer=True)
        self._slots.append((place, start))
        return place

    def buffer(self, count: int, element: str) -> TextValue:
        """Append memory for so many elements."""
        size = "{alignment = 64 : i64} : (i64) -> !llvm.ptr"
        return self.op(f"llvm.alloca {self.number(count)} x {element} {size}", element, is_pointer=True)

    @contextmanager
    def loop(self, count: TextValue | int, *carried: TextValue) -> Iterator[tuple[TextLoop, list[TextValue]]]:
        """Append a loop of ``count`` iterations, one or more, which carries values from one to the next.

        Yields the loop, and what is carried, as an iteration begins.
        """
        end_of = self.number(count) if isinstance(count, int) else count
        head, end = self.block(), self.block()
        kinds = [(each.element, each.lanes, each.is_pointer) for each in (self.number(0), *carried)]
        number, *inside = (self.named(*kind) for kind in kinds)
        loop = TextLoop(number)
        self.line(f"llvm.br {head}{_list([self.number(0), *carried])}")
        arguments = ", ".join(f"{each}: {each.type}" for each in (number, *inside))
        self._lines.append(f"{head}({arguments}):")
        yield loop, inside
        after = number + 1
        more = after.compare("ult", end_of)
        again = f"{head}{_list([after, *loop.following])}"
        self.line(f"llvm.cond_br {more}, {again}, {end} {{loop_annotation = {_AS_WRITTEN}}}")
        self._lines.append(f"{end}:")

    def branches(self, condition: TextValue) -> Iterator[bool]:
        """Append a branch: what is appended for True where ``condition`` holds, for False elsewhere."""
        first, second, end = self.block(), self.block(), self.block()
        self.line(f"llvm.cond_br {condition}, {first}, {second}")
        for block, holds in ((first, True), (second, False)):
            self._lines.append(f"{block}:")
            yield holds
            self.line(f"llvm.br {end}")
        self._lines.append(f"{end}:")

    @contextmanager
    def when(self, condition: TextValue) -> Iterator[None]:
        """Append a branch to what is appended meanwhile, where ``condition`` holds."""
        branches = self.branches(condition)
        next(branches)
        yield
        list(branches)

    @contextmanager
    def loop_if_any(
        self, count: TextValue, *carried: TextValue
    ) -> Iterator[tuple[TextLoop, list[TextValue]]]:
        """Append a loop of ``count`` iterations, of which there may be none."""
        with self.when(count.compare("ne", 0)), self.loop(count, *carried) as (loop, inside):
            yield loop, inside


def _list(values: Sequence[TextValue]) -> str:
    return f"({', '.join([each.name for each in values])} : {', '.join([each.type for each in values])})"


class MicroKernel:
    """A function that modules call, as a frozen dataclass of flags, integers and strings.

    Attributes:
        kind: What it does, in a word.
        buffers: The names of its pointers.
        numbers: Those of its integers behind these, and behind ``x_first``, where each buffer ``x`` begins:
            extents and strides.
        ones: Those of them that are 1 where a call does not say anything else. Others are 0.
        adds: Whether it is given what sums start from, and whether to add to the result.
        element: The type of accumulators and results, ``f32``, ``i64``.

    Fields of many kernels, which say no more of them:
        rows: All rows.
        lanes: Elements in a vector.
        left, right, source: The types of elements in memory, and their conversions to accumulators, as in
            ``f32:fpext f64``.
        fma: Whether products of floats are fused with their addition.
        masks: Whether loads and stores at edges take masks.
    """

    kind: ClassVar[str]
    buffers: ClassVar[tuple[str, ...]]
    numbers: ClassVar[tuple[str, ...]]
    ones: ClassVar[tuple[str, ...]] = ()
    adds: ClassVar[bool] = False
    element: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """All integers, in elements if nothing else is said; those where buffers begin are first."""
        return (*(f"{buffer}_first" for buffer in self.buffers), *self.numbers)

    @property
    def name(self) -> str:
        """The symbol of the function."""
        parts = []
        for name, value in dataclasses.asdict(self).items():  # type: ignore[call-overload]  # a dataclass
            if value is not False:
                parts.append(name if value is True else str(value))
        return symbol(self.kind, parts)

    def append(self, t: Text) -> None:
        """Append the body of the function."""
        raise NotImplementedError


@functools.cache
def function_of(kernel: MicroKernel) -> str:
    """Return ``kernel`` as a function of the LLVM dialect."""
    t = Text()
    kernel.append(t)
    return t.function(kernel)


def symbol(kind: str, parts: list[str]) -> str:
    """Return the symbol of a kernel that depends on ``parts``."""
    spelled = (part.replace(":", "_").replace(" ", "_").replace("-", "m") for part in parts)
    return "_".join(("mind", kind, *spelled))


def add_where(t: Text, place: TextValue, total: TextValue, start: TextValue, mask: TextValue) -> None:
    """Append the lanes of a sum that are on, added to those in memory if ``%adds``, else to ``start``."""
    old = place.load(total.lanes, mask, off=start)
    place.store(t.adds.select(old, start) + total, mask)


def store_sums(t: Text, sums: Sequence[tuple[TextValue, TextValue]], start: TextValue) -> None:
    """Append places and sums: each sum is added to what is there if ``%adds``, else to ``start``."""
    for adds in t.branches(t.adds):
        for place, total in sums:
            place.store((place.load(total.lanes) if adds else start) + total)
