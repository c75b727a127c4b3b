"""Destination-passing form: results become buffers that the caller provides.

``func @f(tensor, ...) -> (tensor, ...)`` becomes ``func @f(memref inputs..., memref outputs...)``; inputs are
only read, each result is materialized in its own output. The bodies still compute on tensors afterwards: this
only settles where values enter and leave, so that bufferization can compute a result where it has to end up.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.memory import reinterpreted
from mind_mlir.mlir.values import callee_of, name_of, terminator_of
from mind_mlir.target.abi import CUSTOM_CALL_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mind_mlir.mlir.bindings import Module, Operation, Type, Value

#: Reshapes that only change how a contiguous buffer is looked at.
_RESHAPES = ("tensor.collapse_shape", "tensor.expand_shape")


_MANY = 16


def buffer_type(tensor: Type) -> Type:
    """Return the type of the buffer that passes ``tensor`` into or out of a function: contiguous, row-major.

    A tensor without elements has no data to pass, and where an inner extent is zero no strides that could be
    lowered: it passes as rank 1.
    """
    shape = [0] if _is_void(tensor) else tensor.shape
    return ir.MemRefType.get(shape, tensor.element_type)


def _is_void(tensor: Type) -> bool:
    return 0 in tensor.shape


def is_tensor(type_: Type) -> bool:
    """Return whether ``type_`` is a ranked tensor type."""
    return isinstance(type_, ir.RankedTensorType)


def has_many_uses(value: Value) -> bool:
    """Return whether ``value`` is used so often that bufferization would take its time over each use."""
    return sum(1 for _ in islice(value.uses, _MANY + 1)) > _MANY


def pass_destinations(module: Module, calls: Iterable[Operation]) -> None:
    """Rewrite every function with tensors in its signature, and every call of it, to that form.

    ``calls`` are all those of functions in ``module``.

    Scalar arguments and results stay what they are. Afterwards the arguments of a function are its inputs in
    order, then one contiguous memref for each tensor result in order.
    """
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    rewritten = {_rewrite_function(function) for function in functions if _has_tensors(function)}
    rewritten |= {
        _rewrite_declaration(each) for each in functions if CUSTOM_CALL_ATTRIBUTE in each.attributes
    }
    for call in calls:
        if callee_of(call) in rewritten:
            _rewrite_call(call)


def _has_tensors(function: Operation) -> bool:
    if not function.regions[0].blocks:
        return False
    return any(is_tensor(type_) for type_ in (*function.type.inputs, *function.type.results))


def _rewrite_function(function: Operation) -> str:
    entry = function.regions[0].blocks[0]
    arguments = list(entry.arguments)
    with function.location:
        for argument in arguments:
            if is_tensor(argument.type):
                _read_argument(entry, argument)
        results = _add_destinations(function, entry)
    inputs = [argument.type for argument in entry.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    _move_result_attributes(function, len(arguments), len(inputs))
    return name_of(function)


def _rewrite_declaration(function: Operation) -> str:
    """Let a C function take buffers for what it reads, and then for what it writes."""
    type_ = function.type
    buffers = [buffer_type(tensor) for tensor in (*type_.inputs, *type_.results)]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(buffers, []))
    return name_of(function)


def _read_argument(entry: Operation, argument: Value) -> None:
    """Turn a tensor argument into a memref that is read through `to_tensor`, which is not writable."""
    tensor = argument.type
    argument.set_type(buffer_type(tensor))
    with ir.InsertionPoint.at_block_begin(entry):
        read = to_tensor(argument, tensor)
    argument.replace_all_uses_except(read, read.owner.operation)


def to_tensor(buffer: Value, type_: Type, *, writable: bool = False) -> Value:
    """Return ``buffer`` as a tensor value that no other tensor value aliases."""
    if _is_void(type_):
        return ir.Operation.create("tensor.empty", [type_], []).result
    attributes = {"restrict": ir.UnitAttr.get()}
    if writable:
        attributes["writable"] = ir.UnitAttr.get()
    op = ir.Operation.create("bufferization.to_tensor", [type_], [buffer], attributes)
    return op.result


def _add_destinations(function: Operation, entry: Operation) -> list[Type]:
    """Add an output for each tensor result, written before every return; return the types still returned."""
    types = list(function.type.results)
    outputs = [
        entry.add_argument(buffer_type(type_), function.location) if is_tensor(type_) else None
        for type_ in types
    ]
    for block in function.regions[0].blocks:
        terminator = terminator_of(block)
        if terminator.name != "func.return":
            continue
        with ir.InsertionPoint(terminator), terminator.location:
            values = list(terminator.operands)
            first: dict[Value, Value] = {}
            for value, output in zip(values, outputs, strict=True):
                if output is not None and not _is_void(value.type):
                    _materialize(value, output, first)
            kept = [value for value, output in zip(values, outputs, strict=True) if output is None]
            ir.Operation.create("func.return", [], kept)
        terminator.erase()
    return [type_ for type_ in types if not is_tensor(type_)]


def _materialize(value: Value, output: Value, first: dict[Value, Value]) -> None:
    """Write ``value`` to ``output``, in the shape it was computed in: a trailing reshape costs nothing.

    Bufferization takes a time that is quadratic in how often a value is materialized: further outputs of a
    value are copied from the ``first`` one, which is entered there.
    """
    source = value
    while isinstance(source.owner, (ir.Operation, ir.OpView)) and source.owner.operation.name in _RESHAPES:
        source = source.owner.operands[0]
    if source != value:
        with ir.InsertionPoint.at_block_begin(output.owner):  # early enough for all that writes it
            output = reinterpreted(output, buffer_type(source.type))
    if source in first:
        ir.Operation.create("memref.copy", [], [first[source], output])
        return
    first[source] = output
    attributes = {"restrict": ir.UnitAttr.get(), "writable": ir.UnitAttr.get()}
    ir.Operation.create("bufferization.materialize_in_destination", [], [source, output], attributes)


def _move_result_attributes(function: Operation, inputs: int, arguments: int) -> None:
    """Keep argument attributes, and let the attributes of results follow them to the outputs."""
    old = function.attributes
    if "arg_attrs" not in old and "res_attrs" not in old:
        return
    empty = ir.DictAttr.get({})
    argument_attributes = list(ir.ArrayAttr(old["arg_attrs"])) if "arg_attrs" in old else [empty] * inputs
    result_attributes = list(ir.ArrayAttr(old["res_attrs"])) if "res_attrs" in old else []
    if len(result_attributes) != arguments - inputs:  # scalar results: which is which no longer matters
        result_attributes = [empty] * (arguments - inputs)
    if "res_attrs" in old:
        del old["res_attrs"]
    old["arg_attrs"] = ir.ArrayAttr.get([*argument_attributes, *result_attributes])


def _rewrite_call(call: Operation) -> None:
    """Pass read-only buffers of the tensor operands and fresh buffers for the tensor results.

    A result of many uses is not to be written any more: then it can be given a name for each use.
    """
    with ir.InsertionPoint(call), call.location:
        operands = [read_buffer(value) if is_tensor(value.type) else value for value in call.operands]
        buffers = [
            create_alloc(buffer_type(result.type)) for result in call.results if is_tensor(result.type)
        ]
        scalars = [result.type for result in call.results if not is_tensor(result.type)]
        attributes = {"callee": call.attributes["callee"]}
        new = ir.Operation.create("func.call", scalars, [*operands, *buffers], attributes)
        fresh, kept = iter(buffers), iter(new.results)
        for result in call.results:
            value = (
                to_tensor(next(fresh), result.type, writable=not has_many_uses(result))
                if is_tensor(result.type)
                else next(kept)
            )
            result.replace_all_uses_with(value)
    call.erase()


def create_alloc(type_: Type) -> Value:
    """Return a new buffer, to be placed in the arena later."""
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
    return ir.Operation.create("memref.alloc", [type_], [], segments).result


def read_buffer(value: Value) -> Value:
    """Return the buffer of tensor ``value``, or a copy, for reading."""
    if _is_void(value.type):
        return create_alloc(buffer_type(value.type))
    attributes = {"read_only": ir.UnitAttr.get()}
    return ir.Operation.create(
        "bufferization.to_buffer", [buffer_type(value.type)], [value], attributes
    ).result
