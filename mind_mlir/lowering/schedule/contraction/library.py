"""Calls of the kernels, and their code, which joins the module when it is in the LLVM dialect."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mind_mlir.bindings import func, ir
from mind_mlir.lowering.schedule.contraction.kernels import ProductKernel
from mind_mlir.lowering.schedule.contraction.packing import PackKernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Module, Value

#: What a declared kernel is, on its way down: a dictionary. Marks its code in the LLVM dialect.
LIBRARY_ATTRIBUTE = "mind.library"

_KINDS = {"product": ProductKernel, "pack": PackKernel}


class Library:
    """The kernels that a module calls."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._declared: set[str] = set()

    def call(self, kernel: ProductKernel | PackKernel, operands: Sequence[Value]) -> None:
        """Emit a call of ``kernel``, which is declared if need be."""
        if kernel.name not in self._declared:
            self._declared.add(kernel.name)
            self._declare(kernel, [operand.type for operand in operands])
        func.CallOp([], ir.FlatSymbolRefAttr.get(kernel.name), list(operands))

    def _declare(self, kernel: ProductKernel | PackKernel, types: Sequence[object]) -> None:
        with ir.InsertionPoint.at_block_begin(self._module.body), ir.Location.unknown():
            function = func.FuncOp(kernel.name, (list(types), []), visibility="private")
        function.attributes["llvm.bareptr"] = ir.UnitAttr.get()
        kind = next(kind for kind, type_ in _KINDS.items() if isinstance(kernel, type_))
        values = {name: _to_attribute(value) for name, value in dataclasses.asdict(kernel).items()}
        function.attributes[LIBRARY_ATTRIBUTE] = ir.DictAttr.get({"kind": ir.StringAttr.get(kind), **values})


def link_library(module: Module) -> None:
    """Put the code of each kernel in the place of its declaration in ``module``, in the LLVM dialect."""
    for op in list(module.body.operations):
        if LIBRARY_ATTRIBUTE not in op.operation.attributes:
            continue
        values = ir.DictAttr(op.operation.attributes[LIBRARY_ATTRIBUTE])
        type_ = _KINDS[ir.StringAttr(values["kind"]).value]
        fields = {field.name: _from_attribute(values[field.name]) for field in dataclasses.fields(type_)}
        function = ir.Operation.parse(type_(**fields).text())
        function.attributes[LIBRARY_ATTRIBUTE] = ir.UnitAttr.get()
        ir.InsertionPoint(op).insert(function)
        op.operation.erase()


def _to_attribute(value: object) -> ir.Attribute:
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _from_attribute(attribute: object) -> object:
    if isinstance(attribute, ir.StringAttr | ir.BoolAttr):
        return attribute.value
    return int(ir.IntegerAttr(attribute).value)
