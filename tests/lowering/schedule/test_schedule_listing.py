"""What is printed of the scheduler's decisions: each nest in its place, with what it computes."""

from __future__ import annotations

import re

import pytest

from mind_mlir import parse
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.target import Target

TARGET = Target(vector_bytes=32, vector_registers=16, fma=True, l1_bytes=32 << 10, l2_bytes=1 << 20)


def listed(text: str) -> str:
    found = Lowering(target=TARGET).run(parse(text), until="schedule")
    assert found is not None
    return found


def kinds(text: str) -> list[str]:
    """Return the kinds of the nests, in order."""
    return re.findall(r"^ *\d+\. (\w+)", text, re.MULTILINE)


def test_a_nest_says_what_it_computes() -> None:
    text = listed("""\
%0 = Input {name="x"} : tensor<f32[4, 8]>
%1 = Exp (%0) : tensor<f32[4, 8]>
%2 = Sum (%1) {axes=[1], keepdims=false} : tensor<f32[4]>
outputs: %2
""")
    head, function, nest = text.split("\n\n")
    assert head == (
        "target: 16 vector registers of 32 bytes, fused multiply-add; L1 32 KB, L2 1024 KB, L3 8192 KB\n"
        "rates: a multiply-add 0.17 ns, other vectors 0.2; L2 80 GB/s, L3 40 after 20 ns, "
        "memory 20 after 80; past the cache 1.4 x; stated"
    )
    assert function == "func @main"
    first, exp, total, *choices = nest.splitlines()
    assert first == "  1. fused 4 x 8"
    assert exp == "    %1  Exp  <string>:2:1"
    assert total == "    %2  Sum  <string>:3:1"
    assert re.fullmatch(r" {6}vectors +1 x 8 +\S.*", choices[0])


def test_a_group_stands_behind_what_it_waited_for() -> None:
    # The sum is open until the end, and its last operation comes after the product.
    text = listed("""\
%0 = Input {name="x"} : tensor<f32[64, 64]>
%1 = Exp (%0) : tensor<f32[64, 64]>
%2 = MatMul (%0, %0) : tensor<f32[64, 64]>
%3 = Neg (%1) : tensor<f32[64, 64]>
outputs: %2, %3
""")
    assert kinds(text) == ["product", "fused"]
    assert text.index("MatMul") < text.index("Exp") < text.index("Neg")


def test_a_group_stands_before_what_comes_after_it() -> None:
    # Emitted at the end of the function, long after the product.
    text = listed("""\
%0 = Input {name="x"} : tensor<f32[64, 64]>
%1 = Exp (%0) : tensor<f32[64, 64]>
%2 = MatMul (%0, %0) : tensor<f32[64, 64]>
outputs: %1, %2
""")
    assert kinds(text) == ["fused", "product"]


LOOP = """\
func @main(%x: tensor<f32[64]>, %n: tensor<i64[]>) -> (tensor<f32[64]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%x, %zero)
^head(%y: tensor<f32[64]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %one = ConstI64 {value=1} : tensor<i64[]>
  %j = Add (%i, %one) : tensor<i64[]>
  %first = Compare (%i, %zero) {op=Equal} : tensor<i1[]>
  cond_br %first, ^then, ^else
^then:
  %p = Mul (%y, %y) : tensor<f32[64]>
  br ^head(%p, %j)
^else:
  br ^head(%y, %j)
^done:
  %e = Exp (%y) : tensor<f32[64]>
  return %e
}
"""


@pytest.mark.parametrize(("terms", "columns", "turned"), [(64, 7, True), (63, 7, False), (64, 8, False)])
def test_products_of_few_columns_are_computed_as_rows(terms: int, columns: int, turned: bool) -> None:
    text = listed(f"""\
%0 = Input {{name="x"}} : tensor<f32[{terms}, 30]>
%1 = Input {{name="y"}} : tensor<f32[{terms}, {columns}]>
%2 = Transpose (%0) {{permutation=[1, 0]}} : tensor<f32[30, {terms}]>
%3 = MatMul (%2, %1) : tensor<f32[30, {columns}]>
outputs: %3
""")
    assert kinds(text) == (["product", "transposition"] if turned else ["product"])


