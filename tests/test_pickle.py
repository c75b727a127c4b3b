"""What a caller can hold pickles, deep-copies and, where it is data, hashes."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import Builder, DType, InternalError, MindError, Module, TensorType
from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = """\
%x = Input {name="x"} : tensor<f32[2, 2]>
%c = ConstTensor {dtype=f32, shape=[2, 2], value=[[1.0, -0.0], [nan, inf]]} : tensor<f32[2, 2]>
%y = Add (%x, %c) : tensor<f32[2, 2]>
%i = Input {name="i"} : tensor<i64[]>
%z = Gather (%y, %i) : tensor<f32[2]>
outputs: %z
"""


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 -- made in this process


COPIES = pytest.mark.parametrize("copied", [pickled, copy.copy, copy.deepcopy])


@COPIES
def test_modules(copied: Callable[[Any], Any]) -> None:
    module = mind_mlir.parse(TEXT, "net.ir")
    again = copied(module)
    assert again == module
    assert mind_mlir.print_module(again) == TEXT
    assert str(again.operations[2].location) == "net.ir:3:1"
    assert not again.operations[1].attributes["value"].array.flags.writeable
    assert mind_mlir.canonicalize(again) == mind_mlir.canonicalize(module)


def test_modules_hash_by_meaning() -> None:
    module = mind_mlir.parse(TEXT)
    same = mind_mlir.parse(TEXT.replace("%y", "%other"))
    another = mind_mlir.parse(TEXT.replace("-0.0", "0.0"))
    assert {module: 1}[same] == 1
    assert len({module, same, another}) == 2
    assert len({operation for m in (module, same) for operation in m.operations}) == len(module.operations)


@COPIES
@pytest.mark.parametrize(
    "make",
    [
        lambda: mind_mlir.parse("%x = Frob (%y\n%z = Neg (%0) : tensor<f32[99999999999999999999]>", "bad.ir"),
        lambda: mind_mlir.verify(mind_mlir.parse(TEXT.replace("Add (%x, %c)", "Add (%x, %z)"), "bad.ir")),
        lambda: mind_mlir.differentiate(mind_mlir.parse(TEXT), wrt=["i"]),
        lambda: mind_mlir.interpret(mind_mlir.parse(TEXT), {}),
        lambda: mind_mlir.interpret(
            mind_mlir.parse(TEXT), {"x": np.ones((2, 2), np.float32), "i": np.asarray(7)}
        ),
    ],
)
def test_errors(copied: Callable[[Any], Any], make: Callable[[], object]) -> None:
    with pytest.raises(MindError) as caught:
        make()
    error = caught.value
    again = copied(error)
    assert type(again) is type(error)
    assert again.diagnostics == error.diagnostics
    assert str(again) == str(error)
    assert again.code == error.code


@COPIES
def test_internal_errors(copied: Callable[[Any], Any]) -> None:
    error = copied(InternalError("linalg", "it broke", "%0 = ..."))
    assert str(error) == "internal error in stage 'linalg': it broke"
    assert (error.stage, error.message, error.reproducer) == ("linalg", "it broke", "%0 = ...")


@COPIES
@pytest.mark.parametrize(
    "thing",
    [
        TensorType(DType.F32, (2, 3)),
        DType.BF16,
        TensorLiteral.of([1.5, -2.0], DType.BF16),
        Padding(PaddingMode.CUSTOM, ((1, 2), (3, 4))),
        FrozenDict({"axes": (1, 2)}),
    ],
    ids=str,
)
def test_the_parts_of_the_ir(copied: Callable[[Any], Any], thing: object) -> None:
    again = copied(thing)
    assert again == thing
    assert type(again) is type(thing)
    assert hash(again) == hash(thing)


@pytest.mark.parametrize("copied", [pickled, copy.deepcopy])
def test_gradients_and_builders(copied: Callable[[Any], Any]) -> None:
    gradient = mind_mlir.differentiate(mind_mlir.parse(TEXT))
    assert copied(gradient) == gradient
    builder = Builder()
    value = builder.emit("Neg", builder.input("x", TensorType(DType.F32, (2,))))
    again, same = copied((builder, value))
    assert again.build([again.emit("Neg", same)]) == builder.build([builder.emit("Neg", value)])


@COPIES
def test_executables(copied: Callable[[Any], Any]) -> None:
    module = mind_mlir.parse(TEXT)
    executable = mind_mlir.compile(module, opt_level=1)
    again = copied(executable)
    arguments = {"x": np.ones((2, 2), np.float32), "i": np.asarray(0)}
    np.testing.assert_array_equal(again(**arguments), executable(**arguments))
    assert again.as_text("core") == executable.as_text("core")


def test_executables_pickle_small() -> None:
    executable = mind_mlir.compile(Module.flat([], []))
    assert len(pickle.dumps(executable)) < 16_000  # pages of code, and what calls it


@pytest.mark.parametrize("change", ["clear", "pop", "popitem", "setdefault", "update"])
def test_frozen_dicts_do_not_change(change: str) -> None:
    frozen = FrozenDict({"a": 1})
    with pytest.raises(TypeError, match="immutable"):
        getattr(frozen, change)()
    with pytest.raises(TypeError, match="immutable"):
        frozen["a"] = 2
    with pytest.raises(TypeError, match="immutable"):
        del frozen["a"]
    with pytest.raises(TypeError, match="immutable"):
        frozen |= {"b": 2}
    assert frozen == {"a": 1}
