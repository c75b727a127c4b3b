"""Modules become programs that say the same, and from then on both ways lead to the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from test_to_module import ADD, COND, F2, I1, MUL, NEG, PAIR, branches, instruction, program

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.diagnostics import ExecutionError, UnsupportedError, VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import CORE_V1
from mind_mlir.ir.types import DType, TupleType
from mind_mlir.languages.ptir.from_module import from_module
from mind_mlir.languages.ptir.program import Operation, Program, TupleElement
from mind_mlir.languages.ptir.to_core import to_core
from mind_mlir.languages.ptir.to_module import to_module
from mind_mlir.ops.dtype_support import uses
from mind_mlir.ops.registry import all_ops

LITERAL = TensorLiteral.of([1.5, 2.5], DType.F32)
PROGRAMS = {
    "line": program((F2, F2), instruction(2, ADD, 0, 1), instruction(3, MUL, 2, 0)),
    "literal": program((F2,), instruction(1, ADD, 0, LITERAL)),
    "cond": program(
        (I1, F2, F2),
        instruction(3, COND, 0, 1, 2, type_=PAIR),
        instruction(4, ADD, TupleElement(3, 0), TupleElement(3, 1)),
        regions=branches(F2, F2),
    ),
    "cast": program(
        (F2,),
        instruction(1, Operation("Cast", fields={"dtype": DType.F64}), 0, type_=F2.with_dtype(DType.F64)),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_come_back(name: str) -> None:
    module = to_module(PROGRAMS[name])
    again = from_module(module)
    assert to_module(again) == module
    assert from_module(to_module(again)) == again


CORE = {
    "broadcast": """\
%0 = Input {name="x"} : tensor<f32[2, 3]>
%1 = Input {name="row"} : tensor<f32[3]>
%2 = Mul (%0, %1) : tensor<f32[2, 3]>
%3 = ConstF32 {value=2.0} : tensor<f32[]>
%4 = Add (%2, %3) : tensor<f32[2, 3]>
outputs: %4, %0
""",
    "loop": """\
