"""Native code of the runtime itself, written in the LLVM dialect and compiled when it is first needed.

There is no C compiler where we are installed, but there is LLVM. The texts (`*.mlir`) lie beside this module.
A function of theirs that is not internal has its address told here.
"""

from __future__ import annotations

import ctypes
import os
import threading
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.bindings import ExecutionEngine, ir, llvm, new_context
from mind_mlir.interrupts import held

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.bindings import Module

#: The name of the function that tells the addresses of the others; no text defines it.
_TABLE = "mind_library_table"

# A wrapper that the engine makes of a function; it returns soon, and keeps the interpreter lock.
_PACKED = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

_loaded: dict[tuple[str, ...], Mapping[str, int]] = {}
#: Held while native code is made that is there once in a process.
making = threading.RLock()
if hasattr(os, "register_at_fork"):  # a child forked while another thread loads would wait for it for ever
    _after = {"after_in_parent": making.release, "after_in_child": making.release}
    os.register_at_fork(before=making.acquire, **_after)


@held()
def load(*names: str, opt_level: int = 2) -> Mapping[str, int]:
    """Return the addresses of the public functions of ``<name>.mlir``, by their names.

    They are C functions of the types that the text says. Several files are one text: what they define, they
    have in common. It is compiled once in a process; any thread may call this.

    Args:
        names: The files, without their suffix.
        opt_level: LLVM's optimisation level; the first call decides.

    Raises:
        MLIRError: MLIR does not take the text.
        RuntimeError: The code refers to symbols that this process does not have, or LLVM cannot make it.
    """
    with making:
        if names not in _loaded:
            texts = [
                files(__package__).joinpath(f"{name}.mlir").read_text(encoding="utf-8") for name in names
            ]
            _loaded[names] = compile_text("\n".join(texts), opt_level=opt_level)
        return _loaded[names]


@held()
def compile_text(text: str, *, opt_level: int = 2) -> Mapping[str, int]:
    """Return the addresses of the public functions of a text, operations of the LLVM dialect, by their names.

    The code stays until the process ends, also while the interpreter shuts down: threads may be running it.

    Args:
        text: The operations. Half of LLVM's time goes to its passes: with ``opt_level`` 0 there are none but
            the inlining of functions that are ``always_inline``.
        opt_level: LLVM's optimisation level, 0 to 3.

    Raises:
        MLIRError: MLIR does not take the text.
        RuntimeError: The code refers to symbols that this process does not have, or LLVM cannot make it.
    """
    with new_context(("llvm",)), ir.Location.unknown():
        return compile_module(ir.Module.parse(text), opt_level=opt_level)


@held()
def compile_module(module: Module, *, opt_level: int) -> Mapping[str, int]:
    """Return the addresses of the public functions of a module of the LLVM dialect, as `compile_text` does.

    Args:
        module: The module, which is changed; its context is the current one.
        opt_level: As there.

    Raises:
        RuntimeError: As there.
    """
    names = _hide_functions(module)
    append_table(module, _TABLE, dict(enumerate(names)))
    engine = ExecutionEngine(module, opt_level=opt_level)
    wrapper = engine.raw_lookup(_TABLE)
    if not wrapper:
        raise RuntimeError("native code of the runtime refers to what this process does not have")
    table = (ctypes.c_uint64 * len(names))()
    fill_table(wrapper, ctypes.addressof(table))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return MappingProxyType(dict(zip(names, table, strict=True)))


def _hide_functions(module: Module) -> list[str]:
    """Make the public functions internal, which spares LLVM a wrapper of each, and return their names."""
    names = []
    for op in module.body.operations:
        if op.operation.name == "llvm.func" and op.regions[0].blocks:
            if str(op.attributes["linkage"]) != "#llvm.linkage<external>":
                continue
            op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
            names.append(ir.StringAttr(op.attributes["sym_name"]).value)
    return names


def append_table(module: Module, name: str, functions: Mapping[int, str]) -> None:
    """Append a function ``name`` to ``module`` that writes addresses to the table it is given.

    Args:
        module: A module of the LLVM dialect; its context is the current one.
        name: The name of the new function.
        functions: Functions of ``module`` by their place in the table.
    """
    pointer = llvm.PointerType.get()
    type_ = ir.TypeAttr.get(ir.Type.parse("!llvm.func<void (ptr)>"))
    with ir.InsertionPoint(module.body):
        function = llvm.LLVMFuncOp(name, type_)
    block = function.regions[0].blocks.append(pointer)
    with ir.InsertionPoint(block):
        for place, callee in functions.items():
            slot = llvm.GEPOp(pointer, block.arguments[0], [], [place], pointer, None)
            llvm.StoreOp(llvm.AddressOfOp(pointer, callee).result, slot)
        llvm.ReturnOp()


def fill_table(wrapper: int, table: int) -> None:
    """Have a function of `append_table`, at the address that ``raw_lookup`` gives, fill ``table``."""
    argument = ctypes.c_void_p(table)
    arguments = ctypes.c_void_p(ctypes.addressof(argument))  # it takes the addresses of its arguments
    _PACKED(wrapper)(ctypes.addressof(arguments))
