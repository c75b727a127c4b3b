"""Modules of functions made by hand, also such as no text and no builder makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    CoreOperation,
    Function,
    Functions,
    Module,
    Parameter,
    Result,
    Return,
    Target,
    Yield,
)
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.module import Terminator
    from mind_mlir.ir.types import ValueType

F, N, P = TensorType(DType.F32, (2,)), TensorType(DType.SI64), TensorType(DType.I1)
SCALAR = TensorType(DType.F32)


def op(
    value: int | tuple[int, ...],
    opcode: str,
    operands: Sequence[int] = (),
    type_: ValueType | tuple[ValueType, ...] = F,
    regions: Sequence[Block] = (),
    /,
    **attributes: Any,
) -> CoreOperation:
    values = value if isinstance(value, tuple) else (value,)
    types = type_ if isinstance(type_, tuple) else (type_,)
    others = [Result(*pair) for pair in zip(values[1:], types[1:], strict=True)]
    return CoreOperation.create(
        values[0], opcode, operands, attributes, types[0], others=others, regions=regions
    )


def block(
    label: str, operations: Sequence[CoreOperation], terminator: Terminator, **parameters: ValueType
) -> Block:
    """Return a block; parameters are named after their ids: ``v0=F``."""
    listed = [Parameter(int(name[1:]), type_, name=name) for name, type_ in parameters.items()]
    return Block(tuple(operations), terminator, tuple(listed), label)


def function(name: str, blocks: Sequence[Block], *results: ValueType, public: bool = True) -> Function:
    return Function(name, tuple(blocks), public, results)


def module(*functions: Function) -> Module:
    return Module(Functions(functions), "core-functions")


def main(*blocks: Block, results: tuple[ValueType, ...] = (F,)) -> Module:
    return module(function("main", blocks, *results))


def ret(*values: int) -> Return:
    return Return(values)


def yield_(*values: int) -> Yield:
    return Yield(values)


def br(label: str, *values: int) -> Branch:
    return Branch(Target(label, values))


def cond_br(
    condition: int, then: str, otherwise: str, then_values: Sequence[int] = (), values: Sequence[int] = ()
) -> CondBranch:
    return CondBranch(condition, Target(then, tuple(then_values)), Target(otherwise, tuple(values)))


def chain(length: int, returned: int = 2) -> Module:
    """Return a function of ``length`` blocks, each of which may leave for the last one."""
    blocks = [block("entry", [op(2, "Neg", [0])], br("b1"), v0=F, v1=P)]
    last = f"b{length - 1}"
    blocks += [
        block(f"b{i}", [op(i + 2, "Neg", [i + 1])], cond_br(1, f"b{i + 1}", last))
        for i in range(1, length - 2)
    ]
    blocks += [block(f"b{length - 2}", [], br(last)), block(last, [], ret(returned))]
    return main(*blocks)


def calls(length: int, last: str | None = None) -> Module:
    """Return functions each of which calls the next one; the last one calls ``last``."""
    functions = []
    for i in range(length):
        callee = f"f{i + 1}" if i + 1 < length else last
        called = [op(1, "Call", [0], F, callee=callee)] if callee else [op(1, "Neg", [0])]
        functions.append(function(f"f{i}", [block("entry", called, ret(1), v0=F)], F, public=i == 0))
    return module(*functions)
