"""Runs a module with the numpy rules of its operations: the oracle, and what ``--interpret`` runs.

Slow and simple on purpose. It shares nothing with the lowering but the operation records. It runs functions
in structured form, and everything that stands in them: no operation is left out because nothing needs it, so
that the interpreter is stricter than compiled code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from mind_mlir.arguments.programs import ProgramArguments
from mind_mlir.arguments.tensors import bind, viewed
from mind_mlir.collectives.team import run_ranks
from mind_mlir.diagnostics import ExecutionError
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.interpreter.machine import context_of, execute, plan, too_large
from mind_mlir.ir.allocation import allocation_failed
from mind_mlir.ir.analysis.meshes import mesh_text
from mind_mlir.ir.entry import entry_function
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.mesh import mesh_of
from mind_mlir.ir.module import Block, Functions, Module, Parameter, Return
from mind_mlir.ir.regions import reads
from mind_mlir.ir.types import SymbolicDim
from mind_mlir.languages.programs.kinds import kind_of
from mind_mlir.languages.programs.verification import in_binding
from mind_mlir.languages.ptir.program import Program
from mind_mlir.languages.ptir.regions import restricted
from mind_mlir.languages.ptir.seeding import seeded
from mind_mlir.languages.ptir.symbols import bind as bind_symbols
from mind_mlir.languages.ptir.to_module import signature_of, to_module
from mind_mlir.ops.registry import by_opcode
from mind_mlir.passes.structure import structure, structure_function
from mind_mlir.passes.verify import verify
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mind_mlir.interpreter.machine import Observer
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import CoreOperation, Function, ValueId
    from mind_mlir.ir.types import TensorType
    from mind_mlir.languages.programs.kinds import AnyProgram


class Watch(Protocol):
    """What looks on while a program runs."""

    @property
    def see(self) -> Observer:
        """Return what sees each operation."""

    def end(self, results: Sequence[Array]) -> None:
        """See what the function returns."""


@public
def interpret(
    module: AnyProgram,
    arguments: Mapping[str, object],
    function: str | None = None,
    *,
    seed: int | None = None,
) -> tuple[Any, ...]:
    """Run an exported function of a module, or a function of a PTIR program, and return its results.

    Args:
        module: The module or program; it is verified first. Named dimensions of the surface language are what
            the arguments say, which are called ``x``, or ``params.w`` for the field of a struct; its results
            are the tensors that tuples and structs are made of.
        arguments: One array for each input, by name, of exactly the input's dtype and shape. Those of a
            program are called ``arg0``, ``arg1``, ... or as the compact text calls them; what is of tuple
            type is given, and given back, as a tuple, and symbolic dimensions are what the arguments say.
        function: The function to run; may be left out where one alone is exported, or one is called `main`.
            Of a program it is the entry unless given.
        seed: The seed of the random operations of a program, 0 to 2^64 - 1. Without it, functions that draw
            random numbers take it as argument ``seed``.

    Raises:
        VerificationError: The module breaks a rule of its profile; all findings are in it. E2002, E2101,
            E2102: there is no such function, it is not exported, or it must be said which one to run.
        ArgumentError: The arguments do not fit the inputs (E61xx).
        ExecutionError: E6001, an index is out of bounds; E6009, an integer is divided by zero; E6004, the
            memory for a value could not be had.
        UnsupportedError: E7004, branches and loops nest too deeply.
        TypeError: ``module`` is neither, ``arguments`` no mapping, ``function`` no string, or ``seed`` no
            integer.
        ValueError: ``seed`` does not fit in 64 bits, or is given for a module.
    """
    expected = "a mapping from the names of the inputs to arrays"
    named = cast("Mapping[str, Any]", argument_checks.mapping(arguments, "arguments", expected))
    if isinstance(module, Program):
        return _interpret_program(seeded(restricted(module, function), seed), named)
    if isinstance(module, Module):
        if seed is not None:
            raise ValueError("seed must be left out for a module: its functions take seeds as arguments")
        return run(verify(module), named, function)
    kind = kind_of(module)
    try:
        lowered, name = kind.single(module, function, _extents(kind.open_types(module, function), named))
        return run(lowered, named, name)
    except ExecutionError as error:
        raise ExecutionError(kind.as_written(error.diagnostics)) from None


def _extents(types: Mapping[str, TensorType], named: Mapping[str, Any]) -> dict[str, int]:
    """Return what the shapes of arguments say of named dimensions; those that do not fit are met later."""
    found: dict[str, int] = {}
    for label, type_ in types.items():
        array = viewed(named[label])[0] if label in named else None
        if array is not None and array.ndim == type_.rank:
            for dim, extent in zip(type_.shape, array.shape, strict=True):
                if isinstance(dim, SymbolicDim) and extent:
                    found.setdefault(dim.name, extent)
    return found


def _interpret_program(program: Program, named: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the results of the entry of a program of one function."""
    (function,) = program.functions
    taken = ProgramArguments(function, signature_of(function))
    extents, tensors = taken.take((), named)
    binding = dict(zip(taken.symbols, extents, strict=True))
    with in_binding(binding):
        module = to_module(bind_symbols(program, binding))
    parameters = interface_of(module.functions[0]).parameters
    given = {parameter.name: tensor for parameter, tensor in zip(parameters, tensors, strict=True)}
    return taken.results(run(module, cast("Mapping[str, Any]", given), function.name))


