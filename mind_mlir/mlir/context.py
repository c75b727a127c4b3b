"""The context that a linalg rule is given, and the few ways of building linalg that all rules share.

Everything is in destination-passing style: an operation writes into a `tensor.empty` or a `linalg.fill`.
Insertion point and location are the caller's; rules only append.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.allocation import check_extents
from mind_mlir.ir.attributes import complex_parts
from mind_mlir.mlir import bindings
from mind_mlir.mlir.arithmetic import Arithmetic
from mind_mlir.mlir.bindings import arith, complex_, ir, tensor
from mind_mlir.mlir.references import referenced
from mind_mlir.mlir.repeats import layer, part_of, read_through, repeated, without
from mind_mlir.mlir.scalars import element_of, inline, is_element_tensor, tensor_of
from mind_mlir.mlir.structured import finish, generic, iteration, reduction, structured, transposed_into
from mind_mlir.mlir.types import dense_elements, element_type, tensor_type
from mind_mlir.mlir.values import definition, integer_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from mind_mlir.diagnostics.checks import Check, Place
    from mind_mlir.ir.attributes import Array, TensorLiteral
    from mind_mlir.ir.types import DType, TensorType
    from mind_mlir.mlir.bindings import Attribute, Type, Value


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a check in compiled code, the extremes of what it looks at: two i64 scalars.

    They are returned in the function's status tensor (rank 1, i64) and judged after the call. Those of
    several places, or of several times, are merged by minimum and maximum.

    Attributes:
        check: What is checked.
        smallest: The least number.
        largest: The greatest.
        function: The function that the operation is in.
    """

    check: Check
    smallest: Value
    largest: Value
    function: str = ""

    @property
    def source(self) -> Hashable:
        """Return what is equal for the checks of one operation only, wherever its outcome is merged."""
        return self.function, self.check


