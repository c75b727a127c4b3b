"""The registry of custom calls: what a backend adds to the contract (ptir-v0.4.md, "Custom calls").

A target has a name with a namespace and a version, ``name.space.op.v1``, attributes that are checked, a type
rule, an oracle in numpy, and how it is computed: an expansion into operations, through which gradients work,
or a C function. The same name means the same function for as long as the process lives.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ops.contract import MAP_KINDS
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import TensorType
    from mind_mlir.ir.value import Value
    from mind_mlir.mlir.context import LoweringContext
    from mind_mlir.ops.vjp import Appends

    #: From the types of the operands and the attributes to that of the result, or to those of several; raises
    #: a ValueError that says what is wrong with them.
    Types: TypeAlias = Callable[[Sequence[TensorType], Mapping[str, Any]], TensorType | Sequence[TensorType]]
    #: From the operands and the attributes to the result, or several.
    Oracle: TypeAlias = Callable[[Sequence[Array], Mapping[str, Any]], Array | Sequence[Array]]
    #: Appends operations to a builder and returns the result, or several.
    Expansion: TypeAlias = Callable[[Appends, Sequence[Value], Mapping[str, Any]], Value | Sequence[Value]]

_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)+\.v[1-9][0-9]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CustomAttribute:
    """One attribute of a target.

    Attributes:
        kind: One of the contract's: ``I64``, ``F64``, ``Bool``, ``String``, or one of these with ``Array``.
        doc: One line about it.
        default: Its value where it is left out; None where it must be given. An array is a tuple.
        choices: What it may be; empty for any value of its kind.
    """

    kind: str
    doc: str
    default: Any = None
    choices: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        argument_checks.choice(self.kind, tuple(MAP_KINDS), "kind")
        argument_checks.text(self.doc, "doc")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomTarget:
    """A target that a custom call may name.

    Attributes:
        name: For example ``mind.gelu.v1``.
        doc: What it computes, in a sentence.
        attributes: Its attributes, by name.
        types: The type rule.
        evaluate: The oracle: what the interpreter runs.
        expand: What it is made of; None for a C function.
        lower: The linalg rule of what is neither: an operation that only the compiler itself makes.
        address: Where the C function is; None for an expansion.
        keep: What holds the C function.
        typed: Whether that is told of its operands: an attribute ``types`` has, of each, dtype and rank.
    """

    name: str
    doc: str
    attributes: Mapping[str, CustomAttribute]
    types: Types
    evaluate: Oracle
    expand: Expansion | None = None
    address: int | None = None
    keep: object = field(default=None, repr=False)
    typed: bool = False
    lower: Callable[[LoweringContext, Mapping[str, Any]], Any] | None = None


_targets: dict[str, CustomTarget] = {}
#: What knows further targets by their names: those that are operations of records (`custom_library`).
finders: list[Callable[[str], CustomTarget | None]] = []


@public
def register_custom_call(
    target: str,
    *,
    types: Types,
    evaluate: Oracle,
    expand: Expansion | None = None,
    native: Any = None,
    attributes: Mapping[str, CustomAttribute] | None = None,
    doc: str = "",
) -> CustomTarget:
    """Make ``target`` known to all programs of this process.

    Args:
        target: A name with a namespace and a version: ``name.space.op.v1``.
        types: ``types(operands, attributes)`` returns the type of the result, or a sequence of those of
            several; a `ValueError` says what is wrong with the operands (E4311).
        evaluate: ``evaluate(operands, attributes)`` returns the result, or a sequence, as numpy arrays: what
            the interpreter runs, and what compiled code is tested against.
        expand: ``expand(builder, operands, attributes)`` appends operations and returns the value of the
            result, or a sequence. It must use operations with explicit broadcasting only.
        native: A C function, in the place of ``expand``: its address, or a function of `ctypes`. It is
            called as ``void f(const void *const *inputs, void *const *outputs, const int64_t *extents, const
            char *attrs)``, without the interpreter lock and from one thread at a time in a call, with dense
            arrays in row-major order that do not overlap where it writes; ``extents`` are those of the inputs
            and then of the outputs, one after the other, and ``attrs`` is the JSON text of the attributes.
            It must be pure: a function of inputs and attributes that changes nothing but its outputs.
        attributes: What it takes, by name; attributes that a call leaves out have their defaults.
        doc: What it computes, in a sentence.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: The name has no namespace or version, or is taken, or there is not either ``expand`` or
            ``native``.
    """
    name = argument_checks.text(target, "target")
    if not _NAME.fullmatch(name):
        raise ValueError(f"target must be a namespace and a version, as in a.b.op.v1, not {name!r}")
    if custom_target(name) is not None:
        raise ValueError(f"target must be new, but {name} is registered already: give it another version")
    if (expand is None) == (native is None):
        raise ValueError("target must be given either expand or native")
    for what, rule in (("types", types), ("evaluate", evaluate), ("expand", expand or types)):
        if not callable(rule):
            argument_checks.reject(what, "a function", rule)
    given = argument_checks.mapping({} if attributes is None else attributes, "attributes", "a mapping")
    found = {
        argument_checks.text(key, "each name in attributes"): argument_checks.expect(
            value, CustomAttribute, f"attributes[{key!r}]", "a CustomAttribute"
        )
        for key, value in given.items()
    }
    made = CustomTarget(
        name=name,
        doc=argument_checks.text(doc, "doc"),
        attributes=FrozenDict(found),
        types=types,
        evaluate=evaluate,
        expand=expand,
        address=None if native is None else _address(native),
        keep=native,
    )
    return _targets.setdefault(name, made)


def custom_target(name: str) -> CustomTarget | None:
    """Return the target called ``name``, or None."""
    found = _targets.get(name)
    return found or next((made for finder in finders if (made := finder(name)) is not None), None)


def custom_targets() -> tuple[str, ...]:
    """Return the names of all targets, in order."""
    return tuple(sorted(_targets))


def _address(native: Any) -> int:
    if hasattr(native, "argtypes"):  # a function of ctypes: its class has no public name
        try:
            native = ctypes.cast(native, ctypes.c_void_p).value
        except ctypes.ArgumentError:
            argument_checks.reject("native", "an address, or a function of ctypes", native)
    address = argument_checks.integer(native, "native")
    if not 0 < address < 2**64:
        raise ValueError(f"native must be an address, not {address}")
    return address
