"""What the contract demands (MUST, SHOULD), demand by demand; docs/ptir-conformance.md names these tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import mind_mlir
from mind_mlir import ArgumentError, ExecutionError, MindError, ParseError
from mind_mlir.languages.ptir import dumps, parse
from mind_mlir.languages.ptir.files import FORMATS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parents[3]
ADD = """\
func @main(%x: tensor<f32, 2x3>, %y: tensor<f32, 2x3>) -> tensor<f32, 2x3> {
  %z = add %x, %y -> tensor<f32, 2x3>
  return %z
}
"""


def program(parameters: Sequence[str], steps: Sequence[str], result: str) -> str:
    """A function whose parameters are called %a, %b, ...; the last of ``steps`` is returned."""
    names = "abcdefgh"
    given = ", ".join(f"%{name}: tensor<{type_}>" for name, type_ in zip(names, parameters, strict=False))
    body = "\n".join(f"  %s{number} = {step}" for number, step in enumerate(steps))
    return f"func @main({given}) -> {result} {{\n{body}\n  return %s{len(steps) - 1}\n}}\n"


def one(parameters: Sequence[str], step: str, result: str) -> str:
    """A function of one instruction."""
    return program(parameters, [f"{step} -> {result}"], result)


def codes(text: str) -> set[str]:
    """Return the codes that reading or verifying a program reports."""
    try:
        mind_mlir.verify(parse(text, "compact"))
    except MindError as error:
        return {finding.code for finding in error.diagnostics}
    return set()


def run(text: str, *arguments: Any) -> Any:
    """Compile and call a program; interpreting it gives the same, or fails with the same code."""
    read = parse(text, "compact")
    compiled = _outcome(lambda: mind_mlir.compile(read)(*arguments))
    named = dict(zip("abcdefgh", arguments, strict=False))
    interpreted = _outcome(lambda: mind_mlir.interpret(read, named))
    if isinstance(compiled, MindError):
        assert isinstance(interpreted, MindError)
        assert [f.code for f in compiled.diagnostics] == [f.code for f in interpreted.diagnostics]
        raise compiled
    for left, right in zip(compiled, interpreted, strict=True):
        np.testing.assert_array_equal(left, right)
    return compiled[0]


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except MindError as error:
        return error


def fails_with(code: str, text: str, *arguments: Any) -> None:
    with pytest.raises((ExecutionError, ArgumentError)) as caught:
        run(text, *arguments)
    assert [finding.code for finding in caught.value.diagnostics] == [code]


# Versioning


def test_programs_say_their_version() -> None:
    for form in FORMATS:
        assert "ptir.v0.4" in dumps(parse(ADD), form)


def test_another_version_is_rejected() -> None:
    text = dumps(parse(ADD), "json").replace("ptir.v0.4", "ptir.v0.5")
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert "ptir.v0.5" in str(caught.value)
    assert "ptir.v0.4" in str(caught.value)


# Core invariants, shapes and dtypes


def test_integers_and_truth_values_are_exact() -> None:
    low = np.array([-128, 127, -1], np.int8)
    doubled = run(one(["si8, 3"], "add %a, %a", "tensor<si8, 3>"), low)
    np.testing.assert_array_equal(doubled, np.array([0, -2, -2], np.int8))
    big = np.array([2**63 + 5, 7], np.uint64)
    text = one(["ui64, 2", "ui64, 2"], "div %a, %b", "tensor<ui64, 2>")
    quotient = run(text, big, np.array([2, 2], np.uint64))
    np.testing.assert_array_equal(quotient, np.array([2**62 + 2, 3], np.uint64))


def test_accumulator_and_output_dtypes_are_respected() -> None:
    """256 ones and a 256: in bf16 the sum would stay at 256."""
    text = "reduce_sum %a axes[0] keepdims[false] accum_dtype[{}] out_dtype[{}]"
    ones = np.ones(512, ml_dtypes.bfloat16)
    for accumulator, output, expected in (("f32", "bf16", 512), ("none", "none", 512), ("f32", "f32", 512)):
        type_ = f"tensor<{'bf16' if output == 'none' else output}>"
        assert float(run(one(["bf16, 512"], text.format(accumulator, output), type_), ones)) == expected


def test_no_implicit_promotion() -> None:
    assert codes(one(["f32, 2", "f64, 2"], "add %a, %b", "tensor<f32, 2>")) == {"E2004"}


def test_elementwise_operands_have_one_shape() -> None:
    assert codes(one(["f32, 2", "f32"], "mul %a, %b", "tensor<f32, 2>")) == {"E3002"}
    assert codes(one(["f32, 2x1", "f32, 2x3"], "mul %a, %b", "tensor<f32, 2x3>")) == {"E3003"}
    assert codes(one(["f32, 2", "f32, 3"], "compare %a, %b op[less]", "tensor<i1, 2>")) == {"E3003"}
    assert codes(one(["i1, 2", "f32, 3", "f32, 3"], "select %a, %b, %c", "tensor<f32, 3>")) == {"E3003"}


def test_compared_and_selected_operands_have_one_dtype() -> None:
    assert codes(one(["f32, 2", "f64, 2"], "compare %a, %b op[less]", "tensor<i1, 2>")) == {"E2004"}
    assert codes(one(["i1, 2", "f32, 2", "f64, 2"], "select %a, %b, %c", "tensor<f32, 2>")) == {"E2004"}


def test_dynamic_dimensions_agree() -> None:
    text = one(["f32, ?B", "f32, ?B"], "add %a, %b", "tensor<f32, ?B>")
    assert run(text, np.ones(3, np.float32), np.ones(3, np.float32)).shape == (3,)
    assert run(text, np.ones(0, np.float32), np.ones(0, np.float32)).shape == (0,)
    with pytest.raises(ArgumentError) as caught:
        mind_mlir.compile(parse(text))(np.ones(3, np.float32), np.ones(4, np.float32))
    assert caught.value.diagnostics[0].code == "E6107"


def test_broadcasting_that_does_not_fit_is_rejected() -> None:
    assert codes(one(["f32, 2"], "broadcast_to %a shape[3]", "tensor<f32, 3>")) == {"E3001"}


def test_a_constant_is_what_its_type_says() -> None:
    assert codes(one([], "constant dense<f32, 2>[1.0, 2.0]", "tensor<f32, 3>")) == {"E2001"}
    assert codes(one([], "constant dense<f32, 2>[1.0, 2.0]", "tensor<f64, 2>")) == {"E2001"}


AXES = [
    ("reduce_max %a axes[-1] keepdims[false] accum_dtype[none] out_dtype[none]", "tensor<f32, 2>"),
    ("arg_max %a axis[-1] keepdims[false] output_dtype[si32]", "tensor<si32, 2>"),
    ("concat %a, %a axis[-1]", "tensor<f32, 2x6>"),
    ("iota shape[2, 3] dtype[si32] axis[-1]", "tensor<si32, 2x3>"),
    (
        "top_k %a k[1] axis[-1] largest[true] indices_dtype[si32]",
        "tuple<tensor<f32, 2x1>, tensor<si32, 2x1>>",
    ),
]


@pytest.mark.parametrize(("step", "result"), AXES, ids=lambda each: each.split()[0])
def test_negative_axes_count_from_the_end(step: str, result: str) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    other = one(["f32, 2x3"], step.replace("[-1]", "[1]"), result)
    text = one(["f32, 2x3"], step, result)
    found, expected = (mind_mlir.compile(parse(each))(x) for each in (text, other))
    for left, right in zip(np.atleast_1d(found[0]), np.atleast_1d(expected[0]), strict=True):
        np.testing.assert_array_equal(left, right)


# Operations


def test_integers_are_not_divided_by_zero() -> None:
    for dtype in ("si8", "ui32", "si64"):
        text = one([f"{dtype}, 2", f"{dtype}, 2"], "div %a, %b", f"tensor<{dtype}, 2>")
        array = np.array([1, 2], mind_mlir.DType.from_name(dtype).numpy)  # type: ignore[union-attr]  # it is one
        fails_with("E6009", text, array, np.zeros_like(array))


def test_stop_gradient_is_a_barrier() -> None:
    steps = ["stop_gradient %a -> tensor<f32>", "mul %s0, %a -> tensor<f32>"]
    gradient = mind_mlir.differentiate(parse(program(["f32"], steps, "tensor<f32>")))
    _, slope = mind_mlir.compile(gradient.module)(np.array(3, np.float32))
    assert float(slope) == 3


def test_axes_of_a_reduction_are_unique_and_in_range() -> None:
    text = "reduce_sum %a axes[{}] keepdims[true] accum_dtype[none] out_dtype[none]"
    for axes, code in (("0, 0", "E3005"), ("0, -2", "E3005"), ("2", "E3004"), ("-3", "E3004")):
        assert codes(one(["f32, 2x3"], text.format(axes), "tensor<f32, 1x1>")) == {code}


def test_argmax_over_nothing_is_rejected() -> None:
    text = one(["f32, 2x0"], "arg_max %a axis[1] keepdims[false] output_dtype[si32]", "tensor<si32, 2>")
    assert codes(text) == {"E3006"}


def test_dimensions_of_a_contraction_match() -> None:
    lists = "batch_lhs[{}] batch_rhs[{}] contract_lhs[{}] contract_rhs[{}]"
    form = f"dot_general %a, %b {lists} accum_dtype[none] out_dtype[none]"
    for axes, code in (
        (("0", "0", "2", "1"), "E3003"),
        (("", "", "0, 0", "0, 1"), "E3005"),
        (("", "", "3", "0"), "E3004"),
        (("0", "", "2", "1"), "E1103"),
    ):
        text = one(["f32, 2x3x4", "f32, 5x4x3"], form.format(*axes), "tensor<f32, 2x3x3>")
        assert codes(text) == {code}, axes


def test_reshape_keeps_the_count() -> None:
    assert codes(one(["f32, 2x3"], "reshape %a new_shape[4]", "tensor<f32, 4>")) == {"E3007"}
    assert codes(one(["f32, 2x3"], "reshape %a new_shape[4, infer]", "tensor<f32, 4x1>")) == {"E3007"}
    assert not codes(one(["f32, 2x3"], "reshape %a new_shape[3, infer]", "tensor<f32, 3x2>"))


def test_a_transposition_is_a_permutation() -> None:
    for perm in ("0, 0", "0", "0, 2"):
        assert codes(one(["f32, 2x3"], f"transpose %a perm[{perm}]", "tensor<f32, 3x2>")) == {"E3008"}, perm


def test_what_is_concatenated_matches() -> None:
    assert codes(one(["f32, 2x3", "f64, 2x3"], "concat %a, %b axis[0]", "tensor<f32, 4x3>")) == {"E2004"}
    assert codes(one(["f32, 2x3", "f32, 2x4"], "concat %a, %b axis[0]", "tensor<f32, 4x3>")) == {"E3003"}


def test_a_slice_lies_within() -> None:
    assert codes(one(["f32, 4"], "slice %a starts[2] sizes[3]", "tensor<f32, 3>")) == {"E4123"}
    assert codes(one(["f32, 4"], "slice %a starts[1, 1] sizes[1, 1]", "tensor<f32, 1>")) == {"E4007"}


def test_padding_has_an_amount_for_each_dimension() -> None:
    form = "pad %a low[{}] high[{}] interior[{}] pad_value[0.0]"
    for amounts in (("1", "1, 1", "0, 0"), ("1, 1", "1, 1", "0"), ("-1, 0", "0, 0", "0, 0")):
        assert codes(one(["f32, 2x3"], form.format(*amounts), "tensor<f32, 4x5>")) == {"E1103"}, amounts


@pytest.mark.parametrize("index", [-1, 3])
def test_indices_are_in_range(index: int) -> None:
    x, at = np.ones((3, 2), np.float32), np.array([[index, 0]], np.int32)
    fails_with("E6001", one(["f32, 3x2", "si32, 1x2"], "take %a, %b", "tensor<f32, 1x2x2>"), x, at)
    fails_with("E6001", one(["f32, 3x2", "si32, 1x2"], "gather %a, %b axis[0]", "tensor<f32, 1x2>"), x, at)
    for kind in ("add", "max", "min", "replace"):
        step = f"scatter_reduce %a, %b, %c axis[0] reduce[{kind}]"
        text = one(["f32, 3x2", "si32, 1x2", "f32, 1x2"], step, "tensor<f32, 3x2>")
        fails_with("E6001", text, x, at, np.ones((1, 2), np.float32))


def test_shapes_of_gather_and_scatter() -> None:
    assert codes(one(["f32, 3x2", "si32, 4"], "gather %a, %b axis[0]", "tensor<f32, 4>")) == {"E3002"}
    assert codes(one(["f32, 3x2", "si32, 4x3"], "gather %a, %b axis[0]", "tensor<f32, 4x3>")) == {"E3003"}
    step = "scatter_reduce %a, %b, %c axis[0] reduce[add]"
    for indices, updates, code in (("4x2", "3x2", "E3003"), ("4x3", "4x3", "E3003"), ("4", "4", "E3002")):
        types = ["f32, 3x2", f"si32, {indices}", f"f32, {updates}"]
        assert codes(one(types, step, "tensor<f32, 3x2>")) == {code}, (indices, updates)


def test_windows_that_do_not_fit_are_rejected() -> None:
    assert codes(one(["f32, 3", "si32, 1"], "dynamic_slice %a, %b sizes[4]", "tensor<f32, 4>")) == {"E4123"}
    step = "dynamic_update_slice %a, %b, %c sizes[4]"
    assert codes(one(["f32, 3", "f32, 4", "si32, 1"], step, "tensor<f32, 3>")) == {"E4123"}
    text = one(["f32, ?N", "si32, 1"], "dynamic_slice %a, %b sizes[4]", "tensor<f32, 4>")
    with pytest.raises(MindError):
        mind_mlir.compile(parse(text))(np.ones(3, np.float32), np.zeros(1, np.int32))


def test_starts_are_clamped() -> None:
    text = one(["f32, 5", "si32, 1"], "dynamic_slice %a, %b sizes[2]", "tensor<f32, 2>")
    for start, first in ((-7, 0), (1, 1), (4, 3), (2**31 - 1, 3)):
        found = run(text, np.arange(5, dtype=np.float32), np.array([start], np.int32))
        np.testing.assert_array_equal(found, [first, first + 1])


def test_types_of_regions_match() -> None:
    text = program(
        ["i1", "f32, 2"], ["cond %a, %b true_region[^0] false_region[^1] -> tensor<f32, 2>"], "tensor<f32, 2>"
    )
    region = "region ^{}(%x: tensor<{}>) -> tensor<{}> {{\n  %e = neg %x -> tensor<{}>\n  yield %e\n}}\n"
    good, bad = ["f32, 2"] * 3, ["f64, 2"] * 3
    assert not codes(text + region.format(0, *good) + region.format(1, *good))
    assert codes(text + region.format(0, *good) + region.format(1, *bad)) == {"E2001"}


# Custom calls


def test_unknown_custom_calls_are_not_implemented() -> None:
    text = one(["f32, 2"], 'custom_call %a target["no.such.op.v1"] attrs{}', "tensor<f32, 2>")
    with pytest.raises(MindError) as caught:
        mind_mlir.compile(parse(text))
    assert "no.such.op.v1" in str(caught.value)


# The page


def test_the_page_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "ptir-conformance.md").read_text(encoding="utf-8")
    cited = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(cited) > 30
    for path, name in cited:
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{name}"
