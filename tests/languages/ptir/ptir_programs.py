"""Programs of every operation, field and type that the formats know, as Hypothesis draws them.

They need not mean anything: types do not fit, values are not defined. The formats hold them all the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.languages.ptir.program import (
    Function,
    Instruction,
    Operation,
    Program,
    Region,
    TupleElement,
    ValueRef,
)
from mind_mlir.languages.ptir.schema import forms
from mind_mlir.ops.contract import MAP_KINDS, SCALAR_KINDS, FieldKind, Tagged
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.schema import OperationForm
    from mind_mlir.ops.contract import Field

FORMS = [form for variants in forms().values() for form in variants.values()]

_TEXTS = ["main", "é", 'a"b', "x3", "ax3", "\n", "B"]
IDS = st.integers(0, 40) | st.integers(0, 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["main", "é", 'a"b', "x3", "ax3", "\n", "B"]
)
NAMES = TEXTS.filter(bool)
FLOATS = st.floats(allow_nan=False) | st.just(math.nan)
INTEGERS = st.integers(-(2**63), 2**63 - 1)
DTYPES = st.sampled_from(DType)
DIMS: st.SearchStrategy[Any] = st.integers(0, 5) | st.integers(0, 2**63 - 1) | NAMES.map(SymbolicDim)
SHAPES = st.lists(DIMS, max_size=4).map(tuple)
TENSORS = st.builds(TensorType, DTYPES, SHAPES)
TYPES: st.SearchStrategy[Any] = st.recursive(
    TENSORS,
    lambda inner: st.lists(inner, max_size=3).map(lambda types: TupleType(tuple(types))),
    max_leaves=4,
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS | st.just("bytes"), inner, max_size=3),
    max_leaves=5,
)


@st.composite
def literals(draw: st.DrawFn) -> TensorLiteral:
    dtype, shape = draw(DTYPES), tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    type_ = TensorType(dtype, shape)
    elements = {DType.I1: st.integers(0, 1), DType.UI4: st.integers(0, 15)}.get(dtype, st.integers(0, 255))
    if dtype is DType.SI4:
        elements = st.integers(0, 15) | st.integers(248, 255)
    size = type_.element_count * dtype.itemsize
    if draw(st.booleans()):
        return TensorLiteral(type_, bytes([draw(elements)]) * size)
    return TensorLiteral(type_, bytes(draw(st.lists(elements, min_size=size, max_size=size))))


def _of_class(kind: type) -> st.SearchStrategy[Any]:
    if kind is complex:
        return st.builds(complex, st.floats(allow_nan=False), st.floats(allow_nan=False))
    return {int: INTEGERS, float: FLOATS, bool: st.booleans(), str: TEXTS}[kind]


def _scalars() -> st.SearchStrategy[Tagged]:
    kinds = {kind: _of_class(class_) for kind, class_ in SCALAR_KINDS.items()}
    kinds["Unsigned"] = st.integers(0, 2**64 - 1)
    return st.one_of([st.builds(Tagged, st.just(kind), values) for kind, values in kinds.items()])


def _maps() -> st.SearchStrategy[FrozenDict[str, Tagged]]:
    tagged = []
    for kind, class_ in MAP_KINDS.items():
        value = _of_class(class_)
        values = st.lists(value, max_size=3).map(tuple) if kind.endswith("Array") else value
        tagged.append(st.builds(Tagged, st.just(kind), values))
    return st.dictionaries(TEXTS, st.one_of(tagged), max_size=3).map(FrozenDict)


_KINDS: dict[FieldKind, st.SearchStrategy[Any]] = {
    FieldKind.BOOLEAN: st.booleans(),
    FieldKind.INTEGER: INTEGERS,
    FieldKind.OPTIONAL_INTEGER: st.none() | INTEGERS,
    FieldKind.INTEGERS: st.lists(INTEGERS, max_size=3).map(tuple),
    FieldKind.FLOAT: FLOATS,
    FieldKind.TEXT: TEXTS,
    FieldKind.DTYPE: DTYPES,
    FieldKind.OPTIONAL_DTYPE: st.none() | DTYPES,
    FieldKind.SHAPE: SHAPES,
    FieldKind.NEW_SHAPE: st.lists(st.none() | DIMS, max_size=4).map(tuple),
    FieldKind.PAIRS: st.lists(st.tuples(INTEGERS, INTEGERS), max_size=3).map(tuple),
    FieldKind.SCALAR: _scalars(),
    FieldKind.LITERAL: literals(),
    FieldKind.REGION: IDS,
    FieldKind.MAP: _maps(),
}


def field_values(field: Field) -> st.SearchStrategy[Any]:
    return st.sampled_from(field.choices) if field.kind is FieldKind.WORD else _KINDS[field.kind]


@st.composite
def operations(draw: st.DrawFn, form: OperationForm | None = None) -> Operation:
    chosen = form or draw(st.sampled_from(FORMS))
    fields = FrozenDict({field.name: draw(field_values(field)) for field in chosen.fields})
    return Operation(chosen.name, chosen.variant, fields)


OPERANDS = st.builds(ValueRef, IDS) | st.builds(TupleElement, IDS, IDS) | literals()


def instructions(form: OperationForm | None = None) -> st.SearchStrategy[Instruction]:
    return st.builds(Instruction, IDS, operations(form), st.lists(OPERANDS, max_size=3).map(tuple), TYPES)


BODIES = st.lists(instructions(), max_size=3).map(tuple)


@st.composite
def functions(draw: st.DrawFn, name: str) -> Function:
    parameters, results = (
        draw(st.lists(st.tuples(IDS, TYPES), max_size=3)),
        draw(st.lists(st.tuples(IDS, TYPES), max_size=3)),
    )
    return Function(
        name,
        tuple(type_ for _, type_ in parameters),
        tuple(id_ for id_, _ in parameters),
        draw(BODIES),
        tuple(type_ for _, type_ in results),
        tuple(id_ for id_, _ in results),
        draw(JSON),
    )


@st.composite
def programs(draw: st.DrawFn) -> Program:
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    types = st.lists(TYPES, max_size=3).map(tuple)
    regions = [
        draw(st.builds(Region, st.just(id_), types, BODIES, types))
        for id_ in draw(st.lists(IDS, max_size=2, unique=True))
    ]
    return Program(
        tuple(draw(functions(name)) for name in names), tuple(regions), draw(st.sampled_from(names))
    )
