"""Scalars of a graph at a place in a nest, as numbers or as vectors along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.lowering.schedule.scalars.graph import Scalar, ordered
from mind_mlir.mlir.bindings import Value, arith, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.buffers import Lanes
    from mind_mlir.mlir.bindings import Type

    #: Emits the elements of an input: one, or several vectors.
    ReadInput: TypeAlias = "Callable[[Scalar], Value | list[Value]]"


class ScalarValues:
    """What is known at a place, in the loops around it too.

    What does not depend on the axis that vectors run along is a number, all else several vectors.

    Args:
        lanes: The vectors.
        along: That axis.
    """

    def __init__(self, lanes: Lanes, along: int) -> None:
        self._lanes = lanes
        self._along = along
        #: Numbers, and vectors, by their scalars and whether they are these.
        self._known: dict[tuple[Scalar, bool], list[Value]] = {}
        self._env: dict[int, Index] = {}
        self._read: ReadInput | None = None

    def inside(self, env: Mapping[int, Index], read: ReadInput | None = None) -> ScalarValues:
        """Return what is known at a place within, where axes are known too, and ``read`` reads inputs."""
        inner = ScalarValues(self._lanes, self._along)
        inner._known = dict(self._known)
        inner._env = {**self._env, **env}
        inner._read = read or self._read
        return inner

    def know(self, node: Scalar, vectors: Sequence[Value]) -> None:
        """Let ``node`` be ``vectors``."""
        self._known[node, True] = list(vectors)

    def compute(self, roots: Iterable[Scalar], stop: Collection[Scalar], without: int) -> None:
        """Emit what ``roots`` are computed from down to ``stop``, where it does not depend on ``without``.

        Folds have to be known.
        """
        for node in ordered(roots, stop=stop):
            if without not in node.axes and node not in stop and node.kind != "fold":
                self.vectors(node)

    def vectors(self, node: Scalar) -> list[Value]:
        """Return ``node`` as vectors; emits what it is computed from."""
        return self._found(node, wide=True)

    def _found(self, node: Scalar, *, wide: bool) -> list[Value]:
        """Return ``node`` as vectors, or alone, as the number that is the same in all lanes."""
        if (node, wide) not in self._known:
            self._known[node, wide] = self._emitted(node, wide=wide)
        return self._known[node, wide]

    def _emitted(self, node: Scalar, *, wide: bool) -> list[Value]:
        e, lanes = self._lanes.e, self._lanes
        type_, count = (lanes.type(node.type), lanes.vectors) if wide else (node.type, 1)
        if node.kind == "constant":
            return [e.splat(type_, node.value)] * count
        if wide and self._along not in node.axes and not node.scored:
            return [e.broadcast(type_, *self._found(node, wide=False))] * count
        if node.kind == "index":
            first = self._env[node.number]
            return [self._positions(type_, first, c) for c in range(count)] if wide else [e.index(first)]
        if node.kind == "input":
            assert self._read is not None
            found = self._read(node)
            return found if isinstance(found, list) else [found] * count
        assert node.op is not None, f"{node.kind} is not known yet"
        operands = zip(*(self._found(each, wide=wide) for each in node.operands), strict=True)
        return [repeat(node.op, each, (lanes.count,) if wide else ())[0] for each in operands]

    def _positions(self, type_: Type, first: Index, number: int) -> Value:
        """Emit the numbers of the iterations of a vector, the one of that number from ``first`` on."""
        e = self._lanes.e
        start = e.broadcast(type_, e.index(e.add(first, number * self._lanes.count)))
        return arith.AddIOp(start, vector.StepOp(type_).result).result
