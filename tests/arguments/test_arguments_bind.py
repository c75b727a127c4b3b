"""What compiled code is given: `bind` on plain arrays, without compiling anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir import ArgumentError, DType, TensorType
from mind_mlir.arguments.tensors import address, bind
from mind_mlir.ir.interface import Parameter

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

X = Parameter("x", TensorType(DType.F32, (4, 6)))


def bound(value: object, type_: TensorType = X.type) -> Array:
    """Return what one argument becomes, however it is given."""
    parameter = Parameter("x", type_)
    (array,) = bind([parameter], [value], {})
    (named,) = bind([parameter], [], {"x": value})
    assert array.tobytes() == named.tobytes()
    for each in (array, named):
        assert each.flags.c_contiguous
        assert each.flags.aligned
        assert each.dtype == type_.dtype.numpy
        assert each.shape == type_.shape
    return array


def misaligned() -> Array:
    return np.zeros(24 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(4, 6)


@pytest.mark.parametrize(
    "given",
    [
        np.ones((6, 4), np.float32).T,
        np.ones((4, 12), np.float32)[:, ::2],
        np.ones((4, 6), np.float32)[::-1],
        misaligned(),
        np.broadcast_to(np.float32(3), (4, 6)),
    ],
    ids=["transposed", "strided", "reversed", "misaligned", "broadcast"],
)
def test_other_layouts_are_copied(given: Array) -> None:
    array = bound(given)
    assert not np.shares_memory(array, given)
    np.testing.assert_array_equal(array, given)


def test_what_fits_is_passed_as_it_is() -> None:
    given = np.ones((4, 6), np.float32)
    assert bound(given) is given
    given.setflags(write=False)
    assert bound(given) is given


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DType.SI32, 2**31 - 1),
        (DType.SI32, -(2**31)),
        (DType.SI64, 2**63 - 1),
        (DType.SI64, -(2**63)),
        (DType.I1, True),
        (DType.F32, 3),
        (DType.F32, 2.5),
        (DType.F64, -(2**70)),
        (DType.F32, float("-inf")),
    ],
)
def test_python_numbers_that_fit(dtype: DType, value: Any) -> None:
    assert bound(value, TensorType(dtype)).item() == value


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (DType.SI32, 2**31),
        (DType.SI32, -(2**31) - 1),
        (DType.SI64, 2**63),
        (DType.SI64, -(2**63) - 1),
        (DType.SI32, 1.0),
        (DType.SI32, True),
        (DType.F32, True),
        (DType.F32, 1e300),
        (DType.F64, 10**400),
        (DType.F32, 1j),
        (DType.I1, 1),
    ],
)
def test_python_numbers_that_do_not_fit(dtype: DType, value: Any) -> None:
    with pytest.raises(ArgumentError) as caught:
        bind([Parameter("x", TensorType(dtype))], [value], {})
    (finding,) = caught.value.diagnostics
    assert finding.code in ("E6103", "E6105")
    assert "'x'" in finding.message


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), ()])
@pytest.mark.parametrize("writeable", [True, False])
def test_addresses(shape: tuple[int, ...], writeable: bool) -> None:
    array = np.zeros(shape, np.float32)
    array.setflags(write=writeable)
    assert address(array) == array.ctypes.data


Y = Parameter("y", TensorType(DType.SI64, (2,)))
GOOD_X, GOOD_Y = np.ones((4, 6), np.float32), np.array([1, 2])


@pytest.mark.parametrize(
    ("positional", "named", "codes"),
    [
        ([GOOD_X], {}, ["E6101"]),
        ([], {"y": GOOD_Y}, ["E6101"]),
        ([], {}, ["E6101", "E6101"]),
        ([GOOD_X, GOOD_Y, GOOD_Y], {}, ["E6102"]),
        ([GOOD_X, GOOD_Y], {"z": GOOD_Y}, ["E6102"]),
        ([GOOD_X, GOOD_Y], {"y": GOOD_Y}, ["E6102"]),
        ([], {"x": GOOD_X, "z": GOOD_Y}, ["E6102", "E6101"]),
        ([GOOD_X.astype(np.float64), GOOD_Y], {}, ["E6103"]),
        ([GOOD_X.astype(">f4"), GOOD_Y], {}, ["E6103"]),
        ([GOOD_X, GOOD_Y.astype(np.int32)], {}, ["E6103"]),
        ([GOOD_X.T, GOOD_Y], {}, ["E6104"]),
        ([GOOD_X[:3], GOOD_Y], {}, ["E6104"]),
        ([GOOD_X[None], GOOD_Y], {}, ["E6104"]),
        ([GOOD_X[:0], GOOD_Y], {}, ["E6104"]),
        ([GOOD_X, GOOD_Y[:1]], {}, ["E6104"]),
        ([GOOD_X.T.astype(np.int64), GOOD_Y], {}, ["E6103", "E6104"]),
        (["x", GOOD_Y], {}, ["E6105"]),
        ([GOOD_X.astype(object), GOOD_Y], {}, ["E6105"]),
        ([None, GOOD_Y], {}, ["E6105"]),
        ([], {"x": None, "y": GOOD_Y}, ["E6105"]),
        ([[[1.0], [1.0, 2.0]], GOOD_Y], {}, ["E6105"]),
        ([2**2000, GOOD_Y], {}, ["E6105"]),
    ],
)
def test_calls_that_do_not_fit(positional: list[Any], named: dict[str, Any], codes: list[str]) -> None:
    with pytest.raises(ArgumentError) as caught:
        bind([X, Y], positional, named)
    assert [finding.code for finding in caught.value.diagnostics] == codes


def test_arguments_by_position_and_by_name() -> None:
    calls: list[tuple[list[Any], dict[str, Any]]] = [
        ([GOOD_X, GOOD_Y], {}),
        ([GOOD_X], {"y": GOOD_Y}),
        ([], {"y": GOOD_Y, "x": GOOD_X}),
        ([], {"y": [1, 2], "x": GOOD_X}),
    ]
    for positional, named in calls:
        x, y = bind([X, Y], positional, named)
        np.testing.assert_array_equal(x, GOOD_X)
        np.testing.assert_array_equal(y, GOOD_Y)
    assert bind([], [], {}) == []
