"""How PTIR writes the records: names are given once, fields are attributes, rules are inverses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from mind_mlir.diagnostics import UnsupportedError, VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.contract import Contract, FieldKind, Tagged, tagged_scalar
from mind_mlir.ops.registry import all_ops, by_opcode

if TYPE_CHECKING:
    from mind_mlir.ops.opdef import OpDef

WITH_CONTRACT = [record for record in all_ops() if record.contract]


def contract(opcode: str) -> Contract:
    found = by_opcode()[opcode].contract
    assert found is not None
    return found


def test_names_are_given_once() -> None:
    names = [(record.contract.name, record.contract.variant) for record in WITH_CONTRACT if record.contract]
    assert len(names) == len(set(names))
    families = {name for name, variant in names if variant}
    assert not families & {name for name, variant in names if not variant}


@pytest.mark.parametrize("record", WITH_CONTRACT, ids=lambda record: record.opcode)
def test_fields_are_attributes_or_have_rules(record: OpDef) -> None:
    assert record.contract is not None
    fields, known = record.contract.fields, {a.name for a in record.attributes}
    assert (record.contract.read is None) == (record.contract.write is None)
    assert all(bool(field.choices) == (field.kind is FieldKind.WORD) for field in fields)
    regions = [field.attribute or field.name for field in fields if field.kind is FieldKind.REGION]
    assert regions == [region.name for region in record.regions]
    if record.contract.read is None:
        named = {field.attribute or field.name for field in fields if field.kind is not FieldKind.REGION}
        assert named == known


@pytest.mark.parametrize(
    ("opcode", "fields", "operands", "attributes"),
    [
        ("Reshape", {"new_shape": (2, None)}, ["f32", (6,)], {"new_shape": (2, -1)}),
        (
            "Slice",
            {"starts": (1, 0), "sizes": (2, 3)},
            ["f32", (4, 3)],
            {"starts": (1, 0), "ends": (3, 3), "steps": (1, 1)},
        ),
        (
            "Pad",
            {"low": (1,), "high": (0,), "interior": (2,), "pad_value": Tagged("Signed", -3)},
            ["si8", (4,)],
            {"low": (1,), "high": (0,), "interior": (2,), "pad_value": TensorLiteral.of(-3, DType.SI8)},
        ),
        (
            "ConstTensor",
            {"value": TensorLiteral.of([1.5], DType.BF16)},
            None,
            {"value": TensorLiteral.of([1.5], DType.BF16), "dtype": DType.BF16, "shape": (1,)},
        ),
    ],
)
def test_rules_are_each_others_inverse(opcode: str, fields: Any, operands: Any, attributes: Any) -> None:
    rules, types = contract(opcode), [TensorType(*operands)] if operands else []
    assert rules.read is not None
    assert rules.write is not None
    assert rules.read(fields, types) == attributes
    assert rules.write(attributes, types) == fields


def test_update_says_its_sizes_again() -> None:
    rules = contract("DynamicUpdateSlice")
    types = [TensorType(DType.F32, (4, 4)), TensorType(DType.F32, (1, 4)), TensorType(DType.SI32, (2,))]
    assert rules.read is not None
    assert rules.write is not None
    assert rules.write({}, types) == {"sizes": (1, 4)}
    assert rules.read({"sizes": (1, 4)}, types) == {}
    with pytest.raises(VerificationError, match=r"sizes \[2, 4\], but an update of shape \[1, 4\]") as caught:
        rules.read({"sizes": (2, 4)}, types)
    assert caught.value.code == "E3003"


@pytest.mark.parametrize(
    ("starts", "sizes", "code"),
    [
        ((1,), (2, 2), "E4007"),
        ((-1, 0), (1, 1), "E4123"),
        ((0, 0), (-1, 1), "E4123"),
        ((3, 0), (2, 1), "E4123"),
    ],
)
def test_windows_of_slice_fit(starts: tuple[int, ...], sizes: tuple[int, ...], code: str) -> None:
    rules = contract("Slice")
    assert rules.read is not None
    with pytest.raises(VerificationError) as caught:
        rules.read({"starts": starts, "sizes": sizes}, [TensorType(DType.F32, (4, 3))])
    assert caught.value.code == code


def test_what_ptir_cannot_say() -> None:
    rules = contract("Slice")
    assert rules.write is not None
    attributes = {"starts": (3,), "ends": (-5,), "steps": (-1,)}
    with pytest.raises(UnsupportedError, match="PTIR cannot say Slice with steps other than 1"):
        rules.write(attributes, [TensorType(DType.F32, (4,))])


@pytest.mark.parametrize(
    ("value", "dtype", "scalar"),
    [
        (True, DType.I1, Tagged("I1", True)),
        (-8, DType.SI4, Tagged("Signed", -8)),
        (255, DType.UI8, Tagged("Unsigned", 255)),
        (0.5, DType.FP8_E4M3, Tagged("Float", 0.5)),
        (float("nan"), DType.F64, Tagged("Float", math.nan)),
        (1 + 2j, DType.CF64, Tagged("Complex", 1 + 2j)),
    ],
)
def test_scalars_have_the_kind_of_their_dtype(value: Any, dtype: DType, scalar: Tagged) -> None:
    assert tagged_scalar(TensorLiteral.of(value, dtype)) == scalar
