"""Groups cut in chunks and parts: every element once, whatever is cut, and the schedule as data."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from schedule_harness import (
    Array,
    empty,
    filled,
    function,
    generic,
    random,
    reduce,
    run,
    scheduled,
    tensor_type,
)

from mind_mlir.lowering.emission import constants
from mind_mlir.lowering.emission.constants import FEWEST_CHUNKS, LONG_ROW, PAGE
from mind_mlir.lowering.schedule.fusion.nests.schedule import choose_schedule
from mind_mlir.lowering.schedule.fusion.nests.work import Work
from mind_mlir.target import Target, host_target

SHAPES = [(700,), (33, 70), (70, 33), (2, 35, 67), (3, 1, 40, 9), (21, 2, 300), (300, 2, 21)]
TARGETS = {"host": host_target(), "avx2": Target(vector_bytes=32, fma=True), "sse": Target()}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything be worth cutting, and in small pieces."""
    for name, value in {
        "WORTHWHILE_NS": 0,
        "CHUNK_BYTES": 64,
        "PAGE": 16,
        "PART_ROWS": 3,
        "LONG_ROW": 128,
        "STRIP_BYTES": 64,
        "MOST_STRIPS": 2,
        "STRIP": 2,
    }.items():
        monkeypatch.setattr(constants, name, value)


