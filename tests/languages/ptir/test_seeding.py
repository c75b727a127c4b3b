"""Seeds of programs: fixed, given in calls, and which numbers the operations of a program draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_to_module import ADD, F2, I1, instruction, program

import mind_mlir
from mind_mlir.diagnostics import ArgumentError, VerificationError
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.languages.ptir.program import Operation, Program, Region
from mind_mlir.languages.ptir.seeding import seeded
from mind_mlir.ops.philox import words

UI4 = TensorType(DType.UI32, (4,))
UNIFORM = Operation("RngUniform", None, {"shape": (4,), "dtype": DType.UI32})
COND = Operation("Cond", None, {"true_region": 0, "false_region": 0})


def drawn(seed: int, stream: int) -> list[int]:
    return [int(word) for word in words(seed, stream, 4)]


def two() -> Program:
    return program((), instruction(0, UNIFORM, type_=UI4), instruction(1, UNIFORM, type_=UI4), results=(0, 1))


@pytest.mark.parametrize("seed", [0, 7, 2**64 - 1])
def test_the_seed_is_an_argument(seed: int) -> None:
    executable = mind_mlir.compile(two())
    expected = [drawn(seed, 0), drawn(seed, 1)]
    assert [each.tolist() for each in executable(seed=seed)] == expected
    assert [each.tolist() for each in mind_mlir.interpret(two(), {"seed": np.uint64(seed)})] == expected
    with pytest.raises(ArgumentError, match="'seed' is missing"):
        executable()


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_the_seed_is_fixed(seed: int) -> None:
    expected = [drawn(seed, 0), drawn(seed, 1)]
    executable = mind_mlir.compile(two(), seed=seed)
    assert [each.tolist() for each in executable()] == expected
    assert [each.tolist() for each in mind_mlir.interpret(two(), {}, seed=seed)] == expected
    with pytest.raises(ArgumentError):
        executable(seed=seed)


def test_the_seed_is_the_last_parameter() -> None:
    both = program((UI4,), instruction(1, UNIFORM, type_=UI4), results=(0, 1))
    x = np.arange(4, dtype=np.uint32)
    same, found = mind_mlir.compile(both)(x, 7)
    assert same.tolist() == x.tolist()
    assert found.tolist() == drawn(7, 0)


def test_a_name_that_is_taken_gets_an_underscore() -> None:
    both = program((UI4,), instruction(1, UNIFORM, type_=UI4), results=(0, 1), names={0: "seed"})
    x = np.zeros(4, np.uint32)
    _, found = mind_mlir.compile(both)(seed=x, seed_=7)
    assert found.tolist() == drawn(7, 0)


def test_functions_that_draw_nothing_have_no_seed() -> None:
    plain = program((F2,), instruction(1, ADD, 0, 0))
    assert seeded(plain) is plain
    assert seeded(plain, 7) is plain


def test_a_seed_is_given_once() -> None:
    once = seeded(two())
    assert seeded(once) is once
    assert seeded(once, 7) is once


def region(number: int) -> Region:
    return Region(number, (), (instruction(0, UNIFORM, type_=UI4),), (UI4,))


@pytest.mark.parametrize("flag", [True, False])
def test_each_copy_of_a_region_is_counted_where_it_runs(flag: bool) -> None:
    body = (
        instruction(1, UNIFORM, type_=UI4),
        instruction(2, COND, 0, type_=UI4),
        instruction(3, UNIFORM, type_=UI4),
    )
    text = program((I1,), *body, regions=(region(0),), results=(1, 2, 3))
    expected = [drawn(7, 0), drawn(7, 1 if flag else 2), drawn(7, 3)]
    for results in (
        mind_mlir.compile(text, seed=7)(np.array(flag)),
        mind_mlir.interpret(text, {"arg0": np.array(flag)}, seed=7),
    ):
        assert [each.tolist() for each in results] == expected


def test_only_a_region_draws() -> None:
    text = program((I1,), instruction(1, COND, 0, type_=UI4), regions=(region(0),))
    (found,) = mind_mlir.compile(text)(np.array(True), seed=5)
    assert found.tolist() == drawn(5, 0)


def test_functions_count_by_themselves() -> None:
    (one,) = program((), instruction(0, UNIFORM, type_=UI4), name="one").functions
    (other,) = program((), instruction(0, UNIFORM, type_=UI4), name="other").functions
    executable = mind_mlir.compile(Program((one, other), entry="one"))
    for name in ("one", "other"):
        assert executable[name](seed=3)[0].tolist() == drawn(3, 0)


def test_programs_with_tuples_and_symbols_take_seeds() -> None:
    symbol = TensorType(DType.UI32, (SymbolicDim("N"),))
    uniform = Operation("RngUniform", None, {"shape": (SymbolicDim("N"),), "dtype": DType.UI32})
    pair = TupleType((symbol, symbol))
    text = program((pair,), instruction(1, uniform, type_=symbol))
    x = np.zeros(4, np.uint32)
    assert mind_mlir.compile(text)((x, x), seed=9)[0].tolist() == drawn(9, 0)
    assert mind_mlir.compile(text, seed=9)((x, x))[0].tolist() == drawn(9, 0)
    assert mind_mlir.interpret(text, {"arg0": (x, x), "seed": 9})[0].tolist() == drawn(9, 0)


@pytest.mark.parametrize(("seed", "error"), [(-1, ValueError), (2**64, ValueError), (1.5, TypeError)])
def test_what_is_no_seed(seed: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="seed"):
        mind_mlir.compile(two(), seed=seed)
    with pytest.raises(error, match="seed"):
        mind_mlir.interpret(two(), {}, seed=seed)


def test_modules_take_their_seeds_as_arguments() -> None:
    module = mind_mlir.Builder().build([])
    with pytest.raises(ValueError, match="seed must be left out"):
        mind_mlir.compile(module, seed=7)  # type: ignore[call-overload]  # that is what is tested
    with pytest.raises(ValueError, match="seed must be left out"):
        mind_mlir.interpret(module, {}, seed=7)


def test_a_random_operation_has_no_operands() -> None:
    with pytest.raises(VerificationError) as raised:
        mind_mlir.compile(program((F2,), instruction(1, UNIFORM, 0, type_=UI4)))
    (finding,) = raised.value.diagnostics
    assert (finding.code, finding.context["expected"], finding.context["found"]) == ("E2007", 0, 1)
