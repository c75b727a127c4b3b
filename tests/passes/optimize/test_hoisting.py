"""What goes out of loops and branches, and what stays."""

from __future__ import annotations

import numpy as np
import pytest

import mind_mlir
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.passes.optimize import MODULE_PASSES, optimize

OFF = frozenset(each.name for each in MODULE_PASSES)
N = 64
WIDE, ROW = f"tensor<f32[{N}, {N}]>", f"tensor<f32[{N}]>"
LARGE = "tensor<f32[256, 256]>"


def looped(lines: str, value: str, first: str = "%zero", type_: str = WIDE) -> str:
    """Return a program of a loop that counts from ``first`` to 3 and adds ``value``, which ``lines`` make."""
    arguments = f"%x: {WIDE}, %w: {WIDE}, %l: {LARGE}, %i: tensor<i32[{N}]>, %n: tensor<i64[]>"
    return f"""func @main({arguments}) -> ({type_}) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  %nothing = ConstF32 {{value=0.0}} : tensor<f32[]>
  %start = BroadcastTo (%nothing) {{result_shape={type_[10:-1]}}} : {type_}
  %c, %y = While ({first}, %start) : (tensor<i64[]>, {type_}) {{
  ^condition(%k: tensor<i64[]>, %u: {type_}):
    %end = ConstI64 {{value=3}} : tensor<i64[]>
    %more = Compare (%k, %end) {{op=Less}} : tensor<i1[]>
    yield %more, %k, %u
  ^body(%j: tensor<i64[]>, %v: {type_}):
{lines}
    %sum = Add (%v, {value}) : {type_}
    %one = ConstI64 {{value=1}} : tensor<i64[]>
    %next = Add (%j, %one) : tensor<i64[]>
    yield %next, %sum
  }}
  return %y
}}
"""


def outside(text: str) -> list[str]:
    """Return what pass ``hoist`` puts in front of the loop or branch, and check what is computed."""
    module = mind_mlir.parse(text)
    mind_mlir.verify(module)
    changed = optimize(module, OFF, ["hoist"])
    rng = np.random.default_rng(0)
    given = {}
    for parameter in module.functions[0].parameters:
        type_ = parameter.tensor_type
        numbers = rng.uniform(1, 3, type_.extents)
        given[str(parameter.name)] = np.asarray(numbers, type_.dtype.numpy)
    for one, other in zip(
        mind_mlir.interpret(changed, given), mind_mlir.interpret(module, given), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    (before,), (after,) = module.functions[0].blocks, changed.functions[0].blocks
    there = [operation.opcode for operation in before.operations]
    found = [operation.opcode for operation in after.operations]
    return [opcode for opcode in found if found.count(opcode) > there.count(opcode)]


PRODUCT = f"    %p = MatMul (%x, %w) : {WIDE}\n    %q = Relu (%p) : {WIDE}"
TURNED = f"    %t = Transpose (%x) {{permutation=[1, 0]}} : {WIDE}\n    %p = MatMul (%t, %w) : {WIDE}"
MASK = f"    %p = Exp (%l) : {LARGE}"
STRETCHED = f"    %r = Slice (%x) {{ends=[1, {N}], starts=[0, 0], steps=[1, 1]}} : tensor<f32[1, {N}]>\n"
STRETCHED += f"    %p = BroadcastTo (%r) {{result_shape=[{N}, {N}]}} : {WIDE}"
DIVIDED = f"    %o = Div (%i, %i) : tensor<i32[{N}]>\n    %p = Cast (%o) {{dtype=f32}} : {ROW}"


def test_work_goes_out_of_a_loop_that_runs() -> None:
    assert outside(looped(PRODUCT, "%q")) == ["MatMul", "Relu"]
    assert outside(looped(TURNED, "%p")) == ["Transpose", "MatMul"]
    rows = f"    %e = Exp (%x) : {WIDE}\n    %p = Sum (%e) {{axes=[1], keepdims=false}} : {ROW}"
    assert outside(looped(rows, "%p", type_=ROW)) == ["Exp", "Sum"]


def test_what_is_no_gain_or_might_fail_stays() -> None:
    assert outside(looped(MASK, "%p", type_=LARGE)) == []  # 256 KB, which the loop never has in memory
    assert outside(looped(STRETCHED, "%p")) == []
    assert outside(looped(DIVIDED, "%p", type_=ROW)) == []
    assert outside(looped(f"    %p = MatMul (%v, %w) : {WIDE}", "%p")) == []


def test_only_little_goes_where_the_loop_may_not_run() -> None:
    assert outside(looped(PRODUCT, "%q", first="%n")) == []
    little = f"    %p = Sum (%x) {{axes=[1], keepdims=false}} : {ROW}"
    assert outside(looped(little, "%p", first="%n", type_=ROW)) == ["Sum"]


def branched(then: str, otherwise: str) -> str:
    return f"""func @main(%p: tensor<i1[]>, %x: {WIDE}, %w: {WIDE}) -> ({WIDE}, {WIDE}) {{
^entry:
  %r, %s = Cond (%p) : ({WIDE}, {WIDE}) {{
  ^then:
    %a = MatMul (%x, %w) : {WIDE}
    %b = Neg (%a) : {WIDE}
    yield %b, %a
  ^else:
    %c = {then} : {WIDE}
    %d = {otherwise} : {WIDE}
    yield %d, %c
  }}
  return %r, %s
}}
"""


def test_common_work_of_both_branches_goes_before_them() -> None:
    text = branched("MatMul (%x, %w)", "Exp (%c)")
    assert outside(text) == ["MatMul"]
    (function,) = optimize(mind_mlir.parse(text)).functions
    assert [operation.opcode for operation in operations_of(function.blocks)].count("MatMul") == 1
    # The second result was that of both branches: nothing of it is left in them.
    (branch,) = [operation for operation in function.entry.operations if operation.regions]
    assert len(branch.results) == 1


@pytest.mark.parametrize("other", ["MatMul (%w, %x)", "MatMul (%x, %x)"])
def test_what_only_one_branch_computes_stays(other: str) -> None:
    assert outside(branched(other, "Exp (%c)")) == []
