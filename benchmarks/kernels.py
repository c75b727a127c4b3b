"""Small kernels that are not matrix products, on one thread, against numpy in the same run.

numpy runs each operation by itself, into fresh memory; the compiled function may fuse them.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from benchmarks.command import is_child, parser, run_child, show
from benchmarks.measure import READING, ROUND_SECONDS, compare
from benchmarks.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row
    from mind_mlir import Module


@dataclass(frozen=True, slots=True)
class Kernel:
    """A program, and the same in numpy with the same arguments in the same order."""

    name: str
    program: str
    numpy: Callable[..., Any]
    #: Inputs with respect to which the program is differentiated; empty: it is measured as it is.
    gradient: tuple[str, ...] = ()

    def module(self) -> Module:
        """Return the module that is measured."""
        module = mind_mlir.parse(self.program)
        return mind_mlir.differentiate(module, wrt=self.gradient).module if self.gradient else module


def _chain(x: Any, y: Any) -> Any:
    return np.maximum((x + y) * x - y, 0)


def _softmax(x: Any) -> Any:
    exponentials = np.exp(x)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def _layer_norm_gradient(x: Any, cotangent: Any, gain: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred * centred).mean(axis=1, keepdims=True))
    normal, scaled = centred * scale, cotangent * gain
    along = normal * (scaled * normal).mean(axis=1, keepdims=True)
    d_x = (scaled - scaled.mean(axis=1, keepdims=True) - along) * scale
    return d_x, (cotangent * normal).sum(axis=0), cotangent.sum(axis=0)


def _mlp_step(x: Any, target: Any, w1: Any, w2: Any) -> Any:
    before = x @ w1
    hidden = np.maximum(before, 0)
    error = hidden @ w2 - target
    d_output = error * np.float32(2 / error.size)
    d_hidden = (d_output @ w2.T) * (before > 0)
    return np.mean(error * error), x.T @ d_hidden, hidden.T @ d_output


KERNELS = (
    Kernel(
        "elementwise chain",
        """\
%0 = Input {name="x"} : tensor<f32[1024, 1024]>
%1 = Input {name="y"} : tensor<f32[1024, 1024]>
%2 = Add (%0, %1) : tensor<f32[1024, 1024]>
%3 = Mul (%0, %2) : tensor<f32[1024, 1024]>
%4 = Sub (%3, %1) : tensor<f32[1024, 1024]>
%5 = Relu (%4) : tensor<f32[1024, 1024]>
outputs: %5
""",
        _chain,
    ),
    Kernel(
        "exp",
        """\
%0 = Input {name="x"} : tensor<f32[256, 1024]>
%1 = Exp (%0) : tensor<f32[256, 1024]>
outputs: %1
""",
        np.exp,
    ),
    Kernel(
        "sum of rows",
        """\
%0 = Input {name="x"} : tensor<f32[1024, 1024]>
%1 = Sum (%0) {axes=[1], keepdims=false} : tensor<f32[1024]>
outputs: %1
""",
        lambda x: x.sum(axis=1),
    ),
    Kernel(
        "sum of columns",
        """\
%0 = Input {name="x"} : tensor<f32[1024, 1024]>
%1 = Sum (%0) {axes=[0], keepdims=false} : tensor<f32[1024]>
outputs: %1
""",
        lambda x: x.sum(axis=0),
    ),
    Kernel(
        "softmax",
        """\
%0 = Input {name="x"} : tensor<f32[512, 512]>
%1 = Exp (%0) : tensor<f32[512, 512]>
%2 = Sum (%1) {axes=[1], keepdims=true} : tensor<f32[512, 1]>
%3 = Log (%2) : tensor<f32[512, 1]>
%4 = Sub (%0, %3) : tensor<f32[512, 512]>
%5 = Exp (%4) : tensor<f32[512, 512]>
outputs: %5
""",
        _softmax,
    ),
    Kernel(
        "layer norm gradient",
        """\
