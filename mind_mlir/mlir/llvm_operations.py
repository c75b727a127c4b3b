"""Operations of the LLVM dialect, which the bindings have classes for that take 20 ms to load."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Attribute, Operation, Type, Value

CALL, SHUFFLE = "llvm.call", "llvm.shufflevector"


def _create(
    name: str, results: Sequence[Type] = (), operands: Sequence[Value] = (), **attributes: Attribute
) -> Operation:
    return ir.Operation.create(name, list(results), list(operands), attributes=attributes)


def _called(operands: Sequence[Value]) -> dict[str, Attribute]:
    """Return the attributes of a call that has operands, and no bundles of others."""
    return {
        "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
    }


def function(name: str, type_: Type, *, private: bool = False) -> Operation:
    """Append the declaration of a function."""
    attributes = {"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(type_)}
    if private:
        attributes["sym_visibility"] = ir.StringAttr.get("private")
    return ir.Operation.create("llvm.func", attributes=attributes, regions=1)


def call(callee: str, operands: Sequence[Value], *results: Type) -> Operation:
    """Append the call of a function."""
    return _create(CALL, results, operands, callee=ir.FlatSymbolRefAttr.get(callee), **_called(operands))


def call_intrinsic(name: str, operand: Value, result: Type) -> Value:
    """Append the call of an intrinsic of LLVM."""
    return _create(
        "llvm.call_intrinsic", [result], [operand], intrin=ir.StringAttr.get(name), **_called([operand])
    ).result


def give_back() -> None:
    """Append the end of a function that returns nothing."""
    _create("llvm.return")


def load(type_: Type, address: Value) -> Value:
    """Append a load."""
    return _create("llvm.load", [type_], [address]).result


def store(value: Value, address: Value) -> None:
    """Append a store."""
    _create("llvm.store", (), [value, address])


def element(address: Value, places: Sequence[int], type_: Type) -> Value:
    """Append the address of what is at ``places``, numbers, of what is of ``type_`` at ``address``."""
    return _create(
        "llvm.getelementptr",
        [address.type],
        [address],
        rawConstantIndices=ir.DenseI32ArrayAttr.get(list(places)),
        elem_type=ir.TypeAttr.get(type_),
    ).result


def stack_memory(count: Value, type_: Type, pointer: Type) -> Value:
    """Append memory on the stack for so many elements of ``type_``."""
    return _create("llvm.alloca", [pointer], [count], elem_type=ir.TypeAttr.get(type_)).result


def address_of(symbol: str, pointer: Type) -> Value:
    """Append the address of a function or variable."""
    return _create("llvm.mlir.addressof", [pointer], global_name=ir.FlatSymbolRefAttr.get(symbol)).result


def constant(type_: Type, value: int) -> Value:
    """Append an integer."""
    return _create("llvm.mlir.constant", [type_], value=ir.IntegerAttr.get(type_, value)).result


def zero(type_: Type) -> Value:
    """Append the zero of a type, null for a pointer."""
    return _create("llvm.mlir.zero", [type_]).result


def equal(left: Value, right: Value) -> Value:
    """Append the comparison of two integers or pointers."""
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    return _create("llvm.icmp", [ir.IntegerType.get_signless(1)], [left, right], predicate=predicate).result


def select(condition: Value, then: Value, otherwise: Value) -> Value:
    """Append the choice of one of two values."""
    return _create("llvm.select", [then.type], [condition, then, otherwise]).result


def bitcast(type_: Type, value: Value) -> Value:
    """Append the bits of ``value`` as another type."""
    return _create("llvm.bitcast", [type_], [value]).result


def fence() -> None:
    """Append a fence between what a thread accesses before and afterwards, for all others to see."""
    sequential = 7  # `AtomicOrdering.seq_cst`
    _create("llvm.fence", ordering=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), sequential))
