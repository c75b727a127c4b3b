"""What the public functions say to arguments of the wrong kind, and what they take for the right one."""

from __future__ import annotations

import decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import pytest

import mind_mlir as typed
from mind_mlir import Builder, DType, MindError, VerificationError
from mind_mlir.ir import attributes
from mind_mlir.ir.attributes import PaddingMode, TensorLiteral

if TYPE_CHECKING:
    from collections.abc import Callable

#: Everything here is called with what the annotations do not promise.
mind_mlir: Any = typed
CoreOperation, Module, TensorType = mind_mlir.CoreOperation, mind_mlir.Module, mind_mlir.TensorType
compile, differentiate, interpret = mind_mlir.compile, mind_mlir.differentiate, mind_mlir.interpret
parse, print_module = mind_mlir.parse, mind_mlir.print_module
Padding: Any = attributes.Padding

F32 = DType.F32
MATRIX = TensorType(F32, (2, 3))
JITTED = mind_mlir.jit(lambda x: x + 1)


def sums() -> Any:
    b = Builder()
    x = b.input("x", MATRIX)
    return b.build([b.emit("Sum", x, axes=(0,))])


class Failing:
    def __array__(self, *_: object, **__: object) -> Any:
        raise ValueError("mine")


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: parse(None), TypeError, "text must be a string (load reads files and bytes), not None"),
        (lambda: parse(b"%0"), TypeError, "not the bytes b'%0'"),
        (lambda: parse("", 3), TypeError, "name must be a string, not the int 3"),
        (lambda: mind_mlir.load(3), TypeError, "path must be a string or an os.PathLike, not the int 3"),
        (lambda: compile("x"), TypeError, "module must be a Module"),
        (lambda: print_module(None), TypeError, "module must be a Module"),
        (
            lambda: mind_mlir.package(JITTED, "x"),
            TypeError,
            "JitFunction, which becomes a program",
        ),
        (lambda: mind_mlir.convert(JITTED, "c"), TypeError, "f.lower(x).module"),
        (lambda: compile(JITTED.lower(1.0)), TypeError, "Lowered, whose attribute module is one"),
        (
            lambda: compile(mind_mlir.differentiate(sums())),
            TypeError,
            "Gradient, whose attribute module is one",
        ),
        (lambda: mind_mlir.verify([]), TypeError, "module must be a Module"),
        (lambda: mind_mlir.canonicalize([]), TypeError, "module must be a Module"),
        (
            lambda: differentiate(sums(), wrt=3),
            TypeError,
            "wrt must be a name or a sequence of names, not the int",
        ),
        (lambda: differentiate(sums(), wrt={"x"}), TypeError, "wrt must be a name or a sequence of names"),
        (
            lambda: differentiate(sums(), wrt=[3]),
            TypeError,
            "each name in wrt must be a string, not the int 3",
        ),
        (lambda: differentiate(sums(), cotangents=3), TypeError, "cotangents must be"),
        (
            lambda: differentiate(sums(), extensions=1),
            TypeError,
            "extensions must be True or False, not the int 1",
        ),
        (lambda: interpret(sums(), [1]), TypeError, "arguments must be a mapping"),
        (lambda: interpret(None, {}), TypeError, "module must be a Module"),
        (lambda: compile(sums(), opt_level=7), ValueError, "opt_level must be one of 0, 1, 2, 3, not 7"),
        (lambda: compile(sums(), opt_level=True), TypeError, "opt_level must be an integer"),
        (lambda: compile(sums(), observer=3), TypeError, "observer must be callable, or None, not the int 3"),
        (lambda: compile(sums()).as_text("x"), ValueError, "stage must be one of core, "),
        (lambda: compile(sums()).as_text(3), TypeError, "stage must be a string, not the int 3"),
        (lambda: TensorType(3), TypeError, "dtype must be a DType"),
        (lambda: TensorType(F32, 3), TypeError, "shape must be a sequence of integers, not the int 3"),
        (
            lambda: TensorType(F32, [2.0]),
            TypeError,
            "each extent of shape must be an integer, not the float 2.0",
        ),
        (lambda: TensorType(F32, [10**50]), ValueError, "each extent of shape must be"),
        (lambda: Padding("Some"), ValueError, "mode must be one of Valid, Same, Custom, not the str 'Some'"),
        (
            lambda: Module.flat([3], []),
            TypeError,
            "each of operations must be a CoreOperation, not the int 3",
        ),
        (lambda: Module(()).operations, ValueError, "the module must be flat"),
        (
            lambda: CoreOperation.create(0, "Neg", [], {"a": object()}, MATRIX),
            TypeError,
            "attribute the str 'a' must be",
        ),
        (lambda: MindError([]), ValueError, "diagnostics must be"),
    ],
)
def test_wrong_arguments(call: Callable[[], object], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert not isinstance(caught.value, MindError)
    assert words in str(caught.value)


def codes(call: Callable[[Builder], object]) -> list[str]:
    with pytest.raises(VerificationError) as caught:
        call(Builder())
    return [found.code for found in caught.value.diagnostics]


def infinite() -> list[Any]:
    inner: list[Any] = []
    inner.extend([inner, inner])
    return inner


class LyingPadding(attributes.Padding):
    """Does not check itself as its base does."""

    def __init__(self, mode: Any, pairs: Any = ()) -> None:
        object.__setattr__(self, "mode", mode)
        object.__setattr__(self, "pairs", pairs)


def convolve(b: Builder, padding: Any) -> object:
    x = b.input("x", TensorType(F32, (1, 5, 5, 2)))
    return b.emit("Conv2d", x, b.input("w", TensorType(F32, (3, 3, 2, 4))), padding=padding, strides=[1, 1])


FOREIGN = Builder().input("x", MATRIX)


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda b: b.emit("Neg", 3), "E4001"),
        (lambda b: b.emit("Neg", FOREIGN), "E4001"),
        (lambda b: b.build([FOREIGN]), "E4003"),
        (lambda b: b.build([0]), "E4003"),
        (lambda b: b.emit(3), "E1102"),
        (lambda b: b.emit("Input", name="x"), "E4004"),
        (lambda b: b.input(3, MATRIX), "E4004"),
        (lambda b: b.input("x", (2, 3)), "E4004"),
        (lambda b: b.emit("Sum", b.input("x", MATRIX), axes=None), "E1103"),
        (lambda b: b.emit("Sum", b.input("x", MATRIX), axes=[0.5]), "E1103"),
        (lambda b: b.emit("Sum", b.input("x", MATRIX), axes=[10**5000]), "E1103"),
        (lambda b: b.emit("Sum", b.input("x", MATRIX), axes=infinite()), "E1103"),
        (lambda b: b.emit("Sum", b.input("x", MATRIX), self=1, opcode=2, axes=[0]), "E1103"),
        (lambda b: convolve(b, "Sme"), "E1103"),
        (lambda b: convolve(b, [[1, 1]]), "E1103"),
        (lambda b: convolve(b, LyingPadding("Sme")), "E1103"),
        (lambda b: convolve(b, LyingPadding("Custom", 3)), "E1103"),
        (lambda b: convolve(b, Padding.__new__(Padding)), "E1103"),
        (lambda b: b.constant([[1], [2, 3]], F32), "E3010"),
        (lambda b: b.constant(infinite(), F32), "E3010"),
        (lambda b: b.constant(1, "float"), "E1104"),
        (lambda b: b.constant("1", F32), "E4005"),
        (lambda b: b.constant(None, F32), "E4005"),
        (lambda b: b.constant(np.zeros(2, [("a", "i4")]), F32), "E4005"),
        (lambda b: b.constant(np.ma.masked_array([1, 2], [True, False]), F32), "E4005"),
    ],
)
def test_what_the_builder_refuses(call: Callable[[Builder], object], code: str) -> None:
    assert set(codes(call)) == {code}


