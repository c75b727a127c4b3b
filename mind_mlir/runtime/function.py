"""`CompiledFunction`: one function of a compiled module, which Python calls with numpy arrays."""

from __future__ import annotations

import inspect
import keyword
from typing import TYPE_CHECKING, Protocol

from mind_mlir import border
from mind_mlir.arguments import address, bind
from mind_mlir.diagnostics import ExecutionError
from mind_mlir.diagnostics.display import brief
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.module import Function
from mind_mlir.ir.types import DType
from mind_mlir.ops.contexts import allocation_failed
from mind_mlir.runtime.memory import pool
from mind_mlir.runtime.native import NativeFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.diagnostics import Location
    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.ir.attributes import Array


class _HasSignature(Protocol):
    def signature(self) -> inspect.Signature: ...


class Signature:
    """What a call takes and returns, for `inspect.signature` and completion in editors."""

    def __get__(self, function: _HasSignature | None, owner: type) -> inspect.Signature:
        if function is None:
            raise AttributeError("a class has the signature of its constructor")
        return function.signature()


class CompiledFunction:
    """A function compiled to native code, one of those of an `Executable`.

    Calls check their arguments, never write to them, and return fresh arrays. The interpreter lock is
    released while native code runs, and any number of threads may call one function at the same time.

    Attributes:
        name: Its name in the module.
        parameters: The inputs, in order.
        results: The types of the outputs, in order.
    """

    def __init__(
        self,
        function: Function,
        native: NativeFunction,
        checks: Sequence[tuple[Check, Location | None]],
        reload: tuple[Callable[..., CompiledFunction], tuple[object, ...]],
    ) -> None:
        """Hold what `Executable` has compiled.

        Args:
            function: The function, canonical.
            native: Its code.
            checks: What its status tells about, in order, and where that is written.
            reload: What a pickle of the function calls, and with what.

        Raises:
            TypeError: ``function`` or ``native`` is none: only `Executable` makes these.
        """
        border.expect(function, Function, "function", "a Function")
        border.expect(native, NativeFunction, "native", "native code (mind_mlir.compile makes it)")
        interface = interface_of(function)
        self.name = interface.name
        self.parameters = interface.parameters
        self.results = tuple(output.type for output in interface.outputs)
        self._interface = interface
        self._native = native
        self._checks = tuple(checks)
        self._reload = reload
        # What a call allocates: the outputs and, behind them, the status that the checks are judged by.
        self._layouts = [(type_.extents, type_.dtype.numpy) for type_ in self.results]
        if self._checks:
            self._layouts.append(((2 * len(self._checks),), DType.SI64.numpy))
        self._new = [pool.allocator(shape, dtype) for shape, dtype in self._layouts]

    def __str__(self) -> str:
        return str(self._interface)

    def __repr__(self) -> str:
        return f"<CompiledFunction {brief(str(self._interface))}>"

    __signature__ = Signature()

    def signature(self) -> inspect.Signature:
        """Return what a call takes and returns, which is what `inspect.signature` says, too.

        An input whose name is none in Python can only be given by position or with ``**``: there is no
        signature that says so, and this one then takes anything.
        """
        names = [parameter.name for parameter in self.parameters]
        kinds = inspect.Parameter
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in names):
            parameters = [
                kinds(p.name, kinds.POSITIONAL_OR_KEYWORD, annotation=str(p.type)) for p in self.parameters
            ]
        else:
            parameters = [kinds("args", kinds.VAR_POSITIONAL), kinds("kwargs", kinds.VAR_KEYWORD)]
        return inspect.Signature(parameters, return_annotation=f"({', '.join(map(str, self.results))})")

    def __reduce__(self) -> tuple[Callable[..., CompiledFunction], tuple[object, ...]]:
        return self._reload

    def __copy__(self) -> CompiledFunction:
        return self  # nothing about it can be changed

    def __deepcopy__(self, memo: object) -> CompiledFunction:
        return self

    def __call__(self, /, *args: object, **kwargs: object) -> tuple[Array, ...]:
        """Run the function on numpy arrays, given by position or by input name.

        Returns:
            One fresh C-contiguous array for each output, always as a tuple.

        Raises:
            ArgumentError: The arguments do not fit the inputs (E61xx).
            ExecutionError: E6001, an index was out of bounds; E6004, the memory for outputs or intermediate
                values could not be had; E6009, an integer was divided by zero.
        """
        return self._call(args, kwargs)

    def _call(self, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Array, ...]:
        """Run the function on arguments by position and by name; as calling it does."""
        arrays = bind(self.parameters, args, kwargs)
        try:
            outputs = tuple([new() for new in self._new])
            self._native.call([address(array) for array in (*arrays, *outputs)])
        except MemoryError as error:
            what = f"the outputs and {self._native.scratch_bytes} bytes of scratch memory"
            raise allocation_failed(what, self.results) from error
        if not self._checks:
            return outputs
        *results, status = outputs
        self._raise_for(status.tolist())
        return tuple(results)

    def _raise_for(self, status: Sequence[int]) -> None:
        ends = zip(status[::2], status[1::2], strict=True)
        judged = (
            check.judge(smallest, largest, location)
            for (check, location), (smallest, largest) in zip(self._checks, ends, strict=True)
        )
        findings = [finding for finding in judged if finding is not None]
        if findings:
            raise ExecutionError(findings)
