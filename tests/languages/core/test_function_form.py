"""The function form of the Core IR text: what the reader makes of it, and where it says that things stand."""

from __future__ import annotations

import pytest

from mind_mlir import print_module, verify
from mind_mlir.diagnostics import Location, SourceText
from mind_mlir.ir.module import Branch, CondBranch, Function, Module, Return, Yield
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.languages.core import parse

PROGRAM = """\
func @main(%x: tensor<f32[2]>, %n: tensor<i64[]>) -> (tensor<f32[2]>, tensor<i64[]>) {
^entry:
  %zero = ConstI64 {value=0} : tensor<i64[]>
  br ^head(%x, %zero)
^head(%y: tensor<f32[2]>, %i: tensor<i64[]>):
  %more = Compare (%i, %n) {op=Less} : tensor<i1[]>
  cond_br %more, ^body, ^done
^body:
  %y2 = call @twice (%y) : tensor<f32[2]>
  %one = ConstI64 {value=1} : tensor<i64[]>
  %i2 = Add (%i, %one) : tensor<i64[]>
  br ^head(%y2, %i2)
^done:
  return %y, %i
}

internal func @twice(%a: tensor<f32[2]>) -> (tensor<f32[2]>) {
^entry:
  %b = Add (%a, %a) : tensor<f32[2]>
  return %b
}
"""

REGIONS = """\
func @main(%x: tensor<f32[2]>, %n: tensor<i64[]>) -> (tensor<f32[2]>) {
^entry:
  %2, %3 = While (%x, %n) : (tensor<f32[2]>, tensor<i64[]>) {
  ^condition(%4: tensor<f32[2]>, %5: tensor<i64[]>):
    %6 = Compare (%5, %n) {op=Less} : tensor<i1[]>
    yield %6, %4, %5
  ^body(%7: tensor<f32[2]>, %8: tensor<i64[]>):
    %9 = Compare (%8, %8) {op=Less} : tensor<i1[]>
    %10 = Cond (%9) : tensor<f32[2]> {
    ^then:
      yield %7
    ^else:
      %11 = Neg (%7) : tensor<f32[2]>
      yield %11
    }
    yield %10, %8
  }
  return %2
}
"""
EMPTY = "func @f() -> () {\n^entry:\n  return\n}\n"
T = "tensor<f32[]>"


def only(text: str) -> Function:
    """Return the single function that ``text`` spells."""
    (function,) = parse(text).functions
    return function


def spans(*locations: Location | None) -> list[str]:
    """Return what stands at the locations."""
    return [location.text if location else "nowhere" for location in locations]


def test_blocks_and_functions() -> None:
    module = parse(PROGRAM)
    assert module.profile == "core-functions"
    assert verify(module) is module
    main, twice = module.functions
    assert (main.name, main.public, twice.name, twice.public) == ("main", True, "twice", False)
    f32, i64 = TensorType(DType.F32, (2,)), TensorType(DType.SI64)
    assert (main.result_types, twice.result_types) == ((f32, i64), (f32,))
    assert [(p.value_id, p.name, p.type) for p in main.parameters] == [(0, "x", f32), (1, "n", i64)]
    assert [p.name for p in twice.parameters] == [None]
    entry, head, body, done = main.blocks
    assert [block.label for block in main.blocks] == ["entry", "head", "body", "done"]
    assert [p.name for p in head.parameters] == [None, None]
    assert isinstance(entry.terminator, Branch)
    assert (entry.terminator.target.label, entry.terminator.target.arguments) == ("head", (0, 2))
    assert isinstance(head.terminator, CondBranch)
    assert head.terminator.condition == head.operations[0].value_id
    assert [target.label for target in head.terminator.targets] == ["body", "done"]
    assert isinstance(done.terminator, Return)
    call = body.operations[0]
    assert (call.opcode, dict(call.attributes), call.operands) == ("Call", {"callee": "twice"}, (3,))


def test_names_take_the_smallest_numbers_in_order_of_definition() -> None:
    main, twice = parse(PROGRAM).functions
    assert [op.value_id for block in main.blocks for op in block.operations] == [2, 5, 6, 7, 8]
    assert [op.value_id for block in twice.blocks for op in block.operations] == [1]
    function = only(
        f"func @f(%x: {T}, %1: {T}) -> () {{\n^a:\n  %y = Add (%x, %later) : {T}\n"
        f"  %5, %z = F (%0) : ({T}, {T})\n"
        f"  br ^b(%y)\n^b(%p: {T}):\n  %later = Neg (%p) : {T}\n  %3 = Neg (%nobody) : {T}\n  return %z\n}}\n"
    )
    first, second = function.blocks
    assert [p.value_id for p in function.parameters] == [2, 1]  # 0, 1, 3 and 5 are spelled
    assert [(op.result_ids, op.operands) for op in first.operations] == [((4,), (2, 8)), ((5, 6), (0,))]
    assert [p.value_id for p in second.parameters] == [7]
    assert [(op.result_ids, op.operands) for op in second.operations] == [((8,), (7,)), ((3,), (9,))]
    assert second.terminator.operands == (6,)


