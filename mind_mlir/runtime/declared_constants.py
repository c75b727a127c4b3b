"""Parameters that are declared constant when a program is compiled: they become literals of its functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mind_mlir.arguments.tensors import bind
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.ir.analysis.call_graph import callee_of, operations_of
from mind_mlir.ir.analysis.restriction import restricted
from mind_mlir.ir.attributes import Array, Attributes, TensorLiteral
from mind_mlir.ir.entry import exported
from mind_mlir.ir.interface import Parameter, interface_of
from mind_mlir.ir.module import CoreOperation, Function, Functions, Module
from mind_mlir.ops.constants import constant_form
from mind_mlir.passes.verify import trusted, verify
from mind_mlir.support import argument_checks
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.suggestions import did_you_mean


@fixed()
def with_constants(module: Module, constants: object, wanted: str | None = None) -> Module:
    """Return a module whose exported functions have literals in the place of some parameters.

    Args:
        module: The module; it is verified where there are ``constants``.
        constants: Arrays by the parameters' names. Each is a parameter of at least one exported function, and
            is so in all that have it. None for no change.
        wanted: The exported function that is wanted, if not all are.

    Raises:
        ArgumentError: E6102, no exported function has such a parameter, or one that has it is called by other
            functions, too; E6103, E6104, E6105, as for arguments of a call.
        ExecutionError: E6004, there is no memory for a copy.
        TypeError: ``constants`` is no mapping from names to arrays.
    """
    if constants is None:
        return module
    module = restricted(verify(module), wanted)
    given = argument_checks.mapping(constants, "constants", "a mapping from names to arrays")
    named = {argument_checks.text(name, "each name in constants"): value for name, value in given.items()}
    public = exported(module)
    known = list(
        dict.fromkeys(each.name for function in public for each in interface_of(function).parameters)
    )
    findings = [_unknown(name, known) for name in named if name not in known]
    called = {
        callee_of(operation) for function in module.functions for operation in operations_of(function.blocks)
    }
    for function in public:
        taken = [each.name for each in interface_of(function).parameters if each.name in named]
        if taken and function.name in called:
            findings.append(_is_called(taken[0], function))
    if findings:
        raise ArgumentError(findings)
    functions = [
        _with_literals(function, named) if function.public else function for function in module.functions
    ]
    return trusted(replace(module, functions=Functions(functions)))


def _with_literals(function: Function, named: Mapping[str, object]) -> Function:
    constant = [each for each in interface_of(function).parameters if each.name in named]
    arrays = bind(constant, (), {each.name: named[each.name] for each in constant})
    literals = {each.value_id: _literal(each, array) for each, array in zip(constant, arrays, strict=True)}
    entry = function.entry
    parameters = tuple([each for each in entry.parameters if each.value_id not in literals])
    gone = [each for each in entry.parameters if each.value_id in literals]
    ahead = [replace(literals[each.value_id], names=each.names, origin=each.label) for each in gone]
    rest = [_in_place(operation, literals) for operation in entry.operations]
    block = replace(entry, parameters=parameters, operations=(*ahead, *rest))
    return replace(function, blocks=(block, *function.blocks[1:]))


def _literal(parameter: Parameter, array: Array) -> CoreOperation:
    literal = TensorLiteral.from_array(array)
    opcode, attributes = constant_form(literal)
    return CoreOperation(parameter.value_id, opcode, (), Attributes.of(attributes), literal.type)


def _in_place(operation: CoreOperation, literals: Mapping[int, CoreOperation]) -> CoreOperation:
    """Return an `Input` of a flat module as the literal that it is, anything else as it is."""
    literal = literals.get(operation.value_id) if operation.opcode == "Input" else None
    if literal is None:
        return operation
    return replace(operation, opcode=literal.opcode, attributes=literal.attributes)


def _unknown(name: str, known: list[str]) -> Diagnostic:
    message = f"constant '{name}' is no input{did_you_mean(name, known)}"
    return Diagnostic("E6102", message, help=f"the inputs are: {', '.join(known) or 'none'}")


def _is_called(name: str, function: Function) -> Diagnostic:
    return Diagnostic(
        "E6102",
        f"input '{name}' of @{function.name} cannot be a constant: other functions call it with arguments",
        function.location,
        help="export a function that passes its own parameters on, and declare its parameter constant",
    )
