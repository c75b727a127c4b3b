"""What XLA does where StableHLO leaves it open, or says something else: integers that do not fit, windows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.ir.elements import limits
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

INTEGERS = [dtype for dtype in DType if dtype.is_integer]
#: Factors of one dtype, or of two, and results that are wider, narrower or of another sign.
PRODUCTS = [
    *((dtype, dtype, result) for dtype, result in itertools.product(INTEGERS, INTEGERS) if dtype.bits > 4),
    (DType.SI8, DType.UI8, DType.SI32),
    (DType.UI8, DType.SI8, DType.SI32),
    (DType.SI16, DType.UI32, DType.UI64),
    (DType.SI4, DType.UI8, DType.UI16),
]


def spelled(dtype: DType) -> str:
    return str(dtype.value).replace("si", "i")


def integers(dtype: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Return random integers of ``dtype``, its least and its greatest ones among them."""
    least, greatest = limits(dtype)
    rng = np.random.default_rng(seed)
    kind = np.uint64 if least == 0 else np.int64
    found = rng.integers(least, greatest, shape, kind, endpoint=True)
    found.reshape(-1)[:2] = least, greatest
    return found.astype(dtype.numpy)


def kept(numbers: Array, dtype: DType) -> Array:
    """Return Python's integers, of which the lowest bits are kept, as those of ``dtype``."""
    least, _ = limits(dtype)
    low = (numbers - least) % 2**dtype.bits + least
    return np.array(low.tolist(), np.uint64 if least == 0 else np.int64).astype(dtype.numpy)


def whole(array: Array) -> Array:
    """Return integers as Python's, which have no limits."""
    return np.array([int(each) for each in array.reshape(-1)], object).reshape(array.shape)


def run(text: str, *arguments: Any) -> list[Array]:
    module = mind_mlir.from_stablehlo(text)
    names = [f"arg{number}" for number in range(len(arguments))]
    results = mind_mlir.compile(module)(*arguments)
    for one, other in zip(
        results, mind_mlir.interpret(module, dict(zip(names, arguments, strict=True))), strict=True
    ):
        assert one.tobytes() == other.tobytes()
    return list(results)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_keep_the_lowest_bits(dtype: DType) -> None:
    cases = [each for each in PRODUCTS if each[0] is dtype]
    if not cases:
        pytest.skip("no case has factors of this dtype on the left")
    parameters, lines, arguments = [], [], []
    for number, (left, right, result) in enumerate(cases):
        types = f"tensor<3x5x{spelled(left)}>", f"tensor<5x4x{spelled(right)}>"
        parameters += [f"%x{number}: {types[0]}", f"%y{number}: {types[1]}"]
        lines.append(
            f"%r{number} = stablehlo.dot_general %x{number}, %y{number}, contracting_dims = [1] x [0] : "
            f"({', '.join(types)}) -> tensor<3x4x{spelled(result)}>"
        )
        arguments += [integers(left, (3, 5), number), integers(right, (5, 4), number + 1)]
    results = [f"tensor<3x4x{spelled(result)}>" for _, _, result in cases]
    found = run(_function(parameters, lines, results), *arguments)
    for number, (_, _, result) in enumerate(cases):
        exact = whole(arguments[2 * number]) @ whole(arguments[2 * number + 1])
        np.testing.assert_array_equal(found[number], kept(exact, result))


@pytest.mark.parametrize("source", INTEGERS)
def test_conversions_keep_the_lowest_bits(source: DType) -> None:
    taken = f"tensor<40x{spelled(source)}>"
    lines = [
        f"%r{number} = stablehlo.convert %x : ({taken}) -> tensor<40x{spelled(dtype)}>"
        for number, dtype in enumerate(INTEGERS)
    ]
    argument = integers(source, (40,), 3)
    results = [f"tensor<40x{spelled(dtype)}>" for dtype in INTEGERS]
    found = run(_function([f"%x: {taken}"], lines, results), argument)
    for array, dtype in zip(found, INTEGERS, strict=True):
        np.testing.assert_array_equal(array, kept(whole(argument), dtype))


def _function(parameters: list[str], lines: list[str], results: list[str]) -> str:
    values = ", ".join(f"%r{number}" for number in range(len(lines)))
    types = ", ".join(results)
    body = "\n".join([*lines, f"return {values} : {types}"])
    return f"func.func @main({', '.join(parameters)}) -> ({types}) {{\n{body}\n}}"


WINDOWS = """
module @scatter {attributes} {{
  func.func @main(%x: tensor<7x5xi32>, %i: tensor<6x2x{index}>, %u: tensor<6x3x2xi32>) -> tensor<7x5xi32> {{
    %0 = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [1, 2], scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}}> ({{
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %1 : tensor<i32>
    }}) : (tensor<7x5xi32>, tensor<6x2x{index}>, tensor<6x3x2xi32>) -> tensor<7x5xi32>
    return %0 : tensor<7x5xi32>
  }}
}}
"""


@pytest.mark.parametrize("for_xla", [False, True])
@pytest.mark.parametrize("index", ["i32", "ui8", "i64", "ui64"])
def test_windows_that_are_partly_outside(index: str, for_xla: bool) -> None:
    """StableHLO's specification leaves out elements; XLA, and jax's documentation, whole windows."""
    attributes = "attributes {mhlo.num_partitions = 1 : i32}" if for_xla else ""
    text = WINDOWS.format(attributes=attributes, index=index)
    dtype = DType.from_name(index.replace("i", "si").replace("usi", "ui"))
    assert dtype is not None
    last = limits(dtype)[1]
    begins = [(0, 0), (3, 4), (4, 1), (2, 5), (1, last), (last, last)]
    if limits(dtype)[0]:
        begins[3:5] = [(-1, 2), (limits(dtype)[0], -2)]
    updates = np.arange(1, 37, dtype=np.int32).reshape(6, 3, 2)
    expected = np.zeros((7, 5), np.int32)
    for (column, row), window in zip(begins, updates, strict=True):
        if for_xla and not (0 <= row <= 4 and 0 <= column <= 3):
            continue
        for (down, right), update in np.ndenumerate(window):
            if 0 <= row + down < 7 and 0 <= column + right < 5:
                expected[row + down, column + right] += update
    indices = np.array(begins, np.uint64 if limits(dtype)[0] == 0 else np.int64).astype(dtype.numpy)
    (found,) = run(text, np.zeros((7, 5), np.int32), indices, updates)
    np.testing.assert_array_equal(found, expected)
