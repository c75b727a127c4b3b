"""Graphs of scalars: each stands for a number for every iteration of the axes that it depends on.

Bodies of linalg operations are read as such.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import Value, ir
from mind_mlir.mlir.values import attributes_of, integer_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

    from mind_mlir.mlir.bindings import Attribute, Block, Operation, Type


class OpaqueError(Exception):
    """A value that no graph can be made of."""


@dataclass(frozen=True, eq=False)
class Scalar:
    """A value of a graph; equal ones are one object.

    Attributes:
        kind: ``input``, ``product`` for a sum of products that a kernel computes, ``index``, ``constant``,
            ``fold`` for a reduction along an axis, or ``op``.
        type: The type of an element.
        operands: What it is computed from.
        axes: The axes that it depends on.
        number: Which input or product; the axis of an index.
        op: The operation of a body to repeat.
        value: Of a constant, its attribute.
        combiner: Of a fold, the name of the operation that combines two terms.
        either_zero: Of a fold, whether either zero may be the greater of two.
    """

    kind: str
    type: Type
    operands: tuple[Scalar, ...] = ()
    axes: frozenset[int] = frozenset()
    number: int = 0
    op: Operation | None = None
    value: Attribute | None = None
    combiner: str = ""
    either_zero: bool = False

    @property
    def name(self) -> str:
        """The name of its operation; its kind if there is none."""
        return self.kind if self.op is None else str(self.op.name)

    @cached_property
    def scored(self) -> bool:
        """Whether it depends on a product."""
        return self.kind == "product" or any(operand.scored for operand in self.operands)


class Scalars:
    """Makes scalars, each of them once."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Scalar] = {}

    def copy(self) -> Scalars:
        """Return what makes the same scalars, and others of its own."""
        other = Scalars()
        other._known = dict(self._known)
        return other

    def known(self, key: Hashable) -> Scalar | None:
        """Return the leaf of that key, if there is one."""
        return self._known.get(key)

    def leaf(self, key: Hashable, kind: str, type_: Type, axes: Iterable[int], number: int) -> Scalar:
        """Return an input or a product, which ``key`` tells from others."""
        return self._only(key, Scalar(kind, type_, (), frozenset(axes), number))

    def index(self, axis: int, type_: Type) -> Scalar:
        """Return the number of the iteration along an axis."""
        return self._only(("index", axis), Scalar("index", type_, (), frozenset((axis,)), axis))

    def constant(self, attribute: Attribute | None) -> Scalar:
        """Return a number.

        Raises:
            OpaqueError: It is not known.
        """
        if attribute is None:
            raise OpaqueError
        return self._only(("constant", attribute), Scalar("constant", attribute.type, value=attribute))

    def fold(self, combiner: str, term: Scalar, axis: int, *, either_zero: bool = False) -> Scalar:
        """Return what ``combiner`` makes of all terms along an axis."""
        axes = term.axes - {axis}
        scalar = Scalar("fold", term.type, (term,), axes, axis, combiner=combiner, either_zero=either_zero)
        return self._only(("fold", combiner, term, axis, either_zero), scalar)

    def op(self, op: Operation, operands: Sequence[Scalar]) -> Scalar:
        """Return what ``op`` computes from ``operands``."""
        type_ = op.results[0].type
        axes = frozenset[int]().union(*(operand.axes for operand in operands))
        key = (op.name, attributes_of(op), type_, *operands)
        return self._only(key, Scalar("op", type_, tuple(operands), axes, op=op))

    def _only(self, key: Hashable, scalar: Scalar) -> Scalar:
        return self._known.setdefault(key, scalar)


def ordered(roots: Iterable[Scalar], *, stop: Collection[Scalar] = (), folds: bool = True) -> list[Scalar]:
    """Return what ``roots`` are computed from, operands first, roots included.

    Nothing below ``stop``, and nothing below folds unless ``folds``: these are known then.
    """
    found: dict[Scalar, None] = {}
    work: list[tuple[Scalar, bool]] = [(root, False) for root in reversed(list(roots))]
    while work:
        scalar, complete = work.pop()
        if complete:
            found[scalar] = None
        elif scalar not in found:
            work.append((scalar, True))
            if scalar not in stop and (folds or scalar.kind != "fold"):
                work += [(operand, False) for operand in reversed(scalar.operands)]
    return list(found)


def levels(roots: Sequence[Scalar]) -> dict[Scalar, int]:
    """Return the folds that ``roots`` need, each with how many lie one below the other under it."""
    depth: dict[Scalar, int] = {}
    found: dict[Scalar, int] = {}
    for scalar in ordered(roots):
        below = max((depth[operand] for operand in scalar.operands), default=0)
        depth[scalar] = below + 1 if scalar.kind == "fold" else below
        if scalar.kind == "fold":
            found[scalar] = below
    return found


def body_reader(
    scalars: Scalars,
    block: Block,
    argument: Callable[[int], Scalar],
    axis: Callable[[int], int | None],
    marked: Callable[[Operation], Scalar | None] = lambda _: None,
) -> Callable[[Value], Scalar]:
    """Return what reads values of a body, each once; it raises `OpaqueError` where there is no scalar.

    Args:
        scalars: Makes the scalars.
        block: The body.
        argument: Returns the scalar that an argument is, by its number.
        axis: Returns the axis that a dimension of the operation is.
        marked: Returns what an operation stands for, if it is not to be repeated as it is.
    """

    @cache
    def read(value: Value) -> Scalar:
        if isinstance(value, ir.BlockArgument):
            if value.owner != block:
                raise OpaqueError
            return argument(value.arg_number)
        op = value.owner.operation
        if op.name == "arith.constant":
            return scalars.constant(op.attributes["value"])
        if op.name == "linalg.index":
            place = axis(integer_of(op, "dim"))
            if place is None:
                raise OpaqueError
            return scalars.index(place, value.type)
        found = marked(op)
        if found is not None:
            return found
        if len(op.results) != 1 or len(op.regions) or not op.name.startswith(("arith.", "math.")):
            raise OpaqueError
        return scalars.op(op, [read(operand) for operand in op.operands])

    return read
