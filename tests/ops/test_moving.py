"""Concat, Tile, Iota, Take, GatherElements: numpy rules, rejections, derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness import findings, run_both, run_compiled, run_numpy
from linear_harness import check_adjoint, f32, integers, ramp, rejection, run

from mind_mlir import DType, ExecutionError, TensorType
from mind_mlir.ops.infer import normal_attributes
from mind_mlir.ops.registry import by_opcode

BF16, SI8 = DType.BF16, DType.SI8


def numbers(*shape: int) -> Any:
    return integers(np.random.default_rng(1), shape)


# Negative axes


@pytest.mark.parametrize(
    ("opcode", "attributes"),
    [
        ("Concat", {}),
        ("Iota", {"shape": (2, 3, 4), "dtype": DType.F32}),
        ("GatherElements", {}),
        ("ScatterReduce", {"reduce": "Add"}),
    ],
)
@pytest.mark.parametrize(("axis", "counted"), [(-1, 2), (-3, 0), (1, 1)])
def test_axes_count_from_the_front_in_normal_form(
    opcode: str, attributes: dict[str, Any], axis: int, counted: int
) -> None:
    complete = {**attributes, "axis": axis}
    normal = normal_attributes(by_opcode()[opcode], complete, f32(2, 3, 4))
    assert normal == {**attributes, "axis": counted}


@pytest.mark.parametrize("axis", [2, -3])
@pytest.mark.parametrize("opcode", ["Concat", "Iota", "GatherElements", "ScatterReduce"])
def test_an_axis_outside_the_rank_is_refused(opcode: str, axis: int) -> None:
    x, at = f32(2, 3), TensorType(DType.SI64, (2, 3))
    types: dict[str, list[TensorType]] = {"Concat": [x], "GatherElements": [x, at]}
    types["ScatterReduce"] = [x, at, x]
    attributes: dict[str, Any] = {"axis": axis}
    if opcode == "Iota":
        attributes |= {"shape": (2, 3), "dtype": DType.F32}
    if opcode == "ScatterReduce":
        attributes["reduce"] = "Add"
    (finding,) = findings(by_opcode()[opcode], types.get(opcode, []), attributes)
    assert finding.code == "E3004"
    assert (finding.context["axis"], finding.context["rank"]) == (axis, 2)


# Concat


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_concat_joins_along_the_axis(axis: int) -> None:
    shapes = [[2, 3, 4] for _ in range(3)]
    for extent, shape in zip((5, 0, 1), shapes, strict=True):
        shape[axis] = extent
    parts = [100 * number + ramp(*shape) for number, shape in enumerate(shapes)]
    result = run_both(by_opcode()["Concat"], parts, {"axis": axis})
    pieces = np.split(result, [5, 5], axis)
    for part, piece in zip(parts, pieces, strict=True):
        np.testing.assert_array_equal(part, piece)


def test_concat_of_what_does_not_fit() -> None:
    for types, axis, codes in (
        ([f32(2, 3), f32(2)], 0, ["E3002"]),
        ([f32(2, 3), f32(2, 4)], 0, ["E3003"]),
        ([f32(2, 3, 4), f32(3, 3, 5)], 1, ["E3003", "E3003"]),
        ([f32(2, 3), f32(2, 4), f32(1, 5)], 0, ["E3003", "E3003"]),
        ([f32(2), TensorType(DType.F64, (2,))], 0, ["E2004"]),
        ([f32()], 0, ["E3004"]),
        ([], 0, ["E2007"]),
    ):
        assert [each.code for each in findings(by_opcode()["Concat"], types, {"axis": axis})] == codes


def test_derivative_of_concat_takes_the_parts() -> None:
    parts = [numbers(2, 3), numbers(0, 3), numbers(4, 3)]
    check_adjoint("Concat", parts[0], parts[2], wrt=(0, 1), axis=-2)
    check_adjoint("Concat", parts[0], np.zeros((4, 3)), wrt=(0,), axis=0)
    check_adjoint("Concat", parts[2], wrt=(0,), axis=1)


# Tile


@pytest.mark.parametrize(
    ("shape", "repeats"),
    [((), ()), ((3,), (1,)), ((3,), (4,)), ((2, 3), (3, 1)), ((1, 3), (5, 2)), ((2, 1, 3), (2, 2, 2))],
)
def test_tile_repeats_and_its_derivative_adds_up(shape: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    x = numbers(*shape)
    result = run_both(by_opcode()["Tile"], [x], {"repeats": repeats})
    for place in np.ndindex(*result.shape):
        assert result[place] == x[tuple(n % extent for n, extent in zip(place, shape, strict=True))]
    check_adjoint("Tile", x, repeats=repeats)


def test_no_repeats_leave_nothing() -> None:
    assert run("Tile", ramp(2, 3), repeats=(0, 2)).shape == (0, 6)
    check_adjoint("Tile", numbers(2, 3), repeats=(2, 0))


@pytest.mark.parametrize("repeats", [(2,), (1, 1, 1), (-1, 2)])
def test_repeats_that_are_refused(repeats: tuple[int, ...]) -> None:
    (finding,) = rejection("Tile", f32(2, 3), repeats=repeats)
    assert finding.code == "E1103"


# Iota


def test_iota_counts_along_its_axis() -> None:
    result = run_both(by_opcode()["Iota"], [], {"shape": (2, 5, 3), "dtype": DType.SI32, "axis": -2})
    for place in np.ndindex(2, 5, 3):
        assert result[place] == place[1]


@pytest.mark.parametrize(
    ("dtype", "longest"),
    [
        (DType.SI4, 8),
        (DType.UI4, 16),
        (SI8, 128),
        (DType.UI8, 256),
        (DType.SI16, 32768),
        (DType.FP8_E4M3, 449),
        (DType.FP8_E5M2, 57345),
        (DType.F16, 65505),
    ],
)
def test_iota_ends_where_the_dtype_does(dtype: DType, longest: int) -> None:
    attributes = {"shape": (longest,), "dtype": dtype, "axis": 0}
    result = run_numpy(by_opcode()["Iota"], [], attributes)
    assert float(result[-1]) == longest - 1
    (finding,) = findings(by_opcode()["Iota"], [], {**attributes, "shape": (longest + 1,)})
    assert finding.code == "E1103"
    assert f"counts to {longest}" in finding.message


def test_iota_of_other_dtypes_and_shapes_is_refused() -> None:
    record = by_opcode()["Iota"]
    for attributes, code in (
        ({"shape": (2,), "dtype": DType.I1, "axis": 0}, "E2005"),
        ({"shape": (2, -1), "dtype": SI8, "axis": 0}, "E3006"),
        ({"shape": (), "dtype": SI8, "axis": 0}, "E3004"),
    ):
        (finding,) = findings(record, [], attributes)
        assert finding.code == code


def test_whole_numbers_round_to_bf16_once() -> None:
    # Between 2^24 and 2^25 neighbours are 2^17 apart: what lies above a middle by less than f32 shows
    # would be rounded to the middle, and then down.
    middle = 2**24 + 2**16
    record, attributes = by_opcode()["Iota"], {"shape": (middle + 3,), "dtype": BF16, "axis": 0}
    for result in (run_compiled(record, [], attributes), run_numpy(record, [], attributes)):
        ends = [float(each) for each in result[middle - 1 :]]
        assert ends == [2.0**24, 2.0**24, 2.0**24 + 2**17, 2.0**24 + 2**17]


# Take and GatherElements


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 2, 3), (5, 0)])
@pytest.mark.parametrize("indices", [3, [], [4, 0, 0, 1], [[1, 2], [3, 4]]])
def test_take_reads_rows(shape: tuple[int, ...], indices: Any) -> None:
    x, at = numbers(*shape), np.array(indices, np.int32)
    result = run("Take", x, at)
    assert result.shape == at.shape + shape[1:]
    for place in np.ndindex(*at.shape):
        np.testing.assert_array_equal(result[place], x[at[place]])
    check_adjoint("Take", x, at)


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_gather_elements_reads_along_the_axis(axis: int, count: int) -> None:
    x, shape = numbers(2, 3, 4), [2, 3, 4]
    shape[axis] = count
    at = np.random.default_rng(2).integers(0, x.shape[axis], shape)
    result = run_both(by_opcode()["GatherElements"], [x, at], {"axis": axis})
    for place in np.ndindex(*shape):
        source = list(place)
        source[axis] = at[place]
        assert result[place] == x[tuple(source)]
    check_adjoint("GatherElements", x, at, axis=axis)


@pytest.mark.parametrize("bad", [-1, 3, -(2**31), 2**31 - 1])
def test_positions_do_not_count_from_the_end(bad: int) -> None:
    at = np.array([[0, bad]], np.int32)
    for opcode, operands, attributes in (
        ("Take", [ramp(3, 2), at], {}),
        ("GatherElements", [ramp(2, 3), at], {"axis": 1}),
        ("ScatterReduce", [ramp(1, 3), at, ramp(1, 2)], {"axis": 1, "reduce": "Add"}),
    ):
        if opcode == "GatherElements":
            operands[1] = np.concatenate([at, at])
        with pytest.raises(ExecutionError, match=f"index {bad} is out of bounds") as caught:
            run(opcode, *operands, **attributes)
        (finding,) = caught.value.diagnostics
        assert finding.code == "E6001"
        assert "[0, 2]" in str(finding.help)


def test_what_does_not_lie_along_the_axis_is_refused() -> None:
    at = TensorType(DType.SI64, (2, 5))
    for opcode, types, axis, code in (
        ("Take", [f32(), at], None, "E3002"),
        ("Take", [f32(3), f32(3)], None, "E4011"),
        ("GatherElements", [f32(2, 3, 4), at], 0, "E3002"),
        ("GatherElements", [f32(2, 3), at], 0, "E3003"),
        ("GatherElements", [f32(2, 3), f32(2, 5)], 1, "E4011"),
    ):
        attributes = {} if axis is None else {"axis": axis}
        (finding,) = findings(by_opcode()[opcode], types, attributes)
        assert finding.code == code
