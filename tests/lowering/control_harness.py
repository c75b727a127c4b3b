"""Compiles structured modules below the public functions, and compares them with the interpreter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import guarded
import numpy as np
from native_code import native_function, put_on_memory

from mind_mlir.diagnostics import ExecutionError
from mind_mlir.interpreter import run as interpret
from mind_mlir.ir.module import Functions, Module
from mind_mlir.lowering import dialect
from mind_mlir.lowering.dialect.emit import emit
from mind_mlir.lowering.schedule.driver import schedule
from mind_mlir.lowering.to_linalg import to_linalg
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import new_context
from mind_mlir.passes.structure import structure_function
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mind_mlir.diagnostics.checks import Check
    from mind_mlir.ir.module import Function
    from mind_mlir.runtime.native import NativeFunction

Array = np.ndarray[Any, np.dtype[Any]]
#: What calls are given: numpy's scalars are taken for arrays of rank 0.
Arguments: TypeAlias = "Mapping[str, Any]"


@dataclass
class Compiled:
    """A function of a module as native code.

    Attributes:
        module: The module in structured form.
        name: The function.
        native: Its code.
        checks: What its status says.
        forms: The texts of the MLIR forms, by stage.
    """

    module: Module
    name: str
    native: NativeFunction
    checks: tuple[Check, ...]
    forms: dict[str, str]

    def __call__(self, arguments: Arguments, *, guard: bool = True) -> tuple[Array, ...]:
        """Return the results; between guard pages, unless the call is to be measured."""
        function = self.module.functions[self.name]
        inputs = [np.asarray(arguments[str(p.name)], p.tensor_type.dtype.numpy) for p in function.parameters]
        outputs = [np.empty(t.extents, t.dtype.numpy) for t in function.result_types or ()]  # type: ignore[union-attr] # no tuples
        status = np.empty(2 * len(self.checks), np.int64)
        buffers = [*outputs, status] if self.checks else outputs
        if guard:
            guarded.call(self.native, inputs, buffers)
        else:
            self.native.call([array.ctypes.data for array in (*inputs, *buffers)])
        ends = status.reshape(-1, 2).tolist()
        findings = [check.judge(low, high) for check, (low, high) in zip(self.checks, ends, strict=True)]
        if any(findings):
            raise ExecutionError([finding for finding in findings if finding])
        return tuple(outputs)


def module(*functions: Function) -> Module:
    """Return a module of profile ``core-functions``."""
    return Module(Functions(functions), "core-functions")


def structured(module: Module) -> Module:
    """Return ``module`` with functions of one block."""
    return replace(module, functions=Functions(structure_function(f) for f in module.functions))


def compiled(module: Module, name: str = "main", *, verify: bool = True) -> Compiled:
    """Compile ``module``, which is verified or known to be well-formed."""
    module = structured(module)
    forms = {}
    context = new_context()
    dialect.load(context, verify=verify)
    mlir = emit(module, context)
    assert mlir.operation.verify()
    forms["mind"] = str(mlir)
    lowered = to_linalg(mlir)
    mlir = lowered.module
    assert mlir.operation.verify()
    forms["linalg"] = str(mlir)
    target = named_target()
    schedule(mlir, target)
    assert mlir.operation.verify()
    forms["scheduled"] = str(mlir)
    put_on_memory(mlir, verify=verify)
    forms["bufferized"] = str(mlir)
    to_llvm(mlir, target, verify=verify)
    forms["llvm"] = str(mlir)
    native = native_function(mlir, entry=name)
    checks = tuple(outcome.check for outcome in lowered.checks_of[name])
    return Compiled(module, name, native, checks, forms)


def agrees(function: Compiled, arguments: Arguments, *, rtol: float = 0.0) -> tuple[Array, ...]:
    """Compare a call with the interpreter's results, or its error; return the results.

    Args:
        function: What is called.
        arguments: By name.
        rtol: Relative error of floats; 0 for equal bits.
    """
    results, error = _outcome(lambda: function(arguments))
    expected, expected_error = _outcome(lambda: interpret(function.module, arguments, function.name))
    if error is not None or expected_error is not None:
        assert error is not None, f"only the interpreter fails: {expected_error}"
        assert expected_error is not None, f"only compiled code fails: {error}"
        assert expected_error.diagnostics[0].code in [finding.code for finding in error.diagnostics]
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if rtol and ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)
        else:
            same = (ours == theirs) | ((ours != ours) & (theirs != theirs))  # noqa: PLR0124 -- NaN of any bits
            assert np.all(same), (ours, theirs)
    return results


def _outcome(call: Callable[[], tuple[Array, ...]]) -> tuple[tuple[Array, ...], ExecutionError | None]:
    try:
        return call(), None
    except ExecutionError as error:
        return (), error