def test_numbers_in_strings_and_comments_and_other_functions_are_not_spelled() -> None:
    text = EMPTY + f'func @g(%x {{name="%0, %1 = }} func @h"}}: {T}) -> () {{ # %2\n^a:\n  return\n}}\n'
    text += f"func @h() -> () {{\n^a:\n  %0 = F : {T}\n  return\n}}\n"
    (parameter,) = parse(text).functions["g"].parameters
    assert (parameter.value_id, parameter.name) == (0, "%0, %1 = } func @h")


def test_regions() -> None:
    module = parse(REGIONS)
    assert verify(module) is module
    loop = module.functions[0].entry.operations[0]
    assert (loop.result_ids, loop.opcode, loop.operands) == ((2, 3), "While", (0, 1))
    condition, body = loop.regions
    assert [(region.label, len(region.parameters)) for region in loop.regions] == [
        ("condition", 2),
        ("body", 2),
    ]
    assert isinstance(condition.terminator, Yield)
    branch = body.operations[1]
    assert [region.label for region in branch.regions] == ["then", "else"]
    assert branch.regions[1].terminator.operands == (11,)


@pytest.mark.parametrize("text", [PROGRAM, REGIONS, EMPTY])
def test_canonical_text_gives_the_same_bytes(text: str) -> None:
    assert print_module(parse(text)) == text
    assert str(parse(text)) == text.removesuffix("\n")


@pytest.mark.parametrize(
    ("head", "public"),
    [("func", True), ("public func", True), ("export  func", True), ("internal func", False)],
)
def test_visibility(head: str, public: bool) -> None:
    assert only(EMPTY.replace("func", head)).public is public


@pytest.mark.parametrize(
    "text",
    [
        "func @f(%x: Tensor<f32, [2]>) -> Tensor<f32, [2]> { ^a: return %x }",
        "func @f(%x: tensor<[2], f32>,) -> (tensor<[2,], f32>,) {\n^a:\n  return %x,\n}",
        "\ufeff  func @f(\n  %x: tensor<f32[2]>, # the argument\n) -> (\n  tensor<f32[2]>\n) { // body\n\n"
        "^a:  return %x\n}",
        "func @f(%x: tensor<f32[2]>) -> (tensor<f32[2]>) {\r\n^a():\r\n  return %x\r\n}\r\n",
        "func @f(%x{}: tensor<f32[2]>)->(tensor<f32[2]>){^a:%y=%x\nreturn %y}",
        'func @"f"(%7 {name: "x"}: tensor<f32[2]>) -> (tensor<f32[2]>) {\n^"a":\n  return %7\n}',
    ],
)
def test_spellings_of_a_function(text: str) -> None:
    function = only(text)
    vector = TensorType(DType.F32, (2,))
    (parameter,) = function.parameters
    assert (function.name, function.result_types, parameter.type, parameter.name) == (
        "f",
        (vector,),
        vector,
        "x",
    )
    assert function.entry.label == "a"
    assert function.entry.terminator.operands == (parameter.value_id,)


def test_functions_in_one_line() -> None:
    module = parse("func @f() { ^a: return } internal func @g() { ^a: br ^b\n^b: return }")
    assert [(f.name, len(f.blocks)) for f in module.functions] == [("f", 1), ("g", 2)]


def test_arguments_without_a_name_are_called_by_their_number() -> None:
    function = only(
        f'func @f(%1: {T}, %0 {{name="a b"}}: {T}, %x {{name=y}}: {T}) -> () {{\n^a:\n  return\n}}\n'
    )
    assert [p.name for p in function.parameters] == ["1", "a b", "y"]


@pytest.mark.parametrize(
    ("statement", "canonical"),
    [
        ("%y = tensor.add(%x, %x) : tensor<f32[2]>", "%y = Add (%x, %x) : tensor<f32[2]>"),
        ("%y = BinOp(Add, %x, %x,) : tensor<[2], f32>", "%y = Add (%x, %x) : tensor<f32[2]>"),
        ("%y = tensor.sum_all(%x) : tensor<f32>", "%y = Sum (%x) {axes=[], keepdims=false} : tensor<f32[]>"),
        ("%y = tensor.mean_all(%x) :tensor<f32>", "%y = Mean (%x) {axes=[], keepdims=false} : tensor<f32[]>"),
        ("%y = tensor.sum(%x, [0,],) : tensor<f32>", "%y = Sum (%x) {axes=[0]} : tensor<f32[]>"),
        ("%y = call @f(%x,) {a=1,} : tensor<f32>", "%y = call @f (%x) {a=1} : tensor<f32[]>"),
        ("%y = call @f : tensor<f32>", "%y = call @f () : tensor<f32[]>"),
        ('%y = Call (%x) {callee="f"} : tensor<f32>', "%y = call @f (%x) : tensor<f32[]>"),
        ('%y = call @"a b" (%x) : (tensor<f32>)', '%y = call @"a b" (%x) : tensor<f32[]>'),
        ("%y, %z, = F (%x) : (tensor<i1>, tensor<i1>,)", "%y, %z = F (%x) : (tensor<i1[]>, tensor<i1[]>)"),
        ("%y = Cond (%x) : tensor<f32> { }", "%y = Cond (%x) : tensor<f32[]>"),
    ],
)  # fmt: skip
def test_spellings_of_an_operation(statement: str, canonical: str) -> None:
    function = only(f"func @f(%x: tensor<f32[2]>) -> () {{\n^a:\n  {statement}\n  return\n}}\n")
    assert str(function.entry.operations[0]) == canonical


