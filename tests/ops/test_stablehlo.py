"""Every operation and dtype that StableHLO can express gives what its reference interpreter gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import harness
import numpy as np
import pytest
from stablehlo_interpreter import Interpreter
from stablehlo_programs import WRITERS, program, spelled, stored

from mind_mlir.ir.types import DType, DTypeKind, TensorType
from mind_mlir.ops.contexts import TypeContext
from mind_mlir.ops.infer import infer_type, normal_attributes
from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.registry import by_opcode
from mind_mlir.profiles import ANY_PROFILE, CORE_V1

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Use

    from mind_mlir.ops.opdef import OpDef

Array = np.ndarray[Any, np.dtype[Any]]


def _is_comparable(record: OpDef, dtype: DType | None) -> bool:
    """Return whether the interpreter computes it as we do: it ends the process on complex arrays."""
    if dtype is None or dtype.kind is DTypeKind.COMPLEX:
        return dtype is None
    if record.opcode == "Abs" and dtype.kind is DTypeKind.UNSIGNED:
        return False  # StableHLO has none
    # A scatter of StableHLO rounds after each addition, ours once.
    return not (record.opcode == "ScatterAdd" and dtype.is_float and dtype.bits < 32)


CASES = [
    pytest.param(record, dtype, id=f"{record.opcode}-{dtype.value if dtype else 'fixed'}")
    for record in map(by_opcode().get, WRITERS)
    if record is not None
    for dtype in harness.dtypes_of(record)
    if _is_comparable(record, dtype)
]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[Interpreter]:
    with Interpreter() as running:
        yield running


@pytest.mark.parametrize(("record", "dtype"), CASES)
def test_equal_to_the_interpreter(record: OpDef, dtype: DType | None, interpreter: Interpreter) -> None:
    rng = np.random.default_rng(17)
    uses = [use for use in harness.uses_of(record, dtype) if not any(0 in t.extents for t in use.types)]
    uses = [
        use
        for use in uses
        if all(_is_comparable(record, each.dtype) for each in use.types)
        and _is_comparable(record, use.attributes.get("dtype"))
    ]
    if dtype is not None and dtype not in CORE_V1.dtypes:
        uses = uses[:2]  # what shapes do is the same in all dtypes
    operands = [_operands(use, rng) for use in uses]
    for use, arrays, found in zip(uses, operands, harness.compile_uses(uses)(operands), strict=True):
        context = TypeContext(record.opcode, 0, use.types, use.attributes, profile=ANY_PROFILE)
        result = infer_type(record, context)
        assert result is not None
        attributes = normal_attributes(record, context.attributes, result)
        text = program(record.opcode, use.types, attributes, result)
        given = [
            (_stored(array), spelled(stored(type_))) for array, type_ in zip(arrays, use.types, strict=True)
        ]
        (raw,) = interpreter.run(text, given)
        expected = _restored(np.asarray(raw), result)
        try:
            harness.assert_agrees(record, found, expected, arrays, context.attributes)
        except AssertionError as error:
            error.add_note(f"in {use}\n{text}")
            raise


def _operands(use: Use, rng: np.random.Generator) -> list[Array]:
    """Return operands for which StableHLO says what comes out: indices in range, numbers that fit."""
    arrays = harness.random_operands(use, rng)
    if use.record.opcode == "Cast":
        return [np.abs(array).clip(0, 6).astype(array.dtype) for array in arrays]
    for index, operand in enumerate(use.record.operands):
        if operand.domain is Domain.INDEX or (operand.domain is Domain.WINDOW and use.attributes["from_end"]):
            arrays[index] = np.abs(arrays[index]) % use.types[0].extents[0]
    return [np.asarray(array, type_.dtype.numpy) for array, type_ in zip(arrays, use.types, strict=True)]


def _stored(array: Array) -> Array:
    dtype = DType.from_numpy(array.dtype)
    assert dtype is not None
    target = stored(TensorType(dtype)).dtype
    if dtype.bits == 4:
        return array.astype(target.numpy)
    return np.ascontiguousarray(array).view(target.numpy) if target is not dtype else array


def _restored(array: Array, type_: TensorType) -> Array:
    dtype = type_.dtype
    if dtype.bits == 4:
        return array.astype(dtype.numpy)
    if dtype.is_float or dtype.kind is DTypeKind.UNSIGNED:
        return np.ascontiguousarray(array).view(dtype.numpy).reshape(type_.extents)
    return array