def axes_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all choices of axes, none among them."""
    rank = len(shape)
    return [axes for count in range(rank + 1) for axes in itertools.combinations(range(rank), count)]


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "axes"), [(shape, axes) for shape in SHAPES for axes in axes_of(shape)], ids=str
)
def test_a_stream_and_two_reductions(shape: tuple[int, ...], axes: tuple[int, ...], target: str) -> None:
    t = tensor_type(shape, "f64")
    kept = tuple(extent for axis, extent in enumerate(shape) if axis not in axes)
    o, row = tensor_type(kept, "f64"), tensor_type(shape[-1:], "f64")
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    body = empty("p", t) + generic(
        "p",
        [("%a0", t, dims), ("%a1", row, f"d{len(shape) - 1}")],
        (t, dims),
        ["parallel"] * len(shape),
        "%s = arith.addf %x0, %x1 : f64\n        linalg.yield %s : f64",
    )
    results, outputs = ["%p"], [t]
    if axes:
        body += filled("r", o, "1.0") + reduce("r", ("%p", t), o, list(axes), "arith.addf")
        body += reduce("m", ("%p", t), o, list(axes), "arith.maximumf").replace("%m_init", "%a2")
        results, outputs = ["%p", "%r", "%m"], [t, o, o]
    x, y, start = (random(s, "f64", seed) for seed, s in enumerate((shape, shape[-1:], kept)))
    outs: list[Array] = [np.full(shape, 7.0), np.full(kept, 7.0), np.full(kept, 7.0)][: len(results)]
    run(function([t, row, o], outputs, body, results), [x, y, start], outs, TARGETS[target])
    np.testing.assert_array_equal(outs[0], x + y)
    if axes:
        np.testing.assert_allclose(outs[1], 1 + (x + y).sum(axis=axes), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(outs[2], np.maximum(start, (x + y).max(axis=axes)))


@pytest.mark.usefixtures("tiny")
def test_these_are_chunks_and_parts() -> None:
    """So the tests above run what they are about."""
    t, o = tensor_type((700,), "f64"), tensor_type((), "f64")
    text = scheduled(
        function([t], [o], filled("r", o, "0.0") + reduce("r", ("%a0", t), o, [0], "arith.addf"), ["%r"])
    )
    assert "mind.parallel" in text
    assert text.count("tensor.empty") == 2  # the result, and the parts


WORK = Work((4096, 1024), 1, (), 32, 3, 3, 2 * 4096 * 4096, 4096 * 4096, sums=False)
TARGET = Target(vector_bytes=64, fma=True, masks=True, l2_bytes=1 << 20)


def work_of(rows: int, columns: int, reductions: tuple[int, ...]) -> Work:
    """Return the work of two operations on f32 in memory."""
    count = rows * columns
    return Work((rows, columns), 1, reductions, 32, 2, 2, 8 * count, 4 * count, sums=bool(reductions))


def cases() -> list[Work]:
    """Return works of many shapes."""
    extents = itertools.product((1, 5, 64, 1000, 4096, 100_000), (1, 7, 64, 1000, 1 << 20))
    return [work_of(*pair, reductions) for pair in extents for reductions in ((), (0,), (1,), (0, 1))]


@pytest.mark.parametrize("work", cases(), ids=lambda work: f"{work.extents}{work.reductions}")
def test_pieces_cover_each_loop_once(work: Work) -> None:
    schedule = choose_schedule(work, TARGET)
    assert schedule == choose_schedule(work, TARGET)
    assert len({cut.dim for cut in schedule.cuts}) == len(schedule.cuts)
    for cut in schedule.cuts:
        extent = work.extents[cut.dim]
        if cut.dim == work.vector:
            extent -= extent % (schedule.vectors * schedule.lanes)
            assert cut.step % (schedule.vectors * schedule.lanes) == 0
            assert cut.step * work.bits // 8 % PAGE == 0  # no cache line is written by two threads
        assert cut.count >= 2
        assert (cut.count - 1) * cut.step < extent <= cut.count * cut.step
    assert schedule.parallel <= bool(schedule.cuts)
    reduced = [cut for cut in schedule.cuts if cut.dim in work.reductions]
    assert reduced == ([] if schedule.parts is None else [schedule.parts])
    assert schedule.choices()


@pytest.mark.parametrize("work", cases(), ids=lambda work: f"{work.extents}{work.reductions}")
def test_large_nests_have_enough_chunks(work: Work) -> None:
    schedule = choose_schedule(work, TARGET)
    if math.prod(work.extents) >= 1 << 24 and max(work.extents) >= 64:
        assert schedule.chunks >= FEWEST_CHUNKS
        assert schedule.parallel


def test_nests_over_the_same_rows_are_cut_alike() -> None:
    more = dataclasses.replace(WORK, weight=40, operations=200, bytes=WORK.bytes * 3)
    sums = dataclasses.replace(WORK, reductions=(1,), stored=0, sums=True)
    assert choose_schedule(WORK, TARGET).cuts == choose_schedule(more, TARGET).cuts
    assert choose_schedule(WORK, TARGET).cuts == choose_schedule(sums, TARGET).cuts


def test_little_work_is_left_to_one_thread() -> None:
    schedule = choose_schedule(dataclasses.replace(WORK, extents=(16, 64), bytes=8192, stored=4096), TARGET)
    assert not schedule.parallel
    assert schedule.chunks == 1


@pytest.mark.parametrize(
    ("columns", "vectors", "strips"),
    [(3, 1, False), (100, 4, False), (150, 8, False), (160, 8, False), (161, 4, True), (5000, 4, True)],
)
def test_rows_of_sums_from_memory_are_read_as_they_lie(columns: int, vectors: int, strips: bool) -> None:
    far = dataclasses.replace(work_of(100_000, columns, (0,)), operations=1, bytes=TARGET.l2_bytes + 1)
    schedule = choose_schedule(far, TARGET)
    assert (schedule.vectors, schedule.strip > 0) == (vectors, strips)
    near = choose_schedule(dataclasses.replace(far, bytes=TARGET.l2_bytes), TARGET)
    assert (near.vectors, near.strip > 0) == (min(vectors, 4), columns * 4 >= LONG_ROW)


def test_a_step_of_bf16_fills_a_register_in_memory() -> None:
    """Two registers of f32: where an instruction moves words, and where rows are as long."""
    single = work_of(64, 1000, ())
    short = dataclasses.replace(single, short=True)
    assert choose_schedule(short, TARGET).vectors == 2
    for work, target in (
        (single, TARGET),
        (short, TARGETS["avx2"]),
        (dataclasses.replace(short, extents=(64, 16)), TARGET),
        (dataclasses.replace(short, bits=64), TARGET),
    ):
        assert choose_schedule(work, target).vectors == 1


@pytest.mark.parametrize(("columns", "strip"), [(160, 0), (161, 1), (4096, 1), (4097, 8)])
@pytest.mark.parametrize(("rows", "sums"), [(256, True), (257, False)])
def test_short_rows_are_added_one_behind_another(columns: int, strip: int, rows: int, sums: bool) -> None:
    """As long as what they are added to takes half of the first-level cache."""
    work = dataclasses.replace(WORK, extents=(64, rows, columns), vector=2, reductions=(1,), sums=sums)
    assert choose_schedule(dataclasses.replace(work, operations=1), TARGET).strip == strip


def test_many_rows_of_sums_are_added_a_few_at_a_time() -> None:
    far = dataclasses.replace(work_of(257, 161, (0,)), operations=1, bytes=TARGET.l2_bytes + 1)
    assert choose_schedule(far, TARGET).strip > 1
