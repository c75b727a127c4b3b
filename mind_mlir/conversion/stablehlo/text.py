"""A module as the text of a StableHLO program, and as a portable artifact."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir import bindings
from mind_mlir.bindings import PassManager
from mind_mlir.conversion.stablehlo.emit import emit
from mind_mlir.conversion.stablehlo.support import require_support
from mind_mlir.core.printer import print_module
from mind_mlir.diagnostics import InternalError
from mind_mlir.interrupts import held
from mind_mlir.passes.expand import expanded
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.verify import verify

if TYPE_CHECKING:
    from mind_mlir.bindings import Module as MLIRModule
    from mind_mlir.ir.module import Module


def to_stablehlo(module: Module) -> str:
    """Return ``module`` as a StableHLO program (ptir-v0.4.md, "Conversion infrastructure").

    It is a module of MLIR with one `func.func` a function; the entry, the first public function, is called
    `main`. Shapes and dtypes are the module's; the same module gives the same text. What the program checks
    when it runs here, StableHLO does not (docs/stablehlo-target.md).

    Raises:
        VerificationError: The module breaks a rule of its profile; all findings are in it.
        UnsupportedError: E7001, StableHLO cannot say some of its operations, each of which is named; E7004,
            branches and loops nest too deeply.
        BindingsError: The bindings have no StableHLO.
    """
    # Values are called as in the program where MLIR's syntax allows it.
    text = _converted(module).operation.get_asm(use_name_loc_as_prefix=True, assume_verified=True)
    return f"{text}\n"


def to_portable_artifact(module: Module) -> bytes:
    """Return ``module`` as a portable artifact of StableHLO: bytecode that keeps its meaning over releases.

    It is of the version of StableHLO in the bindings, and of an earlier one where there is nothing new in it.

    Raises:
        VerificationError: As `to_stablehlo`.
        UnsupportedError: As `to_stablehlo`.
        BindingsError: The bindings have no StableHLO.
    """
    stablehlo = bindings.stablehlo()
    converted = _converted(module)
    return bytes(stablehlo.serialize_portable_artifact(converted, stablehlo.get_current_version()))


@held()
def _converted(module: Module) -> MLIRModule:
    stablehlo = bindings.stablehlo()
    structured = structured_form(expanded(verify(module)))
    require_support(structured)
    context = bindings.new_context(("func",))
    stablehlo.register_dialect(context)
    try:
        result = emit(structured, context)
        result.operation.verify()
        # Rules ask for a constant wherever they need it.
        with context:
            PassManager.parse("builtin.module(cse)").run(result.operation)
    except Exception as error:
        raise InternalError("stablehlo", str(error) or type(error).__name__, print_module(module)) from error
    return result
