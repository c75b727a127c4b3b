"""Outputs that the caller gives (`out=`), and functions bound to all of their arrays (`bind`)."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir import ArgumentError, Builder, DType, Executable, ExecutionError, TensorType
from mind_mlir.runtime import call, call_abi

if TYPE_CHECKING:
    from collections.abc import Callable

Array = np.ndarray[Any, np.dtype[Any]]
F32, I1, SI64 = DType.F32, DType.I1, DType.SI64
T = TensorType(F32, (2, 3))
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def compiled(name: str = "x") -> Executable:
    """Return x + x, x * x."""
    b = Builder()
    x = b.input(name, T)
    return mind_mlir.compile(b.build([b.emit("Add", x, x), b.emit("Mul", x, x)]))


def single() -> Executable:
    """Return x + 1."""
    b = Builder()
    return mind_mlir.compile(b.build([b.emit("Add", b.input("x", T), b.constant(1.0, F32))]))


def empty(*shape: int) -> Array:
    return np.full(shape or (2, 3), -1, np.float32)


@pytest.fixture(params=["python", "native"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Call functions in one of both ways, from their second call on."""
    if request.param == "native":
        if call_abi.layout() is None:
            pytest.skip("calls are made from Python here")
        assert call.enable()
    else:
        monkeypatch.setattr(call._NativeCalls, "available", False)
    return str(request.param)


def test_results_are_written_and_returned(way: str) -> None:
    f = compiled()
    f(X)
    assert (f._words is not None) == (way == "native")
    for give in (tuple, list):
        arrays = [empty(), empty()]
        total, product = f(X, out=give(arrays))
        assert total is arrays[0]
        assert product is arrays[1]
        assert (total == 2 * X).all()
        assert (product == X * X).all()
    total, _ = f["main"](x=X, out=(empty(), empty()))
    assert (total == 2 * X).all()
    array = empty()
    (result,) = single()(X, out=array)
    assert result is array
    assert (array == X + 1).all()


def read_only() -> Array:
    array = empty()
    array.setflags(write=False)
    return array


def misaligned() -> Array:
    return np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)


