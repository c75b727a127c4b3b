"""Calls of C functions that are registered for custom calls, in the LLVM dialect.

A call is of a declared function that takes a pointer to each input and each output. Its definition puts them
in tables and calls the address that the target has in this process:

    void f(const void *const *inputs, void *const *outputs, const int64_t *extents, const char *attrs)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import func, ir
from mind_mlir.mlir.values import define
from mind_mlir.ops.custom_targets import custom_target
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.abi import COLLECTIVE_SYMBOL, COLLECTIVE_TARGET, CUSTOM_CALL_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Module


@dataclass(frozen=True, slots=True)
class NativeCall:
    """The call of a C function that a declared function stands for.

    Attributes:
        symbol: The function.
        address: The C function; None for the one of the runtime that does collectives.
        inputs: How many of its pointers are to inputs; the others are to outputs.
        pointers: How many pointers there are.
        extents: The shapes behind the pointers, one after the other.
        attrs: The attributes, as JSON.
    """

    symbol: str
    address: int | None
    inputs: int
    pointers: int
    extents: tuple[int, ...]
    attrs: str


def take_custom_calls(module: Module) -> list[NativeCall]:
    """Return what functions on contiguous memrefs call, and prepare the declarations: bare pointers."""
    found = []
    for op in module.body.operations:
        if not isinstance(op, func.FuncOp) or CUSTOM_CALL_ATTRIBUTE not in op.attributes:
            continue
        call = ir.DictAttr(op.attributes[CUSTOM_CALL_ATTRIBUTE])
        found.append(
            NativeCall(
                op.name.value,
                _address(call["target"].value),
                call["inputs"].value,
                len(op.type.inputs),
                tuple(ir.DenseI64ArrayAttr(call["extents"])),
                call["attrs"].value,
            )
        )
        del op.attributes[CUSTOM_CALL_ATTRIBUTE]
        op.attributes["llvm.bareptr"] = ir.UnitAttr.get()
    return found


def _address(name: str) -> int | None:
    if name == COLLECTIVE_TARGET:
        return None
    target = custom_target(name)
    assert target is not None
    assert target.address is not None, "what has an expansion has been expanded"
    return target.address


def define_custom_calls(module: Module, calls: list[NativeCall]) -> None:
    """Define the functions that `take_custom_calls` returned, now that they are in the LLVM dialect."""
    by_symbol = {call.symbol: call for call in calls}
    known = ""
    for op in list(module.body.operations) if calls else ():
        attributes = op.attributes
        call = by_symbol.get(attributes["sym_name"].value) if "sym_name" in attributes else None
        if call is None:
            continue
        define(op, "\n".join(_definition(call)), known)
        known = known or (COLLECTIVE_SYMBOL if call.address is None else "")


def _definition(call: NativeCall) -> list[str]:
    """Return the text of the tables of extents and attributes, and of the function."""
    extents = list(call.extents) or [0]
    data = [*call.attrs.encode(), 0]
    count = call.pointers
    arguments = ", ".join(f"%arg{index}: !llvm.ptr" for index in range(count))
    stores = []
    for index in range(count):
        place = index if index < call.inputs else index - call.inputs
        table = "%inputs" if index < call.inputs else "%outputs"
        stores += [
            f"%p{index} = llvm.getelementptr {table}[{place}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr",
            f"llvm.store %arg{index}, %p{index} : !llvm.ptr, !llvm.ptr",
        ]
    parameters = "(!llvm.ptr, !llvm.ptr, !llvm.ptr, !llvm.ptr) -> ()"
    declared: list[str] = []
    if call.address is None:
        declared.append(f"llvm.func @{COLLECTIVE_SYMBOL}{parameters.removesuffix(' -> ()')}")
        callee = [f"llvm.call @{COLLECTIVE_SYMBOL}(%inputs, %outputs, %extents, %attrs) : {parameters}"]
    else:
        address = call.address - 2**64 if call.address >= 2**63 else call.address
        callee = [
            f"%number = llvm.mlir.constant({address} : i64) : i64",
            "%address = llvm.inttoptr %number : i64 to !llvm.ptr",
            f"llvm.call %address(%inputs, %outputs, %extents, %attrs) : !llvm.ptr, {parameters}",
        ]
    return [
        *declared,
        _table(f"{call.symbol}.extents", extents, 64),
        _table(f"{call.symbol}.attrs", [byte - 256 if byte > 127 else byte for byte in data], 8),
        f"llvm.func internal @{call.symbol}({arguments}) attributes "
        f'{{no_inline, sym_visibility = "private"}} {{\n'
        f"%many = llvm.mlir.constant({count} : i64) : i64\n"
        "%inputs = llvm.alloca %many x !llvm.ptr : (i64) -> !llvm.ptr\n"
        "%outputs = llvm.alloca %many x !llvm.ptr : (i64) -> !llvm.ptr\n"
        + "\n".join(stores)
        + f"\n%extents = llvm.mlir.addressof @{call.symbol}.extents : !llvm.ptr\n"
        f"%attrs = llvm.mlir.addressof @{call.symbol}.attrs : !llvm.ptr\n"
        + "\n".join(callee)
        + "\nllvm.return\n}",
    ]


def _table(symbol: str, numbers: list[int], bits: int) -> str:
    listing = ", ".join(map(str, numbers))
    return (
        f"llvm.mlir.global private constant @{symbol}(dense<[{listing}]> : tensor<{len(numbers)}xi{bits}>) "
        f": !llvm.array<{len(numbers)} x i{bits}>"
    )
