"""Random numbers: the recipe of docs/random.md to the bit, and that they are distributed as they should."""

from __future__ import annotations

import math
import re
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest
from harness import findings, run_numpy

import mind_mlir
from mind_mlir import Builder, DType, Module, TensorType
from mind_mlir.ir.module import Functions
from mind_mlir.ops.normal_quantile import logarithm, tail_quantile
from mind_mlir.ops.philox import philox, words
from mind_mlir.ops.registry import by_opcode
from mind_mlir.target import named_target, runs_here

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.ir.attributes import Array

PAGE = (Path(__file__).parents[2] / "docs" / "random.md").read_text()
MANY = 2**20


def numbers(opcode: str, dtype: DType, shape: Sequence[int], seed: int = 7, stream: int = 0) -> Array:
    """Return what the numpy rule draws."""
    attributes = {"shape": tuple(shape), "dtype": dtype, "stream": stream}
    return run_numpy(by_opcode()[opcode], [np.array(seed, np.uint64)], attributes)


def drawing(opcode: str, dtype: DType, shape: Sequence[int]) -> Module:
    """Return a module that draws from stream 0 for its seed."""
    builder = Builder(profile="ptir-v0.4")
    seed = builder.parameter(TensorType(DType.UI64), "seed")
    drawn = builder.emit(opcode, seed, shape=shape, dtype=dtype, stream=0)
    return Module(Functions((builder.function("main", drawn),)), "ptir-v0.4")


@cache
def many(opcode: str, dtype: DType, seed: int = 7, stream: int = 0) -> Array:
    return numbers(opcode, dtype, (MANY,), seed, stream)


def normal_cdf(x: Array) -> Array:
    return np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x.tolist()])


# The recipe


