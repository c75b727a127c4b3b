"""A small producer of PTIR programs: instructions with the types that the operation records give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.profiles import PTIR
from mind_mlir.ir.types import DType, TensorType, TupleType
from mind_mlir.languages.ptir.fields import attributes_of
from mind_mlir.languages.ptir.program import (
    Function,
    Instruction,
    Operand,
    Operation,
    Program,
    Region,
    TupleElement,
    ValueRef,
)
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import all_ops
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mind_mlir.ir.types import ValueType
    from mind_mlir.ops.opdef import OpDef

_RECORDS: dict[tuple[str, str | None], OpDef] = {
    (record.contract.name, record.contract.variant): record
    for record in all_ops()
    if record.contract is not None
}


@dataclass(frozen=True)
class Tensor:
    """A value of a program: what instructions read, and its type."""

    operand: Operand
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        """Return its extents."""
        return self.type.extents


@dataclass
class Body:
    """The parameters and instructions of a function or region, in order."""

    regions: list[Region]
    parameters: list[TensorType] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)

    def parameter(self, dtype: DType, *shape: int) -> Tensor:
        """Declare a parameter; all come before the first instruction."""
        assert not self.instructions, "parameters come first"
        self.parameters.append(TensorType(dtype, shape))
        return Tensor(ValueRef(len(self.parameters) - 1), self.parameters[-1])

    def apply(self, name: str, *operands: Tensor, variant: str | None = None, **fields: Any) -> Tensor:
        """Append an instruction with one result; its type is that of the record's type rule."""
        record = _RECORDS[name, variant]
        types = tuple(operand.type for operand in operands)
        operation = Operation(name, variant, FrozenDict(fields))
        assert record.contract is not None
        attributes = attributes_of(record.contract, operation, types)
        context = TypeContext(record.opcode, 0, types, attributes, profile=PTIR)
        results = infer_types(record, context)
        if results is None:
            raise ValueError("; ".join(finding.message for finding in context.diagnostics))
        number = self._append(operation, operands, results[0])
        return Tensor(ValueRef(number), results[0])

    def scan(self, body: Body, results: Sequence[Tensor], carried: Sequence[Tensor]) -> list[Tensor]:
        """Append a Scan over no inputs but the steps of its outputs' first one.

        The parameters of ``body`` are the carried values and then one slice of each scanned input; the
        operands are ``carried``, of which the last ones may be scanned inputs.
        """
        region = body.finish(results)
        scanned = len(carried) - (count := self._carry_count(body, carried))
        steps = carried[-1].shape[0]
        outputs = [tensor.type for tensor in results]
        types = outputs[:count] + [t.with_shape((steps, *t.extents)) for t in outputs[count:]]
        assert scanned, "a scan has an input to go over"
        fields = {"body_region": region, "carry_count": count, "scan_output_count": len(outputs) - count}
        number = self._append(Operation("Scan", None, FrozenDict(fields)), carried, TupleType(tuple(types)))
        return [Tensor(TupleElement(number, index), type_) for index, type_ in enumerate(types)]

    def region(self) -> Body:
        """Return a body to be used as a region."""
        return Body(self.regions)

    def finish(self, results: Sequence[Tensor]) -> int:
        """Make a region of this body, which yields ``results``, and return its id.

        The results of a region are its last instructions, so each is read once more by one that copies it.
        """
        kept = [self.apply("Reshape", each, new_shape=each.shape) for each in results]
        region = Region(
            len(self.regions), tuple(self.parameters), tuple(self.instructions), tuple(t.type for t in kept)
        )
        self.regions.append(region)
        return region.id

    def _carry_count(self, body: Body, operands: Sequence[Tensor]) -> int:
        pairs = zip(operands, body.parameters, strict=True)
        return sum(tensor.type == parameter for tensor, parameter in pairs)

    def _append(self, operation: Operation, operands: Iterable[Tensor], output: ValueType) -> int:
        """Append an instruction and return the id of its value."""
        number = len(self.parameters) + len(self.instructions)
        read = tuple(tensor.operand for tensor in operands)
        self.instructions.append(Instruction(number, operation, read, output))
        return number

    # What models are written in.

    def unary(self, name: str, x: Tensor) -> Tensor:
        """Append an elementwise operation of one operand, such as ``Exp``."""
        return self.apply("ElementwiseUnary", x, variant=name)

    def binary(self, name: str, x: Tensor, y: Tensor | float) -> Tensor:
        """Append one of two, such as ``Add``; ``y`` broadcasts to the shape of ``x``."""
        right = self.number(y, x.type.dtype) if isinstance(y, (int, float)) else y
        return self.apply("ElementwiseBinary", x, self.stretch(right, x.shape), variant=name)

    def stretch(self, x: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Append ``x`` broadcast to ``shape``, if it has another one."""
        return x if x.shape == shape else self.apply("BroadcastTo", x, result_shape=shape)

    def number(self, value: float, dtype: DType) -> Tensor:
        """Return a number as an inline literal of rank 0."""
        literal = TensorLiteral.of(value, dtype)
        return Tensor(literal, literal.type)

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        """Append ``x`` in another shape."""
        return self.apply("Reshape", x, new_shape=shape)

    def transpose(self, x: Tensor, *perm: int) -> Tensor:
        """Append ``x`` with its axes in another order."""
        return self.apply("Transpose", x, perm=perm)

    def reduce(self, kind: str, x: Tensor, axis: int) -> Tensor:
        """Append a reduction over one axis, which stays with extent 1."""
        return self.apply(
            "Reduce", x, kind=kind, axes=(axis,), keepdims=True, accum_dtype=None, out_dtype=None
        )

    def product(self, x: Tensor, y: Tensor, batch: int, contract: tuple[int, int]) -> Tensor:
        """Append a contraction of one axis each; the first ``batch`` axes of both are paired."""
        axes = tuple(range(batch))
        return self.apply(
            "DotGeneral",
            x,
            y,
            batch_lhs=axes,
            batch_rhs=axes,
            contract_lhs=contract[:1],
            contract_rhs=contract[1:],
            accum_dtype=None,
            out_dtype=None,
        )

    def softmax(self, z: Tensor) -> Tensor:
        """Append the contract's stable softmax over the last axis."""
        exponentials = self.unary("Exp", self.binary("Sub", z, self.reduce("Max", z, -1)))
        return self.binary("Div", exponentials, self.reduce("Sum", exponentials, -1))


def program(body: Body, results: Sequence[Tensor], name: str = "main") -> Program:
    """Return the program whose only function has this body."""
    ids = []
    for tensor in results:
        kept = tensor if isinstance(tensor.operand, ValueRef) else body.reshape(tensor, *tensor.shape)
        assert isinstance(kept.operand, ValueRef)
        ids.append(kept.operand.value)
    function = Function(
        name,
        tuple(body.parameters),
        tuple(range(len(body.parameters))),
        tuple(body.instructions),
        tuple(tensor.type for tensor in results),
        tuple(ids),
    )
    return Program((function,), tuple(body.regions), entry=name)
