"""Open extents of models: which of a call's are one, and a program for all in a range of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mind_mlir.diagnostics import MindError
from mind_mlir.ops.open_axes import NotOpen
from mind_mlir.runtime.binding_cache import BindingCache
from mind_mlir.runtime.extent_ranges import checked_ends
from mind_mlir.runtime.open_program import ExtentRanges, OpenProgram
from mind_mlir.runtime.staged import DEFAULT_MAX_SIGNATURES

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module
    from mind_mlir.support.options import CompileOptions

#: Shapes of a call's arrays; numbers that decide on a program are one more of them.
Shapes = tuple[tuple[int, ...], ...]

_SUM = re.compile(r"([A-Za-z_]\w*)(?: ([+-]) (\d+))?")


class OpenExtent(NamedTuple):
    """An extent that differs from call to call.

    Attributes:
        array: Which shape it is in.
        axis: Its axis.
        symbol: What it is called; extents of one name are one.
        offset: What is added to that.
    """

    array: int
    axis: int
    symbol: str
    offset: int = 0

    @classmethod
    def of(cls, array: int, axis: int, text: str) -> OpenExtent | None:
        """Return an extent that a framework writes as ``text``: a name, or one and a number."""
        found = _SUM.fullmatch(text)
        if found is None:
            return None
        symbol, sign, number = found.groups()
        return cls(array, axis, symbol, int(number or 0) * (-1 if sign == "-" else 1))


class OpenPrograms:
    """The programs of a model for ranges of its open extents.

    Attributes:
        reason: Why an extent has a program of its own; None as long as none has.
    """

    def __init__(
        self,
        extents: Sequence[OpenExtent],
        options: CompileOptions,
        buckets: object = None,
        reason: str | None = None,
    ) -> None:
        """Say which extents are open, or for what reason none is.

        Raises:
            TypeError: ``buckets`` is no sequence of integers.
            ValueError: One of them is below 1.
        """
        self.extents, self._options = tuple(extents), options
        ends = () if buckets is None else checked_ends(buckets, "buckets")
        self._buckets = {each.symbol: ends for each in extents}
        self._made: BindingCache[Hashable, OpenProgram | str] = BindingCache(DEFAULT_MAX_SIGNATURES)
        self.reason = reason

    @property
    def compiled(self) -> int:
        """Return for how many ranges of extents there is a program."""
        return sum(isinstance(each, OpenProgram) for _, each in self._made.items())

    def program(
        self,
        shapes: Shapes,
        trace: Callable[[Shapes], Module | None],
        constants: Callable[[], Mapping[str, Array] | None],
        more: Hashable = (),
    ) -> tuple[OpenProgram, Callable[..., list[Array]]] | None:
        """Return the program for all extents in the ranges of those of ``shapes``, and what runs these.

        Args:
            shapes: The shapes of a call.
            trace: Returns the program for some shapes; None where it computes nothing.
            constants: Returns the parameters that become part of the code, once it has been traced.
            more: What else decides on the program.

        Returns:
            None where no extent is open, or there is no such program, for `reason`.
        """
        bound = self._bound(shapes)
        ranges = ExtentRanges(bound, self._buckets)
        if not ranges.moved:
            return None

        def make() -> OpenProgram | str:
            try:
                made = ranges.module(lambda extents: _module(trace(self._with(shapes, extents))))
                return OpenProgram.of(made, self._options, constants())
            except NotOpen as reason:
                return reason.full
            except MindError as error:  # of an extent that nobody may ever ask for
                return error.diagnostics[0].message

        moved = self._with(shapes, dict.fromkeys(bound, 0))
        found = self._made.get((moved, tuple(ranges.ranges.items()), more), make)
        if isinstance(found, str):
            self.reason = found
            return None
        return found, found.bound([bound[name] for name in ranges.moved])

    def _bound(self, shapes: Shapes) -> dict[str, int]:
        """Return the extents of a call; none where two of a name differ, which a model may still take."""
        found: dict[str, int] = {}
        for each in self.extents:
            extent = shapes[each.array][each.axis] - each.offset
            if found.setdefault(each.symbol, extent) != extent:
                return {}
        return found

    def _with(self, shapes: Shapes, extents: Mapping[str, int]) -> Shapes:
        changed = [list(shape) for shape in shapes]
        for each in self.extents:
            changed[each.array][each.axis] = extents[each.symbol] + each.offset
        return tuple(map(tuple, changed)) if extents else shapes


def _module(module: Module | None) -> Module:
    if module is None:
        raise NotOpen("it computes nothing")
    return module
