"""A trace: the function that is recorded while a function of Python runs on stand-ins for arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DTypeKind, TensorType
from mind_mlir.runtime.staged_values import STAGE, Captured, WeakType
from mind_mlir.tracing.conversion import as_value
from mind_mlir.tracing.places import refuse, user_source

if TYPE_CHECKING:
    from mind_mlir.builders.builder import Builder
    from mind_mlir.builders.region import Region
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.source_info import SourceInfo
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.staging import Instance, Unit
    from mind_mlir.runtime.staged import StagedFunction
    from mind_mlir.support.pytrees import Form
    from mind_mlir.tracing.array import TracedArray
    from mind_mlir.tracing.value import TracedValue


class Trace:
    """The recording of one call of a function.

    Operations go to the innermost trace that runs, whichever trace their operands are of: a value of a trace
    around it becomes a further parameter of the function, which its caller is told of.

    Attributes:
        unit: The module in the making.
        builder: What the function's operations are appended to.
        parent: The trace that calls this function, if there is one.
        captured: The values of that trace that this function reads, in the order of its last parameters.
        pending: What functions that are being made for this trace have captured of it; None where it makes
            none.
        ended: Whether the function has returned.
        source: Where operations come from that a model of another framework is read as; None for the user's
            line that runs.
        promotes: Whether operands of several dtypes are converted to one; see `promotion`.
    """

    #: Whether operations run when they are recorded (`mind_mlir.tracing.eager`).
    is_eager = False

    def __init__(self, unit: Unit, arrays: type[TracedArray], *, promotes: bool | None = None) -> None:
        """Begin with nothing."""
        self.unit = unit
        self.builder: Builder = unit.builder()
        self.captured: list[TracedArray] = []
        self.pending: list[TracedArray] | None = None
        self.ended = False
        stage = STAGE.get()
        self.parent = stage if isinstance(stage, Trace) else None
        self.source: SourceInfo | None = None if self.parent is None else self.parent.source
        self.promotes: bool = (self.parent is None or self.parent.promotes) if promotes is None else promotes
        self._arrays = arrays
        self._places: dict[tuple[int, int], Value] = {}

    def __repr__(self) -> str:
        return f"<Trace of {len(self.builder.operations)} operations>"

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make this the trace that operations go to."""
        token = STAGE.set(self)
        try:
            yield
        finally:
            STAGE.reset(token)
            self.ended = True

    def wrap(self, value: Value, *, weak: bool = False) -> TracedArray:
        """Return the array that stands for ``value``.

        Arrays of integers are none of numbers where dtypes are promoted: those of a narrower dtype may not
        hold what is in them.
        """
        if weak and self.promotes and value.type.rank:
            weak = value.type.dtype.kind in (DTypeKind.FLOAT, DTypeKind.COMPLEX)
        return self._arrays(value, self, weak=weak)

    def parameter(self, type_: TensorType) -> TracedArray:
        """Return a further parameter of the function."""
        if isinstance(type_, WeakType):
            return self.wrap(self.builder.parameter(type_.strong), weak=True)
        return self.wrap(self.builder.parameter(type_))

    def value(self, array: TracedValue) -> Value:
        """Return the value of an array in this trace.

        Raises:
            TracingError: E2303, it is of a trace that has ended, or of a loop or branch that has.
        """
        if array.trace is self:
            hidden = self.builder.hidden
            if hidden and array.value.id in hidden:
                refuse(
                    "E2303",
                    "a value of a loop's or branch's function is used outside of it",
                    "return the value from that function",
                )
            return array.value
        return self._capture(array)

    def input(self, type_: TensorType, array: Array) -> Value:
        """Return a further parameter, which calls give an array such as ``array``."""
        return self.builder.parameter(type_)

    def given(self, type_: TensorType, array: Array) -> TracedArray:
        """Return a further parameter of the function, which is ``array`` where that matters."""
        if isinstance(type_, WeakType):
            return self.wrap(self.input(type_.strong, array), weak=True)
        return self.wrap(self.input(type_, array))

    def numbers_of(self, value: Value) -> Array | None:
        """Return what a value is, where that is known before the program runs."""
        return None

    def emit(self, opcode: str, *operands: Value, weak: bool = False, **attributes: Any) -> TracedArray:
        """Append an operation with one result.

        Raises:
            VerificationError: It breaks a rule of its record; the diagnostic quotes the user's line.
        """
        value = self.builder.emit(opcode, *operands, source=self.source or user_source(), **attributes)
        return self.wrap(value, weak=weak)

    def emit_all(
        self, opcode: str, *operands: Value, regions: Sequence[Region] = (), **attributes: Any
    ) -> tuple[TracedArray, ...]:
        """Append an operation of any number of results, as `emit` does."""
        source = self.source or user_source()
        values = self.builder.emit_all(opcode, *operands, regions=regions, source=source, **attributes)
        return tuple([self.wrap(value) for value in values])

    def call(self, function: StagedFunction, form: Form, leaves: Sequence[Any]) -> Any:
        """Append a call of ``function``, and return what it returns."""
        # Numbers of Python stay what they are in the function: they take dtypes there.
        types = function.types_of(form, leaves)
        operands = [as_value(self, leaf) for leaf in leaves]
        before, self.pending = self.pending, [] if function.closes else None
        try:
            instance = self._instance(function, form, types, operands)
            captured = self.pending or []
        finally:
            self.pending = before
        operands += [self.value(array) for array in captured]
        results = self.unit.call(self.builder, instance, operands, user_source())
        weak = instance.weak or [False] * len(results)
        return instance.form.unflatten(
            [self.wrap(result, weak=each) for result, each in zip(results, weak, strict=True)]
        )

    def _instance(
        self, function: StagedFunction, form: Form, types: Sequence[TensorType], operands: Sequence[Value]
    ) -> Instance:
        """Return the function that is called with ``operands``."""
        return function.instance(self.unit, form, types)

    def finish(self) -> None:
        """Tell the trace around this one what the function reads of it."""
        if self.captured:
            assert self.parent is not None, "what is captured is of a trace around"
            assert self.parent.pending is not None, "that trace waits for this function"
            self.parent.pending += self.captured

    def _capture(self, array: TracedValue) -> Value:
        """Return the parameter that stands for a value of a trace around this one."""
        owner, around = array.trace, self.parent
        while around is not None and around is not owner:
            around = around.parent
        if around is None or owner.ended:
            refuse(
                "E2303",
                "a traced array is used outside of the call that it belongs to",
                "give it to the function as an argument, and return what is needed later: "
                "a traced array stands for no numbers",
            )
        assert self.parent is not None, "the owner is a trace around this one"
        if self.parent.unit is not self.unit:
            raise Captured
        if self.parent.pending is None:
            refuse(
                "E2303",
                "a function that is called from another language reads a traced array around it",
                "give it the array as an argument",
            )
        key = (id(owner), array.value.id)
        known = self._places.get(key)
        if known is not None and known.id not in self.builder.hidden:
            return known
        outer = self.parent.wrap(self.parent.value(array), weak=array.weak)
        self.captured.append(outer)
        found = self._places[key] = self.builder.parameter(array.value.type)
        return found


def current_trace() -> Trace:
    """Return the trace that operations go to (E2303: nothing is being traced here)."""
    stage = STAGE.get()
    if not isinstance(stage, Trace):
        refuse(
            "E2303",
            "a traced array is used where nothing is being traced",
            "return what is needed later from the function that is traced: it holds numbers then",
        )
    return stage
