"""Type promotion: the one table of the dtype that several have together, for operators and functions.

Dtypes are a lattice: those that have all numbers of another stand above it. Operands take the least dtype
that is above all of theirs. Numbers of Python stand in it by their kind alone, which is *weak*: between the
integers and the floats there is a float of no width, which takes that of the floats it meets, and is an f64
by itself. So integers and truth values never widen floats: i64 and f32 meet in f32.

The rules are those of the Python array API standard, "Type promotion rules", which leaves open what integers
and floats meet in; that, and what stands there for numbers, is as in JAX ("Type promotion semantics").
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mind_mlir.ir.elements import holds_all
from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.support.frozen import FrozenDict


class LatticeNode(NamedTuple):
    """The dtype of an operand, and whether another may take its place.

    Attributes:
        dtype: The dtype; that of a weak node is what it has by itself.
        weak: Whether it is a number's, which says a kind and no width.
    """

    dtype: DType
    weak: bool = False

    def __str__(self) -> str:
        return str(self.dtype)


#: The numbers of Python.
INTEGER, FLOAT, COMPLEX = (LatticeNode(dtype, weak=True) for dtype in (DType.SI64, DType.F64, DType.CF64))

#: The kind of the numbers of Python that integers without a sign are.
_KINDS = FrozenDict({DTypeKind.UNSIGNED: DTypeKind.SIGNED})


def node_of_number(dtype: DType) -> LatticeNode:
    """Return the node of a number that is of ``dtype`` for now."""
    if dtype is DType.I1:
        return LatticeNode(dtype, weak=True)
    return next(
        node for node in (INTEGER, FLOAT, COMPLEX) if node.dtype.kind is _KINDS.get(dtype.kind, dtype.kind)
    )


def joined(nodes: Iterable[LatticeNode]) -> LatticeNode | None:
    """Return the least node that is above all of ``nodes``; None where there is no least one."""
    return _joined(frozenset(nodes))


@functools.cache
def _joined(nodes: frozenset[LatticeNode]) -> LatticeNode | None:
    common = frozenset.intersection(*map(_up, nodes))
    return next((node for node in common if common <= _up(node)), None)


@functools.cache
def _up(node: LatticeNode) -> frozenset[LatticeNode]:
    """Return a node and all above it."""
    return frozenset({node}).union(*map(_up, _above(node)))


def _above(node: LatticeNode) -> Iterator[LatticeNode]:
    """Yield nodes above ``node``, among them all that stand directly above it."""
    dtype = node.dtype
    if node.weak:
        yield from (LatticeNode(other) for other in DType if node_of_number(other) == node)
        if node == FLOAT:
            yield COMPLEX
    elif dtype is DType.I1:
        yield INTEGER
    else:
        wider = (other for other in DType if other is not dtype and holds_all(other, dtype))
        yield from (LatticeNode(other) for other in wider if other.is_integer == dtype.is_integer)
        if dtype.is_integer:
            yield FLOAT
