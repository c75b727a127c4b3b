"""Runs functions of Python operation by operation, on arrays that hold their numbers.

That is ``jit(interpret=True)``. Each operation is evaluated when it is recorded, with its numpy rule. So a
breakpoint or a ``print`` in a function shows numbers; ``if`` and ``for`` may ask for them, which compiled
code cannot. What is recorded is what has run, without its branches and loops: gradients go back through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import NotFiniteError
from mind_mlir.interpreter import evaluate, evaluate_running
from mind_mlir.interpreter.not_finite import NotFiniteWatch
from mind_mlir.ir.analysis.call_graph import callee_of
from mind_mlir.ir.profiles import EXTENDED_FUNCTIONS
from mind_mlir.languages.staging import Unit
from mind_mlir.ops.printing import silently
from mind_mlir.passes.structure import structure_function
from mind_mlir.runtime.staged_arguments import as_arrays
from mind_mlir.support import pytrees
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.tracing.array import TracedArray
from mind_mlir.tracing.trace import Trace

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.staging import Instance
    from mind_mlir.runtime.staged import StagedFunction
    from mind_mlir.support.pytrees import Form
    from mind_mlir.tracing.value import TracedValue


@dataclass(slots=True, eq=False)
class EagerBuilder(Builder):
    """A builder that runs what is appended to the function itself; what regions hold runs with them.

    Attributes:
        unit: The functions that calls may call.
        numbers: What the values of the function are.
        watch: Notes NaN and infinities, where these are looked for.
        is_silent: Whether calls print nothing, as they have run already.
    """

    unit: Unit = field(default_factory=Unit)
    numbers: dict[ValueId, Array] = field(default_factory=dict)
    watch: NotFiniteWatch | None = None
    is_silent: bool = False
    _outermost: list[CoreOperation] = field(default_factory=list)

    def __post_init__(self) -> None:
        Builder.__post_init__(self)
        self._outermost = self.operations

    def _append(self, *args: Any) -> Value:
        value = Builder._append(self, *args)
        self._run()
        return value

    def emit_all(self, opcode: str, /, *operands: Value, **given: Any) -> tuple[Value, ...]:
        """Append an operation (see `Builder.emit_all`), and run it."""
        values = Builder.emit_all(self, opcode, *operands, **given)
        self._run()
        return values

    def _run(self) -> None:
        """Run the operation that has been appended last."""
        if self.operations is not self._outermost:
            return
        operation = self.operations[-1]
        results: tuple[Array, ...]
        callee = callee_of(operation)
        if operation.regions or callee is not None:
            called = [] if callee is None else self.unit.needed([callee])
            with silently() if self.is_silent else nullcontext():
                see = None if self.watch is None else self.watch.see
                results = evaluate_running(operation, self.numbers, map(structure_function, called), see)
        else:
            operands = [self.numbers[value] for value in operation.operands]
            found: Any = evaluate(operation, operands)
            results = found if isinstance(found, tuple) else (found,)
            if self.watch is not None:
                self.watch.see(operation, operands, results, ())
        finding = None if self.watch is None else self.watch.finding()
        if finding is not None:
            raise NotFiniteError(finding)
        self.numbers.update(zip(operation.result_ids, map(np.asarray, results), strict=True))


class EagerTrace(Trace):
    """A trace whose operations run when they are recorded.

    Attributes:
        feeding: What the operands of the call in progress are.
    """

    is_eager = True

    def __init__(self, unit: Unit, *, promotes: bool | None = None, checks: bool | None = None) -> None:
        """Begin with nothing; NaN and infinities are looked for as in the trace around, unless it is said."""
        super().__init__(unit, TracedArray, promotes=promotes)
        around = self.parent.builder if isinstance(self.parent, EagerTrace) else None
        if checks is None:
            checks = isinstance(around, EagerBuilder) and around.watch is not None
        plain = self.builder
        self.eager = EagerBuilder(
            functions=plain.functions,
            profile=plain.profile,
            unit=unit,
            watch=NotFiniteWatch() if checks else None,
        )
        self.builder = self.eager
        self.feeding: list[Array] = []

    @property
    def numbers(self) -> dict[ValueId, Array]:
        """Return what the values of the function are."""
        return self.eager.numbers

    def input(self, type_: TensorType, array: Array) -> Value:
        """Return a further parameter, which is ``array``."""
        value = super().input(type_, array)
        self.numbers[value.id] = np.asarray(array)
        return value

    def call(self, function: StagedFunction, form: Form, leaves: Sequence[Any]) -> Any:
        """Run a function of Python on arrays of this trace; append a call of any other."""
        run = function.in_place(self)
        return run(form, leaves) if run is not None else super().call(function, form, leaves)

    def _instance(
        self, function: StagedFunction, form: Form, types: Sequence[TensorType], operands: Sequence[Value]
    ) -> Instance:
        before = self.feeding
        self.feeding = [self.numbers[each.id] for each in operands]
        try:
            with silently() if function.repeats else nullcontext():
                instance = super()._instance(function, form, types, operands)
        finally:
            self.feeding = before
        # Making it has run what is written in Python.
        self.eager.is_silent = function.closes
        return instance

    def _capture(self, array: TracedValue) -> Value:
        found = super()._capture(array)
        numbers = array.trace.numbers_of(array.value)
        if numbers is not None:
            self.numbers[found.id] = numbers
        return found

    def numbers_of(self, value: Value) -> Array | None:
        """Return what a value is; None of what is in a region that is being made."""
        return self.numbers.get(value.id)


def run_eagerly(function: StagedFunction, form: Form, leaves: Sequence[Any]) -> Any:
    """Return what a function of Python, or its gradients, returns for arguments.

    Raises:
        TracingError: As a call.
        ExecutionError: As a call.
    """
    arrays, _ = as_arrays(leaves, lambda: function.names(form))
    types = function.types_of(form, leaves)
    unit = Unit(profile=EXTENDED_FUNCTIONS)
    unit.reading = function.reading(function.subject(form))
    trace = EagerTrace(unit, checks=function.options.check_nan)
    with trace.running():
        if unit.reading is not None:
            unit.reading.begin(trace)
        given = [trace.given(type_, array) for type_, array in zip(types, arrays, strict=True)]
        returned, form = pytrees.flatten(trace.call(function, form, given))
    return form.unflatten([np.array(trace.numbers_of(each.value), order="C") for each in returned])
