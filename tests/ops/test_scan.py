"""Scan: steps over leading axes, stacked outputs, its derivative, and what a step does not copy."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mind_mlir
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.verify import check

SUMS = """
func @main(%x: tensor<f64[{n}, 3]>, %s: tensor<f64[3]>) -> (tensor<f64[3]>, tensor<f64[{n}, 3]>) {{
^entry:
  %e, %r = Scan (%s, %x) {{carry_count=1, scan_output_count=1}} : (tensor<f64[3]>, tensor<f64[{n}, 3]>) {{
  ^body(%c: tensor<f64[3]>, %row: tensor<f64[3]>):
    %product = Mul (%c, %row) : tensor<f64[3]>
    %sum = Add (%product, %row) : tensor<f64[3]>
    yield %sum, %product
  }}
  return %e, %r
}}
"""


def steps(x: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    stacked = []
    for row in x:
        product = s * row
        s = product + row
        stacked.append(product)
    return s, np.array(stacked).reshape(x.shape)


@pytest.mark.parametrize("length", [1, 2, 17])
def test_each_step_is_given_its_slice(length: int) -> None:
    module = mind_mlir.parse(SUMS.format(n=length))
    rng = np.random.default_rng(length)
    x, s = rng.standard_normal((length, 3)), rng.standard_normal(3)
    expected = steps(x, s)
    for found in (mind_mlir.compile(module)(x, s), mind_mlir.interpret(module, {"x": x, "s": s})):
        for actual, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(actual, wanted)


def test_no_steps_leave_the_carries_and_empty_stacks() -> None:
    text = """
    func @main(%s: tensor<f32[2]>) -> (tensor<f32[2]>, tensor<i1[0, 2]>) {
    ^entry:
      %z = Slice (%s) {starts=[0], ends=[0], steps=[1]} : tensor<f32[0]>
      %e, %r = Scan (%s, %z) {carry_count=1, scan_output_count=1} : (tensor<f32[2]>, tensor<i1[0, 2]>) {
      ^body(%c: tensor<f32[2]>, %a: tensor<f32[]>):
        %n = Neg (%c) : tensor<f32[2]>
        %l = Compare (%n, %c) {op=Less} : tensor<i1[2]>
        yield %n, %l
      }
      return %e, %r
    }
    """
    module = mind_mlir.parse(text)
    s = np.array([1, 2], np.float32)
    for found in (mind_mlir.compile(module)(s), mind_mlir.interpret(module, {"s": s})):
        np.testing.assert_array_equal(found[0], s)
        assert found[1].shape == (0, 2)
        assert found[1].dtype == np.bool_


def test_the_derivative_is_that_of_the_steps() -> None:
    module = mind_mlir.parse(SUMS.format(n=6))
    rng = np.random.default_rng(1)
    x, s = rng.standard_normal((6, 3)), rng.standard_normal(3)
    *_, dx, ds = mind_mlir.compile(mind_mlir.differentiate(module).module)(x, s)
    for array, gradient in ((x, dx), (s, ds)):
        for index in np.ndindex(array.shape):
            ends = []
            for moved in (1e-6, -1e-6):
                array[index] += moved
                ends.append(sum(result.sum() for result in steps(x, s)))
                array[index] -= moved
            np.testing.assert_allclose(gradient[index], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


TWICE = """
func @main(%x: tensor<f64[40]>, %s: tensor<f64[]>) -> (tensor<f64[]>) {
^entry:
  %r = Scan (%s, %x, %x) {carry_count=1, scan_output_count=0} : tensor<f64[]> {
  ^body(%c: tensor<f64[]>, %a: tensor<f64[]>, %b: tensor<f64[]>):
    %p = Mul (%c, %a) : tensor<f64[]>
    %q = Mul (%p, %b) : tensor<f64[]>
    %t = Add (%q, %b) : tensor<f64[]>
    yield %t
  }
  return %r
}
"""


def test_a_step_back_adds_to_the_slices_that_it_read() -> None:
    gradient = mind_mlir.differentiate(mind_mlir.parse(TWICE)).module
    assert not re.search(r"\n    %\d+ = Add .*: tensor<f64\[40\]>", str(gradient)), "in each step"
    rng = np.random.default_rng(2)
    x, s = 0.5 + rng.random(40), np.array(0.3)

    def last(x: np.ndarray) -> float:
        found = float(s)
        for each in x:
            found = found * each * each + each
        return found

    _, dx, _ = mind_mlir.compile(gradient)(x, s)
    for index in range(40):
        ends = []
        for moved in (1e-6, -1e-6):
            x[index] += moved
            ends.append(last(x))
            x[index] -= moved
        np.testing.assert_allclose(dx[index], (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_it_is_a_counted_loop_in_structured_form() -> None:
    text = str(structured_form(mind_mlir.parse(SUMS.format(n=6))))
    assert "Scan" not in text
    assert text.count("While") == 1
    assert "scf.for" in mind_mlir.compile(mind_mlir.parse(SUMS.format(n=6))).as_text("bufferized")


DECODE = """
func @main(%cache: tensor<f32[512, 64]>, %x: tensor<f32[9, 64]>, %at: tensor<i64[]>)
    -> (tensor<f32[512, 64]>, tensor<f32[9, 512]>) {
^entry:
  %p, %c, %o = Scan (%at, %cache, %x) {carry_count=2, scan_output_count=1}
      : (tensor<i64[]>, tensor<f32[512, 64]>, tensor<f32[9, 512]>) {
  ^body(%i: tensor<i64[]>, %kv: tensor<f32[512, 64]>, %row: tensor<f32[64]>):
    %a = Reshape (%i) {new_shape=[1]} : tensor<i64[1]>
    %start = Pad (%a) {low=[0], high=[1], interior=[0], pad_value=0} : tensor<i64[2]>
    %new = Reshape (%row) {new_shape=[1, 64]} : tensor<f32[1, 64]>
    %next = DynamicUpdateSlice (%kv, %new, %start) : tensor<f32[512, 64]>
    %column = Reshape (%row) {new_shape=[64, 1]} : tensor<f32[64, 1]>
    %scores = MatMul (%next, %column) : tensor<f32[512, 1]>
    %flat = Reshape (%scores) {new_shape=[512]} : tensor<f32[512]>
    %one = ConstI64 {value=1} : tensor<i64[]>
    %j = Add (%i, %one) : tensor<i64[]>
    yield %j, %next, %flat
  }
  return %c, %o
}
""".replace("\n    -> ", " -> ").replace("\n      : ", " : ")


def test_a_cache_that_is_carried_is_written_in_place() -> None:
    executable = mind_mlir.compile(mind_mlir.parse(DECODE))
    text = executable.as_text("bufferized")
    loop = text[text.index("iter_args") :]
    assert "memref.copy" in loop, "that of a row, whose place is checked"
    assert not re.search(r"memref\.copy .* to memref<512x64xf32", loop)
    cache, x = np.zeros((512, 64), np.float32), np.ones((9, 64), np.float32)
    x *= np.arange(1, 10, dtype=np.float32)[:, None]
    found, scores = executable(cache, x, np.array(3))
    np.testing.assert_array_equal(found[3:12], x)
    np.testing.assert_array_equal(scores[8][3:12], 64 * 9 * np.arange(1, 10, dtype=np.float32))
    assert not cache.any()


HEAD = "%e, %r = Scan (%s, %x) {carry_count=1, scan_output_count=1}"


@pytest.mark.parametrize(
    ("old", "new", "code", "part"),
    [
        ("carry_count=1", "carry_count=2", "E2007", "carry_count of Scan is 2, expected 0 to 1"),
        ("carry_count=1", "carry_count=-1", "E2007", "carry_count of Scan is -1"),
        ("scan_output_count=1", "scan_output_count=3", "E2007", "scan_output_count of Scan is 3"),
        ("Scan (%s, %x)", "Scan (%x, %s)", "E2001", "parameter 0 of ^body of Scan"),
        ("Scan (%s, %x)", "Scan (%s, %x, %s)", "E3003", "of one length, found 4 and 3"),
        ("%row: tensor<f64[3]>", "%row: tensor<f64[4]>", "E2001", "parameter 1 of ^body of Scan"),
        ("yield %sum, %product", "yield %sum", "E2007", "^body of Scan yields"),
        ("%x: tensor<f64[4, 3]>", "%x: tensor<f64[]>", "E3002", "has a leading axis"),
    ],
)
def test_what_is_wrong_with_a_scan(old: str, new: str, code: str, part: str) -> None:
    text = SUMS.format(n=4).replace(old, new)
    found = check(mind_mlir.parse(text))
    assert found[0].code == code
    assert part in found[0].message


def test_a_scan_without_results() -> None:
    text = """
    func @main(%x: tensor<f64[4]>) -> (tensor<f64[4]>) {
    ^entry:
      %r = Scan (%x) {carry_count=0, scan_output_count=0} : tensor<f64[4]> {
      ^body(%a: tensor<f64[]>):
        yield
      }
      return %r
    }
    """
    assert [each.code for each in check(mind_mlir.parse(text))] == ["E4122"]
