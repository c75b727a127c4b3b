"""Builds modules and functions from Python, inferring every result type from the operation records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.builders.copying import renamed
from mind_mlir.builders.given import attributes_of, each_of, listed, not_an_input, not_own, source_of
from mind_mlir.builders.region import Hidden, Region
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import (
    Block,
    CoreOperation,
    Function,
    Module,
    Parameter,
    Result,
    Return,
    ValueId,
    Yield,
)
from mind_mlir.ir.names import NO_NAMES
from mind_mlir.ir.profiles import CORE_V1, PROFILES
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ir.value import Value
from mind_mlir.ops import registry
from mind_mlir.ops.constants import constant_form
from mind_mlir.ops.contexts import Signature, TypeContext
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.unknown import unknown_operation
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.ir.source_info import SourceInfo
    from mind_mlir.ops.opdef import OpDef


NOTHING_CAPTURED: Mapping[ValueId, Value] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Builder:
    """Appends operations to a flat module, or to a function, assigning fresh value ids in creation order.

    What is wrong with an operation is a `VerificationError`, raised where it is built; what the operations
    are together (names of inputs, dtypes of the profile) is for `verify` to say.

    Example:
        >>> b = Builder()
        >>> x = b.input("x", TensorType(DType.F32, (2, 3)))
        >>> print(b.build([b.emit("Sum", x, axes=[1])]))
        %0 = Input {name="x"} : tensor<f32[2, 3]>
        %1 = Sum (%0) {axes=[1], keepdims=false} : tensor<f32[2]>
        outputs: %1

    A function has parameters in the place of inputs, may call the functions that ``functions`` describes,
    and has loops and branches, whose regions are filled first:

        >>> b = Builder()
        >>> x = b.parameter(TensorType(DType.F32, (2,)), "x")
        >>> p = b.parameter(TensorType(DType.I1), "p")
        >>> with b.region() as then:
        ...     then.yield_(b.emit("Neg", x))
        >>> with b.region() as otherwise:
        ...     otherwise.yield_(x)
        >>> (y,) = b.emit_all("Cond", p, regions=(then, otherwise))
        >>> function = b.function("main", [y])
    """

    operations: list[CoreOperation] = field(default_factory=list, init=False)
    next_id: ValueId = 0
    functions: Mapping[str, Signature | None] = field(default_factory=dict)
    profile: str = CORE_V1.name
    parameters: list[Parameter] = field(default_factory=list, init=False)
    hidden: Hidden = field(default_factory=Hidden, init=False, repr=False)

    def __post_init__(self) -> None:
        self.profile = argument_checks.text(self.profile, "profile")
        self.next_id = argument_checks.integer(self.next_id, "next_id")

    def __str__(self) -> str:
        return "\n".join(map(str, self.operations))

    def __repr__(self) -> str:
        return f"<Builder of {len(self.operations)} operations>"

    def input(self, name: str, type_: TensorType, source: SourceInfo | None = None) -> Value:
        """Declare an input called ``name``.

        Raises:
            VerificationError: E4004, ``name`` is no string, or ``type_`` no `TensorType` of known extents.
            TypeError: ``source`` is no `SourceInfo`.
        """
        if not isinstance(name, str):
            raise not_an_input("name of an Input must be a string", name)
        if not isinstance(type_, TensorType) or not all(isinstance(extent, int) for extent in type_.shape):
            raise not_an_input("type of an Input must be a TensorType of known extents", type_)
        return self._append("Input", (), {"name": name}, type_, source_of(source))

    def constant(self, data: npt.ArrayLike, dtype: DType) -> Value:
        """Emit a constant; scalars take the shortest of the constant operations.

        Raises:
            VerificationError: E1104, E3010 or E4005, as `TensorLiteral.of`.
        """
        literal = TensorLiteral.of(data, dtype)
        opcode, attributes = constant_form(literal)
        return self._append(opcode, (), attributes, literal.type, None)

    def emit(
        self, opcode: str, /, *operands: Value, source: SourceInfo | None = None, **attributes: Any
    ) -> Value:
        """Append an operation and return its value.

        Attributes may be given as Python writes them: lists for tuples, ``dtype="f32"``, ``padding="Same"``,
        numbers for a literal.

        Raises:
            VerificationError: The opcode is unknown (E1102), an operand is no value of this builder (E4001),
                or the operation breaks a rule of its record.
            TypeError: ``source`` is no `SourceInfo`.
        """
        if "regions" in attributes or "defines" in attributes:
            found = self.emit_all(opcode, *operands, source=source, **attributes)
            if len(found) == 1:
                return found[0]
            self.operations.pop()
            raise _several(len(found))
        context, values, results, _ = self._inferred(opcode, operands, (), source, attributes)
        if len(results) != 1:
            raise _several(len(results))
        return self._append(context.opcode, values, context.attributes, results[0], source)

    def emit_all(
        self,
        opcode: str,
        /,
        *operands: Value,
        regions: Sequence[Region] = (),
        defines: Sequence[Value] = (),
        source: SourceInfo | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Append an operation of any number of results, and return their values.

        Args:
            opcode: The operation.
            operands: Its operands.
            regions: Its regions, in order, each of which has ended; a region belongs to one operation.
            defines: Values of `fresh`, of the results' types, to be its results; by default new ones.
            source: Where it is written.
            attributes: As for `emit`.

        Raises:
            VerificationError: As `emit`.
            TypeError: ``source`` is no `SourceInfo`, or a region no `Region`.
            ValueError: A region is not this builder's, does not yield, or has been used already.
        """
        inside = self._finished(regions)
        context, values, results, record = self._inferred(opcode, operands, inside, source, attributes)
        pairs = zip(inside, record.regions, strict=True)
        blocks = [region.block(definition.name) for region, definition in pairs]
        defined = self._defined(defines, results)
        for region in inside:
            region.used = True
        first, *more = defined
        self.operations.append(
            CoreOperation.create(
                first.id,
                context.opcode,
                [v.id for v in values],
                context.attributes,
                first.type,
                source,
                others=[Result(value.id, value.type) for value in more],
                regions=blocks,
            )
        )
        return (first, *more)

    def region(self, types: Iterable[TensorType] = ()) -> Region:
        """Return a region with parameters of ``types``, to be filled in a ``with`` statement.

        Raises:
            TypeError: ``types`` are no `TensorType`s.
        """
        checked = each_of(types, "types", TensorType, "a TensorType", "a sequence of TensorTypes")
        return Region(self, types=tuple(checked))

    @property
    def values(self) -> list[Value]:
        """Return the parameters of the function, as values."""
        return [Value(p.value_id, p.tensor_type, self) for p in self.parameters]

    def reopen(self, block: Block, yields: Sequence[TensorType]) -> Region:
        """Return a region that holds what ``block`` does, which this builder has made, to append to it.

        Args:
            block: A region of an operation, whose place the new region is to take.
            yields: The types of what it yields.

        Raises:
            TypeError: An argument is not of the type above.
            ValueError: ``yields`` are not as many as what it yields.
        """
        argument_checks.expect(block, Block, "block", "a Block")
        argument_checks.expect(block.terminator, Yield, "block", "a Block that ends in a Yield")
        types = each_of(yields, "yields", TensorType, "a TensorType", "a sequence of TensorTypes")
        if len(types) != len(block.terminator.operands):
            raise ValueError("yields must be as many types as the block yields values")
        region = Region(
            self,
            parameters=[Value(p.value_id, p.tensor_type, self) for p in block.parameters],
            operations=list(block.operations),
            entered=True,
        )
        values = zip(block.terminator.operands, types, strict=True)
        region.yields = tuple([Value(value, type_, self) for value, type_ in values])
        return region

    def parameter(self, type_: TensorType, name: str | None = None) -> Value:
        """Declare a parameter of the function that is built; ``name`` is for callers from outside.

        Raises:
            TypeError: ``type_`` is no `TensorType`, or ``name`` no string.
        """
        argument_checks.expect(type_, TensorType, "type_", "a TensorType")
        value = self.fresh(type_)
        self.parameters.append(Parameter(value.id, type_, name=name))
        return value

    def fresh(self, type_: TensorType) -> Value:
        """Return a value that an operation to come defines (``emit_all(..., defines=...)``).

        Raises:
            TypeError: ``type_`` is no `TensorType`.
        """
        argument_checks.expect(type_, TensorType, "type_", "a TensorType")
        value = Value(self.next_id, type_, self)
        self.next_id += 1
        return value

    def copy(self, operation: CoreOperation, operands: Sequence[Value]) -> Value:
        """Append a verified operation of another module, reading ``operands``, and return its (first) value.

        Raises:
            VerificationError: E4001, an operand is no value of this builder.
            TypeError: ``operation`` is no `CoreOperation` with one result.
        """
        return self.copy_all(operation, operands)[0]

    def copy_all(
        self,
        operation: CoreOperation,
        operands: Sequence[Value],
        captured: Mapping[ValueId, Value] = NOTHING_CAPTURED,
    ) -> tuple[Value, ...]:
        """Append a verified operation of another module, with its regions, and return its values.

        Args:
            operation: The operation.
            operands: What the copy reads.
            captured: What its regions read in the place of values that are defined around it; may hold more.

        Raises:
            VerificationError: E4001, an operand is no value of this builder.
            TypeError: ``operation`` is no `CoreOperation` whose results are tensors.
        """
        argument_checks.expect(operation, CoreOperation, "operation", "a CoreOperation")
        read = argument_checks.items(operands, "operands", "a sequence of Values")
        values = self._own(read, f"operand {{}} of {operation.opcode}")
        if not operation.others and not operation.regions:
            result = self.fresh(operation.tensor_type)
            ids = tuple([v.id for v in values])
            self.operations.append(
                replace(operation, value_id=result.id, operands=ids, names=NO_NAMES, origin=operation.label)
            )
            return (result,)
        results = tuple([self.fresh(type_) for type_ in operation.result_types])
        self.operations.append(renamed(operation, results, values, captured, self))
        return results

    def build(self, outputs: Iterable[Value]) -> Module:
        """Return the module with the given outputs, or one output.

        Raises:
            VerificationError: E4003, an output is no value of this builder.
            TypeError: ``outputs`` is no iterable.
        """
        values = self._own(listed(outputs, "outputs"), "output {}", "E4003")
        return Module.flat(self.operations, [value.id for value in values])

    def function(self, name: str, results: Iterable[Value] | Value, *, public: bool = True) -> Function:
        """Return the function, in structured form, that returns ``results`` and has the parameters declared.

        Raises:
            VerificationError: E4003, a result is no value of this builder, or of a region.
            TypeError: ``results`` is no iterable, or ``name`` no string.
        """
        values = self._own(listed(results, "results"), "result {}", "E4003")
        end = Return(tuple(v.id for v in values))
        block = Block(tuple(self.operations), end, parameters=tuple(self.parameters))
        return Function(name, (block,), public, tuple(v.type for v in values))

    def _own(self, values: Iterable[object], place: str, code: str = "E4001") -> list[Value]:
        """Return ``values``, which must be of this builder and visible where it stands."""
        own: list[Value] = []
        findings: list[Diagnostic] = []
        hidden = self.hidden
        for index, value in enumerate(values):
            mine = isinstance(value, Value) and value.builder is self
            if isinstance(value, Value) and mine and (not hidden or value.id not in hidden):
                own.append(value)
            else:
                findings.append(not_own(value, place.format(index), code, ended=mine))
        if findings:
            raise VerificationError(findings)
        return own

    def _inferred(
        self,
        opcode: str,
        operands: tuple[Value, ...],
        regions: Sequence[Region],
        source: SourceInfo | None,
        attributes: dict[str, Any],
    ) -> tuple[TypeContext, list[Value], tuple[TensorType, ...], OpDef]:
        """Return an operation as its type rule sees it, its operands, its results' types and its record."""
        if not isinstance(opcode, str):
            message = f"an opcode must be a string, not {argument_checks.describe(opcode)}"
            raise VerificationError(Diagnostic("E1102", message))
        opcode, source = argument_checks.text(opcode, "opcode"), source_of(source)
        record = registry.lookup(opcode)
        if record is None:
            spelling = registry.lookup(opcode, self.profile)
            if spelling is None:
                raise VerificationError(unknown_operation(opcode, source.opcode if source else None))
            record, attributes = spelling.record, {**attributes, **spelling.attributes}
            opcode = record.opcode
        values = self._own(operands, f"operand {{}} of {opcode}") if operands else []
        types = tuple([value.type for value in values])
        complete = attributes_of(record, types, attributes)
        context = TypeContext(opcode, self.next_id, types, complete, source=source, functions=self.functions)
        context.profile = PROFILES.get(self.profile, CORE_V1)
        if regions:
            context.regions = tuple([region.signature for region in regions])
        results = infer_types(record, context)
        if results is None:
            raise VerificationError(context.diagnostics)
        return context, values, results, record

    def _defined(self, given: Sequence[Value], types: tuple[TensorType, ...]) -> Sequence[Value]:
        """Return the values that an operation with results of ``types`` defines."""
        if type(given) is tuple and not given:
            return [self.fresh(type_) for type_ in types]
        expected = "a Value that Builder.fresh returned"
        values = each_of(given, "defines", Value, expected, "a sequence of Values")
        if not values:
            return [self.fresh(type_) for type_ in types]
        foreign = any(value.builder is not self for value in values)
        if foreign or tuple(value.type for value in values) != types:
            raise ValueError("defines must be values of this builder, of the results' types")
        return values

    def _finished(self, regions: Sequence[Region]) -> list[Region]:
        """Return regions that an operation can have."""
        expected = "a Region (Builder.region makes one)"
        found = each_of(regions, "regions", Region, expected, "a sequence of Regions")
        for region in found:
            if region.builder is not self or region.used or found.count(region) > 1:
                raise ValueError("each of regions must be one of this builder that no operation has yet")
            if region.yields is None:
                raise ValueError("each of regions must be one that yields (Region.yield_)")
        return found

    def _append(
        self,
        opcode: str,
        operands: Sequence[Value],
        attributes: Mapping[str, Any],
        type_: TensorType,
        source: SourceInfo | None,
    ) -> Value:
        value = Value(self.next_id, type_, self)
        self.operations.append(
            CoreOperation.create(value.id, opcode, [v.id for v in operands], attributes, type_, source)
        )
        self.next_id += 1
        return value


def _several(count: int) -> ValueError:
    return ValueError(f"opcode must be that of an operation with one result, not {count}: emit_all")
