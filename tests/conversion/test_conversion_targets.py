"""The registry of targets, names of entry points, the walk, and findings about forms."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any

import pytest

import mind_mlir
from mind_mlir.builders.builder import Builder
from mind_mlir.conversion import (
    ConversionTarget,
    LegalityTable,
    OperationRule,
    VisitKind,
    check_program_legality,
    conversion_target_problems,
    convert,
    entry_point_name,
    entry_point_names,
    get_conversion_target,
    list_conversion_targets,
    register_conversion_target,
    registry,
    walk_program,
)
from mind_mlir.conversion.shipped import GROUP
from mind_mlir.diagnostics import UnsupportedError, VerificationError
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.ptir.from_module import from_module
from mind_mlir.ops.registry import all_ops

if TYPE_CHECKING:
    from collections.abc import Callable

SUM = """
func @main(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %y = Add (%x, %x) : tensor<f32[2]>
  return %y
}
"""
LOOP = """
func @main(%x: tensor<f32[2]>, %n: tensor<i64[]>) -> (tensor<f32[2]>) {
^entry:
  %y, %i = While (%x, %n) : (tensor<f32[2]>, tensor<i64[]>) {
  ^condition(%a: tensor<f32[2]>, %j: tensor<i64[]>):
    %zero = ConstI64 {value=0} : tensor<i64[]>
    %more = Compare (%zero, %j) {op=Less} : tensor<i1[]>
    yield %more, %a, %j
  ^body(%b: tensor<f32[2]>, %k: tensor<i64[]>):
    %sum = Call (%b) {callee="twice"} : tensor<f32[2]>
    %one = ConstI64 {value=1} : tensor<i64[]>
    %next = Sub (%k, %one) : tensor<i64[]>
    yield %sum, %next
  }
  return %y
}

