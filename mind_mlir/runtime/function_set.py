"""`FunctionSet`: compiled functions that are called by name, one of them as the whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, TypeVar

from mind_mlir.diagnostics.display import brief
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.entry import DEFAULT_ENTRY
from mind_mlir.runtime.call import Called
from mind_mlir.runtime.function import BoundFunction, CompiledFunction, SignatureDescriptor
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    import inspect

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.interface import Parameter
    from mind_mlir.ir.types import TensorType


F = TypeVar("F")


class FunctionSet(Called):
    """The base of `Executable` and `Bundle`: functions that are found and called by name.

    Attributes:
        functions: The functions by name, in the order of the program.
        default: The one that a call runs; None where that has to be said.
    """

    #: What messages call an object of this class.
    _word: ClassVar[str]

    def __init__(self, functions: Mapping[str, CompiledFunction], default: CompiledFunction | None) -> None:
        """Hold functions, and the one that a call runs, if any."""
        super().__init__()
        self.functions = functions
        self.default = default

    __signature__ = SignatureDescriptor()

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Return the inputs of the function that a call runs; a `ValueError` where there is none."""
        return self._called().parameters

    @property
    def results(self) -> tuple[TensorType, ...]:
        """Return the types of its outputs; a `ValueError` where there is none."""
        return self._called().results

    @property
    def result_names(self) -> tuple[str, ...]:
        """Return what the program calls its outputs; a `ValueError` where there is none."""
        return self._called().result_names

    def signature(self) -> inspect.Signature:
        """Return what a call takes and returns (see `CompiledFunction.signature`)."""
        return self._called().signature()

    def __getitem__(self, name: str) -> CompiledFunction:
        """Return the exported function called ``name``.

        Raises:
            KeyError: There is none.
            TypeError: ``name`` is no string.
        """
        return named_function(self.functions, name)

    @public
    def __call__(self, /, *args: object, **kwargs: object) -> tuple[Array, ...]:
        """Run ``main``, or the only function, on numpy arrays, given by position or by input name.

        With ``out=``, an array or a tuple with one for each output, results are written there (see
        `CompiledFunction.__call__`).

        Returns:
            One fresh C-contiguous array for each output, or those given, always as a tuple.

        Raises:
            ArgumentError: The arguments do not fit the inputs, or ``out`` the outputs (E61xx).
            ExecutionError: E6001, an index was out of bounds; E6004, the memory for outputs or intermediate
                values could not be had; E6009, an integer was divided by zero.
            ValueError: There are several functions, and none is called ``main``.
        """
        function = self._called()
        results = function._call(args, kwargs)
        self._words = function._words
        return results

    _call_python = __call__

    @public
    def bind(self, /, *args: object, **kwargs: object) -> BoundFunction:
        """Return ``main``, or the only function, bound to its arguments and outputs.

        It is for loops that use the same arrays again (see `CompiledFunction.bind`).

        Raises:
            ArgumentError: The arguments do not fit the inputs, or ``out`` the outputs (E61xx).
            ExecutionError: E6004, there is no memory for the outputs.
            ValueError: There are several functions, and none is called ``main``.
        """
        return self._called().bind(*args, **kwargs)

    def _called(self) -> CompiledFunction:
        """Return the function that a call runs."""
        if self.default is None:
            raise ValueError(
                f"no function is called '{DEFAULT_ENTRY}': say which one to run, as in "
                f"{self._word}[{next(iter(self.functions), 'name')!r}](...); "
                f"the functions are: {self._names()}"
            )
        return self.default

    def _names(self) -> str:
        return brief(", ".join(self.functions) or "none")


def named_function(functions: Mapping[str, F], name: object) -> F:
    """Return a function by its name; a `KeyError` where there is none."""
    function = functions.get(argument_checks.text(name, "name"))
    if function is None:
        known = brief(", ".join(functions) or "none")
        raise KeyError(f"no function is called {brief(repr(name))}; the functions are: {known}")
    return function
