"""What the reader says about ill-formed functions: code, place and words, for each mistake once."""

from __future__ import annotations

import pytest

from mind_mlir.diagnostics import Diagnostic, MindError, ParseError
from mind_mlir.ir.regions import MAX_NESTING
from mind_mlir.languages.core import parse

T = "tensor<f32[]>"
HEAD = f"func @f(%x: {T}) -> ({T}) {{\n"
OTHER = "func @g() -> () {\n^a:\n  return\n}\n"


def findings(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ParseError) as caught:
        parse(text, "m.ir")
    return caught.value.diagnostics


def place(diagnostic: Diagnostic) -> tuple[int, str]:
    """Return the line of a finding and the text it is about."""
    location = diagnostic.location
    assert location is not None
    return location.line, location.text


def body(*lines: str) -> str:
    """Return a function whose entry holds the lines, from line 3 on, before it returns."""
    return HEAD + "\n".join(["^a:", *lines, "return %x", "}"]) + "\n" + OTHER


#: Text, then of the only finding the code, line and text, and some words of it.
CASES = [
    # Functions.
    ("func main() -> () {\n^a:\n  return\n}\n", "E1101", (1, "main"), "expected a name such as @main"),
    ("func @f() -> ()\n^a:\n  return\n}\n", "E1101", (1, "\n"), "expected '{', found the end of the line"),
    ("func @f(\n", "E1101", (1, "\n"), "expected a value such as %0 or ')'"),
    (HEAD.replace("%x:", "x:") + "^a:\n  return\n}\n", "E1101", (1, "x"), "expected a value"),
    (HEAD.replace(f": {T})", ")", 1) + "^a:\n  return\n}\n", "E1101", (1, ")"), "expected ': <type>'"),
    (HEAD.replace(T, "f32", 1) + "^a:\n  return\n}\n", "E1101", (1, "f32"), "expected a type"),
    (HEAD.replace("f32", "f33", 1) + "^a:\n  return\n}\n", "E1104", (1, "f33"), "unknown dtype 'f33'"),
    (HEAD.replace(f"({T}) {{", f"{T}, {T} {{") + "^a:\n  return\n}\n", "E1101", (1, ","), "expected '{'"),
    (HEAD.replace("%x", "%x {n=y}") + "^a:\n  return\n}\n", "E1103", (1, "n"), "one attribute, its name"),
    (HEAD.replace("%x", "%x {name=1}") + "^a:\n  return\n}\n", "E1103", (1, "1"), "is a string"),
    (HEAD.replace("%x", "%x {name=y, name=z}") + "^a:\n  return\n}\n", "E1103", (1, "name"), "one attribute"),
    (
        "internal " + HEAD.replace("%x", "%x {name=y}") + "^a:\n  return\n}\n",
        "E1103",
        (1, f"%x {{name=y}}: {T}"),
        "parameters of an internal function have no names",
    ),
    ("public internal func @f() {\n^a:\n  return\n}\n", "E1101", (1, "internal"), "found 'internal'"),
    (HEAD + "}\n" + OTHER, "E1101", (1, "@f"), "a function has a block"),
    (HEAD + "^a:\n  return %x\n", "E1101", (3, "\n"), "expected '}', found the end of the text"),
    (HEAD + "^a:\n  return %x\n" + OTHER, "E1101", (4, "func"), "expected '}', found another function"),
    (HEAD + "^a:\n" + OTHER + "  return %x\n}\n", "E1101", (3, "func"), "found another function"),
    (OTHER + "}\n" + OTHER, "E1101", (5, "}"), "this '}' closes nothing"),
    (f"%0 = F : {T}\n%1 = F : {T}\n{OTHER}", "E1101", (1, f"%0 = F : {T}"), "outside of the functions"),
    (OTHER + "outputs: %0\n", "E1101", (5, "outputs: %0"), "outside of the functions"),
    (OTHER + "return\n^a:\n" + OTHER, "E1101", (5, "return"), "outside of the functions"),
    ("^a:\n", "E1101", (1, "^a"), "labels and blocks stand in a function"),
    # Blocks.
    (HEAD + "  %y = %x\n  return %y\n}\n", "E1101", (2, "%y"), "which begins with a label"),
    (HEAD + f"^a(%y: {T}):\n  return %x\n}}\n", "E1101", (2, f"%y: {T}"), "from the head of the function"),
    (body("br ^b", "^b(%y {name=z}: tensor<i1>):"), "E1103", (4, "%y {name=z}: tensor<i1>"), "a block have"),
    (body("br ^b", "b:"), "E1101", (4, "b"), "expected '^b:', found 'b:'"),
    (body("br ^b", "^b"), "E1101", (4, "\n"), "expected ':' or '('"),
    (body("br ^b", "^b(%y: tensor<i1>"), "E1101", (4, "\n"), "expected ',' or ')'"),
    (body("br ^b", '^"b\\q":'), "E1004", (4, "\\q"), "Invalid escape sequence"),
    (body("outputs: %x"), "E1101", (3, "outputs"), "a function has no outputs line"),
    (body("^b:"), "E4111", (2, "^a"), "^a has no terminator"),
    (body(f"%y = Neg (%x) : {T}", "^b:"), "E4111", (2, "^a"), "^a has no terminator"),
    (HEAD + "^a:\n}\n" + OTHER, "E4111", (2, "^a"), "^a has no terminator"),
    (body("return %x"), "E4112", (4, "return %x"), "^a has ended"),
    (body("br ^a", f"%y = Neg (%x) : {T}"), "E4112", (4, f"%y = Neg (%x) : {T}"), "^a has ended"),
    (body("br ^b", "%y = %x", "^b:"), "E4112", (4, "%y = %x"), "^a has ended"),
    # Terminators.
    (body("br b", "^b:"), "E1101", (3, "b"), "expected a label such as ^body"),
    (body("br ^b(%x", "^b:"), "E1101", (3, "\n"), "')', found the end of the line"),
    (body("br ^b(1)", "^b:"), "E1101", (3, "1"), "expected a value"),
    (body("cond_br %x ^b, ^b", "^b:"), "E1101", (3, "^b"), "expected ','"),
    (body("cond_br ^b, ^b", "^b:"), "E1101", (3, "^b"), "expected a value"),
    (body("cond_br %x, ^b", "^b:"), "E1101", (3, "\n"), "expected ','"),
    (body("return x", "^b:"), "E1101", (3, "x"), "expected a value"),
    (body("yield (%x)", "^b:"), "E1101", (3, "("), "expected a value"),
    # Calls and several results.
    (body(f"%y = call (%x) : {T}"), "E1101", (3, "call"), "a call names its function"),
    (body(f"%y = call f (%x) : {T}"), "E1101", (3, "f"), "found 'f'"),
    (body(f"call @f (%x) : {T}"), "E1101", (3, "@f"), "found '@f'"),
    (body(f"%y = Neg @f (%x) : {T}"), "E1101", (3, "Neg"), "expected 'call', found 'Neg'"),
    (body(f"%y, %z = call @f (%x) : {T}"), "E1101", (3, "%y, %z"), "2 results have 1 type"),
    (body(f"%y = call @f (%x) : ({T}, {T})"), "E1101", (3, "%y"), "one result has 2 types"),
    (body("%y = call @f (%x) : ()"), "E1101", (3, "%y"), "one result has no type"),
    (body(f'%y = call @f (%x) {{callee="g"}} : {T}'), "E1103", (3, "@f"), "given twice"),
    # Operations.
    (body(f"%y = Neg (%x : {T}"), "E1101", (3, ":"), "expected ',' or ')'"),
    (body(f"%y = Neg (%x) }} : {T}"), "E1101", (3, "}"), "expected ': <type>'"),
    (body(f"%y = ConstTensor ([1, 2 : {T}"), "E1101", (3, "["), "'[' is not closed"),
    (body(f"%y = Neg (%x, @) : {T}"), "E1002", (3, "@"), "'@'"),
    (body(f"%y = Frob (%x, [1]) : {T}"), "E1102", (3, "Frob"), "unknown operation"),
    (body(f"%y = tensor.frob (%x, [1]) : {T}"), "E1102", (3, "tensor.frob"), "unknown operation"),
    (body(f"%y = tensor.sum_all (%x) {{axes=[0]}} : {T}"), "E1103", (3, "axes=[0]"), "fixes attribute"),
    (body(f"%y = tensor.sum_all (%x, [0]) : {T}"), "E1103", (3, "[0]"), "no trailing arguments"),
    # Aliases.
    (body("%y = %z"), "E4001", (3, "%z"), "%z has no definition in this function"),
    (body("%y = %1"), "E4001", (3, "%1"), "%1 has no definition in this function"),
    (body("%y = %y"), "E4001", (3, "%y"), "%y stands for itself"),
    (body("%y = %x", "%y = %x"), "E4002", (4, "%y"), "%y is defined twice"),
    (body("%7 = %x", f"%7 = Neg (%x) : {T}"), "E4002", (4, "%7"), "%7 is defined twice"),
    (body(f"%7, %y = F : ({T}, {T})", "%y = %x"), "E4002", (4, "%y"), "%y is defined twice"),
    (body("%y = %x", f"%7, %y = F : ({T}, {T})"), "E4002", (4, "%y"), "%y is defined twice"),
    (body("%y = %x", "br ^b", f"^b(%y: {T}):"), "E4002", (5, "%y"), "%y is defined twice"),
    (body("%x = %z", f"%z = F : {T}"), "E4002", (3, "%x"), "%x is defined twice"),
    # Regions.
    (body(f"%y = Cond (%x) : {T} {{a=1}}"), "E1101", (3, "{"), "found '{'"),
    (body(f"%y = Cond (%x) : {T} {{", "yield %x", "}"), "E1101", (4, "yield"), "begins with a label"),
    (body(f"%y = Cond (%x) : {T} {{", "^then:", "}"), "E4111", (4, "^then"), "has no terminator"),
    (body(f"%y = Cond (%x : {T} {{", "^then:", "yield %x", "}"), "E1101", (3, ":"), "expected ',' or ')'"),
    (body("%y = Cond (%x) : f32 {", "^then:", "yield %x", "}"), "E1101", (3, "f32"), "expected a type"),
    (body(f"%y = Cond (%x, %) : {T} {{", "^then:", "yield %x", "}"), "E1002", (3, "%"), "')' may not begin"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "where", "words"), CASES)
