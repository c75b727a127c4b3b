"""What is there without being declared: operations, constants and derivatives (surface.md, "Programs").

The names of operations are those of the `mind` dialect: ``matmul``, ``expand_dims``. Their tensors come
first, then their attributes, in the order of the record, or by name. Modules group them for `import`.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.ops.registry import all_ops
from mind_mlir.surface.elaboration.values import Builtin

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Operations that the language has other words for, or none.
_NOT_CALLED = {
    *("Input", "ConstI64", "ConstF32", "ConstF64", "ConstTensor", "Cond", "While", "Scan", "Call"),
    "CustomCall",
}
CONSTANTS = ("zeros", "ones", "full", "eye")
DERIVATIVES = ("grad", "vjp", "value_and_grad")
#: Other names of operations, as people write them.
_ALIASES = {"max": "Maximum", "min": "Minimum", "sigmoid": "Logistic", "pow": "Power", "where": "Select"}


@cache
def builtins() -> Mapping[str, Builtin]:
    """Return every built-in function by its name."""
    records = {record.opcode: record for record in all_ops() if record.opcode not in _NOT_CALLED}
    found = {record.mnemonic: Builtin(record.mnemonic, record) for record in records.values()}
    found |= {alias: Builtin(alias, records[opcode]) for alias, opcode in _ALIASES.items()}
    found |= {name: Builtin(name) for name in (*CONSTANTS, *DERIVATIVES)}
    return MappingProxyType(found)


@cache
def modules() -> Mapping[str, frozenset[str]]:
    """Return the modules that `import` knows, each with the names in it."""
    every = frozenset(builtins())
    derivatives = frozenset(DERIVATIVES)
    one = {name for name, found in builtins().items() if found.record and not found.record.attributes}
    return MappingProxyType({"tensor": every - derivatives, "math": frozenset(one), "diff": derivatives})
