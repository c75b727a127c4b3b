"""Programs are compiled, interpreted, verified and differentiated as modules are."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from test_to_module import ADD, F2, MUL, NEG, PAIR, instruction, program

import mind_mlir
from mind_mlir.diagnostics import ArgumentError, VerificationError
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType, ValueType
from mind_mlir.languages.ptir.program import Operation, Program, TupleElement
from mind_mlir.runtime.executable import Executable
from mind_mlir.runtime.program_executable import ProgramExecutable

A, B = SymbolicDim("A"), SymbolicDim("B")


def tensor(*extents: int | SymbolicDim) -> TensorType:
    return TensorType(DType.F32, extents)


def array(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)


def added(left: ValueType, right: ValueType, result: ValueType) -> Program:
    return program((left, right), instruction(2, ADD, 0, 1, type_=result))


def test_a_static_program_without_tuples_is_an_executable() -> None:
    found = mind_mlir.compile(added(F2, F2, F2))
    assert isinstance(found, Executable)
    assert found(array(2), arg1=array(2))[0].tolist() == [2, 4]


def test_the_entry_is_the_one_that_the_program_names() -> None:
    (one,) = program((F2,), instruction(1, NEG, 0), name="one").functions
    (two,) = program((F2,), instruction(1, ADD, 0, 0), name="two").functions
    executable = mind_mlir.compile(Program((one, two), entry="two"))
    assert executable(array(2))[0].tolist() == [2, 4]
    assert executable["one"](array(2))[0].tolist() == [-1, -2]
    assert pickle.loads(pickle.dumps(executable))(array(2))[0].tolist() == [2, 4]  # noqa: S301 -- our own
    only = mind_mlir.compile(Program((one, two), entry="two"), function="one")
    assert only(array(2))[0].tolist() == [-1, -2]


NESTED = TupleType((F2, TupleType((F2, TensorType(DType.SI64)))))


def test_tuples_are_tuples_of_python() -> None:
    text = program((NESTED,), instruction(1, NEG, TupleElement(0, 0)), results=(0, 1))
    executable = mind_mlir.compile(text)
    number = np.array(5)
    given = (array(2), [2 * array(2), number])
    whole, negated = executable(given)
    first, (second, third) = whole
    np.testing.assert_array_equal(first, array(2))
    np.testing.assert_array_equal(second, 2 * array(2))
    assert third == 5
    np.testing.assert_array_equal(negated, -array(2))
    ((_, (again, _)), _) = mind_mlir.interpret(text, {"arg0": given})
    np.testing.assert_array_equal(again, second)
    out = ((np.zeros(2, np.float32), (np.zeros(2, np.float32), np.array(0))), np.zeros(2, np.float32))
    executable(arg0=given, out=out)
    assert out[0][1][1] == 5
    assert out[1].tolist() == [-1, -2]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ((array(2),), "argument 'arg0' must be a tuple of 2, not of 1"),
        (array(2), "argument 'arg0' must be a tuple of 2, not"),
        ((array(2), array(2)), "argument 'arg0[1]' must be a tuple of 2"),
    ],
)
def test_what_is_no_tuple_is_refused(given: object, part: str) -> None:
    text = program((NESTED,), instruction(1, NEG, TupleElement(0, 0)))
    with pytest.raises(ArgumentError) as raised:
        mind_mlir.compile(text)(given)
    assert raised.value.code == "E6105"
    assert part in str(raised.value)


def test_a_wrong_dtype_in_a_tuple_is_called_by_its_place() -> None:
    executable = mind_mlir.compile(program((PAIR,), instruction(1, NEG, TupleElement(0, 1))))
    with pytest.raises(ArgumentError, match=r"argument 'arg0\[1\]' has dtype float64") as raised:
        executable((array(2), np.zeros(2)))
    assert raised.value.code == "E6103"


def test_each_binding_is_compiled_once_and_kept() -> None:
    executable = mind_mlir.compile(added(tensor(A, 2), tensor(A, 2), tensor(A, 2)), max_bindings=2)
    assert isinstance(executable, ProgramExecutable)
    for rows in (3, 0, 3, 1, 0):
        (result,) = executable(array(rows, 2), array(rows, 2))
        np.testing.assert_array_equal(result, 2 * array(rows, 2))
    found = executable.bindings()
    assert found.entries == (("main", {"A": 1}), ("main", {"A": 0}))
    assert (found.capacity, found.hits, found.misses, found.evictions) == (2, 1, 4, 2)
    executable.clear_bindings()
    assert executable.bindings().entries == ()
    assert copy.copy(executable) is executable
    again = pickle.loads(pickle.dumps(executable))  # noqa: S301 -- our own
    assert again(array(1, 2), array(1, 2))[0].tolist() == [[2, 4]]


def test_equal_symbols_agree() -> None:
    executable = mind_mlir.compile(added(tensor(A, A), tensor(A, A), tensor(A, A)))
    assert executable(array(2, 2), array(2, 2))[0].shape == (2, 2)
    with pytest.raises(ArgumentError) as raised:
        executable(array(2, 2), array(2, 3))
    (found,) = raised.value.diagnostics
    assert found.code == "E6107"
    assert found.message == (
        "?A is 2 by dimension 0 of argument 'arg0', but 3 by dimension 1 of argument 'arg1'"
    )
    assert found.context["places"] == (("arg0", 0), ("arg1", 1))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((array(2),), "E6101"),
        ((array(2), array(2), array(2)), "E6102"),
        ((array(2, 2), array(2)), "E6104"),
        ((array(2).astype(np.float64), array(2)), "E6103"),
        (("word", array(2)), "E6105"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[object, ...], code: str) -> None:
    executable = mind_mlir.compile(added(tensor(A), tensor(A), tensor(A)))
    with pytest.raises(ArgumentError) as raised:
        executable(*arguments)
    assert raised.value.code == code


def test_what_a_binding_makes_wrong_is_said_with_it() -> None:
    executable = mind_mlir.compile(added(tensor(A), tensor(B), tensor(A)))
    assert isinstance(executable, ProgramExecutable)
    assert executable(array(2), array(2))[0].tolist() == [2, 4]
    with pytest.raises(VerificationError) as raised:
        executable(array(2), array(3))
    assert "with ?A = 2, ?B = 3" in raised.value.diagnostics[0].notes
    assert executable.bindings().misses == 2
    assert len(executable.bindings().entries) == 1


@pytest.mark.parametrize(
    ("left", "right", "result", "code"),
    [
        (tensor(A, 2), tensor(B, 2), tensor(A, 2), None),
        (tensor(A, 2), tensor(3, 2), tensor(B, 2), None),
        (tensor(A, B), tensor(3, 4), tensor(A, B), None),
        (tensor(A, 2), tensor(A, 3), tensor(A, 2), "E3003"),
        (tensor(A), tensor(A, 3), tensor(A), "E3002"),
        (tensor(A, 2), tensor(A, 2), tensor(A, 3), "E2001"),
        (tensor(A, 2), tensor(A, 2), TensorType(DType.F64, (A, 2)), "E2001"),
        (tensor(A, 2), TensorType(DType.F64, (A, 2)), tensor(A, 2), "E2004"),
    ],
)
def test_what_no_binding_makes_right_is_an_error_at_once(
    left: TensorType, right: TensorType, result: TensorType, code: str | None
) -> None:
    text = added(left, right, result)
    if code is None:
        assert mind_mlir.verify(text) is text
        return
    with pytest.raises(VerificationError) as raised:
        mind_mlir.verify(text)
    assert [each.code for each in raised.value.diagnostics] == [code]
    with pytest.raises(VerificationError):
        mind_mlir.compile(text)


def test_extents_that_follow_from_symbols_are_open() -> None:
    joined = Operation("Reshape", fields={"new_shape": (None,)})
    text = program((tensor(A, 3),), instruction(1, joined, 0, type_=tensor(B)))
    mind_mlir.verify(text)
    mind_mlir.verify(text, bindings={"A": 2, "B": 6})
    with pytest.raises(VerificationError):
        mind_mlir.verify(text, bindings={"A": 2, "B": 7})


def test_symbols_of_results_follow_from_those_of_arguments() -> None:
    joined = Operation("Concat", fields={"axis": 0})
    text = program(
        (tensor(A, 2), tensor(3, 2)),
        instruction(2, joined, 0, 1, type_=tensor(B, 2)),
        instruction(3, ADD, 2, 2, type_=tensor(B, 2)),
    )
    executable = mind_mlir.compile(text)
    (found,) = executable(array(4, 2), array(3, 2))
    np.testing.assert_array_equal(found, 2 * np.concatenate([array(4, 2), array(3, 2)]))
    (found,) = mind_mlir.interpret(text, {"arg0": array(0, 2), "arg1": array(3, 2)})
    np.testing.assert_array_equal(found, 2 * array(3, 2))
    assert mind_mlir.compile(text, bindings={"A": 1})(array(1, 2), array(3, 2))[0].shape == (4, 2)
    with pytest.raises(VerificationError) as raised:
        mind_mlir.compile(text, bindings={"A": 1, "B": 5})
    assert raised.value.code == "E2001"


def test_symbols_can_be_bound_before() -> None:
    text = added(tensor(A, B), tensor(A, B), tensor(A, B))
    whole = mind_mlir.compile(text, bindings={"A": 2, "B": 3})
    assert isinstance(whole, Executable)
    assert whole(array(2, 3), array(2, 3))[0].shape == (2, 3)
    part = mind_mlir.compile(text, bindings={"A": 2})
    assert isinstance(part, ProgramExecutable)
    assert part.functions["main"].symbols == ("B",)
    assert part.prepare(B=5)(array(2, 5), array(2, 5))[0].shape == (2, 5)
    with pytest.raises(ArgumentError) as raised:
        part(array(3, 5), array(3, 5))
    assert raised.value.code == "E6104"


@pytest.mark.parametrize("bindings", [{"A": -1}, {"C": 1}])
def test_bindings_that_are_none(bindings: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="bindings"):
        mind_mlir.compile(added(tensor(A), tensor(A), tensor(A)), bindings=bindings)


def test_threads_share_the_cache() -> None:
    executable = mind_mlir.compile(added(tensor(A), tensor(A), tensor(A)), max_bindings=3)
    assert isinstance(executable, ProgramExecutable)
    wrong: list[int] = []

    def call(seed: int) -> None:
        for extent in np.random.default_rng(seed).integers(0, 5, 12).tolist():
            (result,) = executable(array(extent), array(extent))
            if result.tolist() != (2 * array(extent)).tolist():
                wrong.append(extent)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    found = executable.bindings()
    assert found.hits + found.misses == 48
    assert len(found.entries) <= 3


def test_a_program_is_differentiated_for_a_binding() -> None:
    text = program((tensor(A), tensor(A)), instruction(2, MUL, 0, 1, type_=tensor(A)))
    gradient = mind_mlir.differentiate(text, wrt=["arg0"], bindings={"A": 3})
    _, found = mind_mlir.compile(gradient.module)(array(3), 2 * array(3))
    np.testing.assert_array_equal(found, 2 * array(3))
    with pytest.raises(VerificationError) as raised:
        mind_mlir.differentiate(text)
    assert raised.value.code == "E4303"


def test_the_interpreter_binds_symbols() -> None:
    text = added(tensor(A), tensor(A), tensor(A))
    (found,) = mind_mlir.interpret(text, {"arg0": array(3), "arg1": array(3)})
    assert found.tolist() == [2, 4, 6]
