"""Modules as object files for C: one relocatable object with all that it needs but libc and libm.

Its global symbols are the functions of the header. The entries that they call, and all else, are local. LLVM
takes milliseconds, and several times their size in memory, for each megabyte of initialised data. So the code
that it makes has zeros in the place of large constants, and the data is copied over them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING

from mind_mlir.codegen.compiling import entries_of
from mind_mlir.codegen.constants import take_constants
from mind_mlir.codegen.engines import make_objects
from mind_mlir.codegen.entries import add_entries
from mind_mlir.codegen.units import level_of
from mind_mlir.image.elf import PROGBITS, read_object
from mind_mlir.image.errors import CodeError
from mind_mlir.image.image import MOST_BYTES
from mind_mlir.image.linking import check_limits
from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, operations_of
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.entry import entry_function, exported
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir.bindings import Operation, ir
from mind_mlir.mlir.references import References
from mind_mlir.ops.custom_targets import custom_target
from mind_mlir.packaging.c_entries import alias_text, entries_text
from mind_mlir.packaging.c_interface import CLibrary, c_library
from mind_mlir.packaging.cross import cross_object, needs_cross
from mind_mlir.packaging.errors import unsupported
from mind_mlir.packaging.pool import SET_THREADS, called_functions, pool_text
from mind_mlir.packaging.processor_check import BASELINE
from mind_mlir.passes.forms import described
from mind_mlir.runtime.compiled_code import evaluation
from mind_mlir.runtime.options import checked_options
from mind_mlir.support import progress
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.interrupts import held
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target import Target, required_features, runs_here
from mind_mlir.target.abi import ALIGNMENT, PARALLEL_SYMBOL

if TYPE_CHECKING:
    from mind_mlir.diagnostics import ArtefactError
    from mind_mlir.diagnostics.checks import Place
    from mind_mlir.image.compiled import Data
    from mind_mlir.image.entry import Entry
    from mind_mlir.ir.module import Module
    from mind_mlir.mlir.bindings import Module as MLIRModule
    from mind_mlir.support.options import CompileOptions


#: What stands in front of the name of a function that has to make room for one of C.
_MOVED = "mind$"


@dataclass(frozen=True, slots=True)
class ObjectFile:
    """An object file.

    Attributes:
        data: Its bytes.
        entries: The functions of the program that callers see.
        library: How C sees them.
        machine: ``x86_64`` or ``aarch64``.
        features: What the processor has to have beyond the least of its architecture, as LLVM calls it.
    """

    data: bytes
    entries: tuple[Entry, ...]
    library: CLibrary
    machine: str
    features: tuple[str, ...]


@held()
@fixed()
def object_of(module: Module, options: CompileOptions, *, library: str, target: Target) -> ObjectFile:
    """Return a module as an object file: position-independent code, with all constants inside.

    Args:
        module: A module; its exported functions become functions of C.
        options: How it is compiled. Without a number of threads, loops are shared by as many as the process
            that runs the code is set to; with 1, there is no pool of threads in the object.
        library: What the names of C begin with, as `library_name` returns it.
        target: The processor.

    Raises:
        VerificationError: The module breaks a rule; E2102, it exports no function.
        ArtefactError: E6503, llvmlite is missing, which makes code for another machine; E6504, the module
            calls C functions of this process.
        ExecutionError: E6004, intermediate values need more scratch memory than any address space has.
        InternalError: A stage failed on a verified module: a bug of the compiler.
    """
    options = checked_options(options)
    if not exported(module):
        entry_function(module)  # says so
    with progress.shown(partial(described, module)):
        return _object_of(module, options, library, target)


def _object_of(module: Module, options: CompileOptions, library: str, target: Target) -> ObjectFile:
    references = References()
    lowering = Lowering(
        target,
        threads=options.threads,
        options=options,
        references=references,
        evaluate=evaluation(options) if runs_here(target) else None,
    )
    lowering.run(module)
    progress.step("codegen")
    canonical, code = lowering.canonical, lowering.mlir
    assert canonical is not None, "a lowering that went through has a canonical module"
    assert code is not None, "and one of MLIR"
    _refuse_what_needs_this_process(canonical)
    machine, features = target.machine, required_features(target)
    with code.context, ir.Location.unknown():
        constants = empty_constants(code, references)
        size = sum(len(each.data) for each in constants)
        if size > MOST_BYTES:
            raise _too_large(f"its constants have {size} bytes, and there may be {MOST_BYTES}")
        entries = tuple(_anywhere(each) for each in entries_of(lowering, add_entries(code)))
        outside = {name for name, op in _symbols(code).items() if not _is_defined(op)}
        shares_loops = PARALLEL_SYMBOL in outside
        if shares_loops:
            outside.update(called_functions(machine))
        shown = c_library(entries, library, threads=shares_loops, avoiding=outside)
        _make_room(code, outside.union(shown.names))
        if shown.set_threads is not None:
            setter = alias_text(shown.set_threads, SET_THREADS, "void (i32)")
            _add(code, f"{pool_text(machine)}\n{setter}", BASELINE[machine])
        _add(code, entries_text(shown, machine=machine, features=features))
        level = level_of(code, options.opt_level)
        if needs_cross(target):
            data = cross_object(code, target, opt_level=level)
        else:
            (data,) = make_objects([(code, shown.message, level)], pic=True)
        data = with_constants(data, constants)
    try:
        check_limits(data)
    except CodeError as error:
        raise _too_large(str(error)) from None
    return ObjectFile(data, entries, shown, machine, features)


def _refuse_what_needs_this_process(module: Module) -> None:
    """Refuse collectives, and calls of C functions that somebody has registered with their addresses."""
    if mesh := mesh_text(module):
        raise unsupported(
            mesh,
            f"the program runs on the ranks of the mesh {mesh}, and no artefact has collectives",
            "run it from Python, with any number of processes",
        )
    for function in module.functions:
        for operation in operations_of(function.blocks):
            if operation.opcode != CUSTOM_CALL:
                continue
            target = custom_target(str(operation.attributes["target"]))
            if target is not None and target.address is not None:
                raise unsupported(
                    target.name,
                    f"'{target.name}' is a C function of this process, which no artefact can call",
                    "give the custom call an expansion, or compile the program for this process",
                )


def _too_large(reason: str) -> ArtefactError:
    """Return E6504 about a program that no loader would take, ours or that of the system."""
    return unsupported(
        "size",
        f"the program is too large for an object: {reason}",
        "leave large arrays parameters, and give them to each call",
    )


def _anywhere(entry: Entry) -> Entry:
    """Return ``entry`` with the names of files alone in its checks, not the folders of who compiles."""
    return replace(entry, checks=tuple(replace(each, place=_name_of(each.place)) for each in entry.checks))


def _name_of(place: Place | None) -> Place | None:
    return None if place is None else (PurePath(place[0]).name, *place[1:])


def _make_room(module: MLIRModule, names: Collection[str]) -> None:
    """Let functions of the program and data that have one of ``names``, which are those of C, have others."""
    for name, op in _symbols(module).items():
        if name in names and _is_defined(op):
            ir.SymbolTable.replace_all_symbol_uses(name, _MOVED + name, module.operation)
            ir.SymbolTable.set_symbol_name(op, _MOVED + name)


def _add(module: MLIRModule, text: str, attributes: str = "") -> None:
    """Add operations to a module, in the place of what it declares, or where it defines that, not at all."""
    there = _symbols(module)
    further = ir.Attribute.parse(f"{{{attributes}}}")
    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    made = ir.Module.parse(text)  # lives until its last operation has been taken
    for op in list(made.body.operations):
        name = str(ir.StringAttr(op.attributes["sym_name"]).value)
        if name in there and not _is_defined(op):
            continue
        if name in there:
            there[name].operation.erase()
        if attributes and op.operation.name == "llvm.func" and _is_defined(op):
            op.attributes["linkage"] = internal
            for each in further:
                op.attributes[each.name] = each.attr
        module.body.append(op.operation.detach_from_parent())


def _symbols(module: MLIRModule) -> dict[str, Operation]:
    """Return the operations of a module that have names."""
    return {
        str(ir.StringAttr(op.attributes["sym_name"]).value): op
        for op in module.body.operations
        if "sym_name" in op.attributes
    }


def _is_defined(op: Operation) -> bool:
    """Return whether an operation is more than a declaration."""
    return "value" in op.attributes or bool(op.regions[0].blocks)


def empty_constants(module: MLIRModule, references: References) -> tuple[Data, ...]:
    """Put zeros in the place of the large constants of ``module``, and return these.

    Args:
        module: A module of the LLVM dialect; its context is the current one.
        references: The data of constants that the module knows by name only.
    """
    taken = {each.symbol: each for each in take_constants(module, references)}
    internal = ir.Attribute.parse("#llvm.linkage<internal>")
    alignment = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), ALIGNMENT)
    for op in module.body.operations:
        if "sym_name" not in op.attributes or str(op.attributes["sym_name"].value) not in taken:
            continue
        op.attributes["linkage"], op.attributes["alignment"] = internal, alignment
        # Nothing may follow from the zeros.
        op.attributes["externally_initialized"] = ir.UnitAttr.get()
        with ir.InsertionPoint(op.regions[0].blocks.append()):
            zeros = ir.Operation.create("llvm.mlir.zero", [op.attributes["global_type"].value]).result
            ir.Operation.create("llvm.return", operands=[zeros])
    return tuple(taken.values())


def with_constants(code: bytes, constants: Sequence[Data]) -> bytes:
    """Return an object with the data of its constants in their places.

    Args:
        code: The object of a module that `empty_constants` has seen.
        constants: What that returned.
    """
    if not constants:
        return code
    filled = bytearray(code)
    read = read_object(memoryview(filled))
    places = {symbol.name: symbol for symbol in read.symbols}
    for constant in constants:
        symbol = places.get(constant.symbol)
        if symbol is None:  # nothing reads it
            continue
        assert symbol.section is not None, "a constant is in a section"
        section, end = read.sections[symbol.section], symbol.value + len(constant.data)
        assert section.kind == PROGBITS, "constants have bytes, zeros or not"
        assert symbol.size == len(constant.data), "a constant is as long as its data"
        section.data[symbol.value : end] = constant.data
    return bytes(filled)
