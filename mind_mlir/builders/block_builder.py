"""Builds one block of a function from Python (see `mind_mlir.builders.function_builder`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, cast

from mind_mlir.builders import flow_rules, type_rules
from mind_mlir.builders.given import listed, raise_any, tensor_types
from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import Block, Branch, CondBranch, Parameter, Return, Target
from mind_mlir.ir.profiles import CORE_FUNCTIONS
from mind_mlir.ops import registry
from mind_mlir.ops.constants import constant_form
from mind_mlir.support import argument_checks
from mind_mlir.support.argument_checks import counted
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.builders.builder import Builder
    from mind_mlir.builders.function_builder import FunctionBuilder
    from mind_mlir.builders.region import Region
    from mind_mlir.ir.module import CoreOperation, Terminator
    from mind_mlir.ir.source_info import SourceInfo
    from mind_mlir.ir.types import DType, TensorType
    from mind_mlir.ir.value import Value

PROFILE = CORE_FUNCTIONS


@dataclass(slots=True, eq=False)
class BlockBuilder:
    """Builds one block; `FunctionBuilder.block` makes one.

    Attributes:
        function: What builds its function.
        label: What it is called.
        parameters: The values of its parameters.
        operations: What has been appended.
        terminator: How it ends, once that is known.
    """

    function: FunctionBuilder
    label: str
    parameters: tuple[Value, ...]
    operations: list[CoreOperation] = field(default_factory=list, init=False, repr=False)
    terminator: Terminator | None = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<BlockBuilder ^{self.label}: {counted(self.operations, 'operation')}>"

    def constant(self, data: npt.ArrayLike, dtype: DType) -> Value:
        """Append a constant; scalars take the shortest of the constant operations.

        Raises:
            VerificationError: As `Builder.constant`; E2005, the profile does not have the dtype; E3006, a
                dimension is empty; E4112, the block has ended.
        """
        literal = TensorLiteral.of(data, dtype)
        opcode, attributes = constant_form(literal)
        (value,) = self.emit_all(opcode, **cast("dict[str, Any]", attributes))
        return value

    def emit(
        self, opcode: str, /, *operands: Value, source: SourceInfo | None = None, **attributes: Any
    ) -> Value:
        """Append an operation of one result, by name or by alias (``tensor.add``), and return its value.

        Attributes may be given as Python writes them: lists for tuples, ``dtype="f32"``, ``padding="Same"``,
        numbers for a literal.

        Raises:
            VerificationError: The operation is unknown (E1102) or not of this profile (E4102), an operand is
                no value of this function (E4001), the operation breaks a rule of its record, or no array can
                hold its result (E4104, E4106); E4112, the block has ended.
            TypeError: ``source`` is no `SourceInfo`.
            ValueError: The operation has several results.
        """
        values = self.emit_all(opcode, *operands, source=source, **attributes)
        if len(values) != 1:
            self.function.builder.operations.pop()
            raise ValueError(f"opcode must be that of one result, not of {len(values)}: see emit_all")
        return values[0]

    def emit_all(
        self,
        opcode: str,
        /,
        *operands: Value,
        regions: Sequence[Region] = (),
        source: SourceInfo | None = None,
        **attributes: Any,
    ) -> tuple[Value, ...]:
        """Append an operation of any number of results, and return their values.

        Args:
            opcode: The operation, by its name or an alias.
            operands: Its operands.
            regions: Its regions, in order, each of which has ended (see `region`).
            source: Where it is written.
            attributes: As for `emit`.

        Raises:
            VerificationError: As `emit`.
            TypeError: ``source`` is no `SourceInfo`, or a region no `Region`.
            ValueError: A region is not one of this function, does not yield, or has been used already.
        """
        builder = self._select()
        if isinstance(opcode, str):
            spelling = registry.lookup(argument_checks.text(opcode, "opcode"), PROFILE.name)
            raise_any([type_rules.refused(spelling.record.opcode, PROFILE, None) if spelling else None])
        values = builder.emit_all(opcode, *operands, regions=regions, source=source, **attributes)
        operation = builder.operations[-1]
        wrong = [type_rules.size(value.type, None) for value in values]
        if not operation.operands:
            wrong += [
                type_rules.foreign_dtype(operation.opcode, value.type, PROFILE, None, "E2005")
                for value in values
            ]
        if any(wrong):
            builder.operations.pop()
        raise_any(wrong)
        return values

    def call(self, callee: str, /, *arguments: Value) -> tuple[Value, ...]:
        """Append a call of a function of the module, which has been declared, and return its results.

        Raises:
            VerificationError: The module has no such function (E4121), or it takes other arguments (E2007,
                E2001), or returns nothing (E4122); E4001 and E4112 as `emit`.
        """
        return self.emit_all("Call", *arguments, callee=callee)

    def region(self, *types: TensorType) -> Region:
        """Return a region of an operation that is to come, with parameters of ``types``.

        What this block appends within a ``with`` statement on it is in the region:

            with block.region() as then:
                then.yield_(block.emit("Neg", x))
            with block.region() as otherwise:
                otherwise.yield_(x)
            (y,) = block.emit_all("Cond", p, regions=(then, otherwise))

        Raises:
            VerificationError: E4112, the block has ended.
            TypeError: A type is no `TensorType`.
        """
        return self._select().region(tensor_types(types, "types"))

    def branch(self, target: BlockBuilder, /, *arguments: Value) -> None:
        """End the block: continue with another one, whose parameters become ``arguments``.

        Raises:
            VerificationError: E4110, ``target`` is no block of this function; E4108, it is its entry; E4113,
                it declares other parameters; E4001, an argument is no value of this function; E4112, the
                block has ended; E4111, it is within a region.
        """
        self._ends()
        found, wrong = self._target(target, arguments)
        raise_any(wrong)
        self.terminator = Branch(found)

    def cond_branch(
        self,
        condition: Value,
        then: BlockBuilder,
        otherwise: BlockBuilder,
        then_arguments: Iterable[Value] = (),
        otherwise_arguments: Iterable[Value] = (),
    ) -> None:
        """End the block: go on with ``then`` where ``condition`` is true, else with ``otherwise``.

        Raises:
            VerificationError: E4114, the condition is no `tensor<i1[]>`; and as `branch`.
            TypeError: Arguments are no sequence.
        """
        self._ends()
        (scalar,) = self._own((condition,), "the condition")
        wrong: list[Diagnostic | None] = [flow_rules.condition(scalar.type, str(scalar), None)]
        first, more = self._target(then, listed(then_arguments, "then_arguments"))
        second, others = self._target(otherwise, listed(otherwise_arguments, "otherwise_arguments"))
        raise_any([*wrong, *more, *others])
        self.terminator = CondBranch(scalar.id, first, second)

    def return_(self, *values: Value) -> None:
        """End the function: ``values`` are its results.

        Raises:
            VerificationError: E4115, the function declares others; E4001, one is no value of this function;
                E4112, the block has ended; E4111, it is within a region.
        """
        self._ends()
        own = self._own(values, "returned value {}")
        function = self.function
        types = [value.type for value in own]
        wanted = function.signature.results
        raise_any(flow_rules.returned(function.name, wanted, types, lambda at: str(own[at]), lambda _: None))
        self.terminator = Return(tuple(value.id for value in own))

    def _select(self) -> Builder:
        """Let the function's builder append to this block, or to its region that is open."""
        function = self.function
        builder = function.builder
        if self.terminator is not None:
            raise VerificationError(flow_rules.after_terminator(self.label, str(self.terminator), None))
        if self._in_region:
            if function.current is not self:
                label = function.current.label
                raise VerificationError(
                    flow_rules.missing_terminator(label, None, "yield_", "a region that is open")
                )
            return builder
        function.current = self
        builder.operations = self.operations
        return builder

    @property
    def _in_region(self) -> bool:
        """Return whether a region of the function is open: what is appended is its."""
        return self.function.builder.operations is not self.function.current.operations

    def _ends(self) -> None:
        """Check that the block can end here."""
        self._select()
        if self._in_region:
            found = "a branch or return, but a region is one block"
            raise VerificationError(flow_rules.missing_terminator(self.label, None, "yield_", found))

    def _target(self, target: object, arguments: Iterable[object]) -> tuple[Target, list[Diagnostic | None]]:
        function = self.function
        if not isinstance(target, BlockBuilder) or target.function is not function:
            found = f"^{target.label} of another function" if isinstance(target, BlockBuilder) else ""
            message = (
                f"a branch goes to {found or argument_checks.describe(target)}, no block of @{function.name}"
            )
            help_ = "pass what block() of this FunctionBuilder returned"
            facts = {"block": found or None, "function": function.name}
            raise VerificationError(type_rules.finding("E4110", message, None, (), help_, **facts))
        own = self._own(arguments, f"argument {{}} of ^{_escaped(target.label)}")
        wrong: list[Diagnostic | None] = []
        if target is function.entry:
            wrong.append(flow_rules.entry_is_target(target.label, None))
        else:
            wanted, given = ([value.type for value in each] for each in (target.parameters, own))
            spell, nowhere = (lambda at: str(own[at])), (lambda _: None)
            wrong += flow_rules.branch_arguments(target.label, wanted, given, spell, nowhere)
        return Target(target.label, tuple(value.id for value in own)), wrong

    def _own(self, values: Iterable[object], place: str) -> list[Value]:
        """Return ``values``, which must be of this function; ``place`` is what messages call each."""
        return self.function.builder._own(values, place)

    def build(self, names: Sequence[str] | None) -> Block:
        """Return the block, which has ended; its parameters are called ``names``, if they have names."""
        assert self.terminator is not None, "whoever builds the module has looked"
        parameters = tuple(
            Parameter(value.id, value.type, name=names[index] if names is not None else None)
            for index, value in enumerate(self.parameters)
        )
        return Block(tuple(self.operations), self.terminator, parameters, self.label)


def _escaped(text: str) -> str:
    """Return ``text`` for `str.format` to give back."""
    return text.replace("{", "{{").replace("}", "}}")
