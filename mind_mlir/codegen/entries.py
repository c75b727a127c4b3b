"""The entries of a module: what callers of compiled code call (see `mind_mlir.target.abi`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.debug_info import describe_entry
from mind_mlir.mlir import llvm_operations
from mind_mlir.mlir.bindings import ir, llvm
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.abi import ENTRY_PREFIX, SCRATCH_ATTRIBUTE, TABLE_ATTRIBUTE

if TYPE_CHECKING:
    from mind_mlir.mlir.bindings import Module, Operation

#: What an entry has of its function: for another processor, neither could be a part of the other.
_SHARED = ("target_cpu", "target_features", "tune_cpu")
#: A function of more operations stays apart from its entry.
_MOST_COPIED = 1000


@dataclass(frozen=True, slots=True)
class EntrySignature:
    """The signature by which a function is called.

    Attributes:
        symbol: What the image calls its entry.
        pointers: How many addresses the table holds before that of the scratch arena.
        scratch_bytes: The size of the arena.
    """

    symbol: str
    pointers: int
    scratch_bytes: int


def add_entries(module: Module) -> dict[str, EntrySignature]:
    """Give each public function of a module an entry, in place; only these can be called from outside then.

    Args:
        module: A module of the LLVM dialect, as `to_llvm` leaves it.

    Returns:
        How the functions are called, by their names in the module.
    """
    public = [op for op in module.body.operations if is_public(op)]
    with module.context, ir.Location.unknown():
        internal = ir.Attribute.parse("#llvm.linkage<internal>")
        for op in public:
            op.attributes["linkage"] = internal
        return {str(op.attributes["sym_name"].value): _add_entry(module, op) for op in public}


def join_entry(module: Module, signatures: dict[str, EntrySignature]) -> None:
    """Make the function of a module a part of its entry, where there is one function and it is not too long.

    Each function of machine code takes LLVM half a millisecond. Where other functions may call it, or it
    is described for debuggers, it stays as it is.

    Args:
        module: A module with its entries, which LLVM's passes are not to optimise: these would decide.
        signatures: What `add_entries` returned.
    """
    if len(signatures) != 1:
        return
    function = next((op for op in module.body.operations if _name(op) in signatures), None)
    if function is None or sum(len(block.operations) for block in function.regions[0].blocks) > _MOST_COPIED:
        return
    with module.context:
        function.attributes["always_inline"] = ir.UnitAttr.get()
    if "no_inline" in function.attributes:
        del function.attributes["no_inline"]


def _name(op: Operation) -> str:
    return str(op.attributes["sym_name"].value) if "sym_name" in op.attributes else ""


def is_public(op: Operation) -> bool:
    """Return whether ``op``, of a module of the LLVM dialect, is a function for callers, with a body."""
    return (
        op.operation.name == "llvm.func"
        and bool(op.regions[0].blocks)
        and "sym_visibility" not in op.attributes
        and str(op.attributes["linkage"]) == "#llvm.linkage<external>"
    )


def _add_entry(module: Module, function: Operation) -> EntrySignature:
    name, own = _name(function), function.attributes
    shared = module.operation.attributes
    scratch = own[SCRATCH_ATTRIBUTE] if SCRATCH_ATTRIBUTE in own else shared[SCRATCH_ATTRIBUTE]
    pointer, symbol = llvm.PointerType.get(), f"{ENTRY_PREFIX}{name}"
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "function_type": ir.TypeAttr.parse("!llvm.func<void (ptr)>"),
        "linkage": own["linkage"],
        **{each: own[each] for each in _SHARED if each in own},
    }
    with ir.InsertionPoint(module.body):
        entry = ir.Operation.create("llvm.func", attributes=attributes, regions=1)
    block = entry.regions[0].blocks.append(pointer)
    with ir.InsertionPoint(block):
        if TABLE_ATTRIBUTE in own:
            pointers, values = int(ir.IntegerAttr(own[TABLE_ATTRIBUTE]).value), [block.arguments[0]]
        else:
            pointers = len(function.regions[0].blocks[0].arguments)
            values = [_value(block.arguments[0], place) for place in range(pointers)]
        llvm_operations.call(name, values)
        llvm_operations.give_back()
    describe_entry(entry, function)
    return EntrySignature(symbol, pointers - 1, int(ir.IntegerAttr(scratch).value))


def _value(table: ir.Value, place: int) -> ir.Value:
    pointer = llvm.PointerType.get()
    return llvm_operations.load(pointer, llvm_operations.element(table, [place], pointer))
