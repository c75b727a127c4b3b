"""Micro-kernels of products, which become machine code once in a process, whichever modules call them.

Their code depends on nothing but the tile, the dtypes and the target, all of which their names and attributes
say. There are a few dozen at most, and they stay until the process ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.bindings import ir, llvm
from mind_mlir.lowering.schedule.contraction.library import LIBRARY_ATTRIBUTE
from mind_mlir.runtime.library import compile_module, making

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.bindings import Module, Operation

#: LLVM's passes would take as long as making the code, and leave it as fast as it is.
_LEVEL = 0

_addresses: dict[str, int] = {}  # by what they are


def take_kernels(module: Module) -> dict[str, int]:
    """Replace the micro-kernels of an LLVM dialect module by declarations; return their addresses by name."""
    with module.context, ir.Location.unknown(), making:
        found = {_key(op): op for op in module.body.operations if _is_kernel(op)}
        missing = [key for key in found if key not in _addresses]
        made = _make([found[key] for key in missing]) if missing else {}
        _addresses.update({key: made[_name(found[key])] for key in missing})
        result: dict[str, int] = {}
        for key, op in found.items():
            result[_name(op)] = _addresses[key]
            with ir.InsertionPoint(op):
                llvm.LLVMFuncOp(_name(op), op.attributes["function_type"])
            op.operation.erase()
        return result


def _make(kernels: Sequence[Operation]) -> dict[str, int]:
    """Return the addresses of the machine code of ``kernels`` by their names."""
    module = ir.Module.create()
    public = ir.Attribute.parse("#llvm.linkage<external>")
    for op in kernels:
        copy = op.operation.clone()
        copy.attributes["linkage"] = public
        del copy.attributes["sym_visibility"]
        module.body.append(copy)
    return dict(compile_module(module, opt_level=_LEVEL))


def _is_kernel(op: Operation) -> bool:
    return LIBRARY_ATTRIBUTE in op.attributes and bool(op.regions[0].blocks)


def _key(op: Operation) -> str:
    """Return what says what the code of a kernel is: its name, and what it is compiled for."""
    return ", ".join(sorted(f"{name} = {op.attributes[name]}" for name in op.attributes))


def _name(op: Operation) -> str:
    return str(op.attributes["sym_name"].value)
