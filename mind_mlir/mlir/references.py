"""Large literals that MLIR knows by name only.

An attribute that holds data is copied, hashed and compared by MLIR, once a stage. Inside of
`References.offered`, literals of a megabyte and more become `dense_resource` attributes without data instead;
the data stays where it is, in the module in memory, and the engine is told its address.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.ir.types import DType
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mind_mlir.ir.attributes import TensorLiteral
    from mind_mlir.mlir.bindings import Attribute, Type

#: Literals of at least this many bytes are given by name. Smaller ones are worth a copy that is aligned.
LARGE = 1 << 20
_NAME = re.compile(r"dense_resource<(\w+)>")
_SAMPLE = 64


class References:
    """The literals of one compilation that MLIR knows by name."""

    def __init__(self) -> None:
        self._literals: dict[str, TensorLiteral] = {}
        self._aligned: set[str] = set()

    @contextmanager
    def offered(self) -> Iterator[None]:
        """Let `reference` make names during the block."""
        token = _offered.set(self)
        try:
            yield
        finally:
            _offered.reset(token)

    def add(self, literal: TensorLiteral, type_: Type, *, aligned: bool = False) -> Attribute:
        """Return an attribute of ``type_``, a tensor type, that stands for ``literal``.

        Where ``aligned``, compiled code reads an aligned copy, which takes its place.
        """
        attribute = ir.Attribute.parse(f"dense_resource<literal> : {type_}")
        self._literals[_name(attribute)] = literal
        if aligned:
            self._aligned.add(_name(attribute))
        return attribute

    def is_aligned(self, attribute: Attribute) -> bool:
        """Return whether compiled code reads an aligned copy of what ``attribute`` stands for."""
        return _name(attribute) in self._aligned

    def literal(self, attribute: Attribute) -> TensorLiteral | None:
        """Return what ``attribute`` stands for, or None if it is no reference."""
        if isinstance(attribute, ir.DenseElementsAttr):
            return None  # all its data would be in the message of the error below
        try:
            return self._literals.get(_name(ir.DenseResourceElementsAttr(attribute)))
        except ValueError:
            return None


_offered: ContextVar[References | None] = ContextVar("offered", default=None)


def reference(literal: TensorLiteral, type_: Type, *, aligned: bool = False) -> Attribute | None:
    """Return an attribute that stands for ``literal``, as `References.add`; None if its data is wanted."""
    references = _offered.get()
    if references is None or len(literal.data) < LARGE or _may_be_splat(literal):
        return None
    if literal.type.dtype is DType.SI4:
        return None  # compiled code reads these from bytes whose upper half follows from the lower one
    return references.add(literal, type_, aligned=aligned)


def is_compiling() -> bool:
    """Return whether this is inside of `References.offered`: all literals come from a module in memory."""
    return _offered.get() is not None


def referenced(attribute: Attribute) -> TensorLiteral | None:
    """Return the literal that ``attribute`` stands for, or None if it is no reference."""
    references = _offered.get()
    return None if references is None else references.literal(attribute)


def _name(attribute: Attribute) -> str:
    found = _NAME.match(str(attribute))
    assert found is not None, "a reference is printed as its name"
    return found[1]


def _may_be_splat(literal: TensorLiteral) -> bool:
    """Return whether all elements may be the same: MLIR makes one number of such data."""
    data = np.frombuffer(literal.data, np.uint8).reshape(-1, literal.type.dtype.itemsize)[:_SAMPLE]
    return bool((data == data[0]).all())
