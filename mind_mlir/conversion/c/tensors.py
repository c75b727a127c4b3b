"""Constants, scalars, and operations of tensors that move elements, as C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.conversion.c.arrays import Array, address, in_memory, label_for, reshaped, row_major
from mind_mlir.conversion.c.nodes import AffineIndex, Element, Expr, Infix, Set, Sum, Text, names_in
from mind_mlir.conversion.c.operations import C_TYPES, kind_of, literal, scalar_expression, unsupported
from mind_mlir.mlir.bindings import Attribute, Operation, Value, ir

if TYPE_CHECKING:
    from mind_mlir.conversion.c.function import FunctionWriter

#: What stands for an offset that is an operand.
_DYNAMIC = -(2**63)


def _constant(writer: FunctionWriter, op: Operation) -> None:
    result, held = op.results[0], op.attributes["value"]
    kind = kind_of(result.type)
    if not isinstance(result.type, ir.RankedTensorType):
        writer.values.scalars[result] = _number(held, kind)
        return
    shape = tuple(result.type.shape)
    dense = ir.DenseElementsAttr(held)
    if dense.is_splat:
        text = _number(dense.get_splat_value(), kind)
        writer.values.arrays[result] = Array(shape, lambda indices: text)
        return
    elements = np.array(dense).reshape(-1).tolist()
    items = ", ".join(literal(each, kind).text for each in elements)
    name = writer.code.name(f"{writer.prefix}_table")
    writer.constants[name] = f"static const {C_TYPES[kind]} {name}[{len(elements)}] = {{{items}}};"
    writer.values.arrays[result] = in_memory(name, shape)


def _number(held: Attribute, kind: str) -> Text:
    return literal(ir.FloatAttr(held).value if kind[0] == "f" else ir.IntegerAttr(held).value, kind)


def scalar(writer: FunctionWriter, op: Operation) -> None:
    """Write an operation of scalars."""
    result, values = op.results[0], writer.values
    if isinstance(result.type, ir.RankedTensorType):
        raise unsupported(f"'{op.name}' of a tensor")
    if str(result.type) == "index" and op.name in ("arith.addi", "arith.subi", "arith.muli"):
        left, right = map(values.index, op.operands)
        values.scalars[result] = _index_arithmetic(op.name, left, right)
        return
    operands = [values.scalars[each] for each in op.operands]
    _define(writer, result, scalar_expression(op, operands, writer.code.used))


def _index_arithmetic(name: str, left: AffineIndex, right: AffineIndex) -> Expr:
    if name != "arith.muli":
        return Sum(left.plus(right, 1 if name == "arith.addi" else -1))
    if left.terms and not right.terms:
        return Sum(left.times(right.constant))
    return Infix("*", Sum(left), Sum(right))


def _define(writer: FunctionWriter, result: Value, expr: Expr) -> None:
    """Say that ``result`` is ``expr``, which becomes a variable where it is read more than once."""
    uses = len(list(result.uses))
    inner = uses == 1 and next(iter(result.uses)).owner.operation.block == result.owner.operation.block
    if isinstance(expr, (Text, Sum)) or (inner and writer.in_body):
        writer.values.scalars[result] = expr
    elif uses:
        wanted = "t" if writer.in_body else label_for(result)
        variable = writer.code.variable(wanted, expr, f"const {C_TYPES[kind_of(result.type)]}")
        writer.values.scalars[result] = variable


def _empty(writer: FunctionWriter, op: Operation) -> None:
    zero = Text("0")
    writer.values.arrays[op.results[0]] = Array(tuple(op.results[0].type.shape), lambda indices: zero)


def _extract(writer: FunctionWriter, op: Operation) -> None:
    tensor, *indices = op.operands
    element = writer.values.arrays[tensor].read([writer.values.index(each) for each in indices])
    _define(writer, op.results[0], element)


def _from_elements(writer: FunctionWriter, op: Operation) -> None:
    result, values = op.results[0], writer.values
    elements = [values.scalars[each] for each in op.operands]
    if len(elements) == 1:
        only = elements[0]
        shape = tuple(result.type.shape)
        values.arrays[result] = Array(shape, lambda indices: only, frozenset(names_in(only)))
        return
    returned = all(use.owner.operation.name == "func.return" for use in result.uses)
    if returned and not values.is_wanted(result):
        return  # the outcomes of checks
    name = values.buffer(result)
    writer.code.add(*(Set(Element(name, AffineIndex((), at)), each) for at, each in enumerate(elements)))
    values.bind(result, name)


def _reshape(writer: FunctionWriter, op: Operation) -> None:
    source, shape = op.operands[0], tuple(op.results[0].type.shape)
    found = reshaped(writer.values.arrays[source], shape)
    if found is None:
        found = reshaped(writer.values.copy(source), shape)
    assert found is not None, "a copy is dense"
    writer.values.arrays[op.results[0]] = found


def _ranges(writer: FunctionWriter, op: Operation) -> tuple[list[AffineIndex], list[int], list[int]]:
    """Return offsets, sizes and steps of a slice; what is dynamic stands in the operands."""
    attributes = op.attributes
    segments = list(ir.DenseI32ArrayAttr(attributes["operandSegmentSizes"]))
    dynamic = iter(list(op.operands)[len(op.operands) - sum(segments[-3:]) :])
    offsets = [
        writer.values.index(next(dynamic)) if each == _DYNAMIC else AffineIndex((), each)
        for each in ir.DenseI64ArrayAttr(attributes["static_offsets"])
    ]
    sizes = list(ir.DenseI64ArrayAttr(attributes["static_sizes"]))
    return offsets, sizes, list(ir.DenseI64ArrayAttr(attributes["static_strides"]))


def _extract_slice(writer: FunctionWriter, op: Operation) -> None:
    result = op.results[0]
    if not isinstance(result.type, ir.RankedTensorType):
        raise unsupported("a slice")
    source = writer.values.arrays[op.operands[0]]
    offsets, sizes, steps = _ranges(writer, op)
    shape = tuple(result.type.shape)
    kept = _kept(sizes, shape)

    def read(indices: Sequence[AffineIndex]) -> Expr:
        given = list(offsets)
        for axis, index in zip(kept, indices, strict=True):
            given[axis] = offsets[axis].plus(index, steps[axis])
        return source.read(given)

    names = {name for offset in offsets for name, _ in offset.terms}
    writer.values.arrays[result] = Array(shape, read, source.reads | names)


def _insert(writer: FunctionWriter, op: Operation) -> None:
    element, destination, *indices = op.operands
    name = writer.values.destination(op, destination)
    places = [writer.values.index(each) for each in indices]
    place = address(places, row_major(op.results[0].type.shape))
    writer.code.add(Set(Element(name, place), writer.values.scalars[element]))


def _insert_slice(writer: FunctionWriter, op: Operation) -> None:
    source, destination = op.operands[0], op.operands[1]
    name = writer.values.destination(op, destination, reading=writer.values.arrays[source])
    offsets, sizes, steps = _ranges(writer, op)
    strides = row_major(op.results[0].type.shape)
    array = writer.values.arrays[source]
    kept = [strides[axis] * steps[axis] for axis in _kept(sizes, array.shape)]
    writer.values.copied(array, name, address(offsets, strides), kept)


def _pad(writer: FunctionWriter, op: Operation) -> None:
    source, result, values = writer.values.arrays[op.operands[0]], op.results[0], writer.values
    padding = values.scalars[writer.block(op.regions[0].blocks[0])[0]]
    low = [AffineIndex((), each) for each in ir.DenseI64ArrayAttr(op.attributes["static_low"])]
    shape = tuple(result.type.shape)
    name = values.buffer(result)
    values.copied(Array(shape, lambda indices: padding), name)
    values.copied(source, name, address(low, row_major(shape)), row_major(shape))
    values.bind(result, name)


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Return the axes that a slice of ``sizes`` with result ``shape`` keeps."""
    kept: list[int] = []
    left = list(shape)
    for axis, size in enumerate(sizes):
        if left and left[0] == size:
            kept.append(axis)
            left.pop(0)
    return kept


RULES: Mapping[str, Callable[[FunctionWriter, Operation], None]] = {
    "arith.constant": _constant,
    "tensor.collapse_shape": _reshape,
    "tensor.empty": _empty,
    "tensor.expand_shape": _reshape,
    "tensor.extract": _extract,
    "tensor.extract_slice": _extract_slice,
    "tensor.from_elements": _from_elements,
    "tensor.insert": _insert,
    "tensor.insert_slice": _insert_slice,
    "tensor.pad": _pad,
}
