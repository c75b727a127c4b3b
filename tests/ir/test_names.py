"""Values are called what their program calls them, in every print and every message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mind_mlir import (
    AutodiffError,
    Builder,
    DType,
    ExecutionError,
    Module,
    TensorType,
    VerificationError,
    canonicalize,
    compile,
    differentiate,
    interpret,
    parse,
    print_module,
    verify,
)

if TYPE_CHECKING:
    from collections.abc import Callable

NAMED = """\
%i = Input {name="i"} : tensor<i64[2]>
%unused = Neg (%i) : tensor<i64[2]>
%x = Input {name="x"} : tensor<f32[3]>
%c1 = ConstF32 {value=1.0} : tensor<f32[]>
%moved = Add (%x, %c1) : tensor<f32[3]>
%bad = Gather (%moved, %i) : tensor<f32[2]>
%loss = Sum (%bad) {axes=[], keepdims=false} : tensor<f32[]>
outputs: %loss
"""
CANONICAL = """\
%0 = Input {name="i"} : tensor<i64[2]>
%1 = Input {name="x"} : tensor<f32[3]>
%2 = ConstF32 {value=1.0} : tensor<f32[]>
%3 = Add (%1, %2) : tensor<f32[3]>
%4 = Gather (%3, %0) : tensor<f32[2]>
%5 = Sum (%4) {axes=[], keepdims=false} : tensor<f32[]>
outputs: %5
"""
ARGUMENTS = {"i": np.array([0, 9]), "x": np.ones(3, np.float32)}


def test_a_text_is_printed_with_its_names() -> None:
    module = parse(NAMED)
    assert print_module(module) == NAMED
    assert parse(print_module(module)) == module


def test_the_canonical_form_has_numbers() -> None:
    assert print_module(canonicalize(parse(NAMED))) == CANONICAL
    assert print_module(parse(CANONICAL)) == CANONICAL


@pytest.mark.parametrize(
    "text",
    [
        '%a = Input {name="a"} : tensor<f32[]>\n%b = %a\n%c = Neg (%b) : tensor<f32[]>\noutputs: %c\n',
        '%7 = Input {name="a"} : tensor<f32[]>\n%c = Neg (%7) : tensor<f32[]>\noutputs: %c, %7\n',
        "%c = Add (%nobody, %c) : tensor<f32[]>\noutputs: %none, %c\n",
        "outputs: %none\n%c = Add (%nobody, %c) : tensor<f32[]>\n",
        '%a = Input {name="a"} : tensor<f32[]>\n%a = Input {name="b"} : tensor<f32[]>\noutputs: %a\n',
        '%x = Input {name="a"} : tensor<f32[]>\n%7 = %x\n%y = Neg (%7) : tensor<f32[]>\noutputs: %y\n',
    ],
)
def test_reading_what_is_printed_gives_the_same_module(text: str) -> None:
    module = parse(text)
    assert parse(print_module(module)) == module


def test_aliases_do_not_cost_the_names() -> None:
    text = '%a = Input {name="a"} : tensor<f32[]>\n%b = %a\n%c = Neg (%b) : tensor<f32[]>\noutputs: %c\n'
    assert "%c = Neg (%a) : tensor<f32[]>\noutputs: %c\n" in print_module(parse(text))


def test_names_that_reading_would_number_otherwise_are_left_out() -> None:
    module = parse(NAMED)
    first, _, *others = module.operations
    part = Module.flat([first, *others], module.outputs)
    assert "%5 = Gather (%4, %0)" in print_module(part)
    assert parse(print_module(part)) == part
    clash = [replace(op, names={**op.names, 2: "i"}) for op in module.operations]
    assert parse(print_module(Module.flat(clash, module.outputs))) == module


def _interpreted(module: Module) -> object:
    return interpret(module, ARGUMENTS)


def _compiled(module: Module) -> object:
    return compile(module)(**ARGUMENTS)


@pytest.mark.parametrize("run", [_interpreted, _compiled])
def test_run_time_errors_use_the_name(run: Callable[[Module], object]) -> None:
    gradient = differentiate(parse(NAMED)).module
    for module in (parse(NAMED), canonicalize(parse(NAMED)), gradient, differentiate(gradient).module):
        with pytest.raises(ExecutionError) as caught:
            run(module)
        first, *others = caught.value.diagnostics
        assert first.message.startswith("Gather %bad: index 9 is out of bounds")
        assert first.context["value"] == "%bad"
        assert all(found.message.startswith("ScatterAdd in the derivative of %bad: ") for found in others)


@pytest.mark.parametrize("run", [_interpreted, _compiled])
def test_run_time_errors_use_the_number_that_was_written(run: Callable[[Module], object]) -> None:
    numbered = parse(NAMED.replace("%bad", "%70").replace("%unused", "%3"))
    builder = Builder()
    i = builder.input("i", TensorType(DType.SI64, (2,)))
    builder.emit("Neg", i)
    gathered = builder.emit("Gather", builder.input("x", TensorType(DType.F32, (3,))), i)
    for module, name in ((numbered, "%70"), (builder.build([gathered]), "%3")):
        with pytest.raises(ExecutionError, match=f"Gather {name}: index 9"):
            run(module)


def test_findings_use_the_name() -> None:
    text = (
        '%x = Input {name="x"} : tensor<f32[2]>\n%y = Add (%x, %bad) : tensor<f32[2]>\noutputs: %y, %none\n'
    )
    module = parse(text)
    with pytest.raises(VerificationError) as caught:
        verify(module)
    assert [found.message for found in caught.value.diagnostics] == [
        "%bad is not defined",
        "output 1 is %none, which is not defined",
    ]
    nowhere = [replace(op, source=None) for op in module.operations]
    with pytest.raises(VerificationError) as caught:
        verify(Module.flat(nowhere, module.returned))
    assert caught.value.diagnostics[1].notes == ("in %y = Add (%x, %bad)",)


def test_autodiff_uses_the_name() -> None:
    image, filter_ = "tensor<f32[1, 4, 4, 1]>", "tensor<f32[1, 1, 1, 1]>"
    text = (
        f'%9 = Input {{name="x"}} : {image}\n%w = Input {{name="w"}} : {filter_}\n'
        f"%conv = Conv2d (%9, %w) {{padding=Same, strides=[1, 1]}} : {image}\noutputs: %conv\n"
    )
    with pytest.raises(AutodiffError, match="Conv2d %conv has no derivative rule"):
        differentiate(parse(text))
