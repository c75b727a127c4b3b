"""Programs become modules that say the same, or findings that say where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mind_mlir
from mind_mlir.diagnostics import VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType, ValueType
from mind_mlir.languages.ptir.program import (
    Function,
    Instruction,
    Operand,
    Operation,
    Program,
    Region,
    TupleElement,
    ValueRef,
)
from mind_mlir.languages.ptir.to_module import convert, to_module

F2, I1, I64 = TensorType(DType.F32, (2,)), TensorType(DType.I1), TensorType(DType.SI64)
NEG, ADD, MUL = (
    Operation("ElementwiseUnary", "Neg"),
    Operation("ElementwiseBinary", "Add"),
    Operation("ElementwiseBinary", "Mul"),
)


def instruction(
    value: int, operation: Operation, *operands: int | Operand, type_: ValueType = F2
) -> Instruction:
    read = tuple(ValueRef(each) if isinstance(each, int) else each for each in operands)
    return Instruction(value, operation, read, type_)


def program(
    parameters: tuple[ValueType, ...],
    *body: Instruction,
    regions: tuple[Region, ...] = (),
    results: tuple[int, ...] | None = None,
    **changes: Any,
) -> Program:
    """Return a program of one function, which returns its last value unless told otherwise."""
    types = {each.id: each.output for each in body} | dict(enumerate(parameters))
    returned = (body[-1].id,) if results is None else results
    parts = {
        "name": "main",
        "parameters": parameters,
        "parameter_ids": tuple(range(len(parameters))),
        "body": body,
        "results": tuple(types.get(each, F2) for each in returned),
        "result_ids": returned,
    }
    return Program((Function(**{**parts, **changes}),), regions)


def codes(wrong: Program) -> list[str]:
    with pytest.raises(VerificationError) as raised:
        to_module(wrong)
    return [each.code for each in raised.value.diagnostics]


def message(wrong: Program) -> str:
    with pytest.raises(VerificationError) as raised:
        to_module(wrong)
    return raised.value.diagnostics[0].message


def test_a_program_is_the_module_that_says_the_same() -> None:
    found = to_module(program((F2, F2), instruction(5, ADD, 0, 1), instruction(9, MUL, 5, 0)))
    assert str(found) == (
        "func @main(%arg0: tensor<f32[2]>, %arg1: tensor<f32[2]>) -> (tensor<f32[2]>) {\n"
        "^entry:\n"
        "  %2 = Add (%arg0, %arg1) : tensor<f32[2]>\n"
        "  %3 = Mul (%2, %arg0) : tensor<f32[2]>\n"
        "  return %3\n"
        "}"
    )
    assert found.profile == "ptir-v0.4"


def test_it_compiles_and_runs() -> None:
    found = to_module(program((F2, F2), instruction(2, ADD, 0, 1), instruction(3, MUL, 2, 0)))
    x, y = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    (result,) = mind_mlir.compile(found)(x, y)
    np.testing.assert_array_equal(result, (x + y) * x)
    (interpreted,) = mind_mlir.interpret(found, {"arg0": x, "arg1": y})
    np.testing.assert_array_equal(interpreted, result)


def test_literals_among_operands_are_constants() -> None:
    literal = TensorLiteral.of([1.5, 2.5], DType.F32)
    (result,) = mind_mlir.compile(to_module(program((F2,), instruction(1, ADD, literal, 0))))(
        np.array([1, 1], np.float32)
    )
    assert result.tolist() == [2.5, 3.5]


def test_tuples_of_a_signature_are_flattened() -> None:
    pair = TupleType((F2, TupleType((I64, F2))))
    inner = program((pair,), instruction(1, NEG, TupleElement(0, 0)), results=(0, 1))
    found = convert(inner)
    (function,) = found.module.functions
    assert [p.name for p in function.parameters] == ["arg0[0]", "arg0[1][0]", "arg0[1][1]"]
    assert function.result_types == (F2, I64, F2, F2)
    assert found.signatures["main"].parameters == (pair,)
    assert found.signatures["main"].results == (pair, F2)


COND = Operation("Cond", fields={"true_region": 0, "false_region": 1})
PAIR = TupleType((F2, F2))


def branches(*types: ValueType) -> tuple[Region, Region]:
    one = Region(0, types, (instruction(7, NEG, 0), instruction(8, ADD, 0, 1)), (F2, F2))
    other = Region(1, types, (instruction(7, ADD, 0, 0), instruction(8, MUL, 0, 1)), (F2, F2))
    return one, other


@pytest.mark.parametrize("chosen", [True, False])
def test_a_conditional_reads_its_arguments_and_has_a_tuple(chosen: bool) -> None:
    body = (
        instruction(3, COND, 0, 1, 2, type_=PAIR),
        instruction(4, ADD, TupleElement(3, 0), TupleElement(3, 1)),
    )
    found = to_module(program((I1, F2, F2), *body, regions=branches(F2, F2)))
    x, y = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    (result,) = mind_mlir.compile(found)(np.array(chosen), x, y)
    np.testing.assert_array_equal(result, -x + (x + y) if chosen else 2 * x + x * y)


def test_a_loop_carries_a_tuple_and_regions_are_copied() -> None:
    less = Operation("Compare", fields={"op": "Less"})
    ten, one = TensorLiteral.of(10, DType.SI64), TensorLiteral.of(1, DType.SI64)
    same = Operation("Reshape", fields={"new_shape": (2,)})
    scalar = Operation("Reshape", fields={"new_shape": ()})
    condition = Region(
        4,
        (I64, F2),
        (
            instruction(2, less, 0, ten, type_=I1),
            instruction(3, scalar, 0, type_=I64),
            instruction(4, same, 1),
        ),
        (I1, I64, F2),
    )
    body = Region(
        5, (I64, F2), (instruction(2, ADD, 0, one, type_=I64), instruction(3, ADD, 1, 1)), (I64, F2)
    )
    loop = Operation("While", fields={"cond_region": 4, "body_region": 5})
    carried = TupleType((I64, F2))
    zero = TensorLiteral.of(7, DType.SI64)
    text = program(
        (F2,),
        instruction(1, loop, zero, 0, type_=carried),
        instruction(2, loop, zero, TupleElement(1, 1), type_=carried),
        regions=(condition, body),
        results=(2,),
    )
    count, result = mind_mlir.compile(to_module(text))(np.array([1, 3], np.float32))
    assert count == 10
    assert result.tolist() == [64, 192]


@pytest.mark.parametrize(
    ("wrong", "code", "part"),
    [
        (program((F2,), instruction(1, NEG, 4)), "E4001", "%4 is not defined before %1 in @main"),
        (program((F2,), instruction(0, NEG, 0)), "E4002", "%0 is defined twice"),
        (program((PAIR,), instruction(1, NEG, TupleElement(0, 2))), "E4301", "%0[2] is out of range"),
        (program((F2,), instruction(1, NEG, TupleElement(0, 0))), "E4301", "which is a tensor<f32[2]>"),
        (program((PAIR,), instruction(1, NEG, 0)), "E4301", "operand 0 of ElementwiseUnary(Neg) is %0"),
        (program((F2,), instruction(1, NEG, 0), results=(5,)), "E4003", "result 0 of @main is %5"),
        (program((F2,), instruction(1, NEG, 0, type_=I1)), "E2001", "declared as tensor<i1[]>"),
        (
            program((F2,), instruction(1, NEG, 0), results=(1, 1), result_ids=(1,)),
            "E4115",
            "@main has 2 results",
        ),
        (program((F2,), instruction(1, NEG, 0), parameter_ids=(0, 3)), "E2007", "1 parameters, but 2"),
        (program((F2, F2), instruction(2, NEG, 0, 1)), "E2007", "takes 1 operand, found 2"),
        (
            program((F2,), instruction(1, Operation("ElementwiseUnary", "Negg"), 0)),
            "E1102",
            "did you mean Neg?",
        ),
        (program((F2,), instruction(1, Operation("Selekt"), 0)), "E1102", "did you mean Select?"),
        (program((F2,), instruction(1, Operation("Cast"), 0)), "E1103", "Cast needs field 'dtype'"),
        (
            program((F2,), instruction(1, Operation("Cast", fields={"dtype": "f32"}), 0)),
            "E1103",
            "field 'dtype' of Cast must be a dtype",
        ),
        (
            program((F2,), instruction(1, Operation("Cast", fields={"dtype": DType.F32, "tpye": 1}), 0)),
            "E1103",
            "Cast has no field 'tpye'",
        ),
        (program((F2,), instruction(1, NEG, 0, type_=TupleType(()))), "E4122", "%1 has no results"),
        (program((I1, F2), instruction(2, COND, 0, 1, type_=PAIR)), "E4302", "runs region 0"),
        (program((F2,), instruction(1, NEG, 0), name="f"), "E2002", "no function @main"),
        (
            program((TensorType(DType.F32, (SymbolicDim("B"),)),), instruction(1, NEG, 0)),
            "E4303",
            "?B is not bound",
        ),
    ],
)
def test_a_mistake_is_one_finding(wrong: Program, code: str, part: str) -> None:
    assert codes(wrong) == [code]
    assert part in message(wrong)


def test_a_value_that_cannot_be_had_counts_as_declared() -> None:
    wrong = program(
        (F2,), instruction(1, NEG, 7), instruction(2, ADD, 1, 0), instruction(3, NEG, 2, type_=I1)
    )
    assert codes(wrong) == ["E4001", "E2001"]


def test_elements_of_tuples_are_called_as_the_program_calls_them() -> None:
    found = to_module(
        program((I1, F2, F2), instruction(3, COND, 0, 1, 2, type_=PAIR), regions=branches(F2, F2))
    )
    (operation,) = found.functions[0].entry.operations
    assert [operation.spell(value) for value in operation.result_ids] == ["%3[0]", "%3[1]"]


@pytest.mark.parametrize(
    ("arguments", "regions", "code"),
    [
        ((0, 1), branches(F2, F2), "E2007"),
        ((0, 1, 0), branches(F2, F2), "E2001"),
        ((0, 1, 2), (branches(F2, F2)[0], Region(1, (F2, F2), (), (F2, F2))), "E2007"),
        (
            (0, 1, 2),
            (branches(F2, F2)[0], Region(1, (F2, F2), branches(F2, F2)[1].body, (F2, I1))),
            "E2001",
        ),
        ((0, 1, 2), (*branches(F2, F2), Region(1, (), (), ())), "E4302"),
    ],
)
def test_regions_that_do_not_fit(arguments: tuple[int, ...], regions: tuple[Region, ...], code: str) -> None:
    assert codes(program((I1, F2, F2), instruction(3, COND, *arguments, type_=PAIR), regions=regions)) == [
        code
    ]


def test_a_region_that_runs_itself() -> None:
    first = Region(0, (I1, F2), (instruction(2, COND, 0, 0, 1),), (F2,))
    second = Region(1, (I1, F2), (instruction(2, NEG, 1),), (F2,))
    wrong = program((I1, F2), instruction(2, COND, 0, 0, 1), regions=(first, second))
    assert codes(wrong) == ["E4118"]
    assert message(wrong) == "recursion: region 0 runs itself"


def test_regions_nest_64_deep_and_no_deeper() -> None:
    def nest(depth: int) -> Program:
        def cond(number: int) -> Instruction:
            operation = Operation("Cond", fields={"true_region": number, "false_region": 0})
            return instruction(2, operation, 0, 0, 1)

        regions = [Region(0, (I1, F2), (instruction(2, NEG, 1),), (F2,))]
        regions += [Region(n, (I1, F2), (cond(n - 1),), (F2,)) for n in range(1, depth)]
        return program((I1, F2), cond(depth - 1), regions=tuple(regions))

    to_module(nest(64))
    assert codes(nest(65)) == ["E4125"]
    assert codes(nest(20_000)) == ["E4125"]


def test_deep_tuples_are_a_finding() -> None:
    deep: ValueType = F2
    for _ in range(200):
        deep = TupleType((deep,))
    assert codes(program((deep, F2), instruction(2, NEG, 1))) == ["E4301"]


def test_the_default_accumulator_and_inferred_extents_are_resolved() -> None:
    reshape = Operation("Reshape", fields={"new_shape": (None, 1)})
    found = to_module(program((F2,), instruction(1, reshape, 0, type_=F2.with_shape((2, 1)))))
    (operation,) = found.functions[0].entry.operations
    assert operation.result_type == F2.with_shape((2, 1))
