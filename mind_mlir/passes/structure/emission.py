"""Writes the operations of the structured form: fresh ids, what values have become, and constants."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import Block, CoreOperation, Parameter, Result, Yield
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.constants import constant_form
from mind_mlir.passes.structure.graph import Constant
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.ir.module import ValueId
    from mind_mlir.ir.types import ValueType
    from mind_mlir.passes.structure.graph import Argument


@dataclass(slots=True)
class Scope:
    """The block that is being written, and what to put right when it ends."""

    operations: list[CoreOperation] = field(default_factory=list)
    constants: dict[tuple[TensorType, int], ValueId] = field(default_factory=dict)
    #: What values stood for before this block said otherwise.
    shadowed: list[tuple[ValueId, Argument, bool]] = field(default_factory=list)
    offered: dict[TensorType, ValueId] = field(default_factory=dict)


@dataclass(slots=True)
class Emission:
    """One function of the structured form as it grows.

    Ids ascend in the order of emission, so what is below the first id of a region is defined around it.

    Attributes:
        next_id: The next id.
        now: What each value of the given function is at this place: a value, a constant, or None for one that
            is never looked at.
        scopes: The blocks that are being written, from the function's own to the innermost.
    """

    next_id: ValueId = 0
    now: dict[ValueId, Argument] = field(default_factory=dict)
    scopes: list[Scope] = field(default_factory=lambda: [Scope()])

    @property
    def operations(self) -> list[CoreOperation]:
        """Return what the innermost block holds so far."""
        return self.scopes[-1].operations

    def fresh(self) -> ValueId:
        """Return an id that is not taken."""
        self.next_id += 1
        return self.next_id - 1

    def enter(self, location: Location | None) -> None:
        """Begin a region.

        Raises:
            UnsupportedError: E7004, it would be the sixty-fifth within one another.
        """
        if len(self.scopes) > MAX_NESTING:
            raise too_deep(location)
        self.scopes.append(Scope())

    def close(self) -> Scope:
        """Stop writing the region, without ending it: what values are is again what it was around it."""
        scope = self.scopes.pop()
        for value, before, was_known in reversed(scope.shadowed):
            if was_known:
                self.now[value] = before
            else:
                del self.now[value]
        return scope

    def end(
        self,
        scope: Scope,
        label: str,
        parameters: Sequence[Parameter],
        yielded: Iterable[tuple[Argument, TensorType]],
    ) -> Block:
        """End a region that was closed, and return it; it yields arguments, whose types are given."""
        self.scopes.append(scope)
        values = [self.value(argument, type_) for argument, type_ in yielded]
        self.scopes.pop()
        return Block(tuple(scope.operations), Yield(tuple(values)), tuple(parameters), label)

    def offer(self, parameters: Iterable[Parameter]) -> None:
        """Let values of this region stand for those that are never looked at, rather than large zeros."""
        for parameter in parameters:
            self.scopes[-1].offered.setdefault(parameter.tensor_type, parameter.value_id)

    def bind(self, value: ValueId, argument: Argument) -> None:
        """Say what a value of the given function is until the end of this region."""
        known = value in self.now
        self.scopes[-1].shadowed.append((value, self.now[value] if known else None, known))
        self.now[value] = argument

    def parameter(self, given: Parameter) -> Parameter:
        """Bind a parameter of the given function to a new one and return that."""
        new = Parameter(self.fresh(), given.type, given.location, None, origin=given.label)
        self.bind(given.value_id, new.value_id)
        return new

    def value(self, argument: Argument, type_: TensorType) -> ValueId:
        """Return the value that ``argument``, of ``type_``, is; a constant becomes an operation here."""
        if type(argument) is int:
            return argument
        if argument is None and type_.rank:
            for scope in reversed(self.scopes):
                if type_ in scope.offered:
                    return scope.offered[type_]
        number = argument.value if isinstance(argument, Constant) else 0
        constants = self.scopes[-1].constants
        if (type_, number) not in constants:
            constants[type_, number] = self._constant(number, type_)
        return constants[type_, number]

    def _constant(self, number: int, type_: TensorType) -> ValueId:
        opcode, attributes = constant_form(TensorLiteral.of(number, type_.dtype))
        scalar = TensorType(type_.dtype)
        value = self.emit(opcode, (), attributes, (scalar,))[0]
        if type_.rank == 0:
            return value
        return self.emit("BroadcastTo", (value,), {"result_shape": type_.extents}, (type_,))[0]

    def emit(
        self,
        opcode: str,
        operands: Sequence[ValueId],
        attributes: Mapping[str, Any],
        types: Sequence[ValueType],
        regions: Sequence[Block] = (),
        location: Location | None = None,
        source: SourceInfo | None = None,
        origin: str | None = None,
    ) -> tuple[ValueId, ...]:
        """Append an operation, which comes from ``source`` or is at ``location``, and return its results."""
        first, *others = [Result(self.fresh(), type_) for type_ in types]
        if location is not None:
            source = SourceInfo.at(location)
        operation = CoreOperation.create(
            first.value_id,
            opcode,
            operands,
            attributes,
            first.type,
            source,
            origin=origin,
            others=others,
            regions=regions,
        )
        self.operations.append(operation)
        return operation.result_ids

    def negated(self, flag: ValueId) -> ValueId:
        """Return the negation of a scalar i1."""
        return self.emit("Not", (flag,), {}, (TensorType(DType.I1),))[0]

    def copy(self, operation: CoreOperation, types: Mapping[ValueId, TensorType]) -> None:
        """Append an operation of the given function, its regions included."""
        deliver()
        operands = [self.value(self.now[value], types[value]) for value in operation.operands]
        regions = [self._copy_region(operation, region, types) for region in operation.regions]
        results = self.emit(
            operation.opcode,
            operands,
            operation.attributes,
            operation.result_types,
            regions,
            source=operation.source,
            origin=operation.label,
        )
        for value, new in zip(operation.result_ids, results, strict=True):
            self.bind(value, new)

    def _copy_region(
        self, operation: CoreOperation, region: Block, types: Mapping[ValueId, TensorType]
    ) -> Block:
        self.enter(operation.location)
        parameters = [self.parameter(parameter) for parameter in region.parameters]
        for inner in region.operations:
            self.copy(inner, types)
        yielded = [(self.now[value], types[value]) for value in region.terminator.operands]
        return self.end(self.close(), region.label, parameters, yielded)


def too_deep(location: Location | None) -> UnsupportedError:
    """Return the E7004 error, to be raised."""
    return UnsupportedError(
        Diagnostic(
            "E7004",
            f"branches and loops are nested too deeply: more than {MAX_NESTING} levels within one another",
            location,
            help="move inner loops and branches into functions of their own that are called more than once, "
            "or let branches meet again before the next one",
            context={"limit": MAX_NESTING},
        )
    )
