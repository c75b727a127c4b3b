"""Runs `mind-mlir` with one more target of custom calls, a C function: `test.halve.v1`."""

from __future__ import annotations

import ctypes
from typing import Any

from mind_mlir import CustomAttribute, register_custom_call
from mind_mlir.tools.start import mind_mlir


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
def _never_called(inputs: Any, outputs: Any, extents: Any, attrs: Any) -> None:
    raise AssertionError("the test compiles, and runs nothing")


if __name__ == "__main__":
    register_custom_call(
        "test.halve.v1",
        types=lambda operands, attributes: operands[0],
        evaluate=lambda operands, attributes: operands[0] / 2 ** attributes["times"],
        native=_never_called,
        attributes={"times": CustomAttribute("I64", "how often", default=1)},
        doc="the first operand, halved",
    )
    mind_mlir()
