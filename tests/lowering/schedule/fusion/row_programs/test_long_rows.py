"""Rows that no second-level cache holds: few ways through memory, right for awkward extents and numbers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from test_row_programs import AVX2, FORMS, arguments_of, mean, module_of

import mind_mlir
from examples.gpt2.builder import Body, program
from mind_mlir import DType
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.lowering.schedule.fusion.row_programs import row_schedule
from mind_mlir.ops.accumulation import roundings
from mind_mlir.target import TARGETS, named_target, runs_here

if TYPE_CHECKING:
    from collections.abc import Iterator

    from examples.gpt2.builder import Tensor
    from mind_mlir import Executable

    Array = np.ndarray[Any, np.dtype[Any]]

HERE = [name for name in TARGETS if runs_here(named_target(name))]
#: No whole number of pieces or steps, and too many for half of the second-level cache of named targets.
LENGTH = 70_001
UNIT = float(np.finfo(np.float32).eps) / 2


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = mind_mlir.get_num_threads()
    yield
    mind_mlir.set_num_threads(before)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few rows as these would be left to groups."""
    monkeypatch.setattr(row_schedule, "pays", lambda *_: True)


def as_tuple(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, (list, tuple)) else (values,)


def sums(b: Body, x: Tensor) -> list[Tensor]:
    """The maximum, and the sum of exponentials relative to it; the mean, and the squares relative to it."""
    greatest, middle = b.reduce("Max", x, -1), mean(b, x)
    centred = b.binary("Sub", x, middle)
    exponentials = b.unary("Exp", b.binary("Sub", x, greatest))
    total = b.reduce("Sum", b.binary("Mul", centred, centred), -1)
    return [greatest, b.reduce("Sum", exponentials, -1), middle, total]


def compiled(rows: int, which: slice, target: str = HERE[-1]) -> Executable:
    b = Body([])
    found = sums(b, b.parameter(DType.F32, rows, LENGTH))[which]
    executable = mind_mlir.compile(to_module(program(b, found)), target=target)
    assert "long rows" in executable.as_text("schedule") or target == "native"
    return executable


@pytest.mark.parametrize(
    ("form", "shape", "kind"),
    [
        ("softmax", (8, LENGTH), "long rows"),
        ("softmax", (2, LENGTH), "fused"),  # the last-level cache holds all of it
        ("softmax", (64, 1 << 20), "long rows"),
        ("softmax_gradient", (64, 1 << 16), "fused"),  # and of this what groups read again
        ("layer_norm", (64, 1 << 16), "long rows"),
        ("rms_norm", (1, 1 << 24), "fused"),  # two ways through memory in any case
        ("log_softmax", (64, 1 << 10), "rows"),
    ],
)
def test_what_is_computed_so(form: str, shape: tuple[int, ...], kind: str) -> None:
    listing = Lowering(target=AVX2).run(module_of(form, shape), until="schedule")
    assert listing is not None
    assert set(re.findall(r"^ *\d+\. ([a-z ]+) [0-9 x]+$", listing, re.MULTILINE)) == {kind}


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(2, LENGTH), (64, 1 << 16)], ids=str)
def test_two_ways_through_memory_without_temporaries(form: str, shape: tuple[int, ...]) -> None:
    module = module_of(form, shape)
    listing = Lowering(target=AVX2).run(module, until="schedule")
    assert listing is not None
    assert re.findall(r"^ *\d+\. ([a-z ]+) [0-9 x]+$", listing, re.MULTILINE) == ["long rows"]
    stages = 3 if form in ("softmax_gradient", "normal_and_statistics") else 2
    assert len(re.findall(r"^ *stage ", listing, re.MULTILINE)) == stages
    lowering = Lowering(target=AVX2)
    lowering.run(module, until="bufferized")
    scratch = re.search(r"mind.scratch_bytes = (\d+)", lowering.text())
    assert scratch is None or int(scratch.group(1)) <= AVX2.l1_bytes


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("shape", "dtype"), [((3, LENGTH), DType.F32), ((1, LENGTH), DType.BF16)], ids=str)
def test_values(form: str, shape: tuple[int, ...], dtype: DType) -> None:
    module = module_of(form, shape, dtype)
    given = arguments_of(module, dtype)
    expected = as_tuple(mind_mlir.interpret(module, given))
    for target in HERE:
        found = as_tuple(mind_mlir.compile(module, target=target)(**given))
        for mine, theirs in zip(found, expected, strict=True):
            wide = theirs.astype(np.float64)
            allowed = (1e-5 if dtype is DType.F32 else 0.02) * (np.max(np.abs(wide)) + 1e-7)
            assert np.max(np.abs(mine.astype(np.float64) - wide)) <= allowed, target


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("rows", [2, 20])
def test_bits_do_not_depend_on_threads(rows: int) -> None:
    executable = compiled(rows, slice(None))
    x = np.random.default_rng(1).standard_normal((rows, LENGTH), np.float32)
    found = []
    for count in (1, 2, 3):
        mind_mlir.set_num_threads(count)
        found.append([result.tobytes() for result in executable(x)])
    assert found[0] == found[1] == found[2]