@dataclass(slots=True)
class LoweringContext:
    """One `mind` operation as its linalg rule sees it.

    Attributes:
        opcode: Core spelling.
        label: What messages call the value it defines, for example ``%3``.
        operands: Lowered operands: signless ranked tensors.
        operand_types: Their types in our terms, with signedness.
        attributes: Complete attributes, as Python values.
        result_type: The type of the result, of several the first.
        checks: Run-time checks of the function, or region, so far; `check` appends.
        place: Says where the program has the operation.
        function: The name of the function that the operation is in.
        scalars: Whether tensors of rank 0 are computed as scalars, as where there is control flow.
        result_types: The types of all results.
        vectors: Whether there may be vectors, which C does not have.
    """

    opcode: str
    label: str
    operands: tuple[Value, ...]
    operand_types: tuple[TensorType, ...]
    attributes: Mapping[str, Any]
    result_type: TensorType
    checks: list[Outcome] = field(default_factory=list)
    place: Callable[[], Place | None] = lambda: None
    function: str = ""
    scalars: bool = False
    result_types: tuple[TensorType, ...] = ()
    vectors: bool = True

    @property
    def mlir(self) -> Any:
        """Return the bindings, so that rules reach MLIR without importing it."""
        return bindings

    def element(self, dtype: DType) -> Type:
        """Return the signless element type of ``dtype``."""
        return element_type(dtype, signed=False)

    def scalar(self, value: complex, dtype: DType) -> Value:
        """Return a constant element of ``dtype``."""
        return Arithmetic(dtype).constant(value)

    def arithmetic(self, dtype: DType) -> Arithmetic:
        """Return arithmetic on elements of ``dtype``."""
        return Arithmetic(dtype)

    def literal(self, literal: TensorLiteral) -> Value:
        """Return a constant tensor."""
        parts = complex_parts(literal)
        if parts:
            return self._complex_literal(literal, parts)
        if self.scalars and literal.type.rank == 0:
            element = self.element(literal.type.dtype)
            splat = ir.DenseElementsAttr(dense_elements(literal, signed=False)).get_splat_value()
            return tensor_of(arith.ConstantOp(element, splat).result)
        type_ = tensor_type(literal.type)
        return arith.constant(type_, dense_elements(literal, signed=False))

    def _complex_literal(self, literal: TensorLiteral, parts: Sequence[TensorLiteral]) -> Value:
        """Return a constant tensor of complex numbers; the bindings read none, so its parts are two."""
        type_, array = literal.type, literal.array
        if type_.rank == 0:
            number = self.scalar(complex(array), type_.dtype)
            return tensor_of(number)
        element = self.element(type_.dtype)
        return self.elementwise(
            lambda real, imaginary: complex_.CreateOp(element, real, imaginary).result,
            [self.literal(part) for part in parts],
            type_,
        )

    def single(self, value: Value) -> Value:
        """Return the element of a tensor of rank 0."""
        return element_of(value) if self.scalars else tensor.ExtractOp(value, []).result

    def known_integers(self, value: Value) -> Array | None:
        """Return the elements of a tensor of integers that is a constant, in some shape, or None."""
        owner = definition(value)
        if owner is not None and owner.name in ("tensor.collapse_shape", "tensor.expand_shape"):
            source, shape = self.known_integers(owner.operands[0]), owner.operands[0].type.shape
            return None if source is None else np.broadcast_to(source, shape).reshape(value.type.shape)
        if owner is not None and owner.name == "tensor.from_elements" and self.scalars:
            owner = definition(owner.operands[0])
        if owner is None or owner.name != "arith.constant":
            return None
        held = owner.attributes["value"]
        literal = referenced(held)
        if literal is not None:
            return literal.array
        return np.array(held.value if isinstance(held, ir.IntegerAttr) else ir.DenseElementsAttr(held))

    def mark(self, value: Value, name: str) -> int | None:
        """Return the integer that what computes ``value`` is marked with, or None."""
        owner = definition(value)
        return integer_of(owner, name) if owner is not None and name in owner.attributes else None

    def repeated(self, value: Value) -> Value:
        """Return a tensor with the same numbers, each once or more: what ``value`` was broadcast from."""
        return repeated(value)

    def read_through(self, value: Value, access: Any) -> tuple[Value, Any]:
        """Return what ``value``, read at ``access``, was broadcast from, and where that is read."""
        return read_through(value, access)

    def part_of(self, value: Value) -> tuple[Value, list[int]]:
        """Return what ``value`` is consecutive elements of, and where they begin: itself, if nothing."""
        return part_of(value)

    def layer(self, value: Value, axis: int, place: int) -> Value:
        """Return what is at ``place`` of an axis, without that: one of the tensors that were stacked."""
        return layer(self, value, axis, place)

    def without(self, value: Value, axis: int) -> Value:
        """Return ``value`` without an axis of extent 1."""
        return without(self, value, axis)

    def transposition(self, value: Value) -> tuple[Value, tuple[int, ...]] | None:
        """Return what ``value`` is a transpose of, and its permutation; None if it is none."""
        owner = definition(value)
        if owner is None or owner.name != "linalg.transpose":
            return None
        return owner.operands[0], tuple(ir.DenseI64ArrayAttr(owner.attributes["permutation"]))

    def iteration(self, dim: int) -> Value:
        """Return in the body of an operation which iteration of loop ``dim`` it is."""
        return iteration(dim)

    def transposed(self, value: Value, init: Value, order: Sequence[int]) -> Value:
        """Append a `linalg.transpose`: ``order`` says which dimension of ``value`` each of ``init`` is."""
        return transposed_into(value, init, order)

    def number(self, vector: Value, position: int) -> Value:
        """Return the element at ``position`` of a tensor of rank 1; what a scalar was reshaped to is that."""
        if not isinstance(vector, ir.BlockArgument):
            owner = vector.owner.operation
            if owner.name == "tensor.expand_shape" and owner.operands[0].type.rank == 0:
                return self.single(owner.operands[0])
        return tensor.ExtractOp(vector, [arith.ConstantOp(ir.IndexType.get(), position).result]).result

    def empty(self, type_: TensorType) -> Value:
        """Return an uninitialised tensor."""
        check_extents(type_.extents)
        return tensor.empty(type_.extents, self.element(type_.dtype))

    def filled(self, type_: TensorType, value: float) -> Value:
        """Return a tensor with ``value`` in every element."""
        return self.named("fill", [self.scalar(value, type_.dtype)], self.empty(type_), type_)

    def named(
        self, name: str, inputs: Sequence[Value], init: Value, type_: TensorType, **attributes: Attribute
    ) -> Value:
        """Append ``linalg.<name>`` of ``inputs`` into ``init`` and return its result of ``type_``."""
        as_scalar = self.scalars and type_.rank == 0 and all(_is_single(value) for value in inputs)
        if as_scalar and name == "fill":
            _drop([init])
            return tensor_of(element_of(inputs[0]))
        op = structured(name, inputs, init, **attributes)
        if not as_scalar:
            return op.results[0]
        result = inline(op, [element_of(value) for value in inputs])
        _drop([init])
        return result

    def generic(
        self,
        inputs: Sequence[Value],
        maps: Sequence[Any],
        inits: Sequence[Value],
        iterators: Sequence[str],
        body: Callable[..., Value | Sequence[Value]],
    ) -> Sequence[Value]:
        """Append a `linalg.generic` and return its results.

        Args:
            inputs: Operands that are read.
            maps: Affine maps of the inputs, then of the inits.
            inits: Destinations, whose types are the result types.
            iterators: ``parallel`` or ``reduction`` for each loop.
            body: From the elements of inputs and inits to the element, or elements, to yield.
        """
        if self.scalars:
            inputs = [element_of(value) for value in inputs]
            if not iterators and all(map(_is_single, inputs)):
                found = body(*inputs, *(None if _is_empty(init) else element_of(init) for init in inits))
                _drop(inits)
                return [
                    tensor_of(value) for value in (found if isinstance(found, (list, tuple)) else [found])
                ]
        op = generic(inputs, inits, [ir.AffineMapAttr.get(each) for each in maps], iterators)
        elements = [
            value.type.element_type if isinstance(value.type, ir.ShapedType) else value.type
            for value in (*inputs, *inits)
        ]
        location = ir.Location.current
        block = ir.Block.create_at_start(op.regions[0], elements, [location] * len(elements))
        with ir.InsertionPoint(block):
            yielded = body(*block.arguments)
            finish(yielded if isinstance(yielded, (list, tuple)) else [yielded])
        return list(op.results)

    def reduce(
        self, operand: Value, init: Value, axes: Sequence[int], body: Callable[[Value, Value], Value]
    ) -> Value:
        """Append a `linalg.reduce` and return its result, of the type of ``init``.

        Args:
            operand: The tensor to reduce.
            init: The starting values: a tensor of the operand's shape without ``axes``.
            axes: The reduced axes, ascending.
            body: From an element and the accumulator to the new accumulator.
        """
        op = reduction(operand, init, axes)
        elements = [operand.type.element_type, init.type.element_type]
        block = ir.Block.create_at_start(op.regions[0], elements, [ir.Location.current] * 2)
        with ir.InsertionPoint(block):
            finish([body(*block.arguments)])
        return op.results[0]

    def pad(
        self, value: Value, type_: TensorType, low: Sequence[int], high: Sequence[int], fill: Value
    ) -> Value:
        """Append a `tensor.pad` with ``low`` elements ``fill`` before, and ``high`` behind each axis."""
        op = tensor.PadOp(tensor_type(type_), value, [], [], list(low), list(high))
        index = ir.IndexType.get()
        block = ir.Block.create_at_start(
            op.regions[0], [index] * type_.rank, [ir.Location.current] * type_.rank
        )
        with ir.InsertionPoint(block):
            tensor.YieldOp(fill)
        return op.results[0]

    def elementwise(
        self,
        body: Callable[..., Value],
        operands: Sequence[Value] | None = None,
        type_: TensorType | None = None,
    ) -> Value:
        """Append a `linalg.generic` that applies ``body`` to each element, broadcasting the operands.

        Args:
            body: From scalars, one per operand, to the result's scalar.
            operands: Tensors that broadcast (right-aligned) to ``type_``; default: the operation's own.
            type_: The type of the result; default: the operation's own.
        """
        operands = self.operands if operands is None else operands
        type_ = type_ or self.result_type
        maps = [broadcast_map(tuple(value.type.shape), type_.extents) for value in operands]
        maps.append(ir.AffineMap.get_identity(type_.rank))
        results = self.generic(
            operands,
            maps,
            [self.empty(type_)],
            ["parallel"] * type_.rank,
            lambda *elements: body(*elements[:-1]),
        )
        return results[0]

    def check(self, check: Check, smallest: Value, largest: Value) -> None:
        """Have the function report ``check`` unless all numbers that it looks at are allowed.

        The numbers are i64 scalars, both `NOTHING_SEEN` where there is no number.
        """
        found = replace(check, place=self.place())
        self.checks.append(Outcome(found, smallest, largest, self.function))