def test_a_padding_of_a_derived_class_is_a_plain_one() -> None:
    b = Builder()
    convolve(b, LyingPadding("same"))
    assert type(b.operations[-1].attributes["padding"]) is attributes.Padding


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1.9, -2.9], DType.SI64),
        (1e300, F32),
        (np.array([1e300]), F32),
        (2**31, DType.SI32),
        (np.array([2**31]), DType.SI32),
        (np.array([2**63], np.uint64), DType.SI64),
        (np.array([2.0**63]), DType.SI64),
        (-1, DType.UI8),
        (2, DType.I1),
        (1.0, DType.I1),
        (float("nan"), DType.SI64),
        (float("inf"), DType.FP8_E4M3),
        (1j, DType.F64),
        (10**400, DType.F64),
        (decimal.Decimal("1e400"), DType.F64),
        (decimal.Decimal("1e-999999999"), DType.SI64),
        (Fraction(1, 3), DType.SI64),
    ],
)
def test_constants_that_their_dtype_does_not_hold(data: Any, dtype: DType) -> None:
    assert codes(lambda b: b.constant(data, dtype)) == ["E4005"]


@pytest.mark.parametrize(
    ("data", "dtype", "expected"),
    [
        ([2.0, -3.0], DType.SI64, [2, -3]),
        ([2**53 + 1, 1.0], DType.SI64, [2**53 + 1, 1]),
        (decimal.Decimal(2**53 + 1), DType.SI64, 2**53 + 1),
        (np.array([2**63 - 1], ">i8"), DType.SI64, [2**63 - 1]),
        ([True, 0, 1], DType.I1, [True, False, True]),
        (np.array([0, 2, 1], np.uint8).view(bool), DType.I1, [False, True, True]),
        (2**24 + 1 + Fraction(1, 2**60), F32, 2.0**24 + 2),  # f64 lies between two floats, the number above
        ([float("inf"), -0.0], F32, [float("inf"), -0.0]),
        ([np.ones(2), [1, 2]], F32, [[1, 1], [1, 2]]),
        (range(3), DType.SI32, [0, 1, 2]),
        (ml_dtypes.bfloat16(1.5), "f64", 1.5),
        (1 + 2j, DType.CF32, 1 + 2j),
    ],
)
def test_constants_as_they_are_written(data: Any, dtype: DType, expected: Any) -> None:
    literal = TensorLiteral.of(data, dtype)
    np.testing.assert_array_equal(literal.array, expected)
    if literal.type.dtype is DType.I1:
        assert set(literal.array.view(np.uint8).tolist()) <= {0, 1}
    assert np.array_equal(np.signbit(literal.array.real), np.signbit(np.real(expected)))


