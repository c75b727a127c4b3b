"""Native code of the runtime itself, written in the LLVM dialect and compiled when it is first needed.

There is no C compiler where we are installed, but there is LLVM. The texts (`*.mlir`) lie beside this module.
A function of theirs that is not internal has its address told here.
"""

from __future__ import annotations

import ctypes
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.bindings import code_maker, create_engine, ir, llvm, new_context
from mind_mlir.interrupts import held
from mind_mlir.runtime.ahead import Ahead, making

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.bindings import Module

#: Where the addresses of the functions are; no text defines it.
_TABLE = "mind_library_table"
#: What the engine puts in front of a name that it is asked for: it wraps functions, and finds the wrappers.
_PREFIX = "_mlir_"

_begun: dict[tuple[str, ...], Code] = {}


class Code:
    """Machine code of a module; it stays until the process ends, also while the interpreter shuts down.

    Threads may be running it then.
    """

    @held()
    def __init__(self, module: Module, *, opt_level: int) -> None:
        """Begin to make the code of a module of the LLVM dialect, in a thread if there is a core for that.

        Args:
            module: The module, which is changed; its context is the current one.
            opt_level: As `compile_text` takes it.

        Raises:
            RuntimeError: LLVM does not take the module.
        """
        self._names = _hide_functions(module)
        append_addresses(module, _TABLE, self._names)
        self._engine = create_engine(module, opt_level=opt_level)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._engine))
        with making:
            self._making = Ahead(code_maker(self._engine, _TABLE))
        self._addresses: Mapping[str, int] | None = None

    @held()
    def addresses(self) -> Mapping[str, int]:
        """Return the addresses of the public functions by their names; any thread may call this.

        Raises:
            RuntimeError: The code refers to symbols that this process does not have, or LLVM cannot make it.
        """
        if self._addresses is None:
            self._making.wait()
            data = self._engine.raw_lookup(_TABLE)
            if not data:
                raise RuntimeError("native code of the runtime refers to what this process does not have")
            found = read_addresses(data, len(self._names))
            self._addresses = MappingProxyType(dict(zip(self._names, found, strict=True)))
        return self._addresses


@held()
def begin(*names: str, opt_level: int = 2) -> Code:
    """Begin to make the code of ``<name>.mlir``, or return it if that has been done (see `load`)."""
    with making:
        if names not in _begun:
            texts = [
                files(__package__).joinpath(f"{name}.mlir").read_text(encoding="utf-8") for name in names
            ]
            _begun[names] = _begin_text("\n".join(texts), opt_level=opt_level)
        return _begun[names]


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
    return begin(*names, opt_level=opt_level).addresses()


@held()
def compile_text(text: str, *, opt_level: int = 2) -> Mapping[str, int]:
    """Return the addresses of the public functions of a text, operations of the LLVM dialect, by their names.

    Args:
        text: The operations. Half of LLVM's time goes to its passes: with ``opt_level`` 0 there are none but
            the inlining of functions that are ``always_inline``.
        opt_level: LLVM's optimisation level, 0 to 3.

    Raises:
        MLIRError: MLIR does not take the text.
        RuntimeError: The code refers to symbols that this process does not have, or LLVM cannot make it.
    """
    return _begin_text(text, opt_level=opt_level).addresses()


def _begin_text(text: str, *, opt_level: int) -> Code:
    with new_context(("llvm",)), ir.Location.unknown():
        return Code(ir.Module.parse(text), opt_level=opt_level)


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


def append_addresses(module: Module, name: str, functions: Sequence[str]) -> None:
    """Append the addresses of functions to ``module``, as data that is found by ``name``.

    A function that told them would take LLVM half a millisecond or more.

    Args:
        module: A module of the LLVM dialect; its context is the current one.
        name: What to ask the engine of ``module`` for.
        functions: Functions of ``module``.
    """
    pointer = llvm.PointerType.get()
    type_ = ir.Type.parse(f"!llvm.array<{len(functions)} x ptr>")
    attributes = {
        "sym_name": ir.StringAttr.get(_PREFIX + name),
        "global_type": ir.TypeAttr.get(type_),
        "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
        "constant": ir.UnitAttr.get(),
    }
    with ir.InsertionPoint(module.body):
        data = ir.Operation.create("llvm.mlir.global", attributes=attributes, regions=1)
    with ir.InsertionPoint(data.regions[0].blocks.append()):
        value = ir.Operation.create("llvm.mlir.undef", [type_]).result
        for place, function in enumerate(functions):
            symbol = {"global_name": ir.FlatSymbolRefAttr.get(function)}
            address = ir.Operation.create("llvm.mlir.addressof", [pointer], attributes=symbol).result
            position = {"position": ir.DenseI64ArrayAttr.get([place])}
            operands = [value, address]
            value = ir.Operation.create("llvm.insertvalue", [type_], operands, position).result
        ir.Operation.create("llvm.return", operands=[value])


def read_addresses(data: int, count: int) -> list[int]:
    """Return the addresses that `append_addresses` put where the engine says that ``data`` is."""
    return list((ctypes.c_uint64 * count).from_address(data))
