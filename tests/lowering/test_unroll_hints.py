"""What LLVM may unroll, loops that run a few times and repeat no longer ones, and where its passes gain."""

from __future__ import annotations

import pytest

from mind_mlir.lowering.llvm_hints import SCALAR_ATTRIBUTE, annotate_loops
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
        annotate_loops(loops)
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


def is_marked(body: str, *, loop: str = "scf.for %i = %c0 to %c99 step %c1", mark: str = "") -> bool:
    """Return whether LLVM's passes are to run on a function of a loop with ``body``."""
    text = f"""
    func.func @callee(%m: memref<?xvector<4xf32>>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c99 = arith.constant 99 : index
      scf.for %i = %c0 to %c99 step %c1 {{
        %v = memref.load %m[%i] : memref<?xvector<4xf32>>
        memref.store %v, %m[%c0] : memref<?xvector<4xf32>>
      }}
      return
    }}
    func.func @f(%m: memref<?xf32>, %n: memref<?xi64>, %v: memref<?xvector<4xf32>>, %x: f32) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c99 = arith.constant 99 : index
      {loop} {{
        {body}
      }} {mark}
      return
    }}"""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        annotate_loops([each.operation for each in find_all(module.operation, scf.ForOp)])
        return SCALAR_ATTRIBUTE in module.body.operations[1].attributes


_PLACE = "%j = memref.load %n[%i] : memref<?xi64>\n%p = arith.index_cast %j : i64 to index\n"
_OLD = "%a = memref.load %m[%p] : memref<?xf32>\n%b = arith.addf %a, %x : f32\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("memref.store %x, %m[%i] : memref<?xf32>", False),
        (
            "%a = memref.load %m[%i] : memref<?xf32>\n%b = arith.addf %a, %x : f32\n"
            "memref.store %b, %m[%i] : memref<?xf32>",
            True,
        ),
        (f"{_PLACE}{_OLD}memref.store %b, %m[%p] : memref<?xf32>", False),
        (
            f"{_PLACE}{_OLD}%c = arith.mulf %b, %x : f32\n%d = arith.subf %c, %a : f32\n"
            "%e = arith.mulf %d, %d : f32\nmemref.store %e, %m[%p] : memref<?xf32>",
            True,
        ),
        ("scf.for %k = %c0 to %c4 step %c1 { memref.store %x, %m[%k] : memref<?xf32> }", True),
        ("scf.for %k = %c0 to %c1 step %c1 { memref.store %x, %m[%k] : memref<?xf32> }", False),
    ],
    ids=["moved", "computed", "few at places", "more at places", "short", "once"],
)
def test_loops_over_scalars_that_gain(body: str, expected: bool) -> None:
    assert is_marked(body) == expected


_READ = "%a = memref.load %v[%c0] : memref<?xvector<4xf32>>\n"
_WRITE = "memref.store %a, %v[%c1] : memref<?xvector<4xf32>>\n"
_CALL = "func.call @callee(%v) : (memref<?xvector<4xf32>>) -> ()\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (_READ + _WRITE, True),
        (f"scf.for %k = %c0 to %c4 step %c1 {{ {_READ}{_WRITE} }}", True),
        (_CALL, False),
        (_READ + _WRITE + _CALL, False),
        (f"scf.for %k = %c0 to %c99 step %c1 {{ {_READ}{_WRITE} }}", False),
    ],
    ids=["writes", "short loop", "calls", "mostly calls", "long loop"],
)
def test_loops_of_programs_that_gain(body: str, expected: bool) -> None:
    assert is_marked(body, mark="{mind.loop}") == expected