def test_the_builder_takes_what_is_plainly_meant() -> None:
    b, plain = Builder(), Builder()
    x = b.input("x", TensorType("f32", [np.int64(1), 4, 4, 3]))
    w = b.input("w", TensorType(np.float32, (2, 2, 3, 2)))
    y = b.emit("Conv2d", x, w, strides=[1, np.int32(1)], padding="same")
    z = b.emit("Conv2d", x, w, strides=np.array([1, 1]), padding=[[1, 1], [0, 0]])
    k = b.emit("ConstTensor", value=[1, 2], dtype="f32", shape=[2])
    p = b.emit("Pad", k, low=[0], high=[1], interior=[0], pad_value=0)
    image = plain.input("x", TensorType(F32, (1, 4, 4, 3)))
    filter_ = plain.input("w", TensorType(F32, (2, 2, 3, 2)))
    custom = Padding(PaddingMode.CUSTOM, ((1, 1), (0, 0)))
    same = plain.emit("Conv2d", image, filter_, strides=(1, 1), padding=Padding(PaddingMode.SAME))
    padded = plain.emit("Conv2d", image, filter_, strides=(1, 1), padding=custom)
    constant = plain.constant([1, 2], F32)
    zero = TensorLiteral.of(0, F32)
    longer = plain.emit("Pad", constant, low=(0,), high=(1,), interior=(0,), pad_value=zero)
    assert b.build([y, z, p]) == plain.build([same, padded, longer])
    assert hash(TensorType(F32, [2, 3])) == hash(MATRIX)
    assert b.build(y) == b.build([y])  # type: ignore[arg-type] # one value is taken


def test_a_generator_of_names_is_a_sequence_of_names() -> None:
    gradient = differentiate(sums(), wrt=(name for name in ["x"]))
    assert gradient.module == differentiate(sums(), wrt=["x"]).module
    assert len(gradient.module.outputs) == 2


def test_truth_values_are_true_whatever_their_byte() -> None:
    b = Builder()
    p, x, y = (
        b.input("p", TensorType(DType.I1, (3,))),
        b.input("x", TensorType(F32, (3,))),
        b.constant([7] * 3, F32),
    )
    module = b.build([b.emit("Select", p, x, y), p])
    given = np.array([0, 2, 255], np.uint8).view(np.bool_)
    arguments = {"p": given, "x": np.ones(3, np.float32)}
    for chosen, mask in (interpret(module, arguments), compile(module)(**arguments)):
        assert chosen.tolist() == [7, 1, 1]
        assert mask.view(np.uint8).tolist() == [0, 1, 1]
    assert given.view(np.uint8).tolist() == [0, 2, 255]


@pytest.mark.parametrize("run", [lambda x: interpret(sums(), {"x": x}), compile(sums())])
def test_exceptions_of_the_caller_arrive_unchanged(run: Callable[[object], object]) -> None:
    with pytest.raises(ValueError, match=r"(?m)^mine$") as caught:
        run(Failing())
    assert not isinstance(caught.value, MindError)
    with pytest.raises(mind_mlir.ArgumentError, match="nested lists of"):
        run(infinite())
    mask: Any = np.ma.masked_array
    with pytest.raises(mind_mlir.ArgumentError, match="masked"):
        run(mask(np.ones((2, 3), np.float32), np.eye(2, 3) > 0))


def test_what_is_not_verified_is_not_run() -> None:
    wrong = Module.flat([CoreOperation.create(0, "Neg", [1], {}, MATRIX)], [0])
    with pytest.raises(VerificationError, match="E4001"):
        interpret(wrong, {})
    with pytest.raises(VerificationError, match="E4001"):
        mind_mlir.canonicalize(wrong)