def test_finding(text: str, code: str, where: tuple[int, str], words: str) -> None:
    found = findings(text)
    assert [(d.code, words in d.message) for d in found] == [(code, True)], [d.message for d in found]
    line, spelled = where
    assert place(found[0])[0] == line
    assert spelled == "\n" or place(found[0])[1] == spelled


def test_every_syntax_error_has_a_help() -> None:
    for text, code, _, words in CASES:
        (found,) = findings(text)
        assert code not in ("E1101", "E4111", "E4112") or found.help or words == "'[' is not closed"


def test_all_findings_of_a_source_are_reported_in_order() -> None:
    text = f"""\
%0 = F : {T}
func @f(%x: tensor<f33[]>) -> () {{
^a:
  %y = Neg (%x : {T}
  %r = Cond (%x) : {T} {{
  ^then:
    %z = Neg (%x) : tensor<f34[]>
    return
    return
  }}
^b
  br ^c
^c:
  return
}}
func @g( {{
^a:
}}
}}
"""
    assert [(d.code, place(d)[0]) for d in findings(text)] == [
        ("E1101", 1),
        ("E1104", 2),
        ("E4111", 3),
        ("E1101", 4),
        ("E1104", 7),
        ("E4112", 9),
        ("E1101", 11),
        ("E1101", 16),
        ("E4111", 17),
        ("E1101", 19),
    ]


