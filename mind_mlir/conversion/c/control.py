"""Branches and loops of the linalg form as those of C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mind_mlir.conversion.c.arrays import Array, in_memory
from mind_mlir.conversion.c.nodes import (
    CompoundStatement,
    Expr,
    LineStatement,
    Prefix,
    Set,
    Text,
    names_in,
    spelled,
)
from mind_mlir.conversion.c.operations import C_TYPES, kind_of
from mind_mlir.mlir.bindings import Operation, Value, ir

if TYPE_CHECKING:
    from mind_mlir.conversion.c.function import FunctionWriter


def _is_tensor(value: Value) -> bool:
    return isinstance(value.type, ir.RankedTensorType)


def _bind(writer: FunctionWriter, results: Sequence[Value], names: Sequence[str]) -> None:
    for result, name in zip(results, names, strict=True):
        if name:
            writer.values.bind(result, name)


def _state(writer: FunctionWriter, results: Sequence[Value], others: Sequence[Value] = ()) -> list[str]:
    """Declare what a branch or loop leaves behind: an array, or a variable, for each result.

    What nobody uses, neither as one of ``results`` nor at its place in ``others``, has the empty name.
    """
    names = []
    for number, result in enumerate(results):
        seen = [result, *others[number : number + 1]]
        if not any(True for each in seen for _ in each.uses):
            names.append("")
        elif _is_tensor(result):
            names.append(writer.values.buffer(result))
        else:
            names.append(writer.code.variable("state", Text("0"), C_TYPES[kind_of(result.type)]).text)
    return names


def _assigned(  # noqa: C901  one list of cases
    writer: FunctionWriter, names: Sequence[str], values: Sequence[Value]
) -> None:
    """Write assignments of ``values`` to ``names``, all at once."""
    pending: list[tuple[str, Array | None, Expr | None]] = []
    for name, value in zip(names, values, strict=True):
        if not name:
            continue
        others = set(names) - {name}
        if _is_tensor(value):
            array = writer.values.arrays[value]
            if array.place is not None and array == in_memory(name, array.shape):
                continue
            if array.place is not None and array.place[0] == name and array.place[2] == 0:
                continue
            if array.reads & (others | {name}):
                array = writer.values.copy(value)
            pending.append((name, array, None))
        else:
            expr = writer.values.scalars[value]
            if expr == Text(name):
                continue
            if set(names_in(expr)) & others:
                expr = writer.code.variable("next", expr, f"const {C_TYPES[kind_of(value.type)]}")
            pending.append((name, None, expr))
    for name, whole, element in pending:
        if whole is not None:
            writer.values.copied(whole, name)
        elif element is not None:
            writer.code.add(Set(Text(name), element))


def _if(writer: FunctionWriter, op: Operation) -> None:
    names = _state(writer, op.results)
    block = CompoundStatement(f"if ({spelled(writer.values.scalars[op.operands[0]])})")
    writer.code.add(block)
    for region, statements in zip(op.regions, (block.body, block.otherwise), strict=True):
        if len(region.blocks):
            with writer.code.inside(block, statements):
                _assigned(writer, names, writer.block(region.blocks[0]))
    _bind(writer, op.results, names)


def _for(writer: FunctionWriter, op: Operation) -> None:
    low, high, step = (spelled(writer.values.scalars[each]) for each in list(op.operands)[:3])
    body = op.regions[0].blocks[0]
    names = _state(writer, list(body.arguments)[1:], op.results)
    _assigned(writer, names, list(op.operands)[3:])
    variable = writer.code.name("step")
    advance = f"++{variable}" if step == "1" else f"{variable} += {step}"
    loop = CompoundStatement(f"for (int64_t {variable} = {low}; {variable} < {high}; {advance})")
    writer.code.add(loop)
    writer.values.bind(body.arguments[0], variable)
    _carry(writer, list(body.arguments)[1:], names, body)
    with writer.code.inside(loop):
        _assigned(writer, names, writer.block(body))
    _bind(writer, op.results, names)


def _carry(writer: FunctionWriter, arguments: Sequence[Value], names: Sequence[str], home: Any) -> None:
    for argument, name in zip(arguments, names, strict=True):
        if not name:
            continue
        writer.values.bind(argument, name)
        if _is_tensor(argument):
            writer.values.settle(name, home)


def _while(writer: FunctionWriter, op: Operation) -> None:
    before, after = (region.blocks[0] for region in op.regions)
    names = _state(writer, before.arguments)
    _assigned(writer, names, list(op.operands))
    left = _state(writer, op.results)
    loop = CompoundStatement("for (;;)")
    writer.code.add(loop)
    _carry(writer, list(before.arguments), names, before)
    with writer.code.inside(loop):
        condition, *passed = writer.block(before)
        exit_ = CompoundStatement(f"if ({spelled(Prefix('!', writer.values.scalars[condition]))})", [])
        writer.code.add(exit_)
        with writer.code.inside(exit_):
            _assigned(writer, left, passed)
            writer.code.add(LineStatement("break;"))
        for argument, value in zip(after.arguments, passed, strict=True):
            writer.values.alias(argument, value)
        _assigned(writer, names, writer.block(after))
    _bind(writer, op.results, left)


RULES: Mapping[str, Callable[[FunctionWriter, Operation], None]] = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
}
