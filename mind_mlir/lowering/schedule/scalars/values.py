"""Scalars of a graph at a place in a nest, as numbers or as vectors along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.lowering.schedule.linalg_view.values import repeat
from mind_mlir.lowering.schedule.scalars.graph import Scalar, ordered
from mind_mlir.mlir.bindings import Value, arith, ir, vector

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from mind_mlir.lowering.schedule.emission.emitter import Index
    from mind_mlir.lowering.schedule.linalg_view.buffers import Lanes

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
        self._e = lanes.e
        self._lanes = lanes
        self._vectors = lanes.vectors
        self._along = along
        self._scalars: dict[Scalar, Value] = {}
        self._several: dict[Scalar, list[Value]] = {}
        self._env: dict[int, Index] = {}
        self._read: ReadInput | None = None

    def inside(self, env: Mapping[int, Index], read: ReadInput | None = None) -> ScalarValues:
        """Return what is known at a place within, where axes are known too, and ``read`` reads inputs."""
        inner = ScalarValues(self._lanes, self._along)
        inner._scalars, inner._several = dict(self._scalars), dict(self._several)
        inner._env = {**self._env, **env}
        inner._read = read or self._read
        return inner

    def know(self, node: Scalar, vectors: Sequence[Value]) -> None:
        """Let ``node`` be ``vectors``."""
        self._several[node] = list(vectors)

    def compute(self, roots: Iterable[Scalar], stop: Collection[Scalar], without: int) -> None:
        """Emit what ``roots`` are computed from down to ``stop``, where it does not depend on ``without``.

        Folds have to be known.
        """
        for node in ordered(roots, stop=stop):
            if without not in node.axes and node not in stop and node.kind != "fold":
                self.vectors(node)

    def vectors(self, node: Scalar) -> list[Value]:
        """Return ``node`` as vectors; emits what it is computed from."""
        if node not in self._several:
            self._several[node] = self._vectors_of(node)
        return self._several[node]

    def _vectors_of(self, node: Scalar) -> list[Value]:
        type_ = self._lanes.type(node.type)
        if node.kind == "constant":
            return [self._e.splat(type_, node.value)] * self._vectors
        if self._is_scalar(node):
            return [self._e.broadcast(type_, self.scalar(node))] * self._vectors
        if node.kind == "index":
            return [self._positions(type_, number) for number in range(self._vectors)]
        if node.kind == "input":
            assert self._read is not None
            found = self._read(node)
            return found if isinstance(found, list) else [found] * self._vectors
        assert node.op is not None, f"{node.kind} is not known yet"
        operands = [self.vectors(operand) for operand in node.operands]
        return [
            repeat(node.op, [operand[number] for operand in operands], (self._lanes.count,))[0]
            for number in range(self._vectors)
        ]

    def _is_scalar(self, node: Scalar) -> bool:
        return self._along not in node.axes and not node.scored

    def scalar(self, node: Scalar) -> Value:
        """Return ``node``, which is the same in all lanes, as a number."""
        if node not in self._scalars:
            self._scalars[node] = self._scalar_of(node)
        return self._scalars[node]

    def _scalar_of(self, node: Scalar) -> Value:
        if node.kind == "constant":
            return self._e.constant(node.type, node.value)
        if node.kind == "index":
            return self._e.index(self._env[node.number])
        if node.kind == "input":
            assert self._read is not None
            found = self._read(node)
            assert not isinstance(found, list)
            return found
        assert node.op is not None
        return repeat(node.op, [self.scalar(operand) for operand in node.operands], ())[0]

    def _positions(self, type_: ir.Type, number: int) -> Value:
        first = self._e.add(self._env[self._along], number * self._lanes.count)
        start = self._e.broadcast(type_, self._e.index(first))
        return arith.AddIOp(start, vector.StepOp(type_).result).result
