"""JSON of PTIR programs: it reads back as it was, and what is malformed is told with its path."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ptir_programs import FORMS, instructions, programs

from mind_mlir.diagnostics import Diagnostic, ParseError
from mind_mlir.ir.types import DType
from mind_mlir.languages.ptir import dumps, parse
from mind_mlir.languages.ptir.program import Function, Program
from mind_mlir.languages.ptir.schema import DTYPE_NAMES

_BODY, _TYPE = "functions/0/body", "functions/0/parameters/0"
F32: dict[str, Any] = {"Tensor": {"dtype": "F32", "shape": {"dims": [{"Static": 2}, {"Dynamic": "B"}]}}}


def program() -> dict[str, Any]:
    """Return a program whose parts the tests break."""
    spec = F32["Tensor"] | {"shape": {"dims": [{"Static": 1}]}}
    pad = {"low": [0, 0], "high": [1, 1], "interior": [0, 0], "pad_value": {"Float": 0.5}}
    body = [
        {"id": 1, "op": {"ElementwiseUnary": "Exp"}, "operands": [{"Value": 0}], "output": F32},
        {
            "id": 2,
            "op": {"Constant": {"spec": spec, "bytes": [0, 0, 128, 63]}},
            "operands": [],
            "output": {"Tensor": spec},
        },
        {
            "id": 3,
            "op": {"Pad": pad},
            "operands": [{"TupleElement": {"tuple": 7, "index": 0}}],
            "output": F32,
        },
        {
            "id": 4,
            "op": "Select",
            "operands": [{"Literal": {"spec": spec, "bytes": [0, 0, 0, 0]}}],
            "output": F32,
        },
        {"id": 5, "op": {"Compare": {"op": "Less"}}, "operands": [], "output": {"Tuple": [F32]}},
        {
            "id": 6,
            "op": {"Reshape": {"new_shape": [{"Explicit": {"Static": 2}}, "Infer"]}},
            "operands": [],
            "output": F32,
        },
        {"id": 7, "op": {"Cast": {"dtype": "Bf16"}}, "operands": [], "output": F32},
    ]
    function = {
        "name": "main",
        "parameters": [F32],
        "parameter_ids": [0],
        "results": [F32],
        "body": body,
        "hints": {"why": [1, 2.5]},
        "result_ids": [4],
    }
    region = {"id": 0, "parameters": [], "body": [], "results": []}
    whole = {"spec_version": "ptir.v0.4", "entry": "main", "functions": [function], "regions": [region]}
    return dict(json.loads(json.dumps(whole)))  # no part of it is another's


def findings(text: str) -> list[Diagnostic]:
    with pytest.raises(ParseError) as caught:
        parse(text, "json")
    assert all(d.location is not None and "path" in d.context for d in caught.value.diagnostics)
    assert all(d.message.startswith(d.context["path"]) for d in caught.value.diagnostics)
    return list(caught.value.diagnostics)


def broken(path: str, value: Any) -> dict[str, Any]:
    """Return the program with another value at ``path``; what is not there is added."""
    whole = program()
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    part: Any = whole
    for step in steps:
        part = part[step]
    part[last] = value
    return whole


def dollar(path: str) -> str:
    return "$" + "".join(f"[{step}]" if step.isdigit() else f".{step}" for step in path.split("/"))


@settings(max_examples=60, deadline=None)
@given(programs())
def test_round_trip(made: Program) -> None:
    assert parse(dumps(made, "json")) == made


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.variant or form.name)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_every_operation_comes_back(form: Any, data: st.DataObject) -> None:
    instruction = data.draw(instructions(form))
    made = Program((Function("main", (), (), (instruction,), (), ()),))
    assert parse(dumps(made, "json")) == made


def test_it_reads_as_the_format_says() -> None:
    read = parse(json.dumps(program()))
    assert json.loads(dumps(read)) == program()
    (function,) = read.functions
    assert function.hints == {"why": [1, 2.5]}
    assert [i.path for i in function.body] == [f"$.functions[0].body[{n}]" for n in range(7)]
    assert all(i.location and i.location.text.startswith(f'{{"id": {i.id},') for i in function.body)


@pytest.mark.parametrize("version", ["", "ptir.v0.4", None])
def test_version_that_counts_as_ours(version: str | None) -> None:
    whole = program()
    del whole["spec_version"]
    assert (
        parse(json.dumps(whole if version is None else whole | {"spec_version": version})).spec_version
        == "ptir.v0.4"
    )


def test_another_version() -> None:
    (found,) = findings(json.dumps(broken("spec_version", "ptir.v0.3")))
    assert found.code == "E1105"
    assert found.message == "$.spec_version: the program follows 'ptir.v0.3', expected 'ptir.v0.4'"
    assert (found.context["found"], found.context["expected"]) == ("ptir.v0.3", "ptir.v0.4")


@pytest.mark.parametrize(
    ("path", "value", "code", "words"),
    [
        ("functions", 3, "E1108", "expected a list, found the number 3"),
        ("functions/0", None, "E1108", "expected a function, an object, found null"),
        ("functions/0/name", 3, "E1108", "expected a string, found the number 3"),
        ("functions/0/colour", 1, "E1108", "field 'colour' is unknown"),
        ("functions/0/parameter_ids", [0, 1], "E1108", "1 parameters, but 2 parameter_ids"),
        ("functions/0/result_ids", [], "E1108", "1 results, but 0 result_ids"),
        (_TYPE, {"Tensr": {}}, "E1108", "'Tensr' is no kind of type; did you mean Tensor?"),
        (f"{_TYPE}/Tensor/dtype", "F33", "E1104", "unknown dtype 'F33'; did you mean F32?"),
        (f"{_TYPE}/Tensor/shape/dims/0", {"Static": -1}, "E1005", "found the number -1"),
        (f"{_TYPE}/Tensor/shape/dims/0", {"Static": True}, "E1108", "an integer, found true"),
        (f"{_TYPE}/Tensor/shape/dims/0", {"Dynamic": ""}, "E1108", "needs a name"),
        (f"{_BODY}/0/id", 2**63, "E1005", "expected an integer from 0 to"),
        (f"{_BODY}/0/id", 10**60, "E1005", "found a number of more than 40 digits"),
        (f"{_BODY}/0/id", 1.0, "E1108", "expected an integer, found the number 1.0"),
        (f"{_BODY}/0/op", "Selekt", "E1102", "unknown operation 'Selekt'; did you mean Select?"),
        (f"{_BODY}/0/op", {"a": 1, "b": 2}, "E1108", "expected an operation"),
        (f"{_BODY}/0/op/ElementwiseUnary", "Expo", "E1102", "expected a variant of ElementwiseUnary"),
        (f"{_BODY}/0/operands/0", {"Value": 0, "x": 1}, "E1108", "expected operand, an object with one"),
        (f"{_BODY}/1/op/Constant/bytes", [0, 0, 1], "E3010", "has 4 bytes, found 3"),
        (f"{_BODY}/1/op/Constant/bytes", "AAAA", "E1108", "expected a list of bytes"),
        (f"{_BODY}/1/op/Constant/bytes/2", 256, "E4005", "from 0 to 255, found 256"),
        (f"{_BODY}/1/op/Constant/bytes/2", -1, "E4005", "from 0 to 255, found -1"),
        (f"{_BODY}/1/op/Constant/bytes/2", 1.0, "E4005", "from 0 to 255, found 1.0"),
        (f"{_BODY}/1/op/Constant/spec/shape/dims/0", {"Dynamic": "B"}, "E3010", "all of them known"),
        (f"{_BODY}/2/op/Pad/low", [0, "1"], "E1103", "expected an integer, found the string '1'"),
        (f"{_BODY}/2/op/Pad/lower", 1, "E1103", "unknown field 'lower'; did you mean low"),
        (f"{_BODY}/2/op/Pad/pad_value", {"Float": "x"}, "E1103", "a number, found the string 'x'"),
        (f"{_BODY}/2/op/Pad/pad_value", {"I1": 1}, "E1103", "true or false, found the number 1"),
        (f"{_BODY}/2/op/Pad/pad_value", {"Unsigned": 2**64}, "E1005", "expected an integer from 0"),
        (f"{_BODY}/3/op", {"Select": {"axis": 1}}, "E1103", "unknown field 'axis'"),
        (f"{_BODY}/4/op/Compare/op", "Lesser", "E1103", "expected one of Less, LessEqual"),
        (f"{_BODY}/4/output/Tuple", {}, "E1108", "expected a list of types, found an empty object"),
        (f"{_BODY}/5/op/Reshape/new_shape/1", "Infr", "E1103", '"Infer" is the other'),
        ("regions/0/id", -1, "E1005", "found the number -1"),
        ("entry", "mian", "E4121", "the program has no function @mian; did you mean main?"),
    ],
)  # fmt: skip
def test_what_is_malformed(path: str, value: Any, code: str, words: str) -> None:
    (found,) = findings(json.dumps(broken(path, value), indent=1))
    assert found.code == code
    assert words in found.message
    assert found.location is not None
    assert dollar(path).startswith(found.context["path"]) or found.context["path"].startswith(dollar(path))
    assert found.location.line > 1 or path in ("functions", "entry")


@pytest.mark.parametrize("path", [f"{_BODY}/2/op/Pad/low", f"{_BODY}/0/output", "functions/0/name", "entry"])
def test_what_is_missing(path: str) -> None:
    whole = broken(path, None)
    part: Any = whole
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    for step in steps:
        part = part[step]
    del part[last]
    (found,) = findings(json.dumps(whole))
    assert f"field '{last}' is missing" in found.message


@pytest.mark.parametrize(
    ("old", "new", "code", "words", "column"),
    [
        ('"Exp"', '"Exp', "E1101", "expected ',' or '}', found 'operands'", None),
        ('"id": 1,', '"id": 1', "E1101", "expected ',' or '}'", None),
        ('"id": 1,', '"id": 01,', "E1101", "expected ',' or '}'", None),
        ('"id": 1,', '"id": 1, "id": 2,', "E1108", "field 'id' is given twice", None),
        ('"entry": "main"', '"entry": "main", "entry": "x"', "E1108", "field 'entry' is given twice", 48),
        ("2.5", "NaN", "E1005", "NaN is no number of JSON", None),
        ("2.5", "-Infinity", "E1005", "-Infinity is no number of JSON", None),
        ("2.5", "1e999", "E1005", "the number 1e999 is beyond every float", None),
        ('"id": 1,', f'"id": {"9" * 5000},', "E1005", "a number of 5,000 digits", None),
        ("2.5", "[" * 9000 + "]" * 9000, "E1101", "nest more than 200 levels deep", None),
        ("2.5", "[" * 90 + "]" * 90, "E1108", "hints nest more than 64 levels deep", None),
        ('{"spec_version"', 'x{"spec_version"', "E1108", "", 1),
        ('"id": 1,', '"id":\f1,', "E1101", "expected a value, found '\\x0c'", None),
        ('"id": 1,', '"id"\u00a0: 1,', "E1101", "expected ':', found '\\xa0'", None),
        ('"id": 1,', '"id": 1\u2003,', "E1101", "expected ',' or '}', found", None),
        ('"regions"', '"region"', "E1108", "field 'region' is unknown; did you mean regions?", None),
    ],
)  # fmt: skip
def test_what_is_no_json(old: str, new: str, code: str, words: str, column: int | None) -> None:
    text = json.dumps(program())
    assert old in text
    found = findings(text.replace(old, new, 1))[0]
    if old.startswith('{"spec'):
        code, words = "E1101", "syntax error: expected a value"
    assert found.code == code
    assert words in found.message
    assert found.location is not None
    assert column is None or found.location.column == column


@pytest.mark.parametrize("text", ["[]", "3", "null", '"x"', "", "   ", "{", "[1, 2", "\ufeff[]"])
def test_another_top_level(text: str) -> None:
    assert findings(text)[0].code in ("E1108", "E1101")


def test_several_findings_at_once_in_source_order() -> None:
    whole = broken(f"{_BODY}/0/op/ElementwiseUnary", "Expo")
    whole["functions"][0]["body"][2]["op"]["Pad"]["low"] = True
    whole["functions"][0]["body"][6]["op"]["Cast"]["dtype"] = "F16x"
    whole["functions"][0]["results"][0] = "F32"
    codes = [found.code for found in findings(json.dumps(whole))]
    assert codes == ["E1108", "E1102", "E1103", "E1104"]


def test_names_and_numbers_that_come_twice() -> None:
    whole = program()
    whole["functions"] *= 2
    whole["regions"] *= 2
    assert [(found.code, found.context["path"]) for found in findings(json.dumps(whole))] == [
        ("E4107", "$.functions[1]"),
        ("E4302", "$.regions[1]"),
    ]


def test_places_are_exact() -> None:
    text = json.dumps(broken(f"{_BODY}/2/op/Pad/lower", 1))
    (found,) = findings(text)
    assert found.location is not None
    assert found.location.text == '"lower"'
    text = json.dumps(broken(f"{_BODY}/2/op/Pad/pad_value", {"Float": None}))
    (found,) = findings(text)
    assert found.location is not None
    assert found.location.text == "null"


@pytest.mark.parametrize("dtype", DType, ids=str)
def test_literals_have_a_byte_an_element_at_least(dtype: DType) -> None:
    spec = {"dtype": DTYPE_NAMES[dtype], "shape": {"dims": [{"Static": 3}]}}
    literal = {"spec": spec, "bytes": [1] * (3 * dtype.itemsize)}
    (function,) = parse(json.dumps(broken(f"{_BODY}/1/op/Constant", literal))).functions
    assert function.body[1].operation.fields["value"].data == b"\1" * (3 * dtype.itemsize)
    if dtype.bits < 8:
        literal["bytes"] = [0, 0x37, 0]
        (found,) = findings(json.dumps(broken(f"{_BODY}/1/op/Constant", literal)))
        assert (found.code, found.location and found.location.text) == ("E4005", "55")
