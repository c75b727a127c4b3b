"""Operations of linalg as nests of loops; what is read once becomes part of what reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.conversion.c.arrays import (
    Array,
    address,
    affine_index,
    depends,
    dimension,
    extents_of,
    label_for,
    row_major,
)
from mind_mlir.conversion.c.nodes import (
    AffineIndex,
    Element,
    Expr,
    LineStatement,
    Set,
    Sum,
    Text,
    names_in,
    spelled,
)
from mind_mlir.conversion.c.operations import C_TYPES, kind_of
from mind_mlir.mlir.bindings import Operation, Value, linalg
from mind_mlir.mlir.locations import label_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.conversion.c.function import FunctionWriter

_SHAPERS = ("tensor.expand_shape", "tensor.collapse_shape")


def fill(writer: FunctionWriter, op: Operation) -> None:
    """Let every element of the result be the scalar."""
    value = writer.values.scalars[op.operands[0]]
    shape = tuple(op.results[0].type.shape)
    writer.values.arrays[op.results[0]] = Array(shape, lambda indices: value, frozenset(names_in(value)))


def nest(writer: FunctionWriter, op: Operation) -> None:
    """Write an operation as loops, or leave it to what reads its result."""
    maps = _maps(op)
    written = maps[-len(op.results) :]
    extents = extents_of(list(op.operands), maps)
    outer = [d for d in range(len(extents)) if any(depends(e, d) for m in written for e in m.results)]
    inner = [d for d in range(len(extents)) if d not in outer]
    loops = _Nest(writer, op, maps, extents, outer, inner)
    if len(op.results) == 1 and not inner and _read_once(writer, op):
        loops.postpone()
        return
    label = label_of(op.location)
    opcode = writer.opcodes.get(label or "")
    if label and opcode:
        writer.code.add(LineStatement(f"/* {label} = {opcode} */"))
    if not outer and not any(map(writer.values.is_wanted, op.results)):
        loops.total()
        return
    names = [writer.values.buffer(result) for result in op.results]
    loops.write(names)
    for result, name in zip(op.results, names, strict=True):
        writer.values.bind(result, name)


def _maps(op: Operation) -> list[Any]:
    return [attribute.value for attribute in linalg.get_indexing_maps(op)]


def _read_once(writer: FunctionWriter, op: Operation) -> bool:
    """Return whether every element is read once, in this block, by what computes elements one by one."""
    result = op.results[0]
    uses = list(result.uses)
    if len(uses) != 1 or writer.values.is_wanted(result):
        return False
    user = uses[0].owner.operation
    if user.block != op.block:
        return False
    if user.name in _SHAPERS:
        source, target = result.type.shape, user.results[0].type.shape
        return [e for e in source if e != 1] == [e for e in target if e != 1] and _read_once(writer, user)
    if not user.name.startswith("linalg.") or user.name == "linalg.fill":
        return False
    maps = _maps(user)
    read = maps[uses[0].operand_number]
    return all(
        extent == 1 or any(dimension(each) == dim for each in read.results)
        for dim, extent in enumerate(extents_of(list(user.operands), maps))
    )


@dataclass(slots=True)
class _Nest:
    """The loops of one operation.

    Attributes:
        maps: The affine map of each operand.
        extents: The extents of the loops.
        outer: The loops that results have a dimension for.
        inner: The other ones, which are reduced over.
        given: The index of each loop at the current place.
    """

    writer: FunctionWriter
    op: Operation
    maps: list[Any]
    extents: list[int]
    outer: list[int]
    inner: list[int]
    given: list[AffineIndex] = field(init=False)

    def __post_init__(self) -> None:
        self.given = [AffineIndex()] * len(self.extents)

    def postpone(self) -> None:
        """Let each element of the result be computed where it is read."""
        arrays, results = self.writer.values.arrays, self.op.results
        order = [dimension(each) for each in self.maps[-1].results]
        body = self.op.regions[0].blocks[0].operations
        needed = [*self.op.operands, *(value for view in body for value in view.operation.operands)]
        reads = frozenset(name for value in needed if value in arrays for name in arrays[value].reads)

        def read(indices: Sequence[AffineIndex]) -> Expr:
            self.given = [AffineIndex()] * len(order)
            for dim, index in zip(order, indices, strict=True):
                self.given[dim] = index  # type: ignore[index]  # results of parallel loops are permutations
            return self._body(self._elements(0, len(self.maps)))[0]

        arrays[results[0]] = Array(tuple(results[0].type.shape), read, reads)

    def total(self) -> None:
        """Write a reduction of everything, whose results are variables."""
        values, results = self.writer.values, self.op.results
        totals: list[Expr] = []
        for value, result in zip(list(self.op.operands)[-len(results) :], results, strict=True):
            name = self.writer.code.name(label_for(result))
            start = values.scalars[value] if value in values.scalars else values.arrays[value].read([])
            totals.append(Text(name))
            self.writer.code.add(Set(totals[-1], start, C_TYPES[kind_of(result.type)]))
        with self.writer.code.loops(self.extents) as self.given:
            self._put(totals, self._computed(totals))
        for result, total in zip(results, totals, strict=True):
            name = spelled(total)
            values.arrays[result] = Array((), lambda indices, total=total: total, frozenset((name,)))  # type: ignore[misc]  # bound now

    def write(self, names: Sequence[str]) -> None:
        """Write the loops; the results are the arrays ``names``."""
        last = self.outer[-1] if self.outer else -1
        along = self.inner and len(names) == 1 and self.extents[last] > 1 and self._contiguous(last)
        self._loops(self.outer[:-1] if along else self.outer, names, last if along else None)

    def _loops(self, dims: Sequence[int], names: Sequence[str], last: int | None) -> None:
        code, results = self.writer.code, self.op.results
        with code.loops([self.extents[d] for d in dims]) as indices:
            self._enter(dims, indices)
            if not self.inner:
                self._put(self._places(names), self._computed(self._started()))
            elif last is not None:
                with code.loops([self.extents[last]]) as (self.given[last],):
                    self._put(self._places(names), self._started())
                with code.loops([self.extents[d] for d in (*self.inner, last)]) as within:
                    self._enter((*self.inner, last), within)
                    self._put(self._places(names), self._computed(self._places(names)))
            else:
                totals: list[Expr] = [
                    code.variable("acc", value, C_TYPES[kind_of(result.type)])
                    for value, result in zip(self._started(), results, strict=True)
                ]
                with code.loops([self.extents[d] for d in self.inner]) as within:
                    self._enter(self.inner, within)
                    self._put(totals, self._computed(totals))
                code.add(*map(Set, self._places(names), totals))

    def _enter(self, dims: Sequence[int], indices: Sequence[AffineIndex]) -> None:
        for dim, index in zip(dims, indices, strict=True):
            self.given[dim] = index

    def _places(self, names: Sequence[str]) -> list[Expr]:
        """Return the elements of the results, which are the arrays ``names``."""
        maps = self.maps[-len(names) :]
        strides = [row_major(result.type.shape) for result in self.op.results]
        return [
            Element(name, address([affine_index(e, self.given) for e in m.results], steps))
            for name, m, steps in zip(names, maps, strides, strict=True)
        ]

    def _started(self) -> list[Expr]:
        return self._elements(len(self.maps) - len(self.op.results), len(self.maps))

    def _computed(self, current: Sequence[Expr]) -> list[Expr]:
        inputs = self._elements(0, len(self.maps) - len(self.op.results))
        return self._body([*inputs, *current])

    def _elements(self, first: int, end: int) -> list[Expr]:
        """Return the elements of some of the operands."""
        pairs = zip(list(self.op.operands)[first:end], self.maps[first:end], strict=True)
        return [self._element(value, affine) for value, affine in pairs]

    def _element(self, value: Value, affine: Any) -> Expr:
        values = self.writer.values
        if value in values.scalars:
            return values.scalars[value]
        return values.arrays[value].read([affine_index(each, self.given) for each in affine.results])

    def _body(self, elements: Sequence[Expr]) -> list[Expr]:
        """Write what the operation computes of ``elements``."""
        block, writer = self.op.regions[0].blocks[0], self.writer
        for argument, element in zip(block.arguments, elements, strict=True):
            if len(list(argument.uses)) > 1 and not isinstance(element, (Text, Element, Sum)):
                type_ = f"const {C_TYPES[kind_of(argument.type)]}"
                writer.values.scalars[argument] = writer.code.variable("t", element, type_)
            else:
                writer.values.scalars[argument] = element
        before, writer.indices = writer.indices, self.given
        found = [writer.values.scalars[value] for value in writer.block(block)]
        writer.indices = before
        return found

    def _put(self, targets: Sequence[Expr], values: Sequence[Expr]) -> None:
        """Write assignments, all at once."""
        code = self.writer.code
        if len(values) > 1:
            pairs = zip(values, self.op.results, strict=True)
            values = [code.variable("next", v, f"const {C_TYPES[kind_of(r.type)]}") for v, r in pairs]
        code.add(*(Set(target, value) for target, value in zip(targets, values, strict=True)))

    def _contiguous(self, last: int) -> bool:
        """Return whether an input lies along the last dimension of the result rather than along the sum."""
        return any(
            len(affine.results)
            and dimension(affine.results[-1]) == last
            and any(depends(each, d) for each in affine.results for d in self.inner)
            for affine in self.maps[:-1]
        )
