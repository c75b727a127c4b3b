"""One function of the linalg form as C: its statements, and the arrays that it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mind_mlir.conversion.c import control, nests, tensors
from mind_mlir.conversion.c.arrays import label_for
from mind_mlir.conversion.c.nodes import AffineIndex, CompoundStatement, LineStatement, Sum, Text, spelled
from mind_mlir.conversion.c.operations import C_TYPES, kind_of, unsupported
from mind_mlir.conversion.c.statements import Statements
from mind_mlir.conversion.c.values import Values
from mind_mlir.mlir.bindings import Operation, Value, ir


class FunctionWriter:
    """Writes the body of one function: each operation by its rule.

    Attributes:
        prefix: What the names of its tables begin with.
        opcodes: The operations of the program, by what their values are called.
        constants: Definitions of its tables, by name.
        code: Its statements.
        values: What stands for its values.
        indices: The loops around the body of an operation of linalg that is being written; None elsewhere.
    """

    def __init__(
        self, prefix: str, opcodes: Mapping[str, str], used: set[str], constants: dict[str, str]
    ) -> None:
        self.prefix, self.opcodes, self.constants = prefix, opcodes, constants
        self.code = Statements(used)
        self.values = Values(self.code)
        self.indices: Sequence[AffineIndex] | None = None

    @property
    def in_body(self) -> bool:
        """Return whether what is written is the body of an operation of linalg."""
        return self.indices is not None

    def block(self, block: Any) -> list[Value]:
        """Write the operations of ``block``; return the operands of its terminator."""
        with self.values.within(block) as operations:
            for op in operations[:-1]:
                self._operation(op)
        return list(operations[-1].operands)

    def _operation(self, op: Operation) -> None:
        rule = _RULES.get(op.name)
        if rule is None and op.name.startswith("tensor."):
            raise unsupported(f"'{op.name}'")
        if rule is None:
            rule = nests.nest if op.name.startswith("linalg.") else tensors.scalar
        rule(self, op)


def _index(writer: FunctionWriter, op: Operation) -> None:
    assert writer.indices is not None, "it stands in the body of an operation of linalg"
    number = ir.IntegerAttr(op.attributes["dim"]).value
    writer.values.scalars[op.results[0]] = Sum(writer.indices[number])


def _call(writer: FunctionWriter, op: Operation) -> None:
    code, values = writer.code, writer.values
    arguments = []
    for value in op.operands:
        is_tensor = isinstance(value.type, ir.RankedTensorType)
        arguments.append(values.dense(value) if is_tensor else spelled(values.scalars[value]))
    for result in op.results:
        if isinstance(result.type, ir.RankedTensorType):
            buffer = values.buffer(result)
            values.bind(result, buffer)
            arguments.append(buffer)
        else:
            fresh = code.name(label_for(result))
            code.add(LineStatement(f"{C_TYPES[kind_of(result.type)]} {fresh};"))
            values.scalars[result] = Text(fresh)
            arguments.append(f"&{fresh}")
    called = re.sub(r"\W", "_", ir.FlatSymbolRefAttr(op.attributes["callee"]).value)
    failed = f"if ({called}({', '.join(arguments)}) != 0)"
    code.add(CompoundStatement(failed, [LineStatement("status = -1;"), LineStatement("goto end;")]))


_RULES: Mapping[str, Callable[[FunctionWriter, Operation], None]] = {
    **tensors.RULES,
    **control.RULES,
    "func.call": _call,
    "linalg.fill": nests.fill,
    "linalg.index": _index,
}