WRONG: dict[str, tuple[Callable[[], object], str, str]] = {
    "no array": (lambda: 3, "E6105", "out must be a tuple of 2 arrays, not the int 3"),
    "one array": (empty, "E6105", "out must be a tuple of 2 arrays, not an object of type ndarray"),
    "too few": (lambda: (empty(),), "E6101", "out has 1 arrays, but there are 2 outputs"),
    "too many": (lambda: (empty(),) * 3, "E6102", "out has 3 arrays"),
    "a list in it": (lambda: (empty(), [1.0]), "E6105", r"out\[1\] is not a numpy array: it is an object of"),
    "masked": (lambda: (empty(), np.ma.masked_array(empty())), "E6105", r"out\[1\] is not a numpy array"),
    "dtype": (lambda: (empty(), np.zeros((2, 3))), "E6103", r"out\[1\] has dtype float64, expected float32"),
    "shape": (lambda: (empty(2, 1), empty()), "E6104", r"out\[0\] has shape \[2, 1\], expected \[2, 3\]"),
    "read-only": (lambda: (read_only(), empty()), "E6106", r"out\[0\] is read-only"),
    "Fortran order": (lambda: (empty(3, 2).T, empty()), "E6106", r"out\[0\] is not C-contiguous"),
    "misaligned": (lambda: (empty(), misaligned()), "E6106", r"out\[1\] is not aligned"),
    "the input": (lambda: (empty(), X), "E6106", r"out\[1\] overlaps argument 'x'"),
    "twice the same": (lambda: (array := empty(), array), "E6106", r"out\[1\] overlaps out\[0\]"),
    "partly the same": (
        lambda: (array := empty(3, 3))[:2] is None or (array[:2], array[1:]),
        "E6106",
        r"out\[1\] overlaps out\[0\]",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_outputs_that_do_not_fit(kind: str, way: str) -> None:
    make, code, message = WRONG[kind]
    f, before = compiled(), X.copy()
    f(X)
    for attempt in (f, f.bind):
        with pytest.raises(ArgumentError, match=message) as caught:
            attempt(X, out=make())
        assert [finding.code for finding in caught.value.diagnostics] == [code]
    assert (before == X).all()


def test_arrays_side_by_side_do_not_overlap(way: str) -> None:
    memory = np.zeros((6, 3), np.float32)
    memory[2:4] = X
    f = compiled()
    for _ in range(3):
        f(memory[2:4], out=(memory[:2], memory[4:]))
        assert (memory == np.concatenate([2 * X, X, X * X])).all()


def test_everything_at_once() -> None:
    with pytest.raises(ArgumentError) as caught:
        compiled()(X[0], out=(empty(1), read_only()))
    assert [finding.code for finding in caught.value.diagnostics] == ["E6104", "E6104", "E6106"]


def test_a_copy_of_an_input_may_not_lie_in_an_output_either(way: str) -> None:
    wide = np.zeros((2, 6), np.float32)
    f = single()
    for _ in range(2):
        with pytest.raises(ArgumentError, match="out overlaps argument 'x'"):
            f(wide[:, ::2], out=wide.reshape(4, 3)[1:3])


def test_an_input_called_out(way: str) -> None:
    f = compiled("out")
    for _ in range(3):
        total, _ = f(out=X)
        assert (total == 2 * X).all()
        assert (f(X)[0] == 2 * X).all()
        assert (f.bind(out=X)()[0] == 2 * X).all()
    with pytest.raises(ArgumentError) as caught:
        f(X, out=(empty(), empty()))
    assert caught.value.code == "E6102"


def test_a_bound_function_reads_and_writes_the_same_arrays(way: str) -> None:
    x, outputs = X.copy(), (empty(), empty())
    bound = compiled().bind(x, out=outputs)
    assert bound.inputs[0] is x
    for number in range(4):
        x[:] = number
        assert bound() is bound.outputs
        assert bound.outputs[0] is outputs[0]
        assert (outputs[0] == 2 * number).all()
        assert (outputs[1] == number**2).all()
    assert (bound._words is not None) == (way == "native")
    with pytest.raises(TypeError):
        bound(x)  # type: ignore[call-arg] # what is tested


def test_outputs_of_a_bound_function_are_fresh_unless_given(way: str) -> None:
    f = single()
    first, second = f.bind(X), f["main"].bind(x=X)
    assert not np.shares_memory(first()[0], second()[0])
    assert (first()[0] == X + 1).all()


def test_double_buffering(way: str) -> None:
    f, a, b = single(), X.copy(), empty()
    forth, back = f.bind(a, out=b), f.bind(b, out=a)
    for _ in range(5):
        forth()
        back()
    assert (a == X + 10).all()


def test_numbers_are_bound_as_they_are() -> None:
    b = Builder()
    x, s = b.input("x", T), b.input("s", TensorType(F32, ()))
    f = mind_mlir.compile(b.build([b.emit("Mul", x, s)]))
    assert (f.bind([[*row] for row in X], 2.0)()[0] == 2 * X).all()
    assert (f.bind(X, np.float32(3))()[0] == 3 * X).all()


IN_PLACE: dict[str, tuple[Callable[[], Array], str]] = {
    "strided": (lambda: np.zeros((2, 6), np.float32)[:, ::2], "is not C-contiguous"),
    "misaligned": (misaligned, "is not aligned"),
}


@pytest.mark.parametrize("kind", IN_PLACE)
def test_arrays_that_would_be_copied_are_not_bound(kind: str) -> None:
    make, reason = IN_PLACE[kind]
    with pytest.raises(ArgumentError, match=f"argument 'x' {reason}") as caught:
        single().bind(make())
    assert caught.value.code == "E6106"


def test_truth_values_of_odd_bytes_are_found_at_each_call(way: str) -> None:
    b = Builder()
    f = mind_mlir.compile(b.build([b.emit("Not", b.input("p", TensorType(I1, (9,))))]))
    p = np.zeros(9, np.bool_)
    bound = f.bind(p)
    for _ in range(3):
        assert bound()[0].all()
        p.view(np.uint8)[8] = 2
        for attempt in (bound, lambda: f.bind(p)):
            with pytest.raises(ArgumentError, match="argument 'p' has bytes other than 0 and 1"):
                attempt()
        p[8] = False


def test_arrays_that_change_under_a_bound_function(way: str) -> None:
    x, out = X.copy(), empty()
    bound = single().bind(x, out=out)
    for _ in range(3):
        assert (bound()[0] == X + 1).all()
        out.setflags(write=False)
        with pytest.raises(ArgumentError, match="out is read-only"):
            bound()
        out.setflags(write=True)
        x.resize(3, 3, refcheck=False)
        with pytest.raises(ArgumentError, match="argument 'x' has shape"):
            bound()
        x.resize(2, 3, refcheck=False)


def test_checks_of_a_bound_function(way: str) -> None:
    b = Builder()
    x, i = b.input("x", TensorType(F32, (4,))), b.input("i", TensorType(SI64, (1,)))
    f = mind_mlir.compile(b.build([b.emit("Gather", x, i)]))
    index = np.zeros(1, np.int64)
    bound = f.bind(np.arange(4, dtype=np.float32), index)
    for number in (0, 3, 9, 1, -7, -4):
        index[0] = number
        if -4 <= number < 4:
            assert bound()[0] == number % 4
            continue
        with pytest.raises(ExecutionError, match=f"index {number} is out of bounds"):
            bound()


def test_what_a_bound_function_is(way: str) -> None:
    bound = single().bind(X)
    assert repr(bound) == "<BoundFunction main(x: tensor<f32[2, 3]>) -> (tensor<f32[2, 3]>)>"
    assert bound.function.name == "main"
    assert not inspect.signature(bound).parameters
    assert copy.copy(bound) is bound
    assert copy.deepcopy(bound) is bound
    with pytest.raises(TypeError, match="pickle its function"):
        pickle.dumps(bound)


def test_a_bound_function_checks_what_it_is_made_of() -> None:
    f = single()
    function, out = f["main"], empty()
    assert mind_mlir.BoundFunction(function, [X], [out])()[0] is out
    for wrong in ((f, [X], [out]), (function, 1, [out]), (function, [X], None)):
        with pytest.raises(TypeError, match="must be"):
            mind_mlir.BoundFunction(*wrong)
    for inputs, outputs, code in (([], [out], "E6101"), ([X], [], "E6101"), ([X], [X], "E6106")):
        with pytest.raises(ArgumentError) as caught:
            mind_mlir.BoundFunction(function, inputs, outputs)
        assert caught.value.code == code


def test_thousands_of_outputs() -> None:
    b = Builder()
    x = b.input("x", TensorType(F32, (2,)))
    f = mind_mlir.compile(b.build([b.emit("Neg", x)] * 100))
    arrays = [np.empty(2, np.float32) for _ in range(100)]
    for _ in range(3):
        assert all((each == [-1, -2]).all() for each in f(np.array([1, 2], np.float32), out=arrays))
        with pytest.raises(ArgumentError, match=r"out\[99\] overlaps out\[3\]"):
            f(np.array([1, 2], np.float32), out=(*arrays[:-1], arrays[3]))
