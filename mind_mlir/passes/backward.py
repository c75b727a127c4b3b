"""The backward pass: gradients of values, accumulated in reverse program order."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from mind_mlir.diagnostics import AutodiffError, VerificationError
from mind_mlir.ir.analysis.call_graph import callee_of
from mind_mlir.ir.analysis.effects import silent
from mind_mlir.ir.regions import captured_values
from mind_mlir.ir.source_info import SourceInfo
from mind_mlir.ops.opdef import NotDifferentiable
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.trip_count import integer_constant
from mind_mlir.ops.vjp import VjpContext, summed
from mind_mlir.passes.autodiff_errors import failed_rule, unsupported_operation, unsupported_shape
from mind_mlir.passes.unselected import NOTHING, keeps_zeros
from mind_mlir.support.interrupts import deliver
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from mind_mlir.builders.builder import Builder
    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.module import Block, CoreOperation, ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.opdef import OpDef
    from mind_mlir.ops.vjp import CallsDerivative
    from mind_mlir.passes.unselected import Mask, Unselected

#: How messages call what a derivative rule appends.
_DERIVED = "in the derivative of "


def full(builder: Builder, type_: TensorType, value: float) -> Value:
    """Append a tensor with ``value`` in every element; no large literal, whatever the shape."""
    scalar = builder.constant(value, type_.dtype)
    return builder.emit("BroadcastTo", scalar, result_shape=type_.extents) if type_.rank else scalar


@dataclass(slots=True)
class Backward:
    """The gradients so far, and the operations that compute them.

    Attributes:
        builder: The gradient module; holds the primal operations when the pass starts.
        primal: Values of the differentiated function as values of the gradient module.
        varying: The values that may have a gradient (`mind_mlir.passes.activity`).
        original: Values of the differentiated module as the user numbered them, for diagnostics.
        unselected: In which elements they have influence.
        extensions: Whether rules outside Core v1 may be used.
        call: Appends calls of functions' derivatives.
        gradients: For each value that has one so far, its gradient: of exactly the value's type.
        places: Where the primal operations stand among those of their block, by their first value.
        findings: What went wrong, a list for each operation, the last operation first.
        depth: In how many regions the builder stands.
        constants: The integer scalars among the primal values.
        doubtful: Of values with gradients, the masks outside of which these may be NaN rather than 0.
    """

    builder: Builder
    primal: dict[ValueId, Value]
    varying: AbstractSet[ValueId]
    original: Mapping[ValueId, ValueId]
    unselected: Unselected
    extensions: bool = False
    call: CallsDerivative | None = None
    gradients: dict[ValueId, Value] = field(default_factory=dict)
    places: dict[ValueId, int] = field(default_factory=dict)
    findings: list[list[Diagnostic]] = field(default_factory=list)
    depth: int = 0
    constants: dict[ValueId, int] = field(default_factory=dict)
    doubtful: dict[ValueId, frozenset[Mask]] = field(default_factory=dict)

    def forward(self, operations: Iterable[CoreOperation]) -> None:
        """Append copies of primal operations."""
        for operation in operations:
            deliver()
            operands = [self.primal[operand] for operand in operation.operands]
            values = self.builder.copy_all(operation, operands, self.primal)
            self.primal.update(zip(operation.result_ids, values, strict=True))
            if operation.regions:
                self.places[values[0].id] = len(self.builder.operations) - 1
            elif not operation.operands:
                constant = integer_constant(operation)
                if constant is not None:
                    self.constants[values[0].id] = constant

    def accumulate(self, value: ValueId, contribution: Value) -> None:
        """Add ``contribution``, which has the type of ``value``, to its gradient."""
        assert contribution.type == self.primal[value].type, "a gradient has the type of its value"
        so_far = self.gradients.get(value)
        self.gradients[value] = (
            contribution if so_far is None else self.builder.emit("Add", so_far, contribution)
        )

    def run(self, operations: Sequence[CoreOperation]) -> None:
        """Visit ``operations`` in reverse, from the gradients of the outputs to those of the inputs.

        Raises:
            AutodiffError: All that went wrong, in program order.
        """
        self.visit(operations)
        if self.findings:
            raise AutodiffError(self.problems())

    def problems(self) -> list[Diagnostic]:
        """Return what went wrong, in program order, and only once where an operation was met again."""
        found = [problem for group in reversed(self.findings) for problem in group]
        return list({(p.code, p.message, p.location): p for p in reversed(found)}.values())[::-1]

    def visit(self, operations: Sequence[CoreOperation]) -> None:
        """Visit the operations of a block in reverse."""
        for operation in reversed(operations):
            deliver()
            if operation.operands and self._has_gradient(operation):
                start = len(self.builder.operations)
                found = self._visit(operation)
                if found:
                    self.findings.append(found)
                self._locate(start, operation)

    def _has_gradient(self, operation: CoreOperation) -> bool:
        return operation.value_id in self.gradients or (
            operation.others != () and any(value in self.gradients for value in operation.result_ids)
        )

    def _visit(self, operation: CoreOperation) -> list[Diagnostic]:
        targets = operation.operands
        reached: tuple[ValueId, ...] = ()
        if operation.regions:
            reached = tuple([value for value in captured_values(operation) if value in self.varying])
            targets = (*targets, *reached)
        needs = tuple([target in self.varying for target in targets])
        contributions: Sequence[Value | None]
        try:
            problems, contributions = [], self._contributions(operation, needs, reached)
        except AutodiffError as error:
            problems = list(error.diagnostics)
            # The module is lost, but the operations before this one may have findings of their own: go on
            # with any values of the right types.
            contributions = [self.primal[target] for target in targets]
        for target, needed, contribution in zip(targets, needs, contributions, strict=True):
            if needed and contribution is not None:
                self.accumulate(target, contribution)
        return problems

    def _contributions(
        self, operation: CoreOperation, needs: tuple[bool, ...], captured: Sequence[ValueId]
    ) -> list[Value | None]:
        """Return the gradients of operands and captured values through ``operation``, of their types."""
        value = self.original.get(operation.value_id, operation.value_id)
        record = by_opcode()[operation.opcode]
        rule = record.derivative
        if isinstance(rule, NotDifferentiable) or (record.derivative_is_extension and not self.extensions):
            raise AutodiffError(unsupported_operation(operation, value, record))
        if not (operation.regions or operation.others or callee_of(operation)):
            context = VjpContext(
                self.builder,
                tuple([self.primal[operand] for operand in operation.operands]),
                self.primal[operation.value_id],
                self.gradients[operation.value_id],
                operation.attributes,
                needs,
            )
        else:
            context = self._context(operation, record, needs[: len(operation.operands)], captured)
        targets = (*context.operands, *context.captured)
        start = len(self.builder.operations)
        try:
            cotangents = rule(context)
            cotangents = self._selected(operation, cotangents, start)
            return [
                self._summed_to(operation, cotangent, target.shape)
                if needed and cotangent is not None
                else None
                for cotangent, target, needed in zip(cotangents, targets, needs, strict=True)
            ]
        except VerificationError as error:
            raise AutodiffError([failed_rule(operation, value, d) for d in error.diagnostics]) from error

    def _selected(
        self, operation: CoreOperation, cotangents: Sequence[Value | None], start: int
    ) -> list[Value | None]:
        """Return ``cotangents``, with zeros where the result has no influence but the operand may."""
        known = self.unselected
        doubtful = known.masks[operation.value_id]
        if not doubtful:
            return list(cotangents)
        scales = {self.primal[each].id for each in operation.operands if known.is_scale(each)}
        if keeps_zeros(self.builder.operations[start:], scales):
            doubtful = self.doubtful.get(operation.value_id, NOTHING)
        found: list[Value | None] = []
        for operand, cotangent in zip(operation.operands, cotangents, strict=True):
            inner = known.masks[operand]
            found.append(cotangent and self._chosen(cotangent, doubtful - inner))
            self.doubtful[operand] = self.doubtful.get(operand, NOTHING) | (doubtful & inner)
        return found

    def _chosen(self, cotangent: Value, masks: AbstractSet[Mask]) -> Value:
        for predicate, counts in sorted(masks):
            zeros = full(self.builder, cotangent.type, 0)
            branches = (cotangent, zeros) if counts else (zeros, cotangent)
            cotangent = self.builder.emit("Select", self.primal[predicate], *branches)
        return cotangent

    def _context(
        self,
        operation: CoreOperation,
        record: OpDef,
        needs: tuple[bool, ...],
        captured: Sequence[ValueId],
    ) -> VjpContext:
        results = tuple([self.primal[result] for result in operation.result_ids])
        cotangents = tuple([self.gradients.get(result) for result in operation.result_ids])
        context = VjpContext(
            self.builder,
            tuple([self.primal[operand] for operand in operation.operands]),
            results[0],
            next(cotangent for cotangent in cotangents if cotangent is not None),
            operation.attributes,
            needs,
            results,
            cotangents,
        )
        return replace(
            context,
            place=self.places.get(results[0].id, -1),
            regions=tuple([RegionDerivative(self, region, captured) for region in operation.regions]),
            captured=tuple([self.primal[value] for value in captured]),
            depth=self.depth,
            constants=self.constants,
            call=self.call,
        )

    def _summed_to(self, operation: CoreOperation, cotangent: Value, shape: tuple[int, ...]) -> Value:
        """Sum ``cotangent`` over the axes along which broadcasting stretched ``shape`` to its shape."""
        found = cotangent.shape
        leading = len(found) - len(shape)
        padded = (1,) * leading + shape
        if leading < 0 or any(e not in (f, 1) for e, f in zip(padded, found, strict=True)):
            value = self.original.get(operation.value_id, operation.value_id)
            raise AutodiffError(unsupported_shape(operation, value, found, shape))
        inner = [axis for axis in range(leading, len(found)) if padded[axis] != found[axis]]
        axes = (*range(leading), *inner)
        if not axes:
            return cotangent
        total = summed(self.builder, cotangent, axes, keepdims=bool(inner))
        if inner and leading:
            return self.builder.emit("Squeeze", total, axes=tuple(range(leading)))
        return total

    def _locate(self, start: int, operation: CoreOperation) -> None:
        """Say of the operations from ``start`` on which one they differentiate, and where it is."""
        appended = self.builder.operations
        source = SourceInfo.at(operation.location) if operation.location else None
        origin = f"{_DERIVED}{operation.label.removeprefix(_DERIVED)}"
        appended[start:] = [
            op if op.origin else replace(op, source=source, origin=origin) for op in appended[start:]
        ]


@dataclass(slots=True, eq=False)
class RegionDerivative:
    """Appends what a region does, and the derivative of that, wherever the builder stands.

    Its values stand for those of the region in the tables of the driver until it runs again: what runs last
    is what the derivative goes back through.
    """

    driver: Backward
    region: Block
    captured: Sequence[ValueId]

    @property
    def active(self) -> tuple[bool, ...]:
        """Return for each parameter whether it can have a cotangent."""
        return tuple([p.value_id in self.driver.varying for p in self.region.parameters])

    def run(self, arguments: Sequence[Value]) -> list[Value]:
        """Append the operations of the region; return what it yields for these ``arguments``."""
        primal = self.driver.primal
        for parameter, argument in zip(self.region.parameters, arguments, strict=True):
            primal[parameter.value_id] = argument
        self.driver.forward(map(silent, self.region.operations))
        return [primal[value] for value in self.region.terminator.operands]

    def pull(self, cotangents: Sequence[Value | None]) -> tuple[list[Value | None], list[Value | None]]:
        """Append the derivative of the last run; return the cotangents of parameters and captured values."""
        driver = self.driver
        outside, driver.gradients = driver.gradients, {}
        driver.depth += 1
        for value, cotangent in zip(self.region.terminator.operands, cotangents, strict=True):
            if cotangent is not None and value in driver.varying:
                driver.accumulate(value, cotangent)
        driver.visit(self.region.operations)
        driver.depth -= 1
        found, driver.gradients = driver.gradients, outside
        parameters = [found.get(parameter.value_id) for parameter in self.region.parameters]
        return parameters, [found.get(value) for value in self.captured]