def nested(depth: int) -> str:
    opening = "".join(f"%{i} = Cond (%x) : {T} {{\n^then:\n" for i in range(1, depth + 1))
    closing = "".join(f"yield %{i}\n}}\n" for i in reversed(range(1, depth + 1)))
    return f"func @f(%x: {T}) -> ({T}) {{\n^a:\n{opening}{closing}return %1\n}}\n" + OTHER


def test_regions_nest_so_deep_and_no_deeper() -> None:
    parse(nested(MAX_NESTING))
    for depth in (MAX_NESTING + 1, 5_000):
        (found,) = findings(nested(depth))
        assert (found.code, place(found)[0]) == ("E1101", 3 + 2 * MAX_NESTING)
        assert f"more than {MAX_NESTING} deep" in found.message


def test_every_beginning_of_a_text_is_read_or_diagnosed() -> None:
    text = nested(2) + "internal func @h(%0 {name=x}: tensor<f32[2]>,) { ^a: br ^b(%0)\n^b(%1: tensor<f32>):"
    text += "\n%y, %z = call @g (%1) {a=[1, 2]} : (tensor<f32>, tensor<f32>)\ncond_br %y, ^b(%y), ^b\n}"
    for end in range(len(text)):
        for piece in (text[:end], text[end:], text[:end] + text[end + 1 :]):
            assert all(found.location for found in said_of(piece))


def said_of(text: str) -> tuple[Diagnostic, ...]:
    try:
        parse(text)
    except MindError as error:
        return error.diagnostics
    return ()