@pytest.mark.parametrize(
    ("counter", "key", "block"),
    [
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers_of_random123(counter: tuple[int, ...], key: tuple[int, int], block: str) -> None:
    found = philox([np.array([word], np.uint64) for word in counter], key)
    assert " ".join(f"{int(word[0]):08x}" for word in found) == block


def test_the_words_of_the_page() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| `([0-9a-f ]+)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for seed, stream, listed in rows:
        assert " ".join(f"{int(word):08x}" for word in words(int(seed), int(stream), 6)) == listed


def test_the_numbers_of_the_page() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (Rng\w+) (\w+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for seed, stream, opcode, name, listed in rows:
        dtype = DType.from_name(name)
        assert dtype is not None
        found = numbers(opcode, dtype, (4,), int(seed), int(stream))
        np.testing.assert_array_equal(found, np.array(listed.split(), dtype.numpy))


def test_a_uniform_number_is_the_upper_bits_of_its_word() -> None:
    drawn = words(7, 0, 64)
    assert (numbers("RngUniform", DType.F32, (64,)) * 2.0**24).tolist() == (drawn >> np.uint64(8)).tolist()
    assert numbers("RngUniform", DType.UI8, (64,)).tolist() == (drawn >> np.uint64(24)).tolist()
    assert numbers("RngUniform", DType.I1, (64,)).tolist() == (drawn >> np.uint64(31)).tolist()
    assert numbers("RngUniform", DType.SI32, (64,)).view(np.uint32).tolist() == drawn.tolist()
    pairs = drawn[::2] + (drawn[1::2] << np.uint64(32))
    assert numbers("RngUniform", DType.UI64, (32,)).tolist() == pairs.tolist()
    assert (numbers("RngUniform", DType.F64, (32,)) * 2.0**53).tolist() == (pairs >> np.uint64(11)).tolist()


def test_blocks_count_beyond_32_bits() -> None:
    counter = [np.array([word], np.uint64) for word in (5, 1, 3, 0)]
    expected = [int(word[0]) for word in philox(counter, (7, 0))]
    other = [int(word[0]) for word in philox([np.array([w], np.uint64) for w in (5, 0, 3, 0)], (7, 0))]
    assert expected != other
    assert words(7, 3, 24)[20:].tolist() == other


@pytest.mark.parametrize("opcode", ["RngUniform", "RngNormal"])
@pytest.mark.parametrize("shape", [(2, 3, 5), (30, 1), (6, 5)])
def test_the_place_is_counted_in_row_major_order(opcode: str, shape: tuple[int, ...]) -> None:
    flat = numbers(opcode, DType.F32, (30,))
    np.testing.assert_array_equal(numbers(opcode, DType.F32, shape), flat.reshape(shape))


@pytest.mark.parametrize("target", ["sse", "avx2", None])
@pytest.mark.parametrize("opcode", ["RngUniform", "RngNormal"])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_every_target_gives_the_same_bits(opcode: str, dtype: DType, target: str | None) -> None:
    if target is not None and not runs_here(named_target(target)):
        pytest.skip("this machine does not run its code")
    executable = mind_mlir.compile(drawing(opcode, dtype, (300_007,)), target=target)
    (drawn,) = guarded.call_executable(executable, {"seed": np.array(7, np.uint64)})
    assert drawn.tobytes() == numbers(opcode, dtype, (300_007,)).tobytes()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_every_number_of_threads_gives_the_same_bits(threads: int) -> None:
    executable = mind_mlir.compile(drawing("RngNormal", DType.F32, (1000, 1001)), threads=threads)
    (drawn,) = guarded.call_executable(executable, {"seed": np.array(7, np.uint64)})
    assert drawn.tobytes() == numbers("RngNormal", DType.F32, (1000, 1001)).tobytes()


# The quantile


def test_the_logarithm_is_within_a_unit() -> None:
    x = np.exp(np.random.default_rng(1).uniform(-45, 0, 100_000))
    exact = np.log(x)
    assert np.max(np.abs(logarithm(x) - exact) / np.spacing(np.abs(exact))) <= 1


def test_the_quantile_is_that_of_the_normal_distribution() -> None:
    rng = np.random.default_rng(2)
    p = np.concatenate([rng.uniform(1e-9, 0.5, 20_000), np.exp(rng.uniform(-45, -0.7, 20_000))])
    exact = np.array([-NormalDist().inv_cdf(value) for value in p.tolist()])
    np.testing.assert_allclose(tail_quantile(p), exact, rtol=2e-15, atol=1e-17)


def test_the_quantile_inverts_the_distribution_in_the_far_tail() -> None:
    p = np.array([2.0**-k for k in range(2, 66)])
    back = 0.5 * np.array([math.erfc(x / math.sqrt(2)) for x in tail_quantile(p).tolist()])
    np.testing.assert_allclose(back, p, rtol=1e-13)


def test_the_greatest_magnitudes() -> None:
    near, far = tail_quantile(np.array([0.5 * 2.0**-32, 0.5 * 2.0**-64]))
    assert 6.33 < near < 6.34
    assert 9.15 < far < 9.16


# The distributions


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32, DType.F64])
def test_uniform_floats_are_below_one(dtype: DType) -> None:
    drawn = many("RngUniform", dtype).astype(np.float64)
    assert drawn.min() >= 0
    assert drawn.max() < 1


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.UI16, DType.SI64])
def test_uniform_numbers_fill_all_bins_alike(dtype: DType) -> None:
    drawn, bins = many("RngUniform", dtype), 1024
    if dtype.is_float:
        places = (drawn * bins).astype(np.int64)
    else:
        places = (drawn >> drawn.dtype.type(dtype.bits - 10)).astype(np.int64)
        places -= places.min()
    counts = np.bincount(places, minlength=bins)
    assert counts.size == bins
    chi_square = float(np.sum((counts - MANY / bins) ** 2) / (MANY / bins))
    # bins - 1 degrees of freedom: mean 1023, deviation 45.2.
    assert abs(chi_square - (bins - 1)) < 4 * math.sqrt(2 * bins)


@pytest.mark.parametrize("bit", range(8))
def test_each_bit_of_an_integer_is_a_fair_coin(bit: int) -> None:
    share = np.mean((many("RngUniform", DType.UI8) >> np.uint8(bit)) & np.uint8(1))
    assert abs(share - 0.5) < 4 * 0.5 / math.sqrt(MANY)


def kolmogorov_smirnov(shares: Array) -> float:
    """Return how far the distribution of what should be uniform is from that, times the root of the count."""
    ordered, count = np.sort(shares), shares.size
    steps = np.arange(count + 1) / count
    return float(max(np.max(steps[1:] - ordered), np.max(ordered - steps[:-1])) * math.sqrt(count))


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_uniform_numbers_pass_kolmogorov_smirnov(dtype: DType) -> None:
    assert kolmogorov_smirnov(many("RngUniform", dtype).astype(np.float64)) < 1.95  # 1 in 1,000


@pytest.mark.parametrize("dtype", [DType.F32, DType.F64])
def test_normal_numbers_pass_kolmogorov_smirnov(dtype: DType) -> None:
    drawn = many("RngNormal", dtype)[: 2**17].astype(np.float64)
    assert kolmogorov_smirnov(normal_cdf(drawn)) < 1.95


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32, DType.F64])
def test_moments_of_normal_numbers(dtype: DType) -> None:
    drawn, root = many("RngNormal", dtype).astype(np.float64), math.sqrt(MANY)
    assert abs(np.mean(drawn)) < 4 / root
    assert abs(np.mean(drawn**2) - 1) < 4 * math.sqrt(2) / root + (1e-3 if dtype is DType.BF16 else 0)
    assert abs(np.mean(drawn**3)) < 4 * math.sqrt(15) / root
    assert abs(np.mean(drawn**4) - 3) < 4 * math.sqrt(96) / root + (1e-2 if dtype is DType.BF16 else 0)


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("beyond", [2.0, 3.0, 4.0, 4.5])
def test_the_tails_of_normal_numbers_are_as_heavy_as_they_should_be(beyond: float, side: int) -> None:
    drawn = np.concatenate([many("RngNormal", DType.F32, seed) for seed in range(4)])
    expected = drawn.size * 0.5 * math.erfc(beyond / math.sqrt(2))
    assert abs(np.count_nonzero(side * drawn > beyond) - expected) < 4 * math.sqrt(expected)


def test_the_far_tail_is_distributed_as_the_normal_one_is() -> None:
    drawn = np.abs(np.concatenate([many("RngNormal", DType.F32, seed) for seed in range(4)])).astype(float)
    tail, whole = drawn[drawn > 4], math.erfc(4 / math.sqrt(2))
    shares = np.array([math.erfc(x / math.sqrt(2)) / whole for x in tail.tolist()])
    assert tail.size > 200
    assert kolmogorov_smirnov(shares) < 1.95


def correlation(left: Array, right: Array) -> float:
    """Return the correlation in units of its deviation where there is none."""
    return float(np.corrcoef(left.astype(np.float64), right.astype(np.float64))[0, 1] * math.sqrt(left.size))


@pytest.mark.parametrize("opcode", ["RngUniform", "RngNormal"])
@pytest.mark.parametrize(
    ("seed", "stream"), [(8, 0), (6, 0), (7 + 2**32, 0), (7, 1), (7, 2**32), (8, 1)], ids=str
)
def test_seeds_and_streams_are_not_correlated(opcode: str, seed: int, stream: int) -> None:
    left, right = many(opcode, DType.F32), many(opcode, DType.F32, seed, stream)
    assert abs(correlation(left, right)) < 4
    assert np.mean(left == right) < 1e-4


@pytest.mark.parametrize("opcode", ["RngUniform", "RngNormal"])
@pytest.mark.parametrize("distance", [1, 2, 3, 4, 8, 16, 1024])
def test_neighbours_are_not_correlated(opcode: str, distance: int) -> None:
    drawn = many(opcode, DType.F32)
    assert abs(correlation(drawn[:-distance], drawn[distance:])) < 4


# What is refused


@pytest.mark.parametrize("opcode", ["RngUniform", "RngNormal"])
@pytest.mark.parametrize(
    ("changed", "codes"),
    [
        ({"dtype": DType.CF32}, ["E2005"]),
        ({"shape": (3, -1)}, ["E3006"]),
        ({"dtype": DType.CF64, "shape": (-2,)}, ["E2005", "E3006"]),
    ],
)
def test_what_is_refused(opcode: str, changed: dict[str, Any], codes: list[str]) -> None:
    attributes = {"shape": (3,), "dtype": DType.F32, "stream": 0, **changed}
    found = findings(by_opcode()[opcode], [TensorType(DType.UI64)], attributes)
    assert [finding.code for finding in found] == codes
    assert all(finding.help for finding in found)


def test_normal_integers_are_refused() -> None:
    attributes = {"shape": (3,), "dtype": DType.SI32, "stream": 0}
    (finding,) = findings(by_opcode()["RngNormal"], [TensorType(DType.UI64)], attributes)
    assert finding.code == "E2005"


@pytest.mark.parametrize("opcode", ["RngUniform", "RngNormal"])
def test_the_seed_is_one_number(opcode: str) -> None:
    attributes = {"shape": (3,), "dtype": DType.F32, "stream": 0}
    (finding,) = findings(by_opcode()[opcode], [TensorType(DType.UI64, (2,))], attributes)
    assert finding.code == "E3002"
