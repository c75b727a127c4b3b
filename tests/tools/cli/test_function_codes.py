"""Every rule of functions, blocks and regions, broken by a text, as the command line reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from cli_harness import findings, invoke, succeed

from mind_mlir.diagnostics.codes import CATALOGUE

if TYPE_CHECKING:
    from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry

F = "tensor<f32[2]>"
HEAD = f"func @main(%x: {F}, %p: tensor<i1[]>) -> ({F}) {{\n^entry:\n"
STEP = f"internal func @step(%a: {F}) -> ({F}) {{\n^entry:\n  return %a\n}}\n"
STEPS = f"internal func @steps(%a: {F}) -> ({F}, {F}) {{\n^entry:\n  return %a, %a\n}}\n"


class Case(NamedTuple):
    code: str
    #: Statements of the entry and what follows; ``«`` and ``»`` stand around the marked text.
    body: str
    message: str
    context: dict[str, Any] = {}  # noqa: RUF012 -- nobody writes to it
    #: What stands before and after the function.
    others: str = ""


COND = f"  %r = Cond (%p) : {F} {{\n  ^then:\n    THEN\n  ^else:\n    yield %x\n  }}\n  return %r\n"
LOOP = f"""\
  %i = ConstI64 {{value=0}} : tensor<i64[]>
  %y, %j = While (%x, %i) : ({F}, tensor<i64[]>) {{
  ^condition(%a: {F}, %b: tensor<i64[]>):
    AGAIN
  ^body(%c: {F}, %d: tensor<i64[]>):
    NEXT
  }}
  return %y
"""


def cond(then: str) -> str:
    return COND.replace("THEN", then)


def loop(again: str = "yield %p, %a, %b", following: str = "yield %c, %d") -> str:
    return LOOP.replace("AGAIN", again).replace("NEXT", following)


CASES = [
    Case("E4001", "  return «%y»\n", "%y is not defined", {"operand": None}),
    Case("E4001", f"  %y = Neg («%z») : {F}\n  %z = Neg (%x) : {F}\n  return %y\n", "before its definition"),
    Case("E4001", "  br ^b(«%y»)\n^b(%r: tensor<f32[2]>):\n  return %r\n", "%y is not defined"),
    Case("E4001", "  cond_br «%y», ^b, ^b\n^b:\n  return %x\n", "%y is not defined"),
    Case("E4002", f"  «%x» = Neg (%x) : {F}\n  return %x\n", "%x is defined twice"),
    Case("E4002", f"  br ^b(%x)\n^b(«%x»: {F}):\n  return %x\n", "%x is defined twice"),
    Case(
        "E4002",
        f"  %y, «%x» = call @steps (%x) : ({F}, {F})\n  return %y\n",
        "%x is defined twice",
        others=STEPS,
    ),
    Case(
        "E2001",
        f"  %y, %z = call @steps (%x) : ({F}, «tensor<f32[3]>»)\n  return %y\n",
        "the 2 results of Call are (tensor<f32[2]>, tensor<f32[2]>), but declared as (tensor<f32[2]>, ",
        others=STEPS,
    ),
    Case(
        "E4126",
        "  return %x\n",
        "result 0 of @g has extent ?N",
        others=f"internal func @g(%a: {F}) -> («tensor<f32[?N]>») {{\n^entry:\n  return %a\n}}\n",
    ),
    Case("E4102", f'  %y = «Input» {{name="y"}} : {F}\n  return %y\n', "Input is not allowed"),
    Case("E4108", "  br «^entry»(%x, %p)\n", "^entry", {"block": "entry"}),
    Case(
        "E4109", "  cond_br %p, ^b, ^b\n^b:\n  return %x\n«^b»:\n  return %x\n", "two blocks", {"block": "b"}
    ),
    Case("E4110", "  br «^b»\n", "no block ^b in @main", {"block": "b", "function": "main"}),
    Case(
        "E4111", f"  br ^b\n«^b»:\n  %y = Neg (%x) : {F}\n^c:\n  return %x\n", "no terminator", {"block": "b"}
    ),
    Case(
        "E4111", cond(f"%s = Neg (%x) : {F}").replace("^then", "«^then»"), "no terminator", {"block": "then"}
    ),
    Case("E4111", cond("«return %x»"), "^then ends in a return", {"block": "then"}),
    Case("E4112", f"  return %x\n  «%y = Neg (%x) : {F}»\n", ""),
    Case("E4113", "  br «^b»\n^b(%r: tensor<f32[2]>):\n  return %r\n", "^b takes 1 argument, found 0"),
    Case(
        "E4113", "  br ^b(%x, «%x»)\n^b(%r: tensor<f32[2]>):\n  return %r\n", "^b takes 1 argument, found 2"
    ),
    Case(
        "E4113",
        "  br ^b(«%p»)\n^b(%r: tensor<f32[2]>):\n  return %r\n",
        "but %p is a tensor<i1[]>",
        {"index": 0},
    ),
    Case(
        "E4113",
        "  cond_br %p, ^b(%x), ^b(«%p»)\n^b(%r: tensor<f32[2]>):\n  return %r\n",
        "parameter 0 of ^b is a tensor<f32[2]>",
    ),
    Case("E4114", "  cond_br «%x», ^b, ^b\n^b:\n  return %x\n", "%x is a tensor<f32[2]>", {"found": F}),
    Case("E4115", "  return «%p»\n", "result 0 of @main", {"function": "main"}),
    Case("E4115", "  return %x, «%x»\n", "@main has 1 result, but 2 are returned"),
    Case("E4115", "  «return»\n", "@main has 1 result, but 0 are returned"),
    Case(
        "E4116",
        f"  cond_br %p, ^b, ^c\n^b:\n  %y = Neg (%x) : {F}\n  br ^c\n^c:\n  return «%y»\n",
        "%y is not defined on every way to ^c",
        {"block": "c"},
    ),
    Case("E4116", cond(f"%y = Neg (%x) : {F}\n    yield %y").replace("return %r", "return «%y»"), "^then"),
    Case("E4127", "  br ^b\n«^b»:\n  br ^b\n", "from ^b no return can be reached"),
    Case("E4117", "  return %x\n«^b»:\n  return %x\n", "no branch leads to ^b", {"block": "b"}),
    Case(
        "E4118",
        f"  %y = «call» @main (%x, %p) : {F}\n  return %y\n",
        "@main calls itself",
        {"cycle": ["main"]},
    ),
    Case("E4120", f"  %r = «Cond» (%p) : {F}\n  return %r\n", "the regions of Cond are"),
    Case(
        "E4121",
        f"  %y = call «@nobody» (%x) : {F}\n  return %y\n",
        "no function @nobody",
        {"callee": "nobody"},
    ),
    Case("E2007", f"  %y = «call» @step (%x, %x) : {F}\n  return %y\n", "takes 1 argument", others=STEP),
    Case("E2001", f"  %y = call @step («%p») : {F}\n  return %y\n", "expected tensor<f32[2]>", others=STEP),
    Case("E2001", f"  %y = call @steps (%x) : «{F}»\n  return %y\n", "the 2 results of Call", others=STEPS),
    Case("E2001", cond("yield «%p»"), "yield 0 of ^then of Cond"),
    Case("E2007", loop("yield %p, %a").replace("^condition", "«^condition»"), "^condition of While yields 3"),
    Case("E2001", loop("yield %p, %a, %b", "yield %c, «%c»"), "yield 1 of ^body of While"),
    Case(
        "E3002",
        f"  %q = Compare (%x, %x) {{op=Less}} : tensor<i1[2]>\n{cond('yield %x').replace('(%p)', '(«%q»)')}",
        "a scalar",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.code for case in CASES])
def test_a_wrong_program(case: Case) -> None:
    text = f"{HEAD}{case.body}}}\n{case.others}"
    before, _, rest = text.partition("«")
    marked, _, after = rest.partition("»")
    found, *more = findings("check", "-", stdin=before + marked + after)
    assert (found["code"], more) == (case.code, [])
    assert case.message in found["message"]
    assert {name: fact for name, fact in case.context.items() if fact is not None}.items() <= found[
        "context"
    ].items()
    span = found["span"]
    line = (before + marked + after).split("\n")[span["line"] - 1]
    assert line[span["column"] - 1 :][: span["length"]] == marked
    assert (span["line"], span["column"]) == (before.count("\n") + 1, len(before) - before.rfind("\n"))


def test_everything_comes_at_once_in_source_order() -> None:
    text = f"""\
