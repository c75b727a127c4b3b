"""The computation between the products of an attention, as a graph of scalar operations, and what it reads.

The graph stands for all elements ``(batch..., i, j)`` of the scores: ``i`` counts rows, or queries, ``j``
what is reduced along a row, the keys. What it reads are tensors in memory, and how these are indexed.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import constant_value, filler
from mind_mlir.lowering.schedule.linalg_view.view import Access, Linear, View, Views
from mind_mlir.mlir.bindings import Attribute, Operation, Type, Value, ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A value of the graph; equal ones are one object.

    Attributes:
        kind: ``score``, ``input``, ``index``, ``constant``, ``row`` for a reduction along ``j``, or ``op``.
        type: The type of an element.
        operands: What it is computed from.
        dims: The dimensions that it depends on.
        scored: Whether it depends on a score.
        number: Which score or input; the dimension of an index.
        op: The operation of the body to repeat; of a reduction, none.
        value: Of a constant, its attribute.
        combiner: Of a reduction, the name of the operation that combines two terms.
    """

    kind: str
    type: Type
    operands: tuple[Node, ...] = ()
    dims: frozenset[int] = frozenset()
    scored: bool = False
    number: int = 0
    op: Operation | None = None
    value: Attribute | None = None
    combiner: str = ""

    @property
    def name(self) -> str:
        """The name of its operation; its kind if there is none."""
        return self.kind if self.op is None else str(self.op.name)


def ordered(roots: Iterable[Node], *, stop: Collection[Node] = ()) -> list[Node]:
    """Return what ``roots`` are computed from, operands first, roots included; nothing below ``stop``."""
    found: dict[Node, None] = {}
    work: list[tuple[Node, bool]] = [(root, False) for root in reversed(list(roots))]
    while work:
        node, complete = work.pop()
        if complete:
            found[node] = None
        elif node not in found:
            work.append((node, True))
            if node not in stop:
                work += [(operand, False) for operand in reversed(node.operands)]
    return list(found)


def elements_below(roots: Iterable[Node], stop: Collection[Node]) -> set[Node]:
    """Return what ``roots`` are computed from by elements, down to ``stop``; reductions are known."""
    found: set[Node] = set()
    work = list(roots)
    while work:
        node = work.pop()
        if node not in found:
            found.add(node)
            if node not in stop and node.kind != "row":
                work += node.operands
    return found


def levels(roots: Sequence[Node]) -> dict[Node, int]:
    """Return the reductions that ``roots`` need, each with how many lie one below the other under it."""
    depth: dict[Node, int] = {}
    found: dict[Node, int] = {}
    for node in ordered(roots):
        below = max((depth[operand] for operand in node.operands), default=0)
        depth[node] = below + 1 if node.kind == "row" else below
        if node.kind == "row":
            found[node] = below
    return found


class OpaqueError(Exception):
    """A value that no graph can be made of."""


class SplitError(Exception):
    """A batch dimension has to be several: somebody sees it so."""

    def __init__(self, dim: int, extents: tuple[int, ...]) -> None:
        super().__init__()
        self.dim = dim
        self.extents = extents


@dataclasses.dataclass(frozen=True)
class Source:
    """A tensor in memory, and how it is indexed."""

    value: Value
    access: Access

    @property
    def is_plain(self) -> bool:
        """Return whether each index is a dimension or a number."""
        return all(index.dim is not None or not index.terms for index in self.access)

    def uses(self, dim: int) -> bool:
        """Return whether the element depends on ``dim``."""
        return any(index.uses(dim) for index in self.access)


@dataclasses.dataclass(frozen=True)
class Scale:
    """An operation of an element and a number, in this order or, if ``swapped``, in the other one."""

    op: Operation
    number: Attribute
    swapped: bool


@dataclasses.dataclass(frozen=True)
class Score:
    """Sums of products: of a row of ``queries`` and one of ``keys``, along dimension ``depth``.

    Queries are scaled on their way, if ``scale`` says how.
    """

    op: Operation
    queries: Source
    keys: Source
    depth: int
    scale: Scale | None = None


class SeenViews:
    """Views of what computes values, each made once; good for as long as nothing changes."""

    def __init__(self, views: Views) -> None:
        self._views = views
        self._seen: dict[Value, View | None] = {}

    def of(self, value: Value) -> View | None:
        """Return the view of the operation that computes ``value``."""
        if value not in self._seen:
            self._seen[value] = self._views.of(value.owner.operation)
        return self._seen[value]


def reassociation(op: Operation) -> list[list[int]]:
    """Return which dimensions of the longer shape of a reshape each of the shorter one is."""
    return [[int(each) for each in group] for group in ir.ArrayAttr(op.attributes["reassociation"])]


def batches_of(access: Access, row: int) -> tuple[int, ...]:
    """Return the batches that something is indexed by, below ``row``."""
    return tuple(dim for index in access for dim, _ in index.terms if dim < row)


def substituted(index: Linear, env: Mapping[int, Linear]) -> Linear:
    """Return ``index`` with the dimensions that ``env`` says."""
    terms: dict[int, int] = {}
    constant = index.constant
    for dim, factor in index.terms:
        constant += factor * env[dim].constant
        for inner, coefficient in env[dim].terms:
            terms[inner] = terms.get(inner, 0) + factor * coefficient
    return Linear(tuple(sorted(terms.items())), constant)


def joined(digits: Sequence[tuple[Linear, int]]) -> Linear:
    """Return the number of ``digits``, each with its extent, the most significant first."""
    terms: dict[int, int] = {}
    constant = 0
    factor = 1
    for index, extent in reversed(digits):
        if extent == 1:
            continue
        constant += factor * index.constant
        for dim, coefficient in index.terms:
            terms[dim] = terms.get(dim, 0) + factor * coefficient
        factor *= extent
    return Linear(tuple(sorted(terms.items())), constant)


#: Operations of an element and a number, and where the number may stand.
_SCALING = {"arith.mulf": (1, 0), "arith.divf": (1,)}
_FLOATS = ("f32", "f64")


def match_scale(view: View) -> tuple[int, Scale] | None:
    """Return which operand ``view`` scales by a number, and how; None if it computes anything else.

    The number makes nothing greater: what is finite stays so.
    """
    if view.reductions or view.results != 1 or len(view.body.operations) != 2:
        return None
    op = view.body.operations[0].operation
    if op.name not in _SCALING or str(op.results[0].type) not in _FLOATS:
        return None
    for place in _SCALING[op.name]:
        argument = op.operands[1 - place]
        value = _number(op.operands[place], view)
        if value is None or not isinstance(argument, ir.BlockArgument):
            continue
        magnitude = abs(float(ir.FloatAttr(value).value))
        if magnitude <= 1 if op.name == "arith.mulf" else magnitude >= 1:
            return argument.arg_number, Scale(op, value, place == 0)
    return None


def _number(value: Value, view: View) -> Attribute | None:
    """Return the number that ``value`` in the body of ``view`` is everywhere; None if it is no such."""
    if not isinstance(value, ir.BlockArgument):
        return constant_value(value)
    operand = view.operands[value.arg_number]
    if not isinstance(operand.type, ir.RankedTensorType):
        return constant_value(operand)
    filled, op = filler(operand), definition(operand)
    if filled is not None:
        return constant_value(filled)
    attribute = op.attributes["value"] if op is not None and op.name == "arith.constant" else None
    is_splat = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    return ir.DenseElementsAttr(attribute).get_splat_value() if is_splat else None
