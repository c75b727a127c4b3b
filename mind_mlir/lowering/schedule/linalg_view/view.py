"""A linalg operation as plain data: operands, affine accesses, extents and body.

Every linalg operation, named or generic, is seen the same way here; nothing below this module asks for an
operation's name. A view exists only for operations on static shapes whose accesses are sums of dimensions.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.mlir.bindings import AffineExpr, AffineMap, Attribute, Block, Operation, Value, ir, linalg
from mind_mlir.mlir.structured import generic
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from mind_mlir.lowering.emission.emitter import Emitter, Index


@dataclass(frozen=True)
class Linear:
    """The index ``sum(coefficient * dimension) + constant`` with non-negative coefficients."""

    terms: tuple[tuple[int, int], ...]
    constant: int = 0

    @cached_property
    def dim(self) -> int | None:
        """The dimension when the index is that dimension and nothing else."""
        if self.constant == 0 and len(self.terms) == 1 and self.terms[0][1] == 1:
            return self.terms[0][0]
        return None

    def uses(self, dim: int) -> bool:
        """Return whether the index depends on ``dim``."""
        return dim in self._dims

    @cached_property
    def _dims(self) -> tuple[int, ...]:
        return tuple(dim for dim, _ in self.terms)

    def emit(self, emitter: Emitter, env: Mapping[int, Index]) -> Index:
        """Emit the index for the values of the dimensions in ``env``."""
        total: Index = self.constant
        for dim, coefficient in self.terms:
            total = emitter.add(emitter.mul(env[dim], coefficient), total)
        return total


#: The value of each dimension, by its number.
Env: TypeAlias = "dict[int, Index]"

#: One index for each dimension of an operand.
Access: TypeAlias = tuple[Linear, ...]


@dataclass(frozen=True)
class View:
    """A linalg operation with one or more tensor results, or one on memory with one output.

    Attributes:
        op: the operation.
        operands: inputs, then one init for each result.
        accesses: the access of each operand, in the same order.
        shapes: the shape of each operand; empty for a scalar.
        extents: extent of each loop dimension.
        reductions: the dimensions that no result is indexed by.
        live: for each operand, whether the body uses its element.
    """

    op: Operation
    operands: tuple[Value, ...]
    accesses: tuple[Access, ...]
    shapes: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    reductions: tuple[int, ...]
    live: tuple[bool, ...]

    def current(self) -> View:
        """Return the view with the operands that the operation has by now."""
        operands = tuple(self.op.operands)
        return View(  # every operation comes here: `dataclasses.replace` takes several times as long
            self.op, operands, self.accesses, self.shapes, self.extents, self.reductions, self.live
        )

    def reading(self, forms: Mapping[int, tuple[Value, Access, tuple[int, ...]]]) -> View:
        """Return the view with other operands: by their numbers, each with its access and its shape."""
        if not forms:
            return self
        rows = list(zip(self.operands, self.accesses, self.shapes, strict=True))
        for number, form in forms.items():
            rows[number] = form
        operands, accesses, shapes = zip(*rows, strict=True)
        return dataclasses.replace(self, operands=operands, accesses=accesses, shapes=shapes)

    @cached_property
    def results(self) -> int:
        """The number of results, and so of inits; on memory, where there are no results, it is one."""
        return len(self.op.results) or 1

    @cached_property
    def inputs(self) -> tuple[Value, ...]:
        """The operands that are read only."""
        return self.operands[: len(self.operands) - self.results]

    @cached_property
    def reads(self) -> tuple[Value, ...]:
        """The inputs whose elements the body uses."""
        return tuple(value for number, value in enumerate(self.inputs) if self.live[number])

    @cached_property
    def inits(self) -> tuple[Value, ...]:
        """The operands that results start from."""
        return self.operands[len(self.operands) - self.results :]

    def used(self, number: int) -> bool:
        """Return whether the body uses the element of operand ``number``."""
        return self.live[number]

    @property
    def has_index(self) -> bool:
        """Whether the body computes with the numbers of iterations."""
        return any(op.operation.name == "linalg.index" for op in self.body.operations)

    @cached_property
    def body(self) -> Block:
        """The block that computes one element; its arguments are one element of each operand."""
        return self.op.regions[0].blocks[0]


#: What stands for an affine map that has not been translated yet.
_UNSEEN: Any = object()


class Views:
    """Makes views; remembers affine maps already translated, of which a program has few."""

    def __init__(self) -> None:
        self._accesses: dict[Attribute, tuple[Access, int] | None] = {}

    def of(self, op: Operation) -> View | None:
        """Return the view of ``op``, or None when ``op`` is not of the kind described by :class:`View`."""
        if not op.name.startswith("linalg."):
            return None
        regions, results = op.regions, len(op.results)
        if len(regions) != 1 or (not results and not _has_one_output(op)):
            return None
        blocks = regions[0].blocks
        if len(blocks) != 1:
            return None
        operands, translated = tuple(op.operands), self._translated(op)
        if len(translated) != len(operands):
            return None
        accesses, (dims, *_) = zip(*translated, strict=True)
        shapes = tuple(_shape(operand) for operand in operands)
        extents = _extents(shapes, accesses, dims)
        if extents is None:
            return None
        written = accesses[len(operands) - (results or 1) :]
        indexed = {dim for access in written for index in access for dim, _ in index.terms}
        reductions = tuple(dim for dim in range(dims) if dim not in indexed)
        live = tuple(any(True for _ in argument.uses) for argument in blocks[0].arguments)
        return View(op, operands, accesses, shapes, extents, reductions, live)

    def accesses(self, op: Operation) -> tuple[Access, ...]:
        """Return how ``op``, a linalg operation all of whose accesses are sums of dimensions, is indexed."""
        return tuple(access for access, _ in self._translated(op))

    def _translated(self, op: Operation) -> list[tuple[Access, int]]:
        """Return such accesses of ``op``, each with the number of loops."""
        found = []
        for attribute in linalg.get_indexing_maps(op) or ():
            each = self._accesses.get(attribute, _UNSEEN)
            if each is _UNSEEN:
                each = self._accesses[attribute] = _translate(attribute.value)
            found += [each] if each is not None else []
        return found


def emit_generic(
    operands: Sequence[Value],
    accesses: Sequence[Access],
    loops: int,
    reductions: Container[int],
    others: Mapping[str, Attribute],
    *,
    outputs: int = 1,
) -> tuple[Operation, Block]:
    """Emit a `linalg.generic` on tensors, ``outputs`` of them last, and return it with its empty body."""
    maps = [ir.AffineMapAttr.get(affine_map(access, loops)) for access in accesses]
    kinds = ["reduction" if dim in reductions else "parallel" for dim in range(loops)]
    op = generic(operands[:-outputs], operands[-outputs:], maps, kinds, others)
    elements = [operand.type.element_type for operand in operands]
    return op, op.regions[0].blocks.append(*elements, arg_locs=[op.location] * len(elements))


def affine_map(access: Access, dims: int) -> AffineMap:
    """Return ``access`` within ``dims`` loops as MLIR has it."""
    results = []
    for index in access:
        expr = ir.AffineConstantExpr.get(index.constant)
        for dim, coefficient in index.terms:
            expr = expr + ir.AffineDimExpr.get(dim) * coefficient
        results.append(expr)
    return ir.AffineMap.get(dims, 0, results)


def _translate(affine_map: AffineMap) -> tuple[Access, int] | None:
    access = tuple(each for each in map(_linear, affine_map.results) if each is not None)
    is_known = not affine_map.n_symbols and len(access) == len(affine_map.results)
    return (access, affine_map.n_dims) if is_known else None


def _linear(expr: AffineExpr) -> Linear | None:
    terms: dict[int, int] = {}
    constant = 0
    work = [(expr, 1)]
    while work:
        node, scale = work.pop()
        if isinstance(node, ir.AffineDimExpr):
            terms[node.position] = terms.get(node.position, 0) + scale
        elif isinstance(node, ir.AffineConstantExpr):
            constant += scale * node.value
        elif isinstance(node, ir.AffineAddExpr):
            work += [(node.lhs, scale), (node.rhs, scale)]
        elif isinstance(node, ir.AffineMulExpr) and isinstance(node.rhs, ir.AffineConstantExpr):
            work.append((node.lhs, scale * node.rhs.value))
        else:
            return None
    if constant < 0 or any(coefficient < 0 for coefficient in terms.values()):
        return None
    return Linear(tuple(sorted(term for term in terms.items() if term[1])), constant)


def _shape(value: Value) -> tuple[int, ...]:
    type_ = value.type
    return tuple(type_.shape) if isinstance(type_, ir.RankedTensorType | ir.MemRefType) else ()


def _has_one_output(op: Operation) -> bool:
    """Return whether an operation on memory writes to one operand."""
    sizes = "operandSegmentSizes"
    return sizes in op.attributes and ir.DenseI32ArrayAttr(op.attributes[sizes])[1] == 1


def _extents(
    shapes: tuple[tuple[int, ...], ...], accesses: Sequence[Access], dims: int
) -> tuple[int, ...] | None:
    """Return the extent of each loop, or None if one is unknown or an operand is no tensor of its access."""
    extents = [-1] * dims
    for shape, access in zip(shapes, accesses, strict=True):
        if len(shape) != len(access):
            return None
        for extent, index in zip(shape, access, strict=True):
            if index.dim is not None:
                extents[index.dim] = extent
    return None if any(extent < 0 for extent in extents) else tuple(extents)