def special_rows() -> Array:
    """Rows with infinities and NaNs at their ends and in between, alone and together."""
    x = np.random.default_rng(2).standard_normal((8, LENGTH)).astype(np.float32)
    x[0] = -np.inf
    x[1, :30_000] = -np.inf
    x[2, 5000:] = -np.inf
    x[3, 20_000] = np.inf
    x[4, -1] = np.nan
    x[5, [7, -1]] = np.inf, -np.inf
    x[6] = -np.inf
    x[6, -1] = -1e30
    x[7, :] = -3e38
    return x


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", HERE)
def test_what_is_not_finite_is_as_in_one_operation_after_the_other(target: str) -> None:
    x = special_rows()
    greatest, exponentials, *_ = compiled(len(x), slice(2), target)(x)
    with np.errstate(all="ignore"):
        expected = np.max(x, axis=1, keepdims=True)
        np.testing.assert_array_equal(greatest.reshape(-1, 1), expected)
        total = np.exp((x - expected).astype(np.float64)).sum(axis=1)
    np.testing.assert_allclose(exponentials.reshape(-1), total, rtol=1e-5)
    _, squares = compiled(len(x), slice(2, None), target)(x)
    assert np.isnan(squares.reshape(-1))[:7].all()
    assert not np.isfinite(squares.reshape(-1))[7], "the sum of so large numbers overflows"


def hard_rows() -> Array:
    """Rows that grow all the time, lie far from zero, jump, and begin far from where they go."""
    place = np.arange(LENGTH)
    return np.stack(
        [
            place * 1e-3,
            1000 + np.sin(place),
            1e4 + 1e-2 * place,
            np.where(place < 64, 1e6, 1.0) + np.sin(place),
            np.where(place // 5000 % 2, -80.0, 80.0),
            -place * 1e-4,
            10_000_001 + 2 * (place > LENGTH // 3) + place % 2,
            1e-3 * (place % 97) * place / LENGTH,
        ]
    ).astype(np.float32)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("target", HERE)
def test_sums_are_within_the_bound(target: str) -> None:
    x = hard_rows()
    greatest, exponentials, *_ = (each.reshape(-1, 1) for each in compiled(len(x), slice(2), target)(x))
    terms = np.exp((x - greatest).astype(np.float64))
    exact = terms.sum(axis=1, keepdims=True)
    assert (np.abs(exponentials - exact) <= roundings(LENGTH) * UNIT * exact).all()
    middle, squares = (each.reshape(-1, 1) for each in compiled(len(x), slice(2, None), target)(x))
    exact = ((x - middle).astype(np.float64) ** 2).sum(axis=1, keepdims=True)
    assert (np.abs(squares - exact) <= roundings(LENGTH) * UNIT * exact).all()
