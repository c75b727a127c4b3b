"""Reshape, ExpandDims, Squeeze, Transpose, BroadcastTo: numpy rules, rejections, derivatives."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from harness import Use, compile_uses
from hypothesis import given
from hypothesis import strategies as st
from linear_harness import DTYPES, check_adjoint, f32, integers, ramp, rejection, run

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.ops.reassociation import common_groups
from mind_mlir.ops.registry import by_opcode
from mind_mlir.ops.reshaping import inserted_axes

shapes = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_keeps_its_bits(dtype: Any) -> None:
    x = ramp(2, 3, 1, dtype=dtype)
    np.testing.assert_array_equal(run("Reshape", x, new_shape=(3, -1)), x.reshape(3, 2))
    np.testing.assert_array_equal(run("Transpose", x, permutation=(1, 2, 0)), x.transpose(1, 2, 0))
    np.testing.assert_array_equal(run("ExpandDims", x, axes=(0, 2)), x[None, :, None])
    np.testing.assert_array_equal(run("Squeeze", x, axes=(2,)), x[:, :, 0])
    np.testing.assert_array_equal(run("BroadcastTo", x, result_shape=(2, 3, 4)), x.repeat(4, axis=2))


def test_nan_payload_and_negative_zero_survive() -> None:
    x = np.array([0x7FC01234, 0x80000000, 0xFF812345, 1], np.uint32).view(np.float32)
    for result in (
        run("Reshape", x, new_shape=(2, 2)),
        run("Transpose", x.reshape(1, 4), permutation=(1, 0)),
        run("BroadcastTo", x, result_shape=(1, 4)),
    ):
        assert result.tobytes() == x.tobytes()


@pytest.mark.parametrize(
    ("shape", "new_shape", "expected"),
    [
        ((4, 6), (2, 12), (2, 12)),
        ((4, 6), (-1,), (24,)),
        ((4, 6), (3, -1, 2), (3, 4, 2)),
        ((), (1, 1), (1, 1)),
        ((), (-1,), (1,)),
        ((1, 1), (), ()),
    ],
)
def test_reshape(shape: tuple[int, ...], new_shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    x = ramp(*shape)
    np.testing.assert_array_equal(run("Reshape", x, new_shape=new_shape), x.reshape(expected))


def test_reshape_of_nothing_infers_zero() -> None:
    assert run("Reshape", ramp(0, 3), new_shape=(-1,)).shape == (0,)
    assert run("Reshape", ramp(0, 3), new_shape=(5, -1)).shape == (5, 0)


@pytest.mark.parametrize(
    ("shape", "new_shape", "code"),
    [
        ((4, 6), (5, 5), "E3007"),
        ((4, 6), (5, -1), "E3007"),
        ((4, 6), (), "E3007"),
        ((0, 3), (3,), "E3007"),
        ((4, 6), (-1, -1), "E3006"),
        ((4, 6), (24, 0), "E3006"),
        ((4, 6), (-2, 12), "E3006"),
        ((0,), (0,), "E3006"),
    ],
)
def test_reshape_rejects(shape: tuple[int, ...], new_shape: tuple[int, ...], code: str) -> None:
    (finding,) = rejection("Reshape", f32(*shape), new_shape=new_shape)
    assert finding.code == code
    if code == "E3007":
        assert "lement count mismatch" in finding.message
        assert str(math.prod(shape)) in finding.message
        assert finding.context["shapes"] == (shape, new_shape)


def test_reshape_reports_every_bad_extent() -> None:
    findings = rejection("Reshape", f32(4), new_shape=(0, -1, -1, -7))
    assert [(f.code, f.context["index"]) for f in findings] == [("E3006", 0), ("E3006", 2), ("E3006", 3)]


@given(shapes, st.randoms(use_true_random=False))
def test_transpose_matches_numpy(shape: tuple[int, ...], random: Any) -> None:
    permutation = list(range(len(shape)))
    random.shuffle(permutation)
    x = ramp(*shape)
    np.testing.assert_array_equal(
        run("Transpose", x, permutation=tuple(permutation)), np.transpose(x, permutation)
    )


@pytest.mark.parametrize(
    ("permutation", "violation"),
    [
        ((0, 1), "length 2"),
        ((0, 1, 2, 3), "length 4"),
        ((0, 1, 1), "axis 1 is given twice"),
        ((0, 1, 3), "axis 3 is out of range"),
        ((0, 1, -1), "axis -1 is out of range"),
    ],
)
def test_transpose_rejects(permutation: tuple[int, ...], violation: str) -> None:
    (finding,) = rejection("Transpose", f32(2, 3, 4), permutation=permutation)
    assert finding.code == "E3008"
    assert violation in finding.message
    assert finding.context["rank"] == 3


@pytest.mark.parametrize(
    ("axes", "expected", "positions"),
    [
        ((0, 2), (1, 3, 1, 4), (0, 2)),
        ((2, 0), (1, 3, 1, 4), (0, 2)),
        ((0, 0), (1, 1, 3, 4), (0, 1)),
        ((2, 2, 2), (3, 4, 1, 1, 1), (2, 3, 4)),
        ((1, 1, 2), (3, 1, 1, 1, 4), (1, 2, 3)),
        ((3, 2), (3, 4, 1, 1), (2, 3)),
        ((), (3, 4), ()),
    ],
)
def test_expand_dims(axes: tuple[int, ...], expected: tuple[int, ...], positions: tuple[int, ...]) -> None:
    x = ramp(3, 4)
    np.testing.assert_array_equal(run("ExpandDims", x, axes=axes), x.reshape(expected))
    assert inserted_axes(axes) == positions


@pytest.mark.parametrize(("axes", "axis", "rank"), [((3,), 3, 2), ((4, 2), 4, 3), ((-1,), -1, 2)])
def test_expand_dims_rejects(axes: tuple[int, ...], axis: int, rank: int) -> None:
    (finding,) = rejection("ExpandDims", f32(3, 4), axes=axes)
    assert (finding.code, finding.context["axis"], finding.context["rank"]) == ("E3004", axis, rank)


def test_squeeze() -> None:
    x = ramp(1, 3, 1, 4)
    np.testing.assert_array_equal(run("Squeeze", x, axes=(2, 0)), x[0, :, 0])
    np.testing.assert_array_equal(run("Squeeze", x, axes=()), x)
    assert run("Squeeze", ramp(1, 1), axes=(0, 1)).shape == ()


@pytest.mark.parametrize(
    ("axes", "code"), [((1,), "E3009"), ((4,), "E3004"), ((-1,), "E3004"), ((0, 0), "E3005")]
)
def test_squeeze_rejects(axes: tuple[int, ...], code: str) -> None:
    (finding,) = rejection("Squeeze", f32(1, 3, 1, 4), axes=axes)
    assert finding.code == code


def test_squeeze_reports_every_bad_axis() -> None:
    findings = rejection("Squeeze", f32(1, 3, 1, 4), axes=(3, 0, 0, 9))
    assert [finding.code for finding in findings] == ["E3009", "E3005", "E3004"]


@pytest.mark.parametrize(
    ("shape", "result"),
    [((3, 1), (2, 3, 5)), ((), (4,)), ((), ()), ((1,), (0,)), ((0, 1), (0, 7)), ((2, 1), (2, 1))],
)
def test_broadcast_to(shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    x = ramp(*shape)
    np.testing.assert_array_equal(run("BroadcastTo", x, result_shape=result), np.broadcast_to(x, result))


@pytest.mark.parametrize(
    ("shape", "result", "code"),
    [
        ((3,), (4,), "E3001"),
        ((3,), (1,), "E3001"),
        ((3,), (3, 1), "E3001"),
        ((1, 3), (3,), "E3001"),
        ((3,), (0,), "E3001"),
        ((1,), (-1,), "E3006"),
    ],
)
def test_broadcast_to_rejects(shape: tuple[int, ...], result: tuple[int, ...], code: str) -> None:
    (finding,) = rejection("BroadcastTo", f32(*shape), result_shape=result)
    assert finding.code == code
    if code == "E3001":
        assert "Broadcasting failed" in finding.message


@pytest.mark.parametrize(
    ("opcode", "shape", "attributes"),
    [
        ("Reshape", (4, 6), {"new_shape": (3, -1)}),
        ("Reshape", (), {"new_shape": (1, 1)}),
        ("Reshape", (0, 0, 3), {"new_shape": (-1,)}),
        ("Transpose", (2, 3, 4), {"permutation": (2, 0, 1)}),
        ("Transpose", (), {"permutation": ()}),
        ("ExpandDims", (3, 4), {"axes": (3, 1)}),
        ("ExpandDims", (3, 4), {"axes": (1, 1, 2)}),
        ("Squeeze", (1, 3, 1, 1), {"axes": (3, 0)}),
        ("BroadcastTo", (3, 1), {"result_shape": (2, 3, 5)}),
        ("BroadcastTo", (), {"result_shape": (7,)}),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivative_is_the_transposed_map(
    opcode: str, shape: tuple[int, ...], attributes: dict[str, Any], dtype: Any
) -> None:
    check_adjoint(opcode, integers(np.random.default_rng(1), shape, dtype), **attributes)


@given(st.lists(st.integers(1, 6), max_size=5), st.randoms(use_true_random=False))
def test_common_groups_cover_both_shapes(factors: list[int], random: Any) -> None:
    source, target = _merge(factors, random), _merge(factors, random)
    groups = common_groups(source, target)
    if source and target:
        assert [axis for axes, _ in groups for axis in axes] == list(range(len(source)))
        assert [axis for _, axes in groups for axis in axes] == list(range(len(target)))
    for left, right in groups:
        assert math.prod(source[axis] for axis in left) == math.prod(target[axis] for axis in right)


def _merge(factors: list[int], random: Any) -> tuple[int, ...]:
    """Multiply neighbours and insert extents of 1 at random: the product stays."""
    shape: list[int] = []
    for factor in factors:
        if shape and random.random() < 0.5:
            shape[-1] *= factor
        else:
            shape.append(factor)
        if random.random() < 0.2:
            shape.append(1)
    return tuple(shape) if factors else (1,) * random.randrange(3)


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (1, 2, 2), (2, 1, 3), (3, 1, 1, 2)], ids=str)
def test_compiled_transposes_of_small_extents(shape: tuple[int, ...]) -> None:
    """What only moves extents of 1 is a reshape; extents of 2 do move."""
    x = ramp(*shape)
    orders = list(itertools.permutations(range(len(shape))))
    record = by_opcode()["Transpose"]
    call = compile_uses([Use(record, (f32(*shape),), {"permutation": order}) for order in orders])
    for order, result in zip(orders, call([[x]] * len(orders)), strict=True):
        np.testing.assert_array_equal(result, x.transpose(order))


def test_a_constant_of_a_megabyte_is_broadcast() -> None:
    """The attributes of such constants have no data (`mind_mlir.mlir.references`)."""
    weights = np.arange(520 * 520, dtype=np.float32).reshape(520, 520) % 7
    x = np.ones((2, 3, 520), np.float32)
    found = mind_mlir.jit(lambda x: x @ mnp.broadcast_to(weights, (2, 520, 520)))(x)
    np.testing.assert_array_equal(found, x @ weights)
