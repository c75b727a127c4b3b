"""Modules of functions built from Python: what is wrong fails where it is built, in the verifier's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import mind_mlir
from mind_mlir import DType, ModuleBuilder, TensorType, VerificationError, parse, verify
from mind_mlir.ir.module import (
    Block,
    Branch,
    CondBranch,
    CoreOperation,
    Function,
    Functions,
    Module,
    Parameter,
    Return,
    Target,
)
from mind_mlir.ir.types import SymbolicDim
from mind_mlir.passes.verify import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.builders.block_builder import BlockBuilder
    from mind_mlir.builders.function_builder import FunctionBuilder
    from mind_mlir.ir.value import Value

F, N, P = TensorType(DType.F32, (2,)), TensorType(DType.SI64), TensorType(DType.I1)
F16 = TensorType(DType.F16, (2,))


def loop() -> ModuleBuilder:
    """Build the example of core-ir-text.md, spelling 3."""
    m = ModuleBuilder()
    main = m.function("main", {"x": F, "n": N}, [F, N])
    twice = m.function("twice", {"a": F}, F, public=False)
    x, n = main.parameters
    head, body, done = main.block(F, N, label="head"), main.block(label="body"), main.block(label="done")
    zero = main.entry.constant(0, DType.SI64)
    main.entry.branch(head, x, zero)
    y, i = head.parameters
    head.cond_branch(head.emit("Compare", i, n, op="Less"), body, done)
    (doubled,) = body.call("twice", y)
    body.branch(head, doubled, body.emit("tensor.add", i, body.constant(1, DType.SI64)))
    done.return_(y, i)
    (a,) = twice.parameters
    twice.entry.return_(twice.entry.emit("Add", a, a))
    return m


def test_a_loop() -> None:
    module = loop().build()
    assert verify(module) is module
    assert [block.label for block in module.functions["main"].blocks] == ["entry", "head", "body", "done"]
    assert [p.name for p in module.functions["main"].parameters] == ["x", "n"]
    assert [p.name for p in module.functions["twice"].parameters] == [None]
    assert parse(str(module)) == module


def test_regions() -> None:
    m = ModuleBuilder()
    f = m.function("main", {"x": F, "p": P}, F)
    x, p = f.parameters
    b = f.entry
    with b.region() as then:
        y = b.emit("Neg", x)
        then.yield_(y)
    with b.region() as otherwise:
        otherwise.yield_(x)
    with pytest.raises(VerificationError) as caught:
        b.emit("Neg", y)
    assert caught.value.code == "E4001"
    (r,) = b.emit_all("Cond", p, regions=(then, otherwise))
    b.return_(r)
    verify(m.build())


def test_a_region_is_filled_before_its_block_goes_on() -> None:
    m = ModuleBuilder()
    f = m.function("main", {"x": F}, F)
    b, other = f.entry, f.block()
    with b.region() as region:
        calls: list[Callable[[], object]] = [
            lambda: b.return_(*f.parameters),
            lambda: b.branch(other),
            lambda: other.emit("Neg", *f.parameters),
        ]
        for call in calls:
            with pytest.raises(VerificationError) as caught:
                call()
            assert caught.value.code == "E4111"
        region.yield_(f.parameters)
    b.return_(*f.parameters)


def test_names_and_labels() -> None:
    m = ModuleBuilder()
    f = m.function("main", {"x": F}, F)
    f.block(label="b2")
    assert [f.block().label, f.block().label] == ["b3", "b4"]
    assert repr(m) == "<ModuleBuilder of 1 function>"
    assert repr(f) == "<FunctionBuilder @main: 4 blocks>"
    assert repr(f.entry) == "<BlockBuilder ^entry: 0 operations>"


def failing(call: Callable[[ModuleBuilder, FunctionBuilder, BlockBuilder], object]) -> list[Any]:
    m = ModuleBuilder()
    f = m.function("main", {"x": F, "p": P}, F)
    with pytest.raises(VerificationError) as caught:
        call(m, f, f.entry)
    return list(caught.value.diagnostics)


def elsewhere() -> Value:
    return ModuleBuilder().function("g", {"x": F}, F).parameters[0]


MISTAKES: list[tuple[str, Any]] = [
    ("E1102", lambda m, f, b: b.emit("Frob", f.parameters[0])),
    ("E1102", lambda m, f, b: b.emit(3)),
    ("E1103", lambda m, f, b: b.emit("Sum", f.parameters[0], axes=None)),
    ("E2005", lambda m, f, b: b.constant([1, 2], "f16")),
    ("E3001", lambda m, f, b: b.emit("Add", f.parameters[0], b.constant([1, 2, 3], "f32"))),
    ("E3006", lambda m, f, b: b.constant([], "f32")),
    ("E4001", lambda m, f, b: b.emit("Neg", elsewhere())),
    ("E4001", lambda m, f, b: b.return_(3)),
    ("E4001", lambda m, f, b: b.branch(f.block(F, label="{x}{"), None)),
    ("E4001", lambda m, f, b: b.cond_branch("p", f.block(), f.block())),
    ("E4004", lambda m, f, b: m.function("g", {"": F}, F)),
    ("E4004", lambda m, f, b: m.function("g", {"x": TensorType(DType.F32, (SymbolicDim("B"),))}, F)),
    ("E4102", lambda m, f, b: b.emit("Input", name="x")),
    ("E4104", lambda m, f, b: b.emit("BroadcastTo", f.parameters[0], result_shape=[2**62, 2])),
    ("E4106", lambda m, f, b: f.block(TensorType(DType.F32, (1,) * 65))),
    ("E4107", lambda m, f, b: m.function("main", {}, F)),
    ("E4108", lambda m, f, b: f.block().branch(b, *f.parameters)),
    ("E4109", lambda m, f, b: f.block(label="entry")),
    ("E4110", lambda m, f, b: b.branch("done")),
    ("E4110", lambda m, f, b: b.branch(ModuleBuilder().function("g", {}, F).block())),
    ("E4111", lambda m, f, b: m.build()),
    ("E4112", lambda m, f, b: (b.return_(f.parameters[0]), b.emit("Neg", f.parameters[0]))),
    ("E4112", lambda m, f, b: (b.return_(f.parameters[0]), b.return_(f.parameters[0]))),
    ("E4112", lambda m, f, b: (b.return_(f.parameters[0]), b.region())),
    ("E4113", lambda m, f, b: b.branch(f.block(F))),
    ("E4113", lambda m, f, b: b.branch(f.block(F), f.parameters[1])),
    ("E4113", lambda m, f, b: b.cond_branch(f.parameters[1], f.block(F), f.block(), f.parameters[1])),
    ("E4114", lambda m, f, b: b.cond_branch(f.parameters[0], f.block(), f.block())),
    ("E4115", lambda m, f, b: b.return_()),
    ("E4115", lambda m, f, b: b.return_(f.parameters[1])),
    ("E4120", lambda m, f, b: b.emit_all("Cond", f.parameters[1])),
    ("E4121", lambda m, f, b: b.call("nobody")),
    ("E1103", lambda m, f, b: b.call(f)),
    ("E2007", lambda m, f, b: b.call("main")),
    ("E2001", lambda m, f, b: b.call("main", f.parameters[1], f.parameters[1])),
    ("E4122", lambda m, f, b: (m.function("g", {}, ()), b.call("g"))),
    ("E4126", lambda m, f, b: f.block(F16)),
    ("E4126", lambda m, f, b: m.function("g", {"x": F16}, F, public=False)),
    ("E4126", lambda m, f, b: m.function("g", {"x": F}, [F16])),
]


@pytest.mark.parametrize(("code", "call"), MISTAKES, ids=[code for code, _ in MISTAKES])
def test_a_mistake(code: str, call: Any) -> None:
    assert [found.code for found in failing(call)] == [code]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, f, b: m.function(3, {}, F), "name must be a string"),
        (lambda m, f, b: m.function("g", [F], F), "parameters must be a mapping"),
        (lambda m, f, b: m.function("g", {"x": 3}, F), "each type in parameters must be a TensorType"),
        (lambda m, f, b: m.function("g", {}, "f32"), "results must be a sequence of TensorTypes"),
        (lambda m, f, b: m.function("g", {}, F, public=3), "public must be True or False"),
        (lambda m, f, b: f.block(3), "each type in types must be a TensorType"),
        (lambda m, f, b: f.block(label=3), "label must be a string"),
        (lambda m, f, b: b.cond_branch(f.parameters[1], f.block(), f.block(), 3), "then_arguments must be"),
        (lambda m, f, b: b.emit_all("Cond", f.parameters[1], regions=[3]), "must be a Region"),
        (lambda m, f, b: b.emit("Neg", f.parameters[0], source=3), "source must be"),
    ],
)
def test_arguments_of_the_wrong_kind(call: Any, words: str) -> None:
    m = ModuleBuilder()
    f = m.function("main", {"x": F, "p": P}, F)
    with pytest.raises(TypeError, match=words):
        call(m, f, f.entry)


def test_what_fails_leaves_no_trace() -> None:
    m = loop()
    before = m.build()
    f = m.function("more", {"x": F, "p": P}, F)
    x, p = f.parameters
    for call in (
        lambda: f.entry.emit("Add", x, p),
        lambda: f.entry.emit("BroadcastTo", x, result_shape=[2**62, 2]),
        lambda: f.entry.branch(f.entry),
        lambda: f.entry.call("twice", p),
        lambda: f.entry.constant([1], DType.F16),
        lambda: f.block(F16),
    ):
        with pytest.raises(VerificationError):
            call()
    f.entry.return_(x)
    module = m.build()
    assert module.functions[:2] == before.functions[:2]
    (block,) = module.functions["more"].blocks
    assert block.operations == ()
    verify(module)


def by_hand(terminator: Any, *operations: CoreOperation) -> Module:
    """Return what the builder was asked to build, which it refused."""
    parameters = (Parameter(0, F, name="x"), Parameter(1, P, name="p"))
    entry = Block(operations, terminator, parameters)
    block = Block((), Return((2,)), (Parameter(2, F),), "b1")
    return Module(Functions([Function("main", (entry, block), result_types=(F,))]), "core-functions")


TO_B1 = Branch(Target("b1", (0,)))
SAME: list[tuple[Any, Module]] = [
    (lambda b, f, o: b.branch(o), by_hand(Branch(Target("b1")))),
    (lambda b, f, o: b.branch(o, f.parameters[1]), by_hand(Branch(Target("b1", (1,))))),
    (
        lambda b, f, o: b.cond_branch(f.parameters[0], o, o, f.parameters[0], f.parameters[0]),
        by_hand(CondBranch(0, Target("b1", (0,)), Target("b1", (0,)))),
    ),
    (
        lambda b, f, o: b.emit("Log", f.parameters[1]),
        by_hand(TO_B1, CoreOperation.create(3, "Log", [1], {}, P)),
    ),
    (
        lambda b, f, o: b.emit("Input", name="z"),
        by_hand(TO_B1, CoreOperation.create(3, "Input", [], {"name": "z"}, F)),
    ),
    (
        lambda b, f, o: b.call("f", f.parameters[1]),
        by_hand(TO_B1, CoreOperation.create(3, "Call", [1], {"callee": "f"}, F)),
    ),
]


@pytest.mark.parametrize(("call", "module"), SAME)
def test_the_builder_says_what_the_verifier_says(call: Any, module: Module) -> None:
    f = ModuleBuilder().function("main", {"x": F, "p": P}, F)
    other = f.block(F)
    with pytest.raises(VerificationError) as caught:
        call(f.entry, f, other)
    (ours,) = caught.value.diagnostics
    (theirs,) = [found for found in check(module) if found.code != "E4117"]
    assert (ours.code, ours.message, ours.help) == (theirs.code, theirs.message, theirs.help)


def test_it_is_public() -> None:
    assert mind_mlir.ModuleBuilder is ModuleBuilder
