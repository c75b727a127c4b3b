"""What is there without being declared: operations, constants and derivatives (surface.md, "Programs").

The names of operations are those of the `mind` dialect: ``matmul``, ``expand_dims``. Their tensors come
first, then their attributes, in the order of the record, or by name. Modules group them for `import`.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.registry import all_ops
from mind_mlir.surface.elaboration.values import Builtin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ops.opdef import AttributeDef, OpDef

#: Operations that the language has other words for, or none.
_NOT_CALLED = {
    *("Input", "ConstI64", "ConstF32", "ConstF64", "ConstTensor", "Cond", "While", "Scan", "Call"),
    "CustomCall",
}
CONSTANTS = ("zeros", "ones", "full", "eye")
DERIVATIVES = ("grad", "vjp", "value_and_grad")
#: Other names of operations, as people write them.
_ALIASES = {"max": "Maximum", "min": "Minimum", "sigmoid": "Logistic", "pow": "Power", "where": "Select"}
#: Names of operations with an attribute that is settled.
_PRESET = {"reduce_max": ("Reduce", {"kind": "Max"}), "reduce_min": ("Reduce", {"kind": "Min"})}


@cache
def builtins() -> Mapping[str, Builtin]:
    """Return every built-in function by its name."""
    records = {record.opcode: record for record in all_ops() if record.opcode not in _NOT_CALLED}
    found = {record.mnemonic: Builtin(record.mnemonic, record) for record in records.values()}
    found |= {alias: Builtin(alias, records[opcode]) for alias, opcode in _ALIASES.items()}
    found |= {name: Builtin(name, records[opcode], preset) for name, (opcode, preset) in _PRESET.items()}
    found |= {name: Builtin(name) for name in (*CONSTANTS, *DERIVATIVES)}
    return MappingProxyType(found)


def has_default(record: OpDef, attribute: AttributeDef) -> bool:
    """Return whether an attribute may be left out."""
    return attribute.default is not None or default(record, attribute, _SCALAR) is not None


def default(record: OpDef, attribute: AttributeDef, operand: TensorType) -> Any:
    """Return what the language takes for an attribute that is left out, and of which the record says nothing.

    As numpy does: all axes for reductions, those of extent 1 for ``squeeze``, the reverse order for
    ``transpose``, the dtype of the first operand for one that is accumulated in or given, i64 for indices.

    Args:
        record: The operation.
        attribute: The attribute.
        operand: The type of its first operand.
    """
    if attribute.name == "axes" and record.opcode == "Squeeze":
        return [axis for axis, extent in enumerate(operand.shape) if extent == 1]
    if attribute.name == "axes" and record.opcode in _ALL_AXES:
        return list(range(operand.rank)) if record.opcode not in ("Sum", "Mean") else []
    if attribute.name == "permutation":
        return list(reversed(range(operand.rank)))
    if attribute.name in ("accum_dtype", "out_dtype"):
        return operand.dtype
    return DType.SI64 if attribute.name in ("output_dtype", "indices_dtype") else None


_SCALAR = TensorType(DType.F32)
_ALL_AXES = ("Sum", "Mean", "Reduce", "ReduceProd", "ReduceBits")


@cache
def modules() -> Mapping[str, frozenset[str]]:
    """Return the modules that `import` knows, each with the names in it."""
    every = frozenset(builtins())
    derivatives = frozenset(DERIVATIVES)
    one = {name for name, found in builtins().items() if found.record and not found.record.attributes}
    return MappingProxyType({"tensor": every - derivatives, "math": frozenset(one), "diff": derivatives})
