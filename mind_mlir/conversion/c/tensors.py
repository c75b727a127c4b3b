"""Constants, scalars, and operations of tensors that move elements, as C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.conversion.c.accesses import label_for
from mind_mlir.conversion.c.arrays import Array, address, in_memory, reshaped, row_major
from mind_mlir.conversion.c.nodes import Element, Index, Infix, Set, Sum, Text, names_in
from mind_mlir.conversion.c.operations import C_TYPES, kind_of, literal, scalar_expression, unsupported
from mind_mlir.conversion.c.writer import Writer
from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.values import definition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.conversion.c.nodes import Expr
    from mind_mlir.mlir.bindings import Operation, Value


class TensorWriter(Writer):
    """Writes what moves elements."""

    def _constant(self, op: Operation) -> None:
        result, held = op.results[0], op.attributes["value"]
        kind = kind_of(result.type)
        if not isinstance(result.type, ir.RankedTensorType):
            number = ir.FloatAttr(held).value if kind[0] == "f" else ir.IntegerAttr(held).value
            self._scalars[result] = literal(number, kind)
            return
        shape = tuple(result.type.shape)
        dense = ir.DenseElementsAttr(held)
        if dense.is_splat:
            splat = dense.get_splat_value()
            number = ir.FloatAttr(splat).value if kind[0] == "f" else ir.IntegerAttr(splat).value
            text = literal(number, kind)
            self._arrays[result] = Array(shape, lambda indices, text=text: text)  # type: ignore[misc]  # bound now
            return
        values = np.array(dense).reshape(-1)
        name = self.name(f"{self._prefix}_table")
        items = ", ".join(literal(each, kind).text for each in values.tolist())
        self.constants[name] = f"static const {C_TYPES[kind]} {name}[{len(values)}] = {{{items}}};"
        self._arrays[result] = in_memory(name, shape)

    def _scalar(self, op: Operation) -> None:
        result = op.results[0]
        if isinstance(result.type, ir.RankedTensorType):
            raise unsupported(f"'{op.name}' of a tensor")
        if op.name in ("arith.addi", "arith.subi", "arith.muli") and str(result.type) == "index":
            sign = {"arith.addi": "+", "arith.subi": "-", "arith.muli": "*"}[op.name]
            if sign != "*":
                left, right = map(self.index, op.operands)
                self._scalars[result] = Sum(left.plus(right, 1 if sign == "+" else -1))
                return
            left, right = map(self.index, op.operands)
            if left.terms and not right.terms:
                self._scalars[result] = Sum(left.times(right.constant))
                return
            self._scalars[result] = Infix("*", Sum(left), Sum(right))
            return
        expr = scalar_expression(op, [self._scalars[each] for each in op.operands], self.used)
        self._define(result, expr)

    def _define(self, result: Value, expr: Expr) -> None:
        uses = len(list(result.uses))
        inner = uses == 1 and next(iter(result.uses)).owner.operation.block == result.owner.operation.block
        if isinstance(expr, (Text, Sum)) or (inner and self._in_body):
            self._scalars[result] = expr
            return
        if not uses:
            return
        name = self.name("t" if self._in_body else label_for(result))
        self.add(Set(Text(name), expr, f"const {C_TYPES[kind_of(result.type)]}"))
        self._scalars[result] = Text(name)

    def _empty(self, op: Operation) -> None:
        zero = Text("0")
        self._arrays[op.results[0]] = Array(tuple(op.results[0].type.shape), lambda indices: zero)

    def _extract(self, op: Operation) -> None:
        tensor, *indices = op.operands
        self._define(op.results[0], self.array(tensor).read([self.index(each) for each in indices]))

    def _from_elements(self, op: Operation) -> None:
        result = op.results[0]
        values = [self._scalars[each] for each in op.operands]
        shape = tuple(result.type.shape)
        if len(values) == 1:
            only = values[0]
            self._arrays[result] = Array(shape, lambda indices: only, frozenset(names_in(only)))
            return
        if (
            all(use.owner.operation.name == "func.return" for use in result.uses)
            and result not in self._wanted
        ):
            return  # the outcomes of checks
        name = self.buffer(result)
        self.add(*(Set(Element(name, Index((), number)), each) for number, each in enumerate(values)))
        self._arrays[result] = in_memory(name, shape)

    def _expand_shape(self, op: Operation) -> None:
        shape = tuple(op.results[0].type.shape)
        found = reshaped(self.array(op.operands[0]), shape)
        if found is None:
            found = reshaped(self._dense(op.operands[0]), shape)
        assert found is not None
        self._arrays[op.results[0]] = found

    _collapse_shape = _expand_shape

    def _dense(self, value: Value) -> Array:
        name = self.buffer(value)
        array = self.array(value)
        self.copied(array, name)
        return in_memory(name, array.shape)

    def _ranges(self, op: Operation) -> tuple[list[Index], list[int], list[int]]:
        """Return offsets, sizes and steps of a slice; what is dynamic stands in the operands."""
        attributes = op.attributes
        segments = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))
        first = len(op.operands) - sum(segments[-3:])
        dynamic = iter(list(op.operands)[first:])
        offsets = [
            self.index(next(dynamic)) if each == -(2**63) else Index((), each)
            for each in ir.DenseI64ArrayAttr(attributes["static_offsets"])
        ]
        sizes = list(ir.DenseI64ArrayAttr(attributes["static_sizes"]))
        steps = list(ir.DenseI64ArrayAttr(attributes["static_strides"]))
        return offsets, sizes, steps

    def _extract_slice(self, op: Operation) -> None:
        result = op.results[0]
        if not isinstance(result.type, ir.RankedTensorType):
            raise unsupported("a slice")
        source = self.array(op.operands[0])
        offsets, sizes, steps = self._ranges(op)
        shape = tuple(result.type.shape)
        kept = _kept(sizes, shape)

        def read(indices: Sequence[Index]) -> Expr:
            given = list(offsets)
            for axis, index in zip(kept, indices, strict=True):
                given[axis] = offsets[axis].plus(index, steps[axis])
            return source.read(given)

        names = {name for offset in offsets for name, _ in offset.terms}
        self._arrays[result] = Array(shape, read, source.reads | names)

    def _insert(self, op: Operation) -> None:
        scalar, destination, *indices = op.operands
        name = self._target(op, destination)
        places = [self.index(each) for each in indices]
        value = self._scalars[scalar]
        self.add(Set(Element(name, address(places, row_major(op.results[0].type.shape))), value))

    def _insert_slice(self, op: Operation) -> None:
        source, destination = op.operands[0], op.operands[1]
        name = self._target(op, destination, reading=self.array(source))
        offsets, sizes, steps = self._ranges(op)
        strides = row_major(op.results[0].type.shape)
        array = self.array(source)
        kept = _kept(sizes, array.shape)
        self.copied(array, name, address(offsets, strides), [strides[axis] * steps[axis] for axis in kept])

    def _target(self, op: Operation, destination: Value, reading: Array | None = None) -> str:
        """Return the array that ``op`` writes to: its destination's where nobody needs it any more."""
        result, array = op.results[0], self.array(destination)
        shape = tuple(result.type.shape)
        if array.place is not None and array.place[1:] == (row_major(shape), 0):
            name = array.place[0]
            mine = (
                name in self._homes
                and self._homes[name] == self._block
                and self._block_of(destination) == self._block
            )
            apart = reading is None or name not in reading.reads
            if mine and apart and not self._uses_left(destination, self._order[op]):
                self._flushed(name, op, destination)
                self._arrays[result] = in_memory(name, shape)
                return name
        name = self.buffer(result)
        owner = definition(destination)
        if owner is None or owner.name != "tensor.empty":
            self.copied(array, name)
        self._arrays[result] = in_memory(name, shape)
        return name

    def _pad(self, op: Operation) -> None:
        source, result = self.array(op.operands[0]), op.results[0]
        body = op.regions[0].blocks[0]
        given = self.block(body)
        value = self._scalars[given[0]]
        low = list(ir.DenseI64ArrayAttr(op.attributes["static_low"]))
        name = self.buffer(result)
        shape = tuple(result.type.shape)
        self.copied(Array(shape, lambda indices: value), name)
        strides = row_major(shape)
        self.copied(source, name, address([Index((), each) for each in low], strides), strides)
        self._arrays[result] = in_memory(name, shape)


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return the axes that a slice of ``sizes`` with result ``shape`` keeps."""
    kept: list[int] = []
    left = list(shape)
    for axis, size in enumerate(sizes):
        if left and left[0] == size:
            kept.append(axis)
            left.pop(0)
    return kept
