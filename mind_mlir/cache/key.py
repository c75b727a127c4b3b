"""Keys: what tells programs apart whose code may differ.

A module becomes plain data, tuples of numbers, text and bytes, which `marshal` writes in one way alone
(its version 2 shares nothing) and takes apart again: so different programs have different bytes. Numbers and
literals are their bits, so that NaNs and the two zeros count. What a program calls its values, and where it
has them, does not; `labels_digest` is about these.
"""

from __future__ import annotations

import functools
import marshal
import platform
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from mind_mlir.cache.envelope import digest_of
from mind_mlir.cache.fingerprint import compiler_fingerprint, machine_fingerprint
from mind_mlir.ir.analysis.call_graph import CUSTOM_CALL, operations_of
from mind_mlir.ir.attributes import Padding
from mind_mlir.ir.interface import interface_of
from mind_mlir.ir.terminators import Branch, CondBranch
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.support.options import KEY_OPTIONS

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ir.module import Block, CoreOperation, Function, Module
    from mind_mlir.ir.operation import Parameter
    from mind_mlir.ir.terminators import Target as BlockTarget
    from mind_mlir.ir.terminators import Terminator
    from mind_mlir.ir.types import ValueType
    from mind_mlir.support.options import CompileOptions
    from mind_mlir.target import Target

#: Of marshal: the last that writes equal values in equal ways, wherever their parts come from.
_VERSION = 2
#: Literals with more bytes are told by a digest.
_LARGE = 1 << 12
_ATOMS = frozenset((bool, int, float, str))


def key_of(module: Module, options: CompileOptions, target: Target, threads: int | None) -> str | None:
    """Return the key of the code of a module; None where it is for this process, or one text, alone.

    Nothing is kept either by a process that has not loaded what the files are now (see `fingerprint`).

    Returns:
        64 hexadecimal digits. Programs of equal keys have the same code, but for what its checks say.
    """
    if options.debug:
        return None  # where everything is written is part of the code
    try:
        functions = [_function(function) for function in module.functions]
    except _NoKeyError:
        return None
    compiler = compiler_fingerprint()
    if compiler is None:
        return None
    surroundings = (
        compiler,
        _processor(target),
        threads,
        [(name, _option(getattr(options, name))) for name in KEY_OPTIONS],
    )
    return _digest((surroundings, module.profile, functions)).hex()


def key_of_text(text: str) -> str | None:
    """Return the key of the code of a text of the runtime, for the machine at hand; None as `key_of` does."""
    compiler = compiler_fingerprint()
    return None if compiler is None else _digest((compiler, machine_fingerprint(), text)).hex()


def key_of_function(name: str, target: Target) -> str | None:
    """Return the key of the code of a function that its name says all about; None as `key_of` does."""
    compiler = compiler_fingerprint()
    return None if compiler is None else _digest((compiler, _processor(target), name)).hex()


def labels_digest(module: Module) -> bytes:
    """Return a digest of what messages call the values of a module in canonical form, and of their places.

    Modules with equal keys and digests have code whose checks say the same.
    """
    found = [
        (operation.label, _place(operation))
        for function in module.functions
        for operation in operations_of(function.blocks)
    ]
    return _digest(found)


def _digest(data: Any) -> bytes:
    return digest_of(marshal.dumps(data, _VERSION)).digest()


def _place(operation: CoreOperation) -> tuple[str, int, int] | None:
    location = operation.location
    return None if location is None else (location.source.name, location.line, location.column)


class _NoKeyError(Exception):
    """The program is for this process alone."""


def _function(function: Function) -> object:
    declared = function.result_types
    return (
        function.name,
        function.public,
        None if declared is None else [_type(type_) for type_ in declared],
        [_block(block) for block in function.blocks],
        # What callers read of results is a part of compiled code.
        tuple([output.label for output in interface_of(function).outputs]) if function.public else None,
    )


def _block(block: Block) -> object:
    return (
        block.label,
        [_parameter(parameter) for parameter in block.parameters],
        [_operation(operation) for operation in block.operations],
        _terminator(block.terminator),
    )


def _parameter(parameter: Parameter) -> object:
    return parameter.value_id, parameter.name, _type(parameter.type)


def _operation(operation: CoreOperation) -> object:
    if operation.opcode == CUSTOM_CALL:
        raise _NoKeyError  # it may call a function of this process, which another one does not have
    attributes = operation.attributes
    return (
        operation.value_id,
        operation.opcode,
        operation.operands,
        [(name, _attribute(attributes[name])) for name in attributes],
        _type(operation.result_type),
        [(each.value_id, _type(each.type)) for each in operation.others] if operation.others else (),
        [_block(region) for region in operation.regions] if operation.regions else (),
    )


def _terminator(terminator: Terminator) -> object:
    kind = type(terminator).__name__
    if isinstance(terminator, Branch):
        return kind, _target(terminator.target)
    if isinstance(terminator, CondBranch):
        return kind, terminator.condition, _target(terminator.then), _target(terminator.otherwise)
    return kind, terminator.operands


def _target(target: BlockTarget) -> object:
    return target.label, target.arguments


def _type(type_: ValueType) -> object:
    if isinstance(type_, TensorType):
        return type_.dtype.core_name, type_.shape
    return [_type(element) for element in type_.elements]


def _attribute(value: AttributeValue) -> object:
    """Return an attribute's value; what is no number, text or tuple of such is a list with its kind."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, tuple):
        return tuple([_attribute(each) for each in value])
    if isinstance(value, DType):
        return ["dtype", value.core_name]
    if isinstance(value, Padding):
        return ["padding", str(value.mode), value.pairs]
    if len(value.data) < _LARGE:
        return ["literal", _type(value.type), value.data]
    return ["large literal", _type(value.type), digest_of(value.data).digest()]


def _option(value: object) -> object:
    if isinstance(value, frozenset):
        return tuple(sorted(value))
    assert value is None or type(value) in _ATOMS, "options are plain data"
    return value


@functools.lru_cache(maxsize=64)
def _processor(target: Target) -> tuple[object, ...]:
    """Return what code for a processor depends on; which one it is, where that is the one at hand."""
    here = b"" if target.cpu else machine_fingerprint()
    return platform.machine(), here, astuple(target)
