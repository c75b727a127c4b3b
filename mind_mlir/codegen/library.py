"""Native code of the runtime itself, written in the LLVM dialect and compiled when it is first needed.

There is no C compiler where we are installed, but there is LLVM. The texts (`*.mlir`) lie in
`mind_mlir/runtime`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.codegen.ahead import making
from mind_mlir.codegen.engines import Making
from mind_mlir.image.linking import link
from mind_mlir.lowering.to_llvm import target_attributes
from mind_mlir.mlir.bindings import ir, llvm, new_context
from mind_mlir.support.compilations import note_compilation
from mind_mlir.support.interrupts import held
from mind_mlir.target import least_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.image.image import Image
    from mind_mlir.mlir.bindings import Module

#: Where the addresses of functions are that nothing else refers to.
ADDRESSES = "mind.addresses"

_begun: dict[str, NativeCode] = {}


class NativeCode:
    """The image of a module, which a thread may be making."""

    @held()
    def __init__(self, module: Module, *, opt_level: int) -> None:
        """Begin to make the code of a module of the LLVM dialect, in a thread if there is a core for that.

        Args:
            module: The module, which is changed; its context is the current one.
            opt_level: As `compile_text` takes it.

        Raises:
            InternalError: LLVM does not take the module.
        """
        append_addresses(module, hide_functions(module))
        with making:
            self._making = Making(module, ADDRESSES, opt_level=opt_level)
        self._image: Image | None = None

    def object(self) -> bytes:
        """Return the object that the image is made of; any thread may call this."""
        return self._making.object()

    def image(self) -> Image:
        """Return the image; any thread may call this."""
        if self._image is None:
            self._image = link([self.object()])
        return self._image


@held()
def begin(text: str, *, opt_level: int = 2, anywhere: bool = False) -> NativeCode:
    """Begin to make the code of a text, operations of the LLVM dialect, or return it if that has been done.

    Its functions are C functions of the types that the text says. It is compiled once in a process; any
    thread may call this.

    Args:
        text: The operations.
        opt_level: LLVM's optimisation level; the first call decides.
        anywhere: As `compile_text` takes it.

    Raises:
        MLIRError: MLIR does not take the text.
        InternalError: LLVM does not.
    """
    with making:
        if text not in _begun:
            _begun[text] = _begin_text(text, opt_level, anywhere=anywhere)
        return _begun[text]


@held()
def compile_text(text: str, *, opt_level: int = 2, anywhere: bool = False) -> Image:
    """Return the image of a text, operations of the LLVM dialect.

    Args:
        text: The operations. Half of LLVM's time goes to its passes: with ``opt_level`` 0 there are none but
            the inlining of functions that are ``always_inline``.
        opt_level: LLVM's optimisation level, 0 to 3.
        anywhere: Whether any processor of the architecture at hand runs the code; else this one does.

    Raises:
        MLIRError: MLIR does not take the text.
        InternalError: LLVM does not.
    """
    return _begin_text(text, opt_level, anywhere=anywhere).image()


def _begin_text(text: str, opt_level: int, *, anywhere: bool) -> NativeCode:
    note_compilation()
    least = least_target() if anywhere else None
    with new_context(("llvm",)), ir.Location.unknown():
        module = ir.Module.parse(text)
        attributes = {} if least is None else target_attributes(least)
        for op in module.body.operations if attributes else ():
            if op.operation.name == "llvm.func" and op.regions[0].blocks:
                for name, value in attributes.items():
                    op.attributes[name] = value
        return NativeCode(module, opt_level=opt_level)


def hide_functions(module: Module) -> list[str]:
    """Make the public functions internal, which spares LLVM a wrapper of each, and return their names."""
    names = []
    for op in module.body.operations:
        if op.operation.name == "llvm.func" and op.regions[0].blocks:
            if str(op.attributes["linkage"]) != "#llvm.linkage<external>":
                continue
            op.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
            names.append(ir.StringAttr(op.attributes["sym_name"]).value)
    return names


def append_addresses(module: Module, functions: Sequence[str]) -> None:
    """Append the addresses of functions to ``module``, as data that an engine finds as `ADDRESSES`.

    So LLVM makes their code though nothing else in the module refers to them.

    Args:
        module: A module of the LLVM dialect; its context is the current one.
        functions: Functions of ``module``.
    """
    pointer = llvm.PointerType.get()
    type_ = ir.Type.parse(f"!llvm.array<{len(functions)} x ptr>")
    attributes = {
        "sym_name": ir.StringAttr.get(ADDRESSES),
        "global_type": ir.TypeAttr.get(type_),
        "linkage": ir.Attribute.parse("#llvm.linkage<weak>"),  # each object of a program has one
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