func @main(%x: {F}) -> ({F}) {{
^entry:
  %y = Frob (%x) : {F}
  %z = Neg (%nobody) : {F}
  br ^b(%y, %z)
^b(%r: {F}):
  %s = call @nothing (%r) : {F}
  return %s, %s
}}
internal func @main(%a: tensor<f16[2]>) -> () {{
^entry:
  return
}}
"""
    found = findings("check", "-", stdin=text)
    assert [(one["code"], one["span"]["line"]) for one in found] == [
        ("E1102", 3),
        ("E4001", 4),
        ("E4113", 5),
        ("E4121", 7),
        ("E4115", 8),
        ("E4107", 10),
        ("E4126", 10),
    ]


FUNCTION_CODES = [e for e in CATALOGUE.values() if "E4107" <= e.code <= "E4199" and e.language == "core"]


@pytest.mark.parametrize("entry", FUNCTION_CODES, ids=lambda entry: entry.code)
def test_what_explain_shows(entry: CatalogueEntry) -> None:
    (found,) = findings("check", "-", stdin=entry.bad)
    assert found["code"] == entry.code
    assert found["span"] is not None
    assert set(entry.context) <= set(found["context"])
    succeed("check", "-", stdin=entry.good)


def test_a_function_without_results_is_warned_about() -> None:
    result = invoke("check", "-", stdin=f"func @main(%x: {F}) -> () {{\n^entry:\n  return\n}}\n")
    assert result.exit_code == 0
    assert "warning[E4101]" in result.stderr


@pytest.mark.parametrize("command", ["run", "compile", "grad"])
def test_every_command_reports_them(command: str) -> None:
    (found,) = findings(command, "-", stdin=f"{HEAD}  br ^nowhere\n}}\n")
    assert found["code"] == "E4110"
