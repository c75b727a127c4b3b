"""The predeclared names: operations, constants and derivatives (surface.md, "Programs").

The names of operations are those of the `mind` dialect: ``matmul``, ``expand_dims``. Their tensors come
first, then their attributes, in the order of the record, or by name. Modules group them for `import`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.mind.elaboration.values import Builtin
from mind_mlir.ops.registry import all_ops
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import AttributeDef, OpDef

CONSTANTS = ("zeros", "ones", "full", "eye")
DERIVATIVES = ("grad", "vjp", "value_and_grad")
#: What prints.
PRINT_NAME = "print"
#: Other names of operations, as people write them.
_ALIASES = {"max": "Maximum", "min": "Minimum", "sigmoid": "Logistic", "pow": "Power", "where": "Select"}
#: Names of operations with an attribute that is settled.
_PRESET = {"reduce_max": ("Reduce", {"kind": "Max"}), "reduce_min": ("Reduce", {"kind": "Min"})}


@cache
def builtins() -> Mapping[str, Builtin]:
    """Return every built-in function by its name."""
    records = {record.opcode: record for record in all_ops() if _is_called(record)}
    found = {record.mnemonic: Builtin(record.mnemonic, record) for record in records.values()}
    found |= {alias: Builtin(alias, records[opcode]) for alias, opcode in _ALIASES.items()}
    found |= {name: Builtin(name, records[opcode], preset) for name, (opcode, preset) in _PRESET.items()}
    found |= {name: Builtin(name) for name in (*CONSTANTS, *DERIVATIVES, PRINT_NAME)}
    return MappingProxyType(found)


def _is_called(record: OpDef) -> bool:
    """Return whether a name calls the operation: the language has literals, branches, loops and calls."""
    return record.in_dialect and not record.is_constant and (record.collective or not record.runs_others)


@dataclass(frozen=True, slots=True)
class Default:
    """The default of an attribute that may be left out and for which the record has no default.

    Attributes:
        words: What the reference says it is.
        of: The value, given the type of the first operand.
    """

    words: str
    of: Callable[[TensorType], Any]


_ALL = Default("all", lambda operand: list(range(operand.rank)))
_NONE = Default("all", lambda _: [])  # which mean all of them
_LIKE = Default("as the operand", lambda operand: operand.dtype)
_INDICES = Default("i64", lambda _: DType.SI64)

#: By operation and attribute, or by attribute alone.
_DEFAULTS: Mapping[tuple[str, str], Default] = {
    **{(opcode, "axes"): _NONE for opcode in ("Sum", "Mean")},
    **{(opcode, "axes"): _ALL for opcode in ("Reduce", "ReduceProd", "ReduceBits")},
    ("Squeeze", "axes"): Default(
        "those of extent 1", lambda operand: [at for at, extent in enumerate(operand.shape) if extent == 1]
    ),
    ("Transpose", "permutation"): Default("reversed", lambda operand: list(reversed(range(operand.rank)))),
    ("Conv2d", "strides"): Default("[1, 1]", lambda _: [1, 1]),
    ("Conv2d", "padding"): Default("Same", lambda _: "Same"),
    **{("", name): _LIKE for name in ("accum_dtype", "out_dtype")},
    **{("", name): _INDICES for name in ("output_dtype", "indices_dtype")},
}


def default(record: OpDef, attribute: AttributeDef) -> Default | None:
    """Return what the language takes for an attribute that is left out; None where it must be given."""
    if record.opcode in ("Quantize", "Dequantize", "Requantize"):
        return None
    return _DEFAULTS.get((record.opcode, attribute.name)) or _DEFAULTS.get(("", attribute.name))


@cache
def modules() -> Mapping[str, frozenset[str]]:
    """Return the modules that `import` knows, each with the names in it."""
    every = frozenset(builtins())
    derivatives = frozenset(DERIVATIVES)
    one = {name for name, found in builtins().items() if found.record and not found.record.attributes}
    return MappingProxyType({"tensor": every - derivatives, "math": frozenset(one), "diff": derivatives})