def test_scatters_of_rows_compute_what_they_add() -> None:
    text = listed("""\
%0 = Input {name="x"} : tensor<f32[600, 64]>
%1 = Input {name="at"} : tensor<i64[600]>
%2 = Mul (%0, %0) : tensor<f32[600, 64]>
%3 = SegmentReduce (%2, %1) {accum_dtype="f64", kind="Sum", num_segments=9} : tensor<f32[9, 64]>
outputs: %3
""")
    assert kinds(text) == [
        "fused",
        "fused",
        "scatter",
        "fused",
    ]  # positions are checked, and sums begin with 0
    assert not re.search("%2  Mul .*vectors", text, re.DOTALL)


@pytest.mark.parametrize(("columns", "shared"), [(2048, 1), (50, 0)])
def test_transpositions_share_rows_of_the_result_where_they_are_short(columns: int, shared: int) -> None:
    text = listed(f"""\
%0 = Input {{name="x"}} : tensor<f32[{columns}, 6000]>
%1 = Transpose (%0) {{permutation=[1, 0]}} : tensor<f32[6000, {columns}]>
outputs: %1
""")
    assert re.search(rf"chunks +\d+ of loop {shared} ", text)


def test_nests_of_loops_and_branches_stand_within_them() -> None:
    head = re.compile(r" *(func|%\w+ (While|Cond)|\d+\.)")
    lines = [line for line in listed(LOOP).splitlines() if head.match(line)]
    assert [re.sub(r"^( *)%\w+ (\w+) .*, ", r"\1\2 ", line) for line in lines] == [
        "func @main",
        "  While body",
        "    Cond then",
        "      1. fused 64",
        "  2. fused 64",
    ]


def test_what_is_not_arithmetic_is_listed_too() -> None:
    text = listed("""\
%0 = Input {name="x"} : tensor<i1[4, 6]>
%1 = Input {name="y"} : tensor<f32[4, 3, 2]>
%2 = Transpose (%1) {permutation=[2, 1, 0]} : tensor<f32[2, 3, 4]>
outputs: %0, %2
""")
    assert kinds(text) == ["transposition"]


def test_nests_that_share_a_function_are_listed_each() -> None:
    lines = ['%0 = Input {name="x"} : tensor<f32[9, 17]>']
    for number in range(1, 40, 3):
        lines += [
            f"%{number} = Sum (%{number - 1}) {{axes=[0], keepdims=true}} : tensor<f32[1, 17]>",
            f"%{number + 1} = Exp (%{number}) : tensor<f32[1, 17]>",
            f"%{number + 2} = Sub (%{number - 1}, %{number + 1}) : tensor<f32[9, 17]>",
        ]
    text = listed("\n".join([*lines, f"outputs: %{number + 2}", ""]))
    nests = re.split(r"^ *\d+\. ", text, flags=re.MULTILINE)[1:]
    assert sum("Exp" in nest for nest in nests) == 13
    called = [nest for nest in nests if re.search(r"^ +call +@main_nest_\d+ ", nest, re.MULTILINE)]
    assert sum("Exp" in nest for nest in called) == 13 - 8


@pytest.mark.parametrize("observed", [False, True])
def test_nothing_is_noted_unless_somebody_looks(observed: bool) -> None:
    lowering = Lowering(target=TARGET, observer=(lambda stage, text: None) if observed else None)
    lowering.run(parse(LOOP))
    assert ("1. fused" in lowering.schedule_text()) is observed


def test_the_target_decides() -> None:
    module = parse(LOOP)
    wide = Lowering(target=Target(vector_bytes=64)).run(module, until="schedule")
    assert wide is not None
    assert wide != listed(LOOP)
    assert Lowering(target=Target(vector_bytes=64)).run(module, until="schedule") == wide


def test_a_kind_that_does_not_compute_an_operation_says_why() -> None:
    text = listed("""\
%0 = Input {name="x"} : tensor<f32[96, 80]>
%1 = Transpose (%0) {permutation=[1, 0]} : tensor<f32[80, 96]>
%2 = Input {name="y"} : tensor<f32[96, 40]>
%3 = MatMul (%1, %2) : tensor<f32[80, 40]>
outputs: %3
""")
    assert kinds(text) == ["product"]
    assert re.search(
        r"^ +not +transposition +the products that read it read its source instead$", text, re.MULTILINE
    )
