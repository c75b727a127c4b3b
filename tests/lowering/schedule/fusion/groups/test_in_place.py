"""Intermediate values that are written over by what is computed from them element by element."""

from __future__ import annotations

import numpy as np
import pytest
from guarded import call_executable

import mind_mlir

ROWS, COLUMNS = 96, 80
WHOLE = 4 * ROWS * COLUMNS  # bytes of a tensor
INPUTS = f"""
%a = Input {{name="a"}} : tensor<f32[{ROWS}, 40]>
%b = Input {{name="b"}} : tensor<f32[40, {COLUMNS}]>
%p = MatMul(%a, %b) : tensor<f32[{ROWS}, {COLUMNS}]>
"""
T = f"tensor<f32[{ROWS}, {COLUMNS}]>"

SOFTMAX = f"""
%e = Exp(%p) : {T}
%s = Sum(%e) {{axes=[1], keepdims=true}} : tensor<f32[{ROWS}, 1]>
%i = Reciprocal(%s) : tensor<f32[{ROWS}, 1]>
%q = Mul(%e, %i) : {T}
outputs: %q
"""
RESHAPED = f"""
%q = Mul(%p, %p) : {T}
%r = Reshape(%q) {{new_shape=[{COLUMNS}, {ROWS}]}} : tensor<f32[{COLUMNS}, {ROWS}]>
outputs: %r
"""
CHAIN = f"""
%i = Input {{name="i"}} : tensor<f32[{COLUMNS}, {COLUMNS}]>
%q = Relu(%p) : {T}
%r = MatMul(%q, %i) : {T}
%s = Relu(%r) : {T}
%t = MatMul(%s, %i) : {T}
%u = Exp(%t) : {T}
outputs: %u
"""
READ_LATER = f"""
%q = Mul(%p, %p) : {T}
%t = Transpose(%q) {{permutation=[1, 0]}} : tensor<f32[{COLUMNS}, {ROWS}]>
%m = MatMul(%t, %p) : tensor<f32[{COLUMNS}, {COLUMNS}]>
outputs: %q, %m
"""
RETURNED = f"""
%q = Mul(%p, %p) : {T}
outputs: %q, %p
"""
BROADCAST = f"""
%r = Sum(%p) {{axes=[1], keepdims=true}} : tensor<f32[{ROWS}, 1]>
%first = Slice(%p) {{starts=[0, 0], ends=[1, {COLUMNS}], steps=[1, 1]}} : tensor<f32[1, {COLUMNS}]>
%q = Sub(%p, %first) : {T}
%s = Mul(%q, %r) : {T}
outputs: %s
"""
TURNED = f"""
%g = Input {{name="g"}} : tensor<f32[{COLUMNS}, {COLUMNS}]>
%m = MatMul(%g, %g) : tensor<f32[{COLUMNS}, {COLUMNS}]>
%t = Transpose(%m) {{permutation=[1, 0]}} : tensor<f32[{COLUMNS}, {COLUMNS}]>
%q = Sub(%m, %t) : tensor<f32[{COLUMNS}, {COLUMNS}]>
outputs: %q, %p
"""


def compiled(body: str) -> mind_mlir.Executable:
    """Compile ``body`` behind a product, and hold it to the numpy rules, between guard pages too."""
    module = mind_mlir.parse(INPUTS + body)
    executable: mind_mlir.Executable = mind_mlir.compile(module)
    generator = np.random.default_rng(0)
    given = {
        parameter.name: generator.standard_normal(parameter.shape).astype(np.float32) / 8
        for parameter in executable.parameters
    }
    found = call_executable(executable, given)
    expected = mind_mlir.interpret(module, given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    return executable


@pytest.mark.parametrize("body", [SOFTMAX, RESHAPED], ids=["softmax", "reshaped"])
def test_what_ends_in_an_output_is_computed_there_from_the_first_step_on(body: str) -> None:
    executable = compiled(body)
    assert "memref.copy" not in executable.as_text("bufferized")
    assert executable._called()._native.scratch_bytes < WHOLE


def test_a_chain_needs_no_buffer_for_elementwise_steps() -> None:
    executable = compiled(CHAIN)
    assert "memref.copy" not in executable.as_text("bufferized")
    # One product is read while the next is written. The last one is written to the output.
    assert executable._called()._native.scratch_bytes < 3 * WHOLE


@pytest.mark.parametrize(
    "body", [READ_LATER, RETURNED, BROADCAST, TURNED], ids=["later", "returned", "broadcast", "turned"]
)
def test_what_is_read_otherwise_is_kept(body: str) -> None:
    executable = compiled(body)
    text = executable.as_text("bufferized")
    assert text.count("memref.copy") <= 1, text  # none of a whole tensor
