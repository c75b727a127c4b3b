"""The contract's operations as its formats write them, from the `contract=` of the records.

An operation that a record adds is read and written in every format without a change here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from mind_mlir.ir.types import DType
from mind_mlir.ops.contract import Field, FieldKind
from mind_mlir.ops.registry import all_ops
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.program import Operation
    from mind_mlir.ops.opdef import OpDef

#: What optional fields may be left out for.
OPTIONAL = (FieldKind.OPTIONAL_INTEGER, FieldKind.OPTIONAL_DTYPE)
#: The word field that the compact text puts behind the operation's name: ``reduce_max``.
_KIND = "kind"
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

#: The names of dtypes in the JSON and display texts, such as ``Fp8E4M3``.
DTYPE_NAMES: Mapping[DType, str] = MappingProxyType(
    {
        dtype: head.capitalize() + tail
        for dtype, (head, _, tail) in ((dtype, dtype.name.partition("_")) for dtype in DType)
    }
)
#: Dtypes by these names.
DTYPES: Mapping[str, DType] = MappingProxyType({name: dtype for dtype, name in DTYPE_NAMES.items()})


def snake(name: str) -> str:
    """Return ``DotGeneral`` as ``dot_general``."""
    return _WORD_START.sub("_", name).lower()


@dataclass(frozen=True, slots=True)
class OperationForm:
    """The written form of one operation of the contract.

    Attributes:
        name: For example ``Reduce``, or ``ElementwiseUnary``, of which there is a form for each variant.
        variant: For example ``Exp``.
        fields: Those of its spec.
        spec: What the display text calls its fields together.
        record: The record that has it.
    """

    name: str
    variant: str | None
    fields: tuple[Field, ...]
    spec: str | None
    record: OpDef

    @property
    def literal(self) -> Field | None:
        """Return the field that is the whole spec, that of a constant."""
        return self.fields[0] if self.fields and self.fields[0].kind is FieldKind.LITERAL else None

    @property
    def kind(self) -> Field | None:
        """Return the word field that the compact text writes with the name."""
        return next((f for f in self.fields if f.name == _KIND and f.kind is FieldKind.WORD), None)


@cache
def forms() -> Mapping[str, Mapping[str | None, OperationForm]]:
    """Return every form by its operation's name and variant."""
    found: dict[str, dict[str | None, OperationForm]] = {}
    for record in all_ops():
        if contract := record.contract:
            form = OperationForm(contract.name, contract.variant, contract.fields, contract.spec, record)
            found.setdefault(contract.name, {})[contract.variant] = form
    return found


def form_of(name: str, variant: str | None) -> OperationForm | None:
    """Return the form of an operation, or None where no record has it."""
    return forms().get(name, {}).get(variant)


@cache
def compact_names() -> Mapping[str, tuple[OperationForm, str | None]]:
    """Return the names of the compact text: what form each is of, and the word of its kind."""
    found: dict[str, tuple[OperationForm, str | None]] = {}
    for variants in forms().values():
        for form in variants.values():
            base = snake(form.variant or form.name)
            if form.kind is None:
                found[base] = (form, None)
                continue
            for word in form.kind.choices:
                found[f"{base}_{snake(word)}"] = (form, word)
    return found


def known_form(operation: Operation) -> OperationForm:
    """Return the form of an operation that is to be written.

    Raises:
        ValueError: No record has it.
    """
    form = form_of(operation.name, operation.variant)
    if form is None:
        name = operation.name if operation.variant is None else f"{operation.name}({operation.variant})"
        raise ValueError(f"program must have operations of the contract, not {name}")
    return form
