"""Values that later levels compute again: which, that bits are the same, and that it spares memory."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import numpy as np
import pytest

import mind_mlir
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.optimize import driver
from mind_mlir.passes.recompute import recompute
from mind_mlir.passes.record import Pass
from mind_mlir.target import named_target

if TYPE_CHECKING:
    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array
    from mind_mlir.target import Target

ROWS, WIDTH = 64, 128
WIDE = f"tensor<f32[{ROWS}, {WIDTH}]>"
#: An activation of %h with the value %g: two of its values are read by what comes behind the next product.
GELU = [
    f"%square = Mul (%h, %h) : {WIDE}",
    f"%cube = Mul (%square, %h) : {WIDE}",
    f"%inside = Add (%h, %cube) : {WIDE}",
    f"%bent = Tanh (%inside) : {WIDE}",
    f"%g = Mul (%h, %bent) : {WIDE}",
]
#: A loop around two products, the second of which is behind %s.
LOOP = f"""func @main(%x: {WIDE}, %w: tensor<f32[{WIDTH}, {WIDTH}]>, %n: tensor<i64[]>) -> ({WIDE}) {{
^entry:
  %zero = ConstI64 {{value=0}} : tensor<i64[]>
  br ^head(%x, %zero)
^head(%u: {WIDE}, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {{op=Less}} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %h = MatMul (%u, %w) : {WIDE}
  %s = Mul (%h, %h) : {WIDE}
  %g = Neg (%s) : {WIDE}
  %y = MatMul (%g, %w) : {WIDE}
  %z = Mul (%y, %s) : {WIDE}
  %o = Add (%z, %h) : {WIDE}
  %one = ConstI64 {{value=1}} : tensor<i64[]>
  %next = Add (%i, %one) : tensor<i64[]>
  br ^head(%o, %next)
^done:
  return %u
}}
"""
#: So near that only a few operations take less time than memory; so far that a tanh does.
NEAR = dataclasses.replace(named_target("avx512"), l2_bytes=1 << 30)
FAR = dataclasses.replace(named_target("avx512"), l2_bytes=1 << 10)


def program(lines: list[str], outputs: str) -> Module:
    """Return a program of %x, %v and %w, whose first product is %h; ``%y`` is the one behind ``%g``."""
    inputs = [
        f'%x = Input {{name="x"}} : tensor<f32[{ROWS}, 32]>',
        f'%v = Input {{name="v"}} : tensor<f32[32, {WIDTH}]>',
        f'%w = Input {{name="w"}} : tensor<f32[{WIDTH}, {WIDTH}]>',
        f"%h = MatMul (%x, %v) : {WIDE}",
    ]
    module: Module = mind_mlir.parse("\n".join([*inputs, *lines, f"outputs: {outputs}", ""]))
    return module


def gradient() -> Module:
    square = f"%e = Mul (%y, %y) : {WIDE}"
    loss = "%l = Sum (%e) {axes=[0, 1], keepdims=false} : tensor<f32[]>"
    made = program([*GELU, f"%y = MatMul (%g, %w) : {WIDE}", square, loss], "%l")
    return mind_mlir.differentiate(made).module


def again(form: Module, target: Target = FAR) -> list[str]:
    """Return what is computed again of a structured form, as the program calls it."""
    (function,) = recompute(form, target).functions
    labels = [operation.label for operation in function.entry.operations]
    return [label.removesuffix(" again") for label in labels if label.endswith(" again")]


def values() -> list[Array]:
    rng = np.random.default_rng(0)
    shapes = (ROWS, 32), (32, WIDTH), (WIDTH, WIDTH)
    return [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", ["sse", "avx2", "avx512"])
def test_no_program_of_one_level_changes(name: str) -> None:
    form = structured_form(program(GELU, "%g"))
    assert recompute(form, dataclasses.replace(named_target(name), l2_bytes=1)) is form


def test_a_gradient_has_the_same_bits_in_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MODULE_PASSES", ())
    kept, bits = memory_and_bits()
    far = Pass("far", "as if memory were far", lambda module, _: recompute(module, FAR))
    monkeypatch.setattr(driver, "MODULE_PASSES", (far,))
    less, same = memory_and_bits()
    assert same == bits
    assert kept - less >= ROWS * WIDTH * 4


def memory_and_bits() -> tuple[int, list[bytes]]:
    """Return how much scratch memory the gradient takes, and its results."""
    texts: dict[str, str] = {}
    compiled = mind_mlir.compile(gradient(), observer=lambda name, text: texts.update({name: text()}))
    found = re.search(r"mind.scratch_bytes = (\d+)", texts["bufferized"])
    assert found
    return int(found[1]), [np.asarray(each).tobytes() for each in compiled(*values())]


def test_how_far_memory_is_decides() -> None:
    form = structured_form(gradient())
    assert {"%square", "%cube", "%inside", "%bent"} <= set(again(form))
    near = again(form, NEAR)
    assert "%square" in near
    assert "%bent" not in near
    narrow = dataclasses.replace(FAR, vector_bytes=16)
    assert "%bent" not in again(form, narrow)
    assert str(recompute(form, FAR)) == str(recompute(form, FAR))


def later(*lines: str, outputs: str) -> Module:
    """Return the structured form of a program that may read %s, made of %h, behind another product, %y."""
    head = [f"%s = Mul (%h, %h) : {WIDE}", f"%g = Neg (%s) : {WIDE}", f"%y = MatMul (%g, %w) : {WIDE}"]
    return structured_form(program([*head, *lines], outputs))


SQUARE, PRODUCT = f"%z = Mul (%y, %s) : {WIDE}", f"%k = Mul (%y, %h) : {WIDE}"


def test_what_has_to_be_in_memory_is_kept() -> None:
    assert again(later(SQUARE, PRODUCT, outputs="%z, %k")) == ["%s"]
    assert again(later(SQUARE, PRODUCT, outputs="%z, %k, %s")) == []
    # Nothing else reads %h there: it would have to be kept in the place of %s.
    assert again(later(SQUARE, outputs="%z")) == []
    assert again(later(SQUARE, outputs="%z, %h")) == ["%s"]
    # A product, a reduction and a transposition read memory.
    turned = f"%p = Transpose (%s) {{permutation=[1, 0]}} : tensor<f32[{WIDTH}, {ROWS}]>"
    total = "%p = Sum (%s) {axes=[0, 1], keepdims=false} : tensor<f32[]>"
    for line in (turned, total, f"%p = MatMul (%s, %w) : {WIDE}"):
        assert again(later(line, SQUARE, PRODUCT, outputs="%z, %k, %p")) == []


def test_loops_are_looked_into() -> None:
    (function,) = recompute(structured_form(mind_mlir.parse(LOOP)), FAR).functions
    (loop,) = [operation for operation in function.entry.operations if operation.regions]
    labels = [operation.label for region in loop.regions for operation in region.operations]
    assert [label for label in labels if label.endswith(" again")] == ["%s again"]


def attended(length: int, *, shown: str = "%z", weights: str = "%p") -> list[str]:
    """Return what the gradient of attention among ``length`` places of 16 features computes again."""
    narrow, wide, row = (f"tensor<f32[{length}, {each}]>" for each in (16, length, 1))
    keepdims = "{axes=[1], keepdims=true}"
    lines = [
        *[f'%{each} = Input {{name="{each}"}} : {narrow}' for each in "qkv"],
        f"%t = Transpose (%k) {{permutation=[1, 0]}} : tensor<f32[16, {length}]>",
        f"%s = MatMul (%q, %t) : {wide}",
        f"%e = Exp (%s) : {wide}",
        f"%l = Sum (%e) {keepdims} : {row}",
        f"%r = Reciprocal (%l) : {row}",
        f"%p = Mul (%e, %r) : {wide}",
        f"%n = Neg (%p) : {wide}",
        f"%o = MatMul ({weights}, %v) : {narrow}",
        '%w = Input {name="w"} : tensor<f32[16, 16]>',
        f"%y = MatMul (%o, %w) : {narrow}",
        f"%z = Mul (%y, %y) : {narrow}",
        f"outputs: {shown}",
    ]
    made = mind_mlir.parse("\n".join([*lines, ""]))
    form = structured_form(mind_mlir.differentiate(made, cotangents="given").module)
    return again(form, NEAR)


def test_weights_of_attention() -> None:
    """The whole chain, product included, where scores are no smaller than what they are computed from."""
    chain = ["%s", "%e", "%l", "%r", "%p"]
    found = attended(32)
    assert [each for each in found if each in chain] == chain
    assert attended(31) == []
    assert "%n" in attended(32, weights="%n")
    assert attended(32, shown="%z, %p") == []


def test_what_is_read_is_there() -> None:
    """A copy of weights comes before what reads it, and not before what it reads itself."""
    dot = "accum_dtype=f32, batch_lhs=[], batch_rhs=[], out_dtype=f32"
    module = mind_mlir.parse(f"""
        %x = Input {{name="x"}} : tensor<f32[16, 8]>
        %w = Input {{name="w"}} : tensor<f32[16, 8]>
        %s = DotGeneral (%x, %w) {{{dot}, contract_lhs=[1], contract_rhs=[1]}} : tensor<f32[16, 16]>
        %r = Sum (%s) {{axes=[0], keepdims=false}} : tensor<f32[16]>
        %p = MatMul (%s, %x) : tensor<f32[16, 8]>
        %q = DotGeneral (%p, %w) {{{dot}, contract_lhs=[1], contract_rhs=[1]}} : tensor<f32[16, 16]>
        %t = Sum (%q) {{axes=[0], keepdims=false}} : tensor<f32[16]>
        %first = Add (%r, %t) : tensor<f32[16]>
        %late = Iota {{axis=0, dtype=f32, shape=[16]}} : tensor<f32[16]>
        %m = Mul (%r, %late) : tensor<f32[16]>
        %second = Add (%m, %first) : tensor<f32[16]>
        outputs: %second
        """)
    arguments = {
        name: np.random.default_rng(0).standard_normal((16, 8), dtype=np.float32) for name in ("x", "w")
    }
    (expected,) = mind_mlir.interpret(module, arguments)
    (found,) = mind_mlir.compile(module)(**arguments)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3)
