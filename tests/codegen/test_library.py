"""Native code of the runtime that is written in the LLVM dialect."""

from __future__ import annotations

import ctypes

import pytest

from mind_mlir.codegen import library
from mind_mlir.image.errors import LoadingError
from mind_mlir.image.loading import Loaded
from mind_mlir.mlir.bindings import MLIRError

FUNCTIONS = """
llvm.func @PyLong_FromLong(i64) -> !llvm.ptr
llvm.mlir.global internal @count(0 : i64) : i64
llvm.func internal @helper(%a: i64) -> i64 {
  %three = llvm.mlir.constant(3 : i64) : i64
  %sum = llvm.add %a, %three : i64
  llvm.return %sum : i64
}
llvm.func @multiply(%a: i64, %b: i64) -> i64 {
  %x = llvm.call @helper(%a) : (i64) -> i64
  %product = llvm.mul %x, %b : i64
  llvm.return %product : i64
}
llvm.func @python_integer(%a: i64) -> !llvm.ptr {
  %object = llvm.call @PyLong_FromLong(%a) : (i64) -> !llvm.ptr
  llvm.return %object : !llvm.ptr
}
"""


def test_public_functions_are_c_functions() -> None:
    loaded = Loaded(library.compile_text(FUNCTIONS))
    address = loaded.address_of("multiply")
    multiply = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(address)
    assert multiply(4, -5) == -35


def test_code_calls_what_the_process_has() -> None:
    loaded = Loaded(library.compile_text(FUNCTIONS))
    function = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_int64)(loaded.address_of("python_integer"))
    assert function(1 << 40) == 1 << 40


def test_a_symbol_that_nobody_defines() -> None:
    text = "llvm.func @missing()\nllvm.func @calls() { llvm.call @missing() : () -> ()\n llvm.return }"
    with pytest.raises(LoadingError, match="does not have"):
        Loaded(library.compile_text(text))


def test_a_text_that_is_wrong() -> None:
    with pytest.raises(MLIRError):
        library.compile_text("llvm.func @wrong(")