func @twice(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  br ^on(%x)
^on(%y: tensor<f32[2]>):
  %z = Add (%y, %y) : tensor<f32[2]>
  return %z
}
"""
CALL = 'Call (%b) {callee="twice"}'
ROWS = """
func @main(%x: tensor<f32, ?Bx2>, %t: tuple<tensor<f32, 0x2>, tensor<bf16, 3>>) -> tensor<f32, ?B> {
  %e = exp %x -> tensor<f32, ?Bx2>
  %s = reduce_sum %e axes[1] keepdims[false] -> tensor<f32, ?B>
  return %s
}
"""


def of(name: str, convert: Callable[[Any], str | bytes] = str, **forms: Any) -> ConversionTarget:
    rules = {record.opcode: OperationRule() for record in all_ops()}
    table = LegalityTable(operations=rules, **forms)
    return ConversionTarget(name=name, summary=name, suffix=".txt", legality=table, convert=convert)


# Names


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("forward", "forward"),
        ("main", "entry_main"),
        ("while", "entry_while"),
        ("a.b-c", "a_b_c"),
        ("1st", "entry_1st"),
        ("_x", "entry__x"),
        ("memcpy", "entry_memcpy"),
        ("expf", "entry_expf"),
        ("größe", "gr__e"),
        ("", "entry_"),
        ("kernel", "entry_kernel_"),
        ("f_part_0", "entry_f_part_0_"),
    ],
)
def test_names_are_identifiers_that_nothing_else_has(function: str, expected: str) -> None:
    assert entry_point_name(function) == expected


def test_names_say_what_is_bound() -> None:
    assert entry_point_name("f", {"T": 16, "B": 4}) == entry_point_name("f", {"B": 4, "T": 16})
    assert entry_point_name("f", {"T": 16, "B": 4}) == "f__B4__T16"


def test_names_of_a_program_are_distinct() -> None:
    names = ("a.b", "a_b", "a_b_2", "main", "entry_main")
    text = "\n".join(SUM.replace("@main", f"@{name}") for name in names)
    module = mind_mlir.parse(text)
    found = entry_point_names(module)
    assert dict(found) == {
        "a.b": "a_b_3",
        "a_b": "a_b",
        "a_b_2": "a_b_2",
        "main": "entry_main_2",
        "entry_main": "entry_main",
    }
    result = convert(module, "llvm")
    assert [(each.name, each.symbol) for each in result.entry_points] == list(found.items())
    for symbol in found.values():
        assert f"@{symbol}(" in str(result.text)


# The registry


def test_targets_that_ship() -> None:
    assert {"mind", "linalg", "llvm"} <= {target.name for target in list_conversion_targets()}
    assert get_conversion_target("llvm").suffix == ".mlir"
    with pytest.raises(ValueError, match="did you mean linalg"):
        get_conversion_target("linalgs")
    with pytest.raises(ValueError, match="there is one called 'mind'"):
        register_conversion_target(of("mind"))


def test_a_target_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    mine = register_conversion_target(of("mine", lambda module: repr(module).encode()))
    assert register_conversion_target(mine) is mine
    assert get_conversion_target("mine") is mine
    assert convert(mind_mlir.parse(SUM), "mine").text == b"<Module core-functions: 1 function>"
    with pytest.raises(ValueError, match="there is one called 'mine'"):
        register_conversion_target(of("mine"))


@pytest.mark.parametrize(
    "wrong", [{"name": "No Name"}, {"suffix": "txt"}, {"legality": of("x", str).legality.__class__}]
)
def test_wrong_targets(wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        replace(of("right"), **wrong)
    with pytest.raises(ValueError, match="convert_program"):
        of("open", symbolic_dimensions=True)


GOOD, OTHER = of("good"), of("other")
CALLS: list[str] = []


def made() -> ConversionTarget:
    CALLS.append("made")
    return of("made")


def fails() -> ConversionTarget:
    raise SystemExit("no license")


@pytest.fixture
def plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    here = __name__
    values = {
        "good": "GOOD",
        "made": "made",
        "renamed": "OTHER",
        "mind": "GOOD",
        "fails": "fails",
        "number": "SUM",
    }
    points = [EntryPoint(name, f"{here}:{value}", GROUP) for name, value in values.items()]
    points += [
        EntryPoint("lost", "no_such_module_at_all:TARGET", GROUP),
        EntryPoint("good", f"{here}:OTHER", GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda **_: points)
    monkeypatch.setattr(registry, "_loaded", {})
    CALLS.clear()


@pytest.mark.usefixtures("plug_ins")
def test_targets_of_other_packages() -> None:
    assert get_conversion_target("good") is GOOD
    assert get_conversion_target("made") is get_conversion_target("made")
    assert CALLS == ["made"]
    names = [target.name for target in list_conversion_targets()]
    assert {"good", "made", "mind"} <= set(names)
    assert not {"renamed", "fails", "number", "lost"} & set(names)


@pytest.mark.usefixtures("plug_ins")
def test_broken_plug_ins_are_findings() -> None:
    found = {each.context["target"]: each for each in conversion_target_problems()}
    assert {(each.code, each.severity) for each in found.values()} == {("E7204", "warning")}
    assert {name: each.context["reason"] for name, each in found.items()} == {
        "fails": "SystemExit: no license",
        "good": "an unknown package has a target of that name, too",
        "lost": "ModuleNotFoundError: No module named 'no_such_module_at_all'",
        "mind": "there is a target of that name that ships with mind-mlir",
        "number": f"it leads to the str {SUM[:40]!r}, which is no ConversionTarget",
        "renamed": "it leads to a target that is called 'other'",
    }
    with pytest.raises(UnsupportedError) as raised:
        get_conversion_target("lost")
    assert raised.value.code == "E7204"


# The walk


def test_the_walk_of_a_module() -> None:
    found = [
        (each.kind.value, each.path, each.depth, each.place) for each in walk_program(mind_mlir.parse(LOOP))
    ]
    assert found[:4] == [
        ("function", "@main", 0, 0),
        ("block", "@main", 1, 0),
        ("operation", "@main / %y = While", 2, 0),
        ("region", "@main / %y = While / ^condition", 3, 0),
    ]
    assert ("operation", "@main / %y = While / ^body / %sum = Call", 4, 0) in found
    assert found[-3:] == [
        ("block", "@twice / ^entry", 1, 0),
        ("block", "@twice / ^on", 1, 1),
        ("operation", "@twice / ^on / %z = Add", 2, 0),
    ]


def test_the_walk_of_a_program_goes_through_each_region_once() -> None:
    program = from_module(mind_mlir.parse(LOOP.replace(CALL, "Add (%b, %b)")))
    found = list(walk_program(program))
    regions = [each.path for each in found if each.kind is VisitKind.REGION]
    assert len(regions) == len(program.regions) == 2
    (loop,) = [each for each in found if each.record is not None and each.record.opcode == "While"]
    assert [type_.dtype for type_ in loop.operands] == [type_.dtype for type_ in loop.results]
    assert regions[0].startswith(f"{loop.path} / region ")
    count = sum(len(f.body) for f in program.functions) + sum(len(r.body) for r in program.regions)
    assert len([each for each in found if each.kind is VisitKind.OPERATION]) == count


# Forms


def found_in(text: str, target: ConversionTarget, **bindings: int) -> list[tuple[str, Any]]:
    program = mind_mlir.parse(text)
    found = check_program_legality(program, target, bindings=bindings or None)
    if found:
        with pytest.raises(UnsupportedError) as raised:
            convert(program, target, bindings=bindings or None)
        assert raised.value.diagnostics == found
    assert all(each.help and each.location for each in found)
    return [(each.code, each.context.get("form", each.context.get("dtype"))) for each in found]


@pytest.mark.parametrize(
    ("form", "line"), [("regions", 4), ("branches", 18), ("calls", 10), ("functions", 18)]
)
def test_forms_of_modules(form: str, line: int) -> None:
    target = of("some", str, **{form: False})
    assert found_in(LOOP, target) == [("E7203", form)]
    (finding,) = check_program_legality(mind_mlir.parse(LOOP), target)
    assert finding.location is not None
    assert finding.location.line == line


def test_forms_of_programs() -> None:
    target = of("some", tuples=False, empty_extents=False, max_rank=1, dtypes=(DType.F32,))
    found = found_in(ROWS, target)
    assert found == [
        ("E7203", "symbolic_dimensions"),
        ("E7203", "tuples"),
        ("E7202", "bf16"),
        ("E7203", "max_rank"),
        ("E7203", "empty_extents"),
        ("E7203", "max_rank"),
    ]
    assert found_in(ROWS, of("all"), B=3) == []
    assert found_in(ROWS, of("all")) == [("E7203", "symbolic_dimensions")]


def test_symbols_stay_open_where_a_target_takes_them() -> None:
    table = replace(of("x").legality, symbolic_dimensions=True)
    target = replace(of("open"), legality=table, convert_program=lambda program: program.functions[0].name)
    result = convert(mind_mlir.parse(ROWS), target)
    assert result.text == "entry_main"
    assert str(result.entry_points[0].parameters["x"]) == "tensor<f32[?B, 2]>"
    assert convert(mind_mlir.parse(ROWS), target, bindings={"B": 3}).entry_points[0].symbol == "main__B3"


def test_a_program_that_is_wrong_is_no_matter_of_legality() -> None:
    with pytest.raises(VerificationError):
        check_program_legality(mind_mlir.parse(SUM.replace("f32[2]", "f32[3]", 1)), "mind")


def test_entry_points_are_what_the_text_has() -> None:
    (entry,) = convert(mind_mlir.parse(ROWS), "linalg", bindings={"B": 3}).entry_points
    assert (entry.name, entry.symbol) == ("main", "main__B3")
    assert {name: str(type_) for name, type_ in entry.parameters.items()} == {
        "x": "tensor<f32[3, 2]>",
        "t[0]": "tensor<f32[0, 2]>",
        "t[1]": "tensor<bf16[3]>",
    }
    assert [str(type_) for type_ in entry.results] == ["tensor<f32[3]>"]


def test_code_cannot_say_where_a_function_of_this_process_is() -> None:
    """The text of the LLVM dialect would hold its address; the forms before it have its name."""
    mind_mlir.register_custom_call(
        "test.legality.v1", types=lambda types, _: types[0], evaluate=lambda arrays, _: arrays[0], native=4096
    )
    builder = Builder(profile="ptir-v0.4")
    x = builder.parameter(TensorType(DType.F32, (2,)), "x")
    y = builder.emit("CustomCall", x, target="test.legality.v1")
    module = Module(Functions((builder.function("main", [y]),)), "ptir-v0.4")
    for program in (module, from_module(module)):
        assert check_program_legality(program, "linalg") == ()
        (finding,) = check_program_legality(program, "llvm")
        assert finding.code == "E7201"
        assert "C function of this process" in str(finding.help)
    assert "test.legality.v1" in str(convert(module, "linalg").text)


def test_a_custom_call_is_what_it_is_made_of() -> None:
    rules = {
        record.opcode: OperationRule() for record in all_ops() if record.opcode not in ("Erf", "CustomCall")
    }
    table = LegalityTable(operations=rules)
    target = ConversionTarget(name="some", summary="", suffix=".txt", legality=table, convert=str)
    for approximate in (False, True):
        builder = Builder(profile="ptir-v0.4")
        x = builder.parameter(TensorType(DType.F32, (2,)), "x")
        attrs = mind_mlir.custom_attributes({"approximate": approximate})
        y = builder.emit("CustomCall", x, target="mind.gelu.v1", attrs=attrs)
        module = Module(Functions((builder.function("main", [y]),)), "ptir-v0.4")
        for program in (module, from_module(module)):
            found = [each.message for each in check_program_legality(program, target)]
            assert len(found) == (0 if approximate else 1)
            assert all(each.endswith("= CustomCall, which is made of Erf") for each in found)
