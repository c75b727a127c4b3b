"""Which loops LLVM may unroll: those that run a few times, and repeat none that runs more often."""

from __future__ import annotations

import pytest

from mind_mlir.lowering.llvm_hints import annotate_loops
from mind_mlir.mlir.bindings import ir, new_context, scf
from mind_mlir.mlir.passes import find_all


def may_be_unrolled(*counts: int) -> list[bool]:
    """Return which of some loops may, each of which is inside of the one before."""
    opened = "".join(
        f"scf.for %i{place} = %c0 to %c{count} step %c1 {{\n" for place, count in enumerate(counts)
    )
    numbers = "".join(f"%c{count} = arith.constant {count} : index\n" for count in {0, 1, *counts})
    store = f"memref.store %x, %m[%i{len(counts) - 1}] : memref<?xf32>\n"
    text = (
        f"func.func @f(%m: memref<?xf32>, %x: f32) {{\n{numbers}{opened}{store}{'}' * len(counts)}\nreturn }}"
    )
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        loops = [each.operation for each in reversed(find_all(module.operation, scf.ForOp))]  # from outside
        annotate_loops(loops, ())
        return ["llvm.loop_annotation" not in loop.attributes for loop in loops]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((4,), [True]),
        ((1,), [True]),
        ((9,), [False]),
        ((4, 4), [True, True]),
        ((4, 100), [False, False]),
        ((4, 2, 100), [False, False, False]),
        ((100, 4), [False, True]),
        ((100, 4, 100), [False, False, False]),
    ],
    ids=str,
)
def test_short_loops_around_short_loops(counts: tuple[int, ...], expected: list[bool]) -> None:
    assert may_be_unrolled(*counts) == expected
