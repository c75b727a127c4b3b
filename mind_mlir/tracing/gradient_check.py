"""`check_grad`: the gradients of a function of Python beside differences of what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.runtime.gradient_check import check_gradients
from mind_mlir.runtime.staged import StagedFunction
from mind_mlir.runtime.staged_method import StagedMethod
from mind_mlir.support import argument_checks
from mind_mlir.tracing.transforms import staged_function

if TYPE_CHECKING:
    from mind_mlir.runtime.gradient_check import GradientCheck


@public
def check_grad(function: Callable[..., Any], /, *args: Any, seed: int = 0, **kwargs: Any) -> GradientCheck:
    """Compare the gradients of a function with differences of what it returns, computed in f64.

    The gradients are those of the sum of all floats that it returns, with respect to all arguments that hold
    floats. For each, slopes along random directions are compared, and along some elements alone.

    Args:
        function: A function of arrays and containers of arrays, as `mind_mlir.grad` takes it; it need not
            return a scalar.
        args: Its arguments.
        seed: The seed of the directions.
        kwargs: Arguments by name.

    Returns:
        What was compared: it prints as a table, and ``agrees`` says whether all is well.

    Raises:
        TypeError: ``function`` cannot be called, or ``seed`` is no integer.
        AutodiffError: As `mind_mlir.differentiate`.
        TracingError: As a call.
        ExecutionError: As a call.
    """
    number = argument_checks.integer(seed, "seed")
    found: Any = staged_function(function)
    if isinstance(found, StagedMethod):
        found, args = found.__func__, (found.first(), *args)
    if not isinstance(found, StagedFunction):  # one with open dimensions
        found = found.function
    module, arrays, options = found.lowered_call(args, kwargs)
    return check_gradients(module, arrays, seed=number, options=options)
