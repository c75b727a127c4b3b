"""One function of the linalg form as C: a statement list, and the arrays that it needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.conversion.c import control
from mind_mlir.conversion.c.accesses import label_for
from mind_mlir.conversion.c.arrays import in_memory, row_major
from mind_mlir.conversion.c.nests import NestWriter
from mind_mlir.conversion.c.nodes import Block, Line, Sum, Text, spelled
from mind_mlir.conversion.c.operations import C_TYPES, kind_of, unsupported
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Operation


class FunctionWriter(NestWriter):
    """Writes the body of one function."""

    def operation(self, op: Operation) -> None:
        """Write one operation."""
        name = op.name
        if name == "arith.constant":
            self._constant(op)
        elif name.startswith("tensor."):
            rule = getattr(self, f"_{name.removeprefix('tensor.')}", None)
            if rule is None:
                raise unsupported(f"'{name}'")
            rule(op)
        elif name == "linalg.index":
            self._scalars[op.results[0]] = Sum(self._indices[ir.IntegerAttr(op.attributes["dim"]).value])
        elif name.startswith("linalg."):
            self._linalg(op)
        elif name.startswith("scf."):
            control.RULES[name](self, op)
        elif name == "func.call":
            self._call(op)
        else:
            self._scalar(op)

    def _call(self, op: Operation) -> None:
        name = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        arguments = []
        for value in op.operands:
            if isinstance(value.type, ir.RankedTensorType):
                array = self.stored(value)
                assert array.place is not None
                if array.place[1:] != (row_major(array.shape), 0):
                    array = self._dense(value)
                assert array.place is not None
                arguments.append(array.place[0])
            else:
                arguments.append(spelled(self._scalars[value]))
        for result in op.results:
            if isinstance(result.type, ir.RankedTensorType):
                buffer = self.buffer(result)
                self._arrays[result] = in_memory(buffer, result.type.shape)
                arguments.append(buffer)
            else:
                fresh = self.name(label_for(result))
                self.add(Line(f"{C_TYPES[kind_of(result.type)]} {fresh};"))
                self._scalars[result] = Text(fresh)
                arguments.append(f"&{fresh}")
        called = re.sub(r"\W", "_", name)
        self.add(
            Block(f"if ({called}({', '.join(arguments)}) != 0)", [Line("status = -1;"), Line("goto end;")])
        )
