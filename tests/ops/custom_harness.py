"""Targets and modules for the tests of custom calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import guarded
import numpy as np
import pytest

import mind_mlir
from mind_mlir import (
    Builder,
    DType,
    Module,
    TensorType,
    VerificationError,
    custom_attributes,
    register_custom_call,
)
from mind_mlir.ir.module import Functions
from mind_mlir.ops.custom_targets import custom_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value
    from mind_mlir.ops.vjp import Appends

F2 = TensorType(DType.F32, (2,))


def first(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> TensorType:
    del attributes
    return operands[0]


def pair(operands: Sequence[TensorType], attributes: Mapping[str, Any]) -> tuple[TensorType, TensorType]:
    del attributes
    return operands[0], operands[0]


def negated(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> Value:
    del attributes
    return builder.emit("Neg", operands[0])


def expansion(name: str, expand: Any, evaluate: Any = lambda x, _: -x[0], types: Any = first) -> str:
    """Register a target once, for tests that run in one process."""
    if name not in custom_targets():
        register_custom_call(name, types=types, evaluate=evaluate, expand=expand)
    return name


def function(build: Callable[[Builder, Value], Sequence[Value]], type_: TensorType = F2) -> Module:
    builder = Builder(profile="ptir-v0.4")
    x = builder.parameter(type_, "x")
    return Module(Functions((builder.function("main", build(builder, x)),)), "ptir-v0.4")


def calling(target: str, type_: TensorType = F2, **attributes: Any) -> Module:
    attrs = custom_attributes(attributes)
    return function(lambda b, x: [b.emit("CustomCall", x, target=target, attrs=attrs)], type_)


def both(module: Module, **arguments: Array) -> list[Array]:
    """Return what compiled code gives, having checked it against the interpreter."""
    found: list[Array] = guarded.call_executable(mind_mlir.compile(module), arguments)
    for result, expected in zip(found, mind_mlir.interpret(module, arguments), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    return found


def codes(build: Callable[[], object]) -> list[str]:
    with pytest.raises(VerificationError) as raised:
        build()
    assert all(finding.help for finding in raised.value.diagnostics)
    return [finding.code for finding in raised.value.diagnostics]


def returning_pair() -> str:
    """Register a target that returns its operand and the negative of it."""

    def expand(builder: Appends, operands: Sequence[Value], attributes: Mapping[str, Any]) -> list[Value]:
        del attributes
        return [operands[0], builder.emit("Neg", operands[0])]

    return expansion("test.pair.v1", expand, lambda x, _: (x[0], -x[0]), pair)