%0 = Input {name="x"} : tensor<f32[4096, 768]>
%1 = Input {name="cotangent"} : tensor<f32[4096, 768]>
%2 = Input {name="gain"} : tensor<f32[768]>
%3 = Mean (%0) {axes=[1], keepdims=true} : tensor<f32[4096, 1]>
%4 = Sub (%0, %3) : tensor<f32[4096, 768]>
%5 = Mul (%4, %4) : tensor<f32[4096, 768]>
%6 = Mean (%5) {axes=[1], keepdims=true} : tensor<f32[4096, 1]>
%7 = Rsqrt (%6) : tensor<f32[4096, 1]>
%8 = Mul (%4, %7) : tensor<f32[4096, 768]>
%9 = Mul (%1, %2) : tensor<f32[4096, 768]>
%10 = Mul (%9, %8) : tensor<f32[4096, 768]>
%11 = Mean (%10) {axes=[1], keepdims=true} : tensor<f32[4096, 1]>
%12 = Mean (%9) {axes=[1], keepdims=true} : tensor<f32[4096, 1]>
%13 = Mul (%8, %11) : tensor<f32[4096, 768]>
%14 = Sub (%9, %12) : tensor<f32[4096, 768]>
%15 = Sub (%14, %13) : tensor<f32[4096, 768]>
%16 = Mul (%15, %7) : tensor<f32[4096, 768]>
%17 = Mul (%1, %8) : tensor<f32[4096, 768]>
%18 = Sum (%17) {axes=[0], keepdims=false} : tensor<f32[768]>
%19 = Sum (%1) {axes=[0], keepdims=false} : tensor<f32[768]>
outputs: %16, %18, %19
""",
        _layer_norm_gradient,
    ),
    Kernel(
        "mlp loss and gradients",
        """\
%0 = Input {name="x"} : tensor<f32[128, 256]>
%1 = Input {name="target"} : tensor<f32[128, 16]>
%2 = Input {name="w1"} : tensor<f32[256, 256]>
%3 = Input {name="w2"} : tensor<f32[256, 16]>
%4 = MatMul (%0, %2) : tensor<f32[128, 256]>
%5 = Relu (%4) : tensor<f32[128, 256]>
%6 = MatMul (%5, %3) : tensor<f32[128, 16]>
%7 = Sub (%6, %1) : tensor<f32[128, 16]>
%8 = Mul (%7, %7) : tensor<f32[128, 16]>
%9 = Mean (%8) {axes=[], keepdims=false} : tensor<f32[]>
outputs: %9
""",
        _mlp_step,
        gradient=("w1", "w2"),
    ),
)


def measure(kernels: Sequence[Kernel] = KERNELS, seconds: float = ROUND_SECONDS) -> Report:
    """Compare each kernel with numpy, after checking that both compute the same."""
    mind_mlir.compile(KERNELS[0].module())  # loads MLIR, which is not what is measured
    return Report(
        "kernels, one thread",
        [_row(kernel, seconds) for kernel in kernels],
        [READING],
    )


def _row(kernel: Kernel, seconds: float) -> Row:
    start = time.perf_counter()
    function = mind_mlir.compile(kernel.module())
    compile_seconds = time.perf_counter() - start
    random = np.random.default_rng(0)
    arrays = [
        random.standard_normal(parameter.type.extents, dtype=np.float32) for parameter in function.parameters
    ]
    expected = kernel.numpy(*arrays)
    for ours, theirs in zip(
        function(*arrays), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3)
    result = compare(lambda: function(*arrays), lambda: kernel.numpy(*arrays), seconds=seconds)
    return {
        "kernel": kernel.name,
        "ours us": result.ours * 1e6,
        "numpy us": result.theirs * 1e6,
        "ratio": result.ratio,
        "compile ms": compile_seconds * 1e3,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("kernels", __doc__)
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options = options_parser.parse_args(arguments)
    if not is_child():
        return run_child("kernels", arguments)
    return show(measure(seconds=options.seconds), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
