"""`BoundFunction`: a compiled function with the arrays that it reads and writes at every call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from mind_mlir.arguments.tensors import fits
from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.runtime.buffers import output_fits
from mind_mlir.runtime.call import Called
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.runtime.call_record import CallRecord
    from mind_mlir.runtime.function import CompiledFunction


class BoundFunction(Called):
    """A compiled function bound to arrays, which `CompiledFunction.bind` and `Executable.bind` make.

    Calling it runs the function on what its inputs hold at that moment and writes its outputs, the same
    arrays each time. The interpreter lock is released meanwhile; two threads that call it at once write to
    the same outputs.

    Attributes:
        function: The function.
        inputs: The arrays that are read, in the order of the parameters.
        outputs: The arrays that are written, in the order of the results; what a call returns.
    """

    def __init__(self, function: CompiledFunction, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Bind ``function``, as `CompiledFunction.bind` does.

        Raises:
            ArgumentError: The arrays do not fit, or cannot be used in place (E61xx).
            TypeError: An argument is of another kind.
        """
        from mind_mlir.runtime.function import CompiledFunction  # noqa: PLC0415 -- which makes these

        super().__init__()
        self.function = argument_checks.expect(function, CompiledFunction, "function", "a CompiledFunction")
        given = argument_checks.items(inputs, "inputs", "a sequence of arrays")
        places = argument_checks.items(outputs, "outputs", "a sequence of arrays")
        self.inputs, self.outputs = function._accept_in_place(given, places)
        self._records: list[CallRecord] = []  # as in a `CompiledFunction`

    def __repr__(self) -> str:
        return f"<BoundFunction {brief(str(self.function))}>"

    @public
    def __call__(self) -> tuple[Array, ...]:
        """Run the function on what `inputs` hold now, and return `outputs`.

        Raises:
            ArgumentError: An array has been changed since in a way that makes it unfit (E61xx): another
                shape or dtype, write protection, bytes that are no truth values.
            ExecutionError: E6001, an index was out of bounds; E6004, the memory for intermediate values could
                not be had; E6009, an integer was divided by zero. What the outputs hold then is not defined.
        """
        function = self.function
        if not (
            all(map(fits, self.inputs, function.parameters))
            and all(map(output_fits, self.outputs, function._interface.outputs))
        ):
            function._accept_in_place(self.inputs, self.outputs)
        function._run(self.inputs, self.outputs)
        if self._words is None:
            self.speed_up(self._take_record)
        return self.outputs

    def _take_record(self) -> None:
        self._records.append(record := self.function._new_record((self.inputs, self.outputs)))
        self._words = record.words

    _call_python = __call__

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a BoundFunction stands for arrays in this process; pickle its function and bind it anew"
        )