func @main(%x: tensor<f32[2]>, %n: tensor<i64[]>) -> (tensor<f32[2]>, tensor<i64[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  %y, %i = While (%x, %zero) : (tensor<f32[2]>, tensor<i64[]>) {
  ^condition(%a: tensor<f32[2]>, %j: tensor<i64[]>):
    %more = Compare (%j, %n) {op=Less} : tensor<i1[]>
    yield %more, %a, %j
  ^body(%b: tensor<f32[2]>, %k: tensor<i64[]>):
    %sum = Add (%b, %x) : tensor<f32[2]>
    %one = ConstI64 {value=1} : tensor<i64[]>
    %next = Add (%k, %one) : tensor<i64[]>
    yield %sum, %next
  }
  return %y, %i
}
""",
    "branches": """\
func @main(%x: tensor<f32[2]>, %p: tensor<i1[]>) -> (tensor<f32[2]>) {
^entry:
  cond_br %p, ^one, ^two(%x)
^one:
  %y = Neg (%x) : tensor<f32[2]>
  br ^two(%y)
^two(%r: tensor<f32[2]>):
  return %r
}
""",
    "scan": """\
func @main(%x: tensor<f32[4, 2]>, %s: tensor<f32[2]>) -> (tensor<f32[4, 2]>, tensor<f32[2]>) {
^entry:
  %e, %r = Scan (%s, %x) {carry_count=1, scan_output_count=1} : (tensor<f32[2]>, tensor<f32[4, 2]>) {
  ^body(%c: tensor<f32[2]>, %row: tensor<f32[2]>):
    %a = Add (%c, %row) : tensor<f32[2]>
    %b = Mul (%a, %s) : tensor<f32[2]>
    yield %b, %row
  }
  return %r, %e
}
""",
}


FORMS = {
    "sum": "Sum (%0) {{axes=[-1], keepdims=true}} : tensor<f32[2, 3, 1]>",
    "sum_all": "Sum (%0) {{axes=[], keepdims=true}} : tensor<f32[]>",
    "mean": "Mean (%0) {{axes=[0, 2], keepdims=false}} : tensor<f32[3]>",
    "expand": "ExpandDims (%0) {{axes=[1]}} : tensor<f32[2, 1, 3, 4]>",
    "relu": "Relu (%0) : tensor<f32[2, 3, 4]>",
    "matmul": "MatMul (%0, %1) : tensor<f32[2, 3, 5]>",
    "dot": "Dot (%1, %2) : tensor<f32[4]>",
    "index": "Index (%0) {{indices=[1, -1, 0]}} : tensor<f32[]>",
    "logic": (
        "Compare (%0, %0) {{op=Less}} : tensor<i1[2, 3, 4]>\n%4 = Not (%3) : tensor<i1[2, 3, 4]>\n"
        "%5 = Compare (%2, %2) {{op=Equal}} : tensor<i1[5]>\n%6 = Index (%5) {{indices=[0]}} : tensor<i1[]>\n"
        "%7 = And (%4, %6) : tensor<i1[2, 3, 4]>\n%8 = Or (%6, %3) : tensor<i1[2, 3, 4]>\n"
        "%9 = Xor (%7, %8) : tensor<i1[2, 3, 4]>"
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_the_contract_has_no_operation_for_is_said_with_others(name: str) -> None:
    lines = FORMS[name].replace("{{", "{").replace("}}", "}")
    last = 2 + len(lines.splitlines())
    shapes = ("x: 2, 3, 4", "y: 4, 5", "z: 5")
    inputs = [
        f'%{place} = Input {{name="{each[0]}"}} : tensor<f32[{each[3:]}]>'
        for place, each in enumerate(shapes)
    ]
    text = "\n".join([*inputs, f"%3 = {lines}", f"outputs: %{last}", ""])
    module = mind_mlir.parse(text, format="core")
    said = from_module(module)
    rng = np.random.default_rng(7)
    given = [
        rng.standard_normal([int(extent) for extent in each[3:].split(",")]).astype(np.float32)
        for each in shapes
    ]
    names = dict(zip("xyz", given, strict=True))
    (expected,) = mind_mlir.interpret(module, names)
    (found,) = mind_mlir.interpret(said, names)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    assert to_module(from_module(to_module(said))) == to_module(said)


def arguments(module: mind_mlir.Module) -> dict[str, Any]:
    rng = np.random.default_rng(4)
    types = {p.name: p.type for p in mind_mlir.compile(module).parameters}
    return {
        name: np.array(3)
        if type_.dtype is DType.SI64
        else np.array(True)
        if type_.dtype is DType.I1
        else rng.standard_normal(type_.extents).astype(np.float32)
        for name, type_ in types.items()
    }


@pytest.mark.parametrize("name", CORE)
def test_core_modules_are_said_in_ptir(name: str) -> None:
    module = mind_mlir.parse(CORE[name], format="core")
    said = from_module(module)
    assert isinstance(said, Program)
    given = arguments(module)
    expected = mind_mlir.compile(module)(**given)
    for found in (mind_mlir.compile(said)(*given.values()), mind_mlir.interpret(said, given)):
        for actual, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(actual, wanted)
    again = to_module(said)
    assert to_module(from_module(again)) == again


def test_tuples_of_a_signature_are_tensors_from_then_on() -> None:
    module = to_module(program((PAIR,), instruction(1, NEG, TupleElement(0, 1)), results=(0, 1)))
    again = to_module(from_module(module))
    assert [p.name for p in again.functions[0].parameters] == ["arg0", "arg1"]
    assert again.functions[0].result_types == (F2, F2, F2)
    assert to_module(from_module(again)) == again


def test_broadcasting_is_explicit() -> None:
    said = from_module(mind_mlir.parse(CORE["broadcast"], format="core"))
    names = [each.operation.name for each in said.functions[0].body]
    assert names == ["BroadcastTo", "ElementwiseBinary", "Constant", "BroadcastTo", "ElementwiseBinary"]


def test_what_is_around_a_loop_is_carried() -> None:
    said = from_module(mind_mlir.parse(CORE["loop"], format="core"))
    (_, loop, *_) = said.functions[0].body
    assert isinstance(loop.output, TupleType)
    assert len(loop.operands) == len(loop.output.elements) == 4


INDEXED = """\
%0 = Input {name="x"} : tensor<f32[4, 3]>
%1 = Input {name="i"} : tensor<i32[2]>
%2 = Slice (%0) {ends=[-5, 0], starts=[3, 2], steps=[-2, -1]} : tensor<f32[2, 2]>
%3 = Gather (%0, %1) : tensor<f32[2, 3]>
%4 = Index (%0) {indices=[-1, 7]} : tensor<f32[]>
outputs: %2, %3
"""


def test_elements_by_index() -> None:
    """Negative indices count from the end in Core IR, and steps may be any; in PTIR neither is so."""
    module = mind_mlir.parse(INDEXED, format="core")
    said = from_module(mind_mlir.canonicalize(module))
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    sliced, rows = mind_mlir.interpret(said, {"x": x, "i": np.array([-4, 3], np.int32)})
    np.testing.assert_array_equal(sliced, x[3::-2, 2:0:-1])
    np.testing.assert_array_equal(rows, x[[-4, 3]])
    for wrong in (-5, 4):
        with pytest.raises(ExecutionError) as raised:
            mind_mlir.interpret(said, {"x": x, "i": np.array([0, wrong], np.int32)})
        assert raised.value.code == "E6001"


def test_an_index_that_is_out_of_range_is_found_when_the_program_runs() -> None:
    said = from_module(mind_mlir.parse(INDEXED.replace("%2, %3", "%4"), format="core"))
    with pytest.raises(ExecutionError) as raised:
        mind_mlir.interpret(said, {"x": np.zeros((4, 3), np.float32), "i": np.zeros(2, np.int32)})
    assert raised.value.code == "E6001"


CALLS = """func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {{
^entry:
  %y = Call (%x) {{callee="f0"}} : tensor<f32[2]>
  return %y
}}
{}
internal func @f{}(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {{
^entry:
  %y = Add (%x, %x) : tensor<f32[2]>
  return %y
}}
"""
TWICE = """internal func @f{}(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {{
^entry:
  %y = Call (%x) {{callee="f{}"}} : tensor<f32[2]>
  %z = Call (%y) {{callee="f{}"}} : tensor<f32[2]>
  return %z
}}
"""


def calling(depth: int) -> mind_mlir.Module:
    """Return a module that doubles a value 2 ** depth times."""
    functions = "\n".join(TWICE.format(n, n + 1, n + 1) for n in range(depth))
    return mind_mlir.parse(CALLS.format(functions, depth), format="core")


def test_functions_take_the_place_of_calls() -> None:
    said = from_module(calling(5))
    assert len(said.functions) == 1
    assert [each.operation.variant for each in said.functions[0].body] == ["Add"] * 32
    (found,) = mind_mlir.interpret(said, {"x": np.ones(2, np.float32)})
    assert found.tolist() == [2.0**32] * 2


def test_calls_that_are_too_many() -> None:
    with pytest.raises(UnsupportedError) as raised:
        from_module(calling(40))
    (finding,) = raised.value.diagnostics
    assert finding.code == "E7001"
    assert "PTIR has no calls" in finding.message


def test_each_operation_that_ptir_cannot_say_is_named() -> None:
    """Operations of programs draw each from the stream of its number."""
    spec = {"shape": (2,), "dtype": DType.F32}
    uniform = Operation("RngUniform", None, spec)
    two = program((), instruction(0, uniform), instruction(1, uniform), results=(0, 1))
    module = to_module(two)
    (function,) = module.functions
    swapped = replace(function.entry, operations=function.entry.operations[::-1])
    with pytest.raises(UnsupportedError) as raised:
        from_module(replace(module, functions=Functions([replace(function, blocks=(swapped,))])))
    found = raised.value.diagnostics
    assert [(each.code, each.message) for each in found] == [
        ("E7001", "PTIR cannot say RngUniform %1"),
        ("E7001", "PTIR cannot say RngUniform %0"),
    ]


def test_each_part_that_core_cannot_say_is_named() -> None:
    """An operation is reported once, whatever else is wrong with it."""
    wide, narrow = Operation("Cast", fields={"dtype": DType.F32}), F2.with_dtype(DType.BF16)
    empty = Operation("Reshape", fields={"new_shape": (0, 5)})
    nothing = F2.with_shape((0,))
    said = program(
        (narrow, F2, nothing),
        instruction(3, wide, 0),
        instruction(4, ADD, 1, 3),
        instruction(5, NEG, 0, type_=narrow),
        instruction(6, empty, 2, type_=F2.with_shape((0, 5))),
        results=(4,),
    )
    with pytest.raises(UnsupportedError) as raised:
        to_core(said)
    found = raised.value.diagnostics
    assert {each.code for each in found} == {"E7001"}
    assert [each.message for each in found] == [
        "Core IR cannot say parameter %0 of @main",
        "Core IR cannot say parameter %2 of @main",
        "Core IR cannot say Cast %3",
        "Core IR cannot say Neg %5",
        "Core IR cannot say Reshape %6",
    ]
    assert to_core(program((F2, F2), instruction(2, ADD, 0, 1))).profile == "core-functions"


def test_what_ptir_has_in_dtypes_of_core_goes_back_and_forth() -> None:
    """The first use of each operation of the contract, in each dtype: there and back, or with findings."""
    for record in all_ops():
        if record.contract is None or not record.operands or record.regions:
            continue
        for dtype in DType:
            for types, attributes in islice(uses(record, dtype), 1):
                builder = Builder(profile="ptir-v0.4")
                try:
                    operands = [builder.parameter(type_, f"x{place}") for place, type_ in enumerate(types)]
                    results = builder.emit_all(record.opcode, *operands, **attributes)
                except VerificationError:  # an example that broadcasts
                    continue
                module = Module(Functions((builder.function("main", results),)), "ptir-v0.4")
                said = from_module(module)
                known = [each.dtype for each in (*types, *(result.type for result in results))]
                if {*known} <= {*CORE_V1.dtypes} and not any(0 in type_.shape for type_ in types):
                    assert to_module(from_module(to_core(said))) == to_module(said)
                    continue
                with pytest.raises(UnsupportedError) as raised:
                    to_core(said)
                assert {each.code for each in raised.value.diagnostics} == {"E7001"}
                assert all(each.help for each in raised.value.diagnostics)
