"""The self-test: programs are read, differentiated, compiled, run, kept and loaded again, in seconds."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.tools.children import CrashedError, in_child
from mind_mlir.tools.doctor.report import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mind_mlir.ir.module import Module

_SECONDS = 60.0
_REPORT = "please report that, with all that is printed here"
#: A product, which is computed by a micro-kernel, and rows; a loop stands around them.
_PROGRAM = """
func @main(%x: tensor<f32[97, 65]>, %w: tensor<f32[65, 65]>) -> (tensor<f32[97]>) {
^entry:
  %n = ConstI64 {value=3} : tensor<i64[]>
  %i = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%x, %i)
^head(%u: tensor<f32[97, 65]>, %k: tensor<i64[]>):
  %more = Compare (%k, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %v = MatMul (%u, %w) : tensor<f32[97, 65]>
  %t = Tanh (%v) : tensor<f32[97, 65]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %next = Add (%k, %one) : tensor<i64[]>
  br ^head(%t, %next)
^done:
  %e = Exp (%u) : tensor<f32[97, 65]>
  %s = Sum (%e) {axes=[1], keepdims=false} : tensor<f32[97]>
  return %s
}
"""


def self_test() -> Iterator[Finding]:
    """Yield what each step of the self-test comes to; a step may crash, and the others go on."""
    for name, step in STEPS.items():
        start = time.perf_counter()
        trouble = _trouble(step)
        took = f"{(time.perf_counter() - start) * 1e3:,.0f} ms"
        yield Finding("self-test", name, "failed" if trouble else f"OK, {took}", trouble)


def _trouble(step: Callable[[], str]) -> str:
    try:
        found = in_child(partial(_message, step), _SECONDS)
    except CrashedError as error:
        return f"it crashed ({error}); {_REPORT}"
    except TimeoutError:
        return f"it took longer than {_SECONDS:g} seconds; {_REPORT}"
    return str(found)


def _message(step: Callable[[], str]) -> str:
    """Return what is wrong, or nothing: what a step finds, or the exception that it ends with."""
    try:
        return step()
    except Exception as error:  # whatever it is, it is the answer
        return f"{type(error).__name__}: {error}; {_REPORT}"


def _module() -> Module:
    from mind_mlir.languages.core import parse  # noqa: PLC0415 -- as below
    from mind_mlir.passes.verify import verify  # noqa: PLC0415 -- as below

    return verify(parse(_PROGRAM))


def _inputs() -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    random = np.random.default_rng(0)
    shapes = {"x": (97, 65), "w": (65, 65)}
    return {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def _reading() -> str:
    _module()
    return ""


def _compiling() -> str:
    from mind_mlir.tools.comparison import first_difference  # noqa: PLC0415 -- loads MLIR

    difference = first_difference(_module(), _inputs())
    return "" if difference is None else f"{difference}; {_REPORT}"


def _threads() -> str:
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- loads MLIR
    from mind_mlir.support.options import CompileOptions  # noqa: PLC0415 -- as above

    one, many = (
        Executable(_module(), CompileOptions(cache=False, threads=count, interpret=False))(**_inputs())[0]
        for count in (1, None)
    )
    return "" if np.array_equal(one, many) else f"results depend on the number of threads; {_REPORT}"


def _gradient() -> str:
    from mind_mlir.passes.autodiff import differentiate  # noqa: PLC0415 -- as above
    from mind_mlir.tools.comparison import first_difference  # noqa: PLC0415 -- as above

    module = differentiate(_module(), wrt=["w"], cotangents="unit").module
    difference = first_difference(module, _inputs())
    return "" if difference is None else f"{difference}; {_REPORT}"


def _keeping() -> str:
    from mind_mlir.runtime.executable import Executable  # noqa: PLC0415 -- as above
    from mind_mlir.support.options import CompileOptions  # noqa: PLC0415 -- as above

    with tempfile.TemporaryDirectory(prefix="mind-mlir-doctor-") as directory:
        options = CompileOptions(cache=str(Path(directory) / "cache"), interpret=False)
        before, after = (Executable(_module(), options)(**_inputs())[0] for _ in range(2))
        kept = any(Path(directory).rglob("*"))
    if not kept:
        return "nothing was kept"
    return "" if np.array_equal(before, after) else f"what was kept computes something else; {_REPORT}"


STEPS: dict[str, Callable[[], str]] = {
    "read and verify": _reading,
    "compile, run, compare": _compiling,
    "threads": _threads,
    "gradient": _gradient,
    "keep and load": _keeping,
}
