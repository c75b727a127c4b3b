"""The canonical text: its exact form, and that nothing is lost in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_mlir.ir.attributes import AttributeValue, Padding, PaddingMode, TensorLiteral
from mind_mlir.ir.module import CoreOperation, Module
from mind_mlir.ir.types import DType, SymbolicDim, TensorType
from mind_mlir.languages.core import parse
from mind_mlir.languages.core.printer import format_literal, print_module, print_operation, quote

F32 = TensorType(DType.F32)


def printed(opcode: str, operands: tuple[int, ...], type_: TensorType, **attributes: AttributeValue) -> str:
    return print_operation(CoreOperation.create(5, opcode, operands, attributes, type_))


def test_forms() -> None:
    assert printed("Add", (0, 1), TensorType(DType.F32, (2, 3))) == "%5 = Add (%0, %1) : tensor<f32[2, 3]>"
    assert printed("Input", (), F32, name="x") == '%5 = Input {name="x"} : tensor<f32[]>'
    assert (
        printed("Sum", (0,), F32, keepdims=False, axes=(1,))
        == "%5 = Sum (%0) {axes=[1], keepdims=false} : tensor<f32[]>"
    )
    custom = Padding(PaddingMode.CUSTOM, ((1, 1), (0, 0)))
    assert (
        printed("Conv2d", (0, 1), F32, strides=(1, 1), padding=custom)
        == "%5 = Conv2d (%0, %1) {padding=Custom([[1, 1], [0, 0]]), strides=[1, 1]} : tensor<f32[]>"
    )
    assert printed("Frob", (), F32) == "%5 = Frob : tensor<f32[]>"


def test_modules_end_with_the_outputs_and_a_line_feed() -> None:
    operation = CoreOperation.create(0, "Input", (), {"name": "x"}, F32)
    assert print_module(Module.flat([operation], [0, 0])).endswith("\noutputs: %0, %0\n")
    assert print_module(Module.flat([], [])) == "outputs:\n"


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, DType.F32, "0.1"),
        (0.1, DType.F64, "0.1"),
        (1 / 3, DType.F32, "0.33333334"),
        (1 / 3, DType.F64, "0.3333333333333333"),
        (16777216.0, DType.F32, "16777216.0"),
        (3.4028234663852886e38, DType.F32, "3.4028235e+38"),
        (1e-45, DType.F32, "1e-45"),
        (5e-324, DType.F64, "5e-324"),
        (-0.0, DType.F32, "-0.0"),
        (math.inf, DType.F32, "inf"),
        (-math.inf, DType.F64, "-inf"),
        (math.nan, DType.F32, "nan"),
        (1 / 3, DType.F16, "0.3333"),
        (1 / 3, DType.BF16, "0.334"),
        (448.0, DType.FP8_E4M3, "450.0"),
        (True, DType.I1, "true"),
        (-(2**63), DType.SI64, "-9223372036854775808"),
        (2**64 - 1, DType.UI64, "18446744073709551615"),
        ([[1, 2], [3, 4]], DType.SI32, "[[1, 2], [3, 4]]"),
        (np.zeros((0, 3)), DType.F32, "[]"),
        (np.zeros((2, 0, 3)), DType.F32, "[[], []]"),
        ([1 + 2j], DType.CF32, "[[1.0, 2.0]]"),
    ],
)
def test_literals(value: Any, dtype: DType, text: str) -> None:
    assert format_literal(TensorLiteral.of(value, dtype)) == text


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("x", '"x"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("\n\r\t", '"\\n\\r\\t"'),
        ("\x00\x1b\x7f", '"\\u{0}\\u{1b}\\u{7f}"'),
        ("é漢", '"é漢"'),
        ("\u202e\ud800", '"\\u{202e}\\u{d800}"'),
    ],
)
def test_strings(text: str, quoted: str) -> None:
    assert quote(text) == quoted


# Every module that the text can spell, well-formed or not.

_FLOATS = st.sampled_from([DType.F32, DType.F64, DType.F16, DType.BF16])
_INTEGERS = st.sampled_from([DType.SI32, DType.SI64, DType.UI64, DType.SI4, DType.UI8])
_EXTENTS = st.integers(-3, 3) | st.sampled_from([2**62, -(2**63)]) | st.just(SymbolicDim("B"))
_TYPES = st.builds(TensorType, st.sampled_from(list(DType)), st.lists(_EXTENTS, max_size=4).map(tuple))
_IDS = st.integers(-5, 30) | st.sampled_from([10**17])
# Alphabets of what is treated differently: all of Unicode takes a second to look through, and finds no more.
_WORDS = st.builds(str.__add__, st.sampled_from("aZ_é"), st.text("aZ_é漢09", max_size=8))
_TEXTS = st.text("aZ_é漢09 .,:=%\"\\'{}[]()<>#/\n\r\t\0\x1b\x7f\u2028\u202e\ud800\U0001f600", max_size=8)
_SCALARS = (
    st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | _TEXTS
    | st.sampled_from(list(DType))
    | st.sampled_from([Padding(PaddingMode.SAME), Padding(PaddingMode.VALID)])
)
_CUSTOM = st.lists(st.lists(st.integers(-9, 9), max_size=3).map(tuple), max_size=3).map(
    lambda pairs: Padding(PaddingMode.CUSTOM, tuple(pairs))
)
_VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=8) | _CUSTOM


@st.composite
def literals(draw: st.DrawFn) -> TensorLiteral:
    elements: st.SearchStrategy[float]
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    count = math.prod(shape)
    if draw(st.booleans()):
        dtype = draw(_INTEGERS)
        low = 0 if dtype.name.startswith("UI") else -(2 ** (dtype.bits - 1))
        elements = st.integers(low, 2 ** (dtype.bits if not low else dtype.bits - 1) - 1)
        wide: Any = np.uint64 if not low else np.int64
    else:
        dtype, wide = draw(_FLOATS), np.float64
        elements = st.floats(width=32, allow_nan=False) | st.sampled_from([0.1, -0.0, math.inf])
    data = np.array(draw(st.lists(elements, min_size=count, max_size=count)), wide).reshape(shape)
    with np.errstate(over="ignore"):
        return TensorLiteral.of(data.astype(dtype.numpy), dtype)


@st.composite
def operations(draw: st.DrawFn) -> CoreOperation:
    value, operands = draw(_IDS), draw(st.lists(_IDS, max_size=3))
    attributes: dict[str, AttributeValue]
    kind = draw(st.sampled_from(["input", "constant", "sum", "other"]))
    if kind == "input":
        return CoreOperation.create(value, "Input", (), {"name": draw(_TEXTS)}, draw(_TYPES))
    if kind == "constant":
        literal = draw(literals())
        attributes = {"value": literal, "dtype": literal.type.dtype, "shape": literal.array.shape}
        return CoreOperation.create(value, "ConstTensor", (), attributes, literal.type)
    if kind == "sum":
        axes = tuple(draw(st.lists(st.integers(-9, 9), max_size=3)))
        attributes = {"axes": axes, "keepdims": draw(st.booleans())}
        return CoreOperation.create(value, "Sum", operands, attributes, draw(_TYPES))
    names = st.dictionaries(_WORDS | _TEXTS, _VALUES, max_size=3)
    opcode = draw(st.sampled_from(["Add", "Frob", "tensor.frob"]))
    return CoreOperation.create(value, opcode, operands, draw(names), draw(_TYPES))


@given(st.lists(operations(), max_size=5), st.lists(_IDS, max_size=3))
@settings(max_examples=300)
def test_reading_what_was_printed_gives_an_equal_module(
    body: list[CoreOperation], outputs: list[int]
) -> None:
    module = Module.flat(body, outputs)
    text = print_module(module)
    read = parse(text)
    assert read == module
    assert print_module(read) == text


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=500)
def test_every_f32_survives(bits: int) -> None:
    array = np.array([bits], np.uint32).view(np.float32)
    literal = TensorLiteral.of(array, DType.F32)
    text = f"%0 = ConstTensor {{dtype=f32, shape=[1], value={format_literal(literal)}}} : tensor<f32[1]>"
    read = parse(text).operations[0].attributes["value"]
    assert isinstance(read, TensorLiteral)
    if np.isnan(array[0]):
        assert np.isnan(read.array[0])
    else:
        assert read == literal
