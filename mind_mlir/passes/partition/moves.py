"""How parts of a value become other parts of it: which collectives, and how many bytes they move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mind_mlir.collectives.call import CollectiveCall, written
from mind_mlir.collectives.exchange import Spread
from mind_mlir.collectives.traffic import traffic
from mind_mlir.ir.sharding import Sharding
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.mesh import Mesh
    from mind_mlir.ir.types import DType, TensorType

#: The axes that divide each dimension of a value, the outermost first.
Axes: TypeAlias = "tuple[tuple[str, ...], ...]"


class Parting(NamedTuple):
    """What each rank has of a value.

    Attributes:
        dims: The axes that divide each dimension.
        partial: The axes along which what ranks have is still to be joined.
        kind: How, as `AllReduce` has it.
    """

    dims: Axes
    partial: tuple[str, ...] = ()
    kind: str = "sum"

    def __str__(self) -> str:
        parts = [str(Sharding(self.dims)) or "whole"]
        return ", ".join(
            [*parts, f"{self.kind} along {'+'.join(self.partial)} to come"] if self.partial else parts
        )


def whole(rank: int) -> Parting:
    """Return the layout of a value that all ranks have."""
    return Parting(((),) * rank)


@dataclass(frozen=True, slots=True)
class Move:
    """One operation on the way from one layout to another.

    Attributes:
        opcode: The operation.
        attributes: Its attributes.
        type: The type of its result on each rank.
        layout: The layout after it.
        sent: How many bytes each rank sends, where each is a process of its own.
    """

    opcode: str
    attributes: Mapping[str, AttributeValue]
    type: TensorType
    layout: Parting
    sent: int


def count_of(mesh: Mesh, axes: Sequence[str]) -> int:
    """Return into how many parts axes divide a dimension."""
    return mesh.extent(",".join(axes)) if axes else 1


def local_type(mesh: Mesh, type_: TensorType, dims: Axes) -> TensorType:
    """Return the type of each part of a value."""
    pairs = zip(type_.extents, dims, strict=True)
    return type_.with_shape(tuple([extent // count_of(mesh, axes) for extent, axes in pairs]))


@lru_cache(maxsize=4096)
def steps(mesh: Mesh, type_: TensorType, source: Parting, target: Axes) -> tuple[Move, ...]:
    """Return how a value of a type comes from one layout to another, in which nothing is to be joined.

    Sums are made where each rank keeps its part if they are to be divided, axes go from one dimension to
    another without all being gathered, and what is not divided yet is divided before anything is sent.
    """
    return tuple(_Way(mesh, type_, source).to(target))


def bytes_of(mesh: Mesh, type_: TensorType, source: Parting, target: Axes) -> int:
    """Return how many bytes each rank sends for that."""
    if source.dims == target and not source.partial:
        return 0
    return sum([step.sent for step in steps(mesh, type_, source, target)])


class _Way:
    """Finds the steps: where they have come is ``layout``."""

    def __init__(self, mesh: Mesh, type_: TensorType, layout: Parting) -> None:
        self.mesh, self.whole, self.layout = mesh, type_, layout

    def to(self, target: Axes) -> Iterator[Move]:
        yield from self._joined(target)
        while self.layout.dims != target:
            yield self._next(target)

    def _joined(self, target: Axes) -> Iterator[Move]:
        """Join what is partial: where a dimension is to be divided along that axis, each rank its part."""
        axis = self._wanted(target, self.layout.partial)
        while axis is not None:
            name = target[axis][len(self.layout.dims[axis])]
            rest = tuple([each for each in self.layout.partial if each != name])
            layout = self.layout._replace(
                dims=self._with(axis, (*self.layout.dims[axis], name)), partial=rest
            )
            yield self._step("ReduceScatter", (name,), layout, axis=axis, kind=self.layout.kind)
            axis = self._wanted(target, self.layout.partial)
        if self.layout.partial:
            names = tuple([name for name in self.mesh.axes if name in self.layout.partial])
            layout = self.layout._replace(partial=())
            yield self._step("AllReduce", names, layout, kind=self.layout.kind)

    def _wanted(self, target: Axes, names: Sequence[str]) -> int | None:
        """Return the first dimension that is to be divided further, along one of ``names``."""
        for at, (now, then) in enumerate(zip(self.layout.dims, target, strict=True)):
            if len(then) > len(now) and then[: len(now)] == now and then[len(now)] in names:
                return at
        return None

    def _next(self, target: Axes) -> Move:
        dims = self.layout.dims
        used = [name for axes in dims for name in axes]
        free = [name for name in self.mesh.axes if name not in used]
        if self._wanted(target, free) is not None:
            return self._divided(target, free)
        for at, (now, then) in enumerate(zip(dims, target, strict=True)):
            last = now[-1:]
            into = self._wanted(target, last) if now != then and len(last) else None
            if into is not None and into != at and then != now and then[: len(now)] != now:
                layout = Parting(self._with(at, now[:-1]))
                layout = Parting((*layout.dims[:into], (*dims[into], *last), *layout.dims[into + 1 :]))
                return self._step("AllToAll", last, layout, split_axis=into, concat_axis=at)
        # Gathering what is smallest in the end leaves least to move.
        at = next(
            at for at, (now, then) in enumerate(zip(dims, target, strict=True)) if then[: len(now)] != now
        )
        same = 0
        while dims[at][: same + 1] == target[at][: same + 1]:
            same += 1
        return self._step("AllGather", dims[at][same:], Parting(self._with(at, dims[at][:same])), axis=at)

    def _divided(self, target: Axes, free: Sequence[str]) -> Move:
        """Let each rank keep its part along all axes that nothing is divided by yet."""
        added, dims = [], list(self.layout.dims)
        for at, then in enumerate(target):
            more: list[str] = []
            if then[: len(dims[at])] == dims[at]:
                for name in then[len(dims[at]) :]:
                    if name not in free:
                        break
                    more.append(name)
            added.append(tuple(more))
            dims[at] = (*dims[at], *more)
        layout = Parting(tuple(dims))
        attributes: dict[str, AttributeValue] = {"mesh": str(self.mesh), "sharding": str(Sharding(added))}
        self.layout = layout
        return Move("TakePart", attributes, local_type(self.mesh, self.whole, layout.dims), layout, 0)

    def _with(self, at: int, axes: tuple[str, ...]) -> Axes:
        dims = self.layout.dims
        return (*dims[:at], axes, *dims[at + 1 :])

    def _step(self, opcode: str, axes: Sequence[str], layout: Parting, **attributes: Any) -> Move:
        given = {"mesh": str(self.mesh), "axes": ",".join(axes), **attributes}
        before, after = (local_type(self.mesh, self.whole, each.dims) for each in (self.layout, layout))
        self.layout = layout
        text = written(opcode, given, before.dtype, before.extents, after.extents, "")
        return Move(opcode, given, after, layout, sent_by_each(text))


@lru_cache(maxsize=4096)
def sent_by_each(call: str) -> int:
    """Return how many bytes each rank sends in a collective, where each is a process of its own."""
    made = CollectiveCall(call)
    return traffic(made, Spread(made.count, made.count, 0))


def can_be_moved(dtype: DType) -> bool:
    """Return whether collectives take a dtype."""
    return dtype.bits != 4
