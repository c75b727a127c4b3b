"""What is recognised as a sum of products, and what only looks like one."""

from __future__ import annotations

import pytest

from mind_mlir.lowering.schedule.folds.reductions import match_combiners
from mind_mlir.lowering.schedule.linalg_view.values import match_multiply_add
from mind_mlir.mlir.bindings import Block, Module, ir, new_context

GENERIC = """
func.func @main(%a: tensor<4x{element}>, %b: tensor<4x{element}>, %c: tensor<{result}>) -> tensor<{result}> {{
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>,
      affine_map<(i) -> ()>], iterator_types = ["reduction"]}}
      ins(%a, %b : tensor<4x{element}>, tensor<4x{element}>)
      outs(%c : tensor<{result}>) {{
    ^bb0(%x: {element}, %y: {element}, %acc: {result}):
      {body}
    }} -> tensor<{result}>
  return %r : tensor<{result}>
}}"""


def block(body: str, element: str, result: str) -> tuple[Block, Module]:
    """Return the block that computes an element, and the module that keeps it."""
    with new_context():
        module = ir.Module.parse(GENERIC.format(body=body, element=element, result=result))
        function = module.body.operations[0]
        return function.regions[0].blocks[0].operations[0].regions[0].blocks[0], module


YIELD = "\nlinalg.yield %s : f32"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%p = arith.mulf %x, %y : f32\n%s = arith.addf %acc, %p : f32", True),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.addf %p, %acc : f32", True),
        ("%p = arith.mulf %y, %x : f32\n%s = arith.addf %acc, %p : f32", True),
        ("%p = arith.mulf %x, %x : f32\n%s = arith.addf %acc, %p : f32", False),
        ("%p = arith.mulf %x, %acc : f32\n%s = arith.addf %acc, %p : f32", False),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.subf %acc, %p : f32", False),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.addf %p, %p : f32", False),
        ("%p = arith.addf %x, %y : f32\n%s = arith.addf %acc, %p : f32", False),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.mulf %acc, %p : f32", False),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.addf %acc, %acc : f32", False),
        ("%s = arith.addf %acc, %x : f32", False),
    ],
)
def test_sums_of_products(body: str, expected: bool) -> None:
    found, _module = block(body + YIELD, "f32", "f32")
    assert (match_multiply_add(found) is not None) == expected


@pytest.mark.parametrize("swapped", [False, True])
def test_conversions_belong_to_their_factor(swapped: bool) -> None:
    product = "%v, %u" if swapped else "%u, %v"
    found, _module = block(
        f"""%t = arith.extsi %x : i8 to i16
        %u = arith.extsi %t : i16 to i32
        %v = arith.extui %y : i8 to i32
        %p = arith.muli {product} : i32
        %s = arith.addi %acc, %p : i32
        linalg.yield %s : i32""",
        "i8",
        "i32",
    )
    match = match_multiply_add(found)
    assert match is not None
    assert not match.floating
    names = [[op.name for op in casts] for casts in match.casts]
    assert names == [["arith.extsi", "arith.extsi"], ["arith.extui"]]
    assert [str(op.results[0].type) for op in match.casts[0]] == ["i16", "i32"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%s = arith.addf %acc, %x : f32", ["arith.addf"]),
        ("%s = arith.maximumf %x, %acc : f32", ["arith.maximumf"]),
        ("%p = arith.mulf %x, %y : f32\n%s = arith.addf %p, %acc : f32", ["arith.addf"]),
        ("%s = arith.subf %acc, %x : f32", None),
        ("%s = arith.addf %acc, %acc : f32", None),
        ("%s = arith.addf %x, %y : f32", None),
        ("%p = arith.addf %acc, %x : f32\n%s = arith.addf %p, %acc : f32", None),
        ("%p = arith.addf %acc, %x : f32\n%s = arith.addf %p, %x : f32", None),
        ("%s = arith.negf %acc : f32", None),
    ],
)
def test_reductions(body: str, expected: list[str] | None) -> None:
    found, _module = block(body + YIELD, "f32", "f32")
    combiners = match_combiners(found, 1)
    names = None if combiners is None else [combiner.name for combiner in combiners]
    assert names == expected


def test_one_factor_and_two_accumulators_are_no_sum_of_products() -> None:
    with new_context():
        module = ir.Module.parse("""
        func.func @main(%a: tensor<4xf32>, %b: tensor<f32>, %c: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
          %r:2 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>,
              affine_map<(i) -> ()>], iterator_types = ["reduction"]}
              ins(%a : tensor<4xf32>) outs(%b, %c : tensor<f32>, tensor<f32>) {
            ^bb0(%x: f32, %y: f32, %acc: f32):
              %p = arith.mulf %x, %y : f32
              %s = arith.addf %acc, %p : f32
              linalg.yield %s, %y : f32, f32
            } -> (tensor<f32>, tensor<f32>)
          return %r#0, %r#1 : tensor<f32>, tensor<f32>
        }""")
        found = module.body.operations[0].regions[0].blocks[0].operations[0].regions[0].blocks[0]
        assert match_multiply_add(found) is None