def run(
    module: Module,
    arguments: Mapping[str, Array],
    function: str | None = None,
    watch: Watch | None = None,
) -> tuple[Array, ...]:
    """Return the results of a function without verifying its module: only the profile may refuse that.

    ``watch`` sees what operations make.

    Raises:
        ArgumentError: As `interpret`.
        ExecutionError: As `interpret`.
        VerificationError: As `interpret`, about ``function``.
    """
    structured = _structured(module)
    chosen = entry_function(structured, function)
    arrays = bind(interface_of(chosen).parameters, (), arguments)
    observer, mesh = None if watch is None else watch.see, mesh_text(module)

    def run_rank(_: int) -> tuple[Array, ...]:
        plans = {each.name: plan(each.entry) for each in structured.functions}
        return execute(plans, chosen.name, arrays, observer)

    results = run_ranks(mesh_of(mesh), run_rank)[0] if mesh else run_rank(0)
    if watch is not None:
        watch.end(results)
    # Copies, so that no result is an argument, a constant's data or another result's memory.
    try:
        return tuple(np.array(result, order="C") for result in results)
    except MemoryError as error:
        outputs = chosen.entry.terminator.operands
        defined = [op for op in chosen.entry.operations if set(op.result_ids) & set(outputs)]
        if not defined:
            raise allocation_failed("the memory for the results", []) from error
        raise too_large(defined) from error


def trace(
    module: Module, arguments: Mapping[str, Array], values: Mapping[ValueId, Array]
) -> Iterator[tuple[CoreOperation, Array]]:
    """Yield each operation of a verified flat module with its value, given arrays for the inputs, by name.

    ``values``, the caller's environment, must hold those yielded before that it still needs.
    """
    for operation in module.operations:
        if operation.opcode == "Input":
            yield operation, arguments[str(operation.attributes["name"])]
        else:
            yield operation, evaluate(operation, [values[operand] for operand in operation.operands])


def evaluate(operation: CoreOperation, operands: Sequence[Array]) -> Array:
    """Return the value of one verified operation, without regions, by its numpy rule.

    Raises:
        ExecutionError: As `interpret`.
    """
    context = context_of(operation)
    context.operands = tuple(operands)
    try:
        with np.errstate(all="ignore"):
            result = by_opcode()[operation.opcode].evaluate(context)
    except MemoryError as error:
        raise too_large([operation]) from error
    return cast("Array", result)


def evaluate_running(
    operation: CoreOperation,
    values: Mapping[ValueId, Array],
    functions: Iterable[Function],
    observer: Observer | None = None,
) -> tuple[Array, ...]:
    """Return the results of one verified operation that may run regions and functions.

    Args:
        operation: The operation, in a function of structured form.
        values: At least what the operation and its regions read of what is defined around it.
        functions: At least those that it calls, directly or not, in structured form.
        observer: Sees what operations make.

    Raises:
        ExecutionError: As `interpret`.
    """
    read = tuple(dict.fromkeys(reads(operation)))
    parameters = tuple(Parameter(value, operation.result_type) for value in read)  # plans need no types
    plans = {each.name: plan(each.entry) for each in functions}
    plans[""] = plan(Block((operation,), Return(operation.result_ids), parameters))
    return execute(plans, "", [values[value] for value in read], observer)


def _structured(module: Module) -> Module:
    """Return a module in structured form, with all operations that it has."""
    if module.is_flat:
        return structure(module)
    return replace(module, functions=Functions(tuple(map(structure_function, module.functions))))