def test_statements_break_inside_brackets() -> None:
    function = only(
        f"func @f(%x: {T}) -> () {{\n^a:\n  %y = Add (%x,\n    %x # twice\n  ) : {T}\n"
        f"  br ^b(\n    %y,\n  )\n^b(\n  %z: {T}\n):\n"
        "  %c = ConstTensor {\n    shape=[2], dtype=f32, value=[1,\n 2]\n  } : tensor<f32[2]>\n"
        "  return\n}\n"
    )
    assert [len(block.operations) for block in function.blocks] == [1, 1]
    assert function.blocks[0].terminator.operands == (1,)


def test_aliases_hold_in_the_whole_function() -> None:
    text = (
        f"func @f(%x: {T}) -> () {{\n^a:\n  %y = Neg (%b) : {T}\n  br ^c\n^c:\n  %b = %a\n  %a = %x\n"
        "  %7 = %y\n  return %7, %b\n}\nfunc @g() -> () {\n^a:\n  return %b, %7\n}\n"
    )
    function, other = parse(text).functions
    assert other.entry.terminator.operands == (0, 7)
    assert function.blocks[0].operations[0].operands == (0,)
    assert function.blocks[1].terminator.operands == (1, 0)


def test_every_part_knows_its_place() -> None:
    module = parse(SourceText("m.ir", PROGRAM))
    main = module.functions["main"]
    assert spans(main.location, *main.result_locations) == ["@main", "tensor<f32[2]>", "tensor<i64[]>"]
    assert spans(*(p.location for p in main.parameters)) == ["%x: tensor<f32[2]>", "%n: tensor<i64[]>"]
    entry, head, body, done = main.blocks
    assert spans(*(block.location for block in main.blocks)) == ["^entry", "^head", "^body", "^done"]
    assert spans(*(p.location for p in head.parameters)) == ["%y: tensor<f32[2]>", "%i: tensor<i64[]>"]
    assert isinstance(entry.terminator, Branch)
    target = entry.terminator.target
    assert spans(entry.terminator.location, target.location, *target.locations) == [
        "br ^head(%x, %zero)",
        "^head",
        "%x",
        "%zero",
    ]
    branch = head.terminator
    assert isinstance(branch, CondBranch)
    assert spans(
        branch.location, branch.condition_location, branch.then.location, branch.otherwise.location
    ) == [
        "cond_br %more, ^body, ^done",
        "%more",
        "^body",
        "^done",
    ]
    assert isinstance(done.terminator, Return)
    assert spans(done.terminator.location, *done.terminator.locations) == ["return %y, %i", "%y", "%i"]
    call = body.operations[0].source
    assert call is not None
    assert spans(call.attributes["callee"], call.opcode, *call.results) == ["@twice", "call", "%y2"]
    assert [place and place.line for place in (main.location, done.location)] == [1, 13]


def test_the_places_of_several_results() -> None:
    loop = only(REGIONS).entry.operations[0]
    info = loop.source
    assert info is not None
    assert spans(*info.results) == ["%2", "%3"]
    assert spans(*info.result_types) == ["tensor<f32[2]>", "tensor<i64[]>"]
    assert spans(info.result_type, info.opcode, *info.operands) == ["tensor<f32[2]>", "While", "%x", "%n"]
    assert info.statement.text.startswith("%2, %3 = While")
    assert info.statement.text.endswith("tensor<i64[]>")
    exit_ = loop.regions[0].terminator
    assert isinstance(exit_, Yield)
    assert spans(exit_.location, *exit_.locations) == ["yield %6, %4, %5", "%6", "%4", "%5"]


def test_results_of_flat_text() -> None:
    module = parse(f"%x = F : {T}\n%a, %b = G (%x) : ({T}, tensor<i64[]>)\noutputs: %b, %x")
    assert [op.result_ids for op in module.operations] == [(0,), (1, 2)]
    assert module.operations[1].results[1].type == TensorType(DType.SI64)
    assert module.outputs == (2, 0)
    assert parse(print_module(module)) == module


def test_a_flat_text_may_speak_of_functions() -> None:
    module = parse(
        f'# func @f\n%0 = Input {{name="func @f"}} : {T}\n%func = Neg (%0) : {T}\noutputs: %func\n'
    )
    assert isinstance(module, Module)
    assert module.is_flat