def _is_single(value: Value) -> bool:
    return is_element_tensor(value) or not isinstance(value.type, ir.ShapedType)


def _is_empty(init: Value) -> bool:
    """Return whether ``init`` holds nothing yet."""
    return not isinstance(init, ir.BlockArgument) and init.owner.operation.name == "tensor.empty"


def _is_wrapped(init: Value) -> bool:
    """Return whether ``init`` is a tensor around a scalar."""
    return not isinstance(init, ir.BlockArgument) and init.owner.operation.name == "tensor.from_elements"


def _drop(inits: Sequence[Value]) -> None:
    """Erase the destinations among ``inits`` that turned out not to be needed."""
    for init in inits:
        if (_is_empty(init) or _is_wrapped(init)) and not any(True for _ in init.uses):
            init.owner.erase()


def broadcast_map(shape: tuple[int, ...], result: tuple[int, ...]) -> Any:
    """Return the indexing map of an operand of ``shape`` that broadcasts, right-aligned, to ``result``."""
    offset = len(result) - len(shape)
    expressions = [
        ir.AffineConstantExpr.get(0)
        if extent == 1 and result[offset + axis] != 1
        else ir.AffineDimExpr.get(offset + axis)
        for axis, extent in enumerate(shape)
    ]
    return ir.AffineMap.get(len(result), 0, expressions)
