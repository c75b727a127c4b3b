"""A program as the text of a StableHLO program, and as a portable artifact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.conversion.stablehlo.emit import emit
from mind_mlir.conversion.stablehlo.support import require_support
from mind_mlir.diagnostics import InternalError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.entry import default_entry
from mind_mlir.ir.module import MODULE, Module
from mind_mlir.languages.core.printer import print_module
from mind_mlir.languages.programs.kinds import as_module
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.symbols import bind, checked_bindings, symbols_of
from mind_mlir.languages.ptir.to_module import convert
from mind_mlir.mlir import bindings as mlir
from mind_mlir.passes.forms import structured_form, verified
from mind_mlir.support import argument_checks
from mind_mlir.support.interrupts import held

if TYPE_CHECKING:
    from mind_mlir.languages.programs.kinds import AnyProgram
    from mind_mlir.mlir.bindings import Module as MLIRModule


@public
def to_stablehlo(program: AnyProgram, *, bindings: Mapping[str, int] | None = None) -> str:
    """Return ``program`` as StableHLO (ptir-v0.4.md, "Conversion infrastructure").

    It is a module of MLIR with one `func.func` a function; the entry, if there is one, is called `main`.
    Shapes and dtypes are the program's, tuples their elements; functions that draw random numbers have a last
    parameter, the seed. The same program gives the same text. What is checked when a program runs here,
    StableHLO does not check.

    Args:
        program: A module of any profile, or a PTIR program; it is verified first.
        bindings: Extents for the symbolic dimensions of a program, by name without the ``?``.

    Raises:
        VerificationError: The program breaks a rule; all findings are in it. E4303: a symbolic dimension is
            not bound.
        UnsupportedError: E7001, StableHLO cannot say some of its operations, each of which is named; E7004,
            branches and loops nest too deeply.
        BindingsError: The bindings have no StableHLO.
        TypeError: ``program`` is neither, or ``bindings`` no mapping from names to integers.
        ValueError: ``bindings`` names what is no symbol of the program, or an extent below 0.
    """
    # Values are called as in the program where MLIR's syntax allows it.
    converted = _converted(program, bindings)
    return str(converted.operation.get_asm(use_name_loc_as_prefix=True, assume_verified=True))


def to_portable_artifact(program: AnyProgram, *, bindings: Mapping[str, int] | None = None) -> bytes:
    """Return ``program`` as a portable artifact of StableHLO: bytecode that newer releases of it read.

    Arguments and errors are those of `to_stablehlo`.
    """
    stablehlo = mlir.stablehlo()
    converted = _converted(program, bindings)
    return bytes(stablehlo.serialize_portable_artifact(converted, stablehlo.get_current_version()))


@held()
def _converted(program: AnyProgram, bindings: Mapping[str, int] | None) -> MLIRModule:
    stablehlo = mlir.stablehlo()
    entry: str | None
    program, bindings, _ = as_module(program, bindings)
    if isinstance(program, Program):
        extents = checked_bindings({} if bindings is None else bindings, symbols_of(program))
        found = convert(bind(program, extents))
        module, entry = found.module, found.entry
    else:
        argument_checks.refuse_bindings(bindings)
        module = argument_checks.expect(program, Module, "program", f"{MODULE}, or a Program")
        default = default_entry(module)
        entry = None if default is None else default.name
    structured = structured_form(verified(module))
    require_support(structured)
    context = mlir.new_context(("func",))
    stablehlo.register_dialect(context)
    try:
        result = emit(structured, context, entry)
        result.operation.verify()
        # Rules ask for a constant wherever they need it.
        with context:
            mlir.PassManager.parse("builtin.module(cse)").run(result.operation)
    except Exception as error:
        raise InternalError("stablehlo", str(error) or type(error).__name__, print_module(module)) from error
    return result
