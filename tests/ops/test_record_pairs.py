"""Each example of each record between a product that makes its first operand and what reads its result.

So a new record is beside kinds of schedules by its examples alone. What moves elements is in
`tests/properties/test_pairs.py` at the sizes where tiles begin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest
from differences import difference
from harness import random_operands, uses_of

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ir.types import DType
from mind_mlir.numpy.generated import function_of
from mind_mlir.ops.example_types import dtypes_of
from mind_mlir.ops.opdef import Domain
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from differences import Array
    from harness import Use

    from mind_mlir.ops.opdef import OpDef

RECORDS = [
    record
    for record in all_ops()
    if record.examples and record.operands and record.opcode != "CustomCall" and not record.attribute("mesh")
]


def _product(x: Any) -> Any:
    return mnp.matmul(x, np.arange(-3, 3 * x.shape[-1] - 3, dtype=x.dtype).reshape(x.shape[-1], 3) % 4)


def _of_rows(x: Any) -> Any:
    return mnp.matmul(
        np.arange(2 * x.shape[0], dtype=x.dtype).reshape(2, -1) % 3, mnp.reshape(x, (x.shape[0], -1))
    )


def _softmax(x: Any) -> Any:
    shifted = mnp.exp(mnp.clip(x - mnp.max(x, axis=-1, keepdims=True), -9, 0))
    return shifted / mnp.sum(shifted, axis=-1, keepdims=True)


READERS = (
    _product,
    _of_rows,
    mnp.transpose,
    lambda x: mnp.sum(x, axis=-1),
    _softmax,
    lambda x: mnp.cumsum(x, axis=0),
)


def _beside(use: Use, number: int) -> Any:
    """Return what computes ``use`` of arrays, the first of which are factors of its first operand."""
    call = function_of(use.record.mnemonic, use.record)

    def computed(operands: Any) -> Any:
        if len(operands) > len(use.types):
            left, right, *rest = operands
            operands = [mnp.matmul(left, right), *rest]
        results = call(*operands, **use.attributes)
        read = []
        for result in results if isinstance(results, tuple) else (results,):
            reader = READERS[number % len(READERS)]
            fits = len(result.shape) and result.size and result.dtype in (np.float32, np.float64)
            read.append(reader(result) if fits else result)
        return read

    return computed


@pytest.mark.parametrize("record", [pytest.param(record, id=record.opcode) for record in RECORDS])
def test_examples_between_a_product_and_another_schedule(record: OpDef) -> None:
    allowed = dtypes_of(record)
    dtype = DType.F32 if DType.F32 in allowed else allowed[0]
    rng = np.random.default_rng(3)
    uses = [use for use in uses_of(record, dtype) if all(type_.element_count for type_ in use.types)]
    # Functions of arrays take floats of one dtype.
    uses = [use for use in uses if len({type_.dtype for type_ in use.types if type_.dtype.is_float}) < 2]
    given: list[list[Array]] = []
    for use in uses:
        operands = random_operands(use, rng)
        first = use.types[0]
        if record.operand(0).domain is Domain.ANY and first.dtype in (DType.F32, DType.SI32) and first.rank:
            *outer, last = first.extents
            factors = [(*outer, 3), (3, last)]
            whole = [rng.integers(-2, 3, shape).astype(first.dtype.numpy) for shape in factors]
            operands = [*whole, *operands[1:]]
        given.append(operands)

    def all_of(arguments: Any) -> Any:
        return [
            _beside(use, number)(each) for number, (use, each) in enumerate(zip(uses, arguments, strict=True))
        ]

    lowered = mind_mlir.jit(all_of).lower(given)
    executable = lowered.compile()
    arrays = [array for each in given for array in each]
    arguments = dict(zip((each.name for each in executable.parameters), arrays, strict=True))
    with np.errstate(all="ignore"):
        expected = mind_mlir.interpret(lowered.module, arguments)
    for number, results in enumerate(
        zip(guarded.call_executable(executable, arguments), expected, strict=True)
    ):
        found = difference(*results, 64)
        assert found is None, f"result {number}: {found}"
