"""Functions as text: their exact form, and that nothing is lost in it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mind_mlir import Module, parse, print_module
from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    CoreOperation,
    Function,
    Functions,
    Parameter,
    Result,
    Return,
    Target,
    Terminator,
    Yield,
)
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.attributes import AttributeValue

F32, I1 = TensorType(DType.F32), TensorType(DType.I1)


def module_of(*functions: Function) -> Module:
    return Module(Functions(functions), "core-functions")


def straight(*parameters: Parameter, public: bool = True) -> Function:
    """Return a function that returns its first parameter."""
    block = Block((), Return(tuple(p.value_id for p in parameters[:1])), parameters)
    return Function("f", (block,), public, (F32,) if parameters else ())


@pytest.mark.parametrize(
    ("parameter", "text"),
    [
        (
            Parameter(0, F32, name="x"),
            "func @f(%x: tensor<f32[]>) -> (tensor<f32[]>) {\n^entry:\n  return %x\n}",
        ),
        (
            Parameter(0, F32, name="0"),
            "func @f(%0: tensor<f32[]>) -> (tensor<f32[]>) {\n^entry:\n  return %0\n}",
        ),
        (
            Parameter(0, F32, name="a b"),
            'func @f(%0 {name="a b"}: tensor<f32[]>) -> (tensor<f32[]>) {\n^entry:\n  return %0\n}',
        ),
        (
            Parameter(0, F32, name="1"),
            'func @f(%0 {name="1"}: tensor<f32[]>) -> (tensor<f32[]>) {\n^entry:\n  return %0\n}',
        ),
        (  # a name would get the number 0
            Parameter(7, F32, name="x"),
            'func @f(%7 {name="x"}: tensor<f32[]>) -> (tensor<f32[]>) {\n^entry:\n  return %7\n}',
        ),
    ],
)
def test_arguments_keep_their_names(parameter: Parameter, text: str) -> None:
    module = module_of(straight(parameter))
    assert str(module) == text
    assert parse(print_module(module)) == module


def test_one_name_that_cannot_be_read_does_not_cost_the_others() -> None:
    function = straight(
        Parameter(0, F32, name="x"), Parameter(1, F32, name="a-b"), Parameter(2, F32, name="z")
    )
    module = module_of(function)
    assert str(module).startswith(
        'func @f(%x: tensor<f32[]>, %1 {name="a-b"}: tensor<f32[]>, %z: tensor<f32[]>)'
    )
    assert parse(str(module)) == module


def test_arguments_of_one_name_are_told_apart() -> None:
    module = module_of(straight(Parameter(0, F32, name="x"), Parameter(1, F32, name="x")))
    assert str(module).startswith('func @f(%0 {name="x"}: tensor<f32[]>, %1 {name="x"}: tensor<f32[]>)')
    assert parse(str(module)) == module


NAMED = """\
func @f(%x: tensor<f32[]>) -> (tensor<f32[]>) {
^a:
  %y = Neg (%x) : tensor<f32[]>
  %0 = Neg (%y) : tensor<f32[]>
  %z, %w = F (%late) : (tensor<f32[]>, tensor<f32[]>)
  br ^b(%z)
^b(%p: tensor<f32[]>):
  %late = Neg (%p) : tensor<f32[]>
  return %w
}
"""


def test_a_text_is_printed_with_its_names() -> None:
    module = parse(NAMED)
    assert print_module(module) == NAMED
    assert str(module.functions["f"].blocks[1]) == (
        "^b(%p: tensor<f32[]>):\n  %late = Neg (%p) : tensor<f32[]>\n  return %w"
    )


def test_names_that_reading_would_number_otherwise_are_left_out() -> None:
    function = parse(NAMED).functions["f"]
    first, *others = function.blocks
    part = replace(function, blocks=(replace(first, operations=first.operations[1:]), *others))
    module = module_of(part)
    assert "%0 = Neg (%2) : tensor<f32[]>" in str(module)
    assert "func @f(%x: " in str(module)  # the smallest number that is not spelled is still its own
    assert parse(str(module)) == module


def test_canonical_numbers_leave_room_for_the_arguments() -> None:
    text = (
        "func @f(%x: tensor<f32[]>, %y: tensor<f32[]>) -> (tensor<f32[]>) {\n^entry:\n"
        "  %2 = Add (%x, %y) : tensor<f32[]>\n  br ^b1(%2, %x)\n"
        "^b1(%3: tensor<f32[]>, %4: tensor<f32[]>):\n  return %3\n}\n"
    )
    module = parse(text)
    assert [p.value_id for p in module.functions[0].parameters] == [0, 1]
    assert print_module(module) == text


def test_the_structured_form_of_a_flat_module_has_functions() -> None:
    module = Module(Functions([straight(Parameter(0, F32, name="x"))]), "core-v1")
    assert replace(parse(print_module(module)), profile="core-v1") == module


def test_regions_of_any_depth_are_printed() -> None:
    operation = CoreOperation.create(1, "Neg", [0], {}, F32)
    for number in range(2, 3_000):
        region = Block((operation,), Yield((number - 1,)), label="then")
        operation = CoreOperation.create(number, "Cond", [0], {}, F32, regions=[region])
    lines = str(operation).splitlines()
    assert len(lines) == 2_998 * 4 + 1
    assert lines[2_998 * 2].strip() == "%1 = Neg (%0) : tensor<f32[]>"


def test_short_representations() -> None:
    module = parse(NAMED)
    (function,) = module.functions
    assert repr(module) == "<Module core-functions: 1 function>"
    assert repr(function) == "<Function @f: 2 blocks>"
    assert [repr(block) for block in function.blocks] == [
        "<Block ^a: 3 operations>",
        "<Block ^b: 1 operation>",
    ]
    assert [str(block.terminator) for block in function.blocks] == ["br ^b(%z)", "return %w"]
    assert str(Target("a b", (3,))) == '^"a b"(%3)'


def test_what_was_read_pickles() -> None:
    module = parse(NAMED)
    again = pickle.loads(pickle.dumps(module))  # noqa: S301 -- our own bytes
    assert again == module
    assert print_module(again) == NAMED
    assert again.functions[0].location == module.functions[0].location


# Every module of functions that the text can spell, well-formed or not.

_IDS = st.integers(-2, 12) | st.sampled_from([10**17])
_WORDS = st.sampled_from(["x", "y", "a.b", "é", "_1", "func", "call", "return", "br", "x0"])
_TEXTS = _WORDS | st.text("aZ_é09 .,:=%\"\\'{}[]()<>#/^@\n\t\0", max_size=6)
_TYPES = st.sampled_from([F32, I1, TensorType(DType.SI64, (2, 3))])
_NAMES: st.SearchStrategy[dict[int, str]] = st.dictionaries(_IDS, _TEXTS, max_size=14) | st.just({})


_ATTRIBUTES: st.SearchStrategy[dict[str, AttributeValue]] = st.sampled_from(
    [{}, {"a": (1, 2)}, {"axes": (), "keepdims": True}, {"callee": 5}]
)
_CALLEES: st.SearchStrategy[dict[str, AttributeValue]] = st.builds(lambda name: {"callee": name}, _TEXTS)
_SOME_IDS = st.lists(_IDS, max_size=3).map(tuple)
_TARGETS = st.builds(Target, _TEXTS, _SOME_IDS)
_TERMINATORS = st.one_of(
    st.builds(Branch, _TARGETS),
    st.builds(CondBranch, _IDS, _TARGETS, _TARGETS),
    st.builds(Return, _SOME_IDS),
    st.builds(Yield, _SOME_IDS),
)
_PARAMETERS = st.lists(st.builds(Parameter, _IDS, _TYPES), max_size=2).map(tuple)


def _blocks(operations: st.SearchStrategy[CoreOperation]) -> st.SearchStrategy[Block]:
    body = st.lists(operations, max_size=2).map(tuple)
    return st.builds(Block, body, _TERMINATORS, _PARAMETERS, _TEXTS)


def _operations(inner: st.SearchStrategy[CoreOperation]) -> st.SearchStrategy[CoreOperation]:
    return st.builds(
        lambda operation, regions: replace(operation, regions=tuple(regions)),
        _PLAIN,
        st.lists(_blocks(inner), min_size=1, max_size=2),
    )


_PLAIN = st.builds(
    CoreOperation.create,
    _IDS,
    st.sampled_from(["Add", "Sum", "Call", "While", "frob.nicate"]),
    _SOME_IDS,
    _ATTRIBUTES | _CALLEES,
    _TYPES,
    others=st.lists(st.builds(Result, _IDS, _TYPES), max_size=2),
)
_BLOCKS = _blocks(_PLAIN | _operations(_PLAIN | _operations(_PLAIN)))


def with_names(block: Block, names: Mapping[int, str]) -> Block:
    """Return a block in which every part has the same table of names."""
    body = [
        replace(operation, names=names, regions=tuple(with_names(r, names) for r in operation.regions))
        for operation in block.operations
    ]
    end: Terminator = block.terminator
    if isinstance(end, Branch):
        end = Branch(replace(end.target, names=names))
    elif isinstance(end, CondBranch):
        end = CondBranch(end.condition, replace(end.then, names=names), replace(end.otherwise, names=names))
    else:
        end = replace(end, names=names)
    parameters = tuple(replace(parameter, names=names) for parameter in block.parameters)
    return replace(block, operations=tuple(body), terminator=end, parameters=parameters)


@st.composite
def functions(draw: st.DrawFn) -> Function:
    names, public = draw(_NAMES), draw(st.booleans())
    entry, *others = (with_names(b, names) for b in draw(st.lists(_BLOCKS, min_size=1, max_size=3)))
    if public:
        named = [replace(parameter, name=draw(_TEXTS)) for parameter in entry.parameters]
        entry = replace(entry, parameters=tuple(named))
    return Function(draw(_TEXTS), (entry, *others), public, tuple(draw(st.lists(_TYPES, max_size=2))))


@given(st.lists(functions(), min_size=1, max_size=2))
@settings(max_examples=200)
def test_reading_what_was_printed_gives_an_equal_module(found: list[Function]) -> None:
    module = module_of(*found)
    text = print_module(module)
    read = parse(text)
    assert read == module
    assert print_module(read) == text


@given(st.lists(_TYPES, max_size=4), st.permutations(["x", "y", "a.b", "é", "func", "call"]))
def test_dense_numbers_leave_the_names_to_arguments(types: list[TensorType], words: list[str]) -> None:
    """What the canonicaliser makes: parameters first, numbers in order, arguments with distinct names."""
    count = len(types)
    arguments = tuple(Parameter(i, types[i], name=words[i]) for i in range(count))
    body = CoreOperation.create(count, "F", range(count), {}, F32)
    module = module_of(Function("f", (Block((body,), Return((count,)), arguments),), True, (F32,)))
    head = ", ".join(f"%{words[i]}: {types[i]}" for i in range(count))
    assert str(module).startswith(f"func @f({head}) -> ")
    assert f"  %{count} = F" in str(module)
    assert parse(str(module)) == module
