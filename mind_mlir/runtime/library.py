"""Native code of the runtime itself, written in the LLVM dialect and compiled when it is first needed.

There is no C compiler where we are installed, but there is LLVM. The texts (`*.mlir`) lie beside this module.
A function of theirs that is not internal has its address told here.
"""

from __future__ import annotations

import ctypes
import os
import threading
from importlib.resources import files
from string import Template
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.bindings import ExecutionEngine, ir, new_context
from mind_mlir.interrupts import held

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.bindings import Module

#: The name of the function that tells the addresses of the others; no text defines it.
_TABLE = "mind_library_table"

_loaded: dict[str, Mapping[str, int]] = {}
_loading = threading.RLock()
# A child that is forked while another thread loads something would wait for that thread for ever.
os.register_at_fork(
    before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release
)


@held()
def load(name: str, **words: str) -> Mapping[str, int]:
    """Return the addresses of the public functions of ``<name>.mlir``, by their names.

    They are C functions of the types that the text says. The text is compiled once in a process; any thread
    may call this.

    Args:
        name: The file, without its suffix.
        words: What ``$word`` in the text stands for; the first call decides.

    Raises:
        MLIRError: MLIR does not take the text.
        RuntimeError: The code refers to symbols that this process does not have, or LLVM cannot make it.
    """
    with _loading:
        if name not in _loaded:
            text = files(__package__).joinpath(f"{name}.mlir").read_text(encoding="utf-8")
            _loaded[name] = compile_text(Template(text).substitute(words))
        return _loaded[name]


@held()
def compile_text(text: str) -> Mapping[str, int]:
    """Return the addresses of the public functions of a text, operations of the LLVM dialect, by their names.

    The code stays until the process ends, also while the interpreter shuts down: threads may be running it.

    Raises:
        MLIRError: MLIR does not take the text.
        RuntimeError: The code refers to symbols that this process does not have, or LLVM cannot make it.
    """
    with new_context(("llvm",)), ir.Location.unknown():
        names = _public_functions(ir.Module.parse(text))
        engine = ExecutionEngine(ir.Module.parse(f"{text}\n{_table_function(names)}"), opt_level=2)
    wrapper = engine.raw_lookup(_TABLE)  # a wrapper, which takes the addresses of its arguments
    if not wrapper:
        raise RuntimeError("native code of the runtime refers to what this process does not have")
    table = (ctypes.c_uint64 * len(names))()
    argument = ctypes.c_void_p(ctypes.addressof(table))
    arguments = ctypes.c_void_p(ctypes.addressof(argument))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(wrapper)(ctypes.addressof(arguments))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(engine))
    return MappingProxyType(dict(zip(names, table, strict=True)))


def _public_functions(module: Module) -> list[str]:
    return [
        ir.StringAttr(op.attributes["sym_name"]).value
        for op in module.body.operations
        if op.operation.name == "llvm.func"
        and op.regions[0].blocks
        and str(op.attributes["linkage"]) == "#llvm.linkage<external>"
    ]


def _table_function(names: list[str]) -> str:
    """Return a function that writes the addresses of the functions ``names`` to a table."""
    stores = "".join(
        f"%f{index} = llvm.mlir.addressof @{name} : !llvm.ptr\n"
        f"%p{index} = llvm.getelementptr %table[{index}] : (!llvm.ptr) -> !llvm.ptr, i64\n"
        f"llvm.store %f{index}, %p{index} : !llvm.ptr, !llvm.ptr\n"
        for index, name in enumerate(names)
    )
    return f"llvm.func @{_TABLE}(%table: !llvm.ptr) {{\n{stores}llvm.return\n}}"
