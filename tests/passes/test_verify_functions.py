"""The rules of functions and blocks, each broken by a module made by hand."""

from __future__ import annotations

import pytest
from function_form import (
    F,
    N,
    P,
    block,
    br,
    calls,
    chain,
    cond_br,
    function,
    main,
    module,
    op,
    ret,
    yield_,
)

from mind_mlir.diagnostics import VerificationError
from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.module import Block, Function, Functions, Module, Parameter
from mind_mlir.ir.types import DType, SymbolicDim, TensorType, TupleType
from mind_mlir.passes.verify import check, verify

HUGE = TensorType(DType.F32, (2**40, 2**40))
DEEP = TensorType(DType.F32, (1,) * 65)
BATCH = TensorType(DType.F32, (SymbolicDim("B"),))
HALF = TensorType(DType.F16, (2,))


def number(value: int) -> TensorLiteral:
    return TensorLiteral.of(value, DType.SI64)


def loop() -> Module:
    """Return a loop that counts, with a call, a branch and regions in it."""
    then = block("then", [op(9, "Add", [6, 3])], yield_(9))
    body = [
        op((6, 7), "Call", [3, 4], (F, N), callee="step"),
        op(8, "Cond", [5], F, [then, block("else", [], yield_(6))]),
    ]
    blocks = [
        block("entry", [op(2, "ConstI64", (), N, value=number(0))], br("head", 0, 2), v0=F, v1=N),
        block("head", [op(5, "Compare", [4, 1], P, op="Less")], cond_br(5, "body", "done"), v3=F, v4=N),
        block("body", body, br("head", 8, 7)),
        block("done", [], ret(3, 4)),
    ]
    one = op(2, "ConstI64", (), N, value=number(1))
    step = block("entry", [one, op(3, "Add", [1, 2], N)], ret(0, 3), v0=F, v1=N)
    return module(function("main", blocks, F, N), function("step", [step], F, N, public=False))


def codes(module_: Module) -> list[str]:
    return [found.code for found in check(module_)]


def test_a_module_of_functions() -> None:
    assert check(loop()) == []
    assert verify(loop()) == loop()


def test_blocks_may_stand_in_any_order() -> None:
    late = block("late", [op(3, "Neg", [2])], ret(3))
    first = block("entry", [], br("early"), v0=F)
    assert codes(main(first, late, block("early", [op(2, "Neg", [0])], br("late")))) == []


def test_the_same_ids_in_several_functions() -> None:
    one = [block("entry", [], ret(0), v0=F)]
    assert codes(module(function("f", one, F), function("g", one, F))) == []


ENTRY = block("entry", [], ret(0), v0=F, v1=P)
OTHER = block("b", [], ret(0))


def simple(*operations: object, results: object = (F,), to: object = ret(0)) -> Module:
    made = block("entry", operations, to, v0=F, v1=P)  # type: ignore[arg-type]  # whatever is asked for
    return main(made, results=results)  # type: ignore[arg-type]  # the same


def region(
    *regions: Block, type_: object = F, operands: tuple[int, ...] = (1,), opcode: str = "Cond"
) -> Module:
    return simple(op(2, opcode, operands, type_, regions), to=ret(0))  # type: ignore[arg-type]  # the same


def nested(depth: int) -> Module:
    value = 1000
    inner = op(value, "Neg", [0])
    for _ in range(depth):
        regions = [block("then", [inner], yield_(value)), block("else", [], yield_(0))]
        value -= 1
        inner = op(value, "Cond", [1], F, regions)
    return simple(inner)


RULES = [
    ("E4107", module(function("f", [ENTRY], F), function("f", [ENTRY], F)), "two functions are called @f"),
    ("E4108", main(block("entry", [], br("entry", 0), v0=F)), "goes to ^entry"),
    (
        "E4109",
        main(block("entry", [], cond_br(1, "b", "b"), v0=F, v1=P), OTHER, OTHER),
        "two blocks are labelled ^b",
    ),
    ("E4110", main(block("entry", [], br("nowhere"), v0=F)), "no block ^nowhere in @main"),
    ("E4111", main(block("entry", [], yield_(0), v0=F)), "^entry ends in a yield"),
    ("E4111", region(block("then", [], ret(0)), block("else", [], yield_(0))), "^then ends in a return"),
    ("E4111", region(block("then", [], br("else")), block("else", [], yield_(0))), "^then ends in a branch"),
    ("E4113", main(block("entry", [], br("b", 0), v0=F), OTHER), "^b takes 0 arguments, found 1"),
    (
        "E4113",
        main(block("entry", [], br("b"), v0=F), block("b", [], ret(2), v2=F)),
        "^b takes 1 argument, found 0",
    ),
    (
        "E4113",
        main(
            block("entry", [], cond_br(1, "b", "c", [1]), v0=F, v1=P),
            block("b", [], ret(2), v2=F),
            block("c", [], ret(0)),
        ),
        "parameter 0 of ^b is a tensor<f32[2]>, but %1 is a tensor<i1[]>",
    ),
    ("E4114", main(block("entry", [], cond_br(0, "b", "b"), v0=F), OTHER), "but %0 is a tensor<f32[2]>"),
    ("E4115", simple(results=(P,)), "result 0 of @main is declared as tensor<i1[]>, but %0"),
    ("E4115", simple(results=(F, F)), "@main has 2 results, but 1 are returned"),
    (
        "E4116",
        main(
            block("entry", [], cond_br(1, "b", "c"), v0=F, v1=P),
            block("b", [op(2, "Neg", [0])], br("c")),
            block("c", [], ret(2)),
        ),
        "%2 is not defined on every way to ^c",
    ),
    (
        "E4116",
        simple(
            op(
                2,
                "Cond",
                [1],
                F,
                [block("then", [op(3, "Neg", [0])], yield_(3)), block("else", [], yield_(0))],
            ),
            to=ret(3),
        ),
        "%3 is visible only in its region, ^then",
    ),
    (
        "E4116",
        region(block("then", [op(3, "Neg", [0])], yield_(3)), block("else", [], yield_(3))),
        "%3 is visible only in its region, ^then",
    ),
    ("E4001", simple(op(2, "Neg", [9])), "%9 is not defined"),
    ("E4001", simple(to=ret(9)), "%9 is not defined"),
    ("E4001", main(block("entry", [], br("b", 9), v0=F), block("b", [], ret(2), v2=F)), "%9 is not defined"),
    ("E4001", main(block("entry", [], cond_br(9, "b", "b"), v0=F), OTHER), "%9 is not defined"),
    ("E4001", simple(op(2, "Neg", [3]), op(3, "Neg", [0])), "%3 is used before its definition"),
    ("E4001", simple(op(2, "Neg", [2])), "%2 is used before its definition"),
    (
        "E4001",
        region(block("then", [op(3, "Neg", [3])], yield_(3)), block("else", [], yield_(0))),
        "%3 is used before its definition",
    ),
    (
        "E4001",
        region(block("then", [op(3, "Neg", [2])], yield_(3)), block("else", [], yield_(0))),
        "%2 is used before its definition",
    ),
    ("E4002", simple(op(1, "Neg", [0])), "%1 is defined twice"),
    (
        "E4002",
        main(block("entry", [], br("b", 0), v0=F), block("b", [], ret(0), v0=F)),
        "%0 is defined twice",
    ),
    (
        "E4002",
        region(block("then", [op(3, "Neg", [0])], yield_(3)), block("else", [op(3, "Neg", [0])], yield_(3))),
        "%3 is defined twice",
    ),
    ("E4117", main(ENTRY, OTHER), "no branch leads to ^b"),
    ("E4127", main(block("entry", [], br("b"), v0=F), block("b", [], br("b"))), "from ^b no return"),
    ("E4118", calls(1, "f0"), "@f0 calls itself"),
    ("E4118", calls(3, "f1"), "recursion: @f1 calls @f2, which calls @f1"),
    ("E4118", calls(20, "f0"), "which calls ... 12 more ..., which calls @f0"),
    ("E4119", module(function("f", [ENTRY], F, public=False)), "no function of the module is exported"),
    ("E4119", module(), "no function of the module is exported"),
    ("E4120", simple(op(2, "Cond", [1], F)), "the regions of Cond are ^then, ^else; found none"),
    (
        "E4120",
        region(block("then", [], yield_(0)), opcode="Neg", operands=(0,)),
        "the regions of Neg are none",
    ),
    ("E4121", calls(1, "nobody"), "there is no function @nobody"),
    (
        "E4122",
        module(
            function("main", [block("entry", [op(1, "Call", [0], F, callee="f")], ret(1), v0=F)], F),
            function("f", [block("entry", [], ret(), v0=F)], public=False),
        ),
        "@f returns nothing",
    ),
    (
        "E2007",
        module(
            function("main", [block("entry", [op(2, "Call", [], F, callee="f")], ret(2), v0=F)], F),
            function("f", [ENTRY], F),
        ),
        "a call of @f takes 2 arguments, found 0",
    ),
    (
        "E2001",
        simple(op(2, "Neg", [0], P)),
        "the result of Neg is tensor<f32[2]>, but it is declared as tensor<i1[]>",
    ),
    (
        "E2001",
        simple(op((2, 3), "Neg", [0], (F, F))),
        "the 1 result of Neg are tensor<f32[2]>, but declared as (tensor<f32[2]>, tensor<f32[2]>)",
    ),
    ("E2001", region(block("then", [], yield_(0)), block("else", [], yield_(1))), "yield 0 of ^else of Cond"),
    (
        "E4126",
        module(
            function("main", [ENTRY], F),
            function("g", [block("entry", [], ret(0), v0=F, v1=HALF)], F, public=False),
        ),
        "has dtype f16",
    ),
    ("E4126", main(ENTRY, results=(BATCH,)), "result 0 of @main has extent ?B"),
    ("E4126", main(ENTRY, results=(TupleType((F,)),)), "it must be a tensor"),
    ("E4004", main(block("entry", [], ret(0), v0=F, v1=HALF)), "parameter %1 of @main has dtype f16"),
    ("E4004", main(block("entry", [], ret(0), v0=F, v1=BATCH)), "has extent ?B"),
    (
        "E4004",
        main(block("entry", [], ret(0), v0=F, v1=TensorType(DType.F32, (0,)))),
        "extents must be positive",
    ),
    ("E4104", main(block("entry", [], ret(0), v0=F, v1=HUGE)), "does not fit any address space"),
    ("E4106", main(block("entry", [], ret(0), v0=F, v1=DEEP)), "a value of rank 65"),
    ("E4102", simple(op(2, "Input", (), F, name="x")), "Input is not allowed in profile core-functions"),
    ("E4124", module(Function("f", (), True, (F,))), "@f has no blocks"),
    (
        "E4124",
        Module(Functions([Function("f", (ENTRY,))]), "core-functions"),
        "@f has no declared result types",
    ),
    ("E4125", nested(65), "regions nest more than 64 deep"),
]


@pytest.mark.parametrize(("code", "broken", "words"), RULES, ids=[rule[0] for rule in RULES])
def test_a_broken_rule(code: str, broken: Module, words: str) -> None:
    found = check(broken)
    assert [one.code for one in found] == [code], [str(one) for one in found]
    assert words in found[0].message
    with pytest.raises(VerificationError):
        verify(broken)


def test_functions_that_cannot_be_called_compute_nothing() -> None:
    quiet = function("quiet", [block("entry", [], ret(), v0=F)])
    (found,) = check(module(function("f", [ENTRY], F), quiet))
    assert (found.code, found.severity) == ("E4101", "warning")


def test_arguments_have_names_of_their_own() -> None:
    def named(*names: str | None) -> Module:
        parameters = tuple(Parameter(i, F, name=name) for i, name in enumerate(names))
        made = Block((), ret(0), parameters)
        internal = Function("g", (made,), False, (F,))
        return Module(Functions([Function("main", (made,), True, (F,)), internal]), "core-functions")

    assert codes(named("x", "y")) == []
    for names in [("x", "x"), ("x", None), ("", "x"), ("x", "\ud800")]:
        (found,) = check(named(*names))
        assert (found.code, found.context["issue"]) == ("E4004", "name")


def test_one_mistake_is_reported_once() -> None:
    # What is in error counts as having its declared type; nothing is unreachable behind a wrong branch.
    assert codes(simple(op(2, "Frob", [0]), op(3, "Neg", [2]), to=ret(3))) == ["E1102"]
    assert codes(main(block("entry", [], br("bdy"), v0=F), block("body", [], ret(0)))) == ["E4110"]
    assert codes(main(ENTRY, block("b", [op(2, "Neg", [0])], br("c")), block("c", [], ret(2)))) == [
        "E4117",
        "E4117",
    ]
    assert codes(main(ENTRY, block("b", [op(2, "Neg", [9])], ret(2)))) == ["E4117", "E4001"]
    # A callee whose signature is wrong.
    wrong = function("f", [block("entry", [], ret(0), v0=BATCH)], F, public=False)
    caller = function("main", [block("entry", [op(1, "Call", [0], F, callee="f")], ret(1), v0=F)], F)
    assert codes(module(caller, wrong)) == ["E4126"]


def test_everything_is_reported_at_once() -> None:
    broken = module(
        function("f", [block("entry", [op(1, "Frob", [0]), op(2, "Neg", [7])], br("nowhere"), v0=F)], F),
        function("g", [block("entry", [], yield_(0), v0=F)], F),
        function("g", [block("entry", [], ret(0), v0=P)], F),
    )
    assert sorted(codes(broken)) == ["E1102", "E4001", "E4107", "E4110", "E4111", "E4115"]


def test_findings_without_a_source_name_their_place() -> None:
    inner = op(2, "Cond", [1], F, [block("then", [], yield_(9)), block("else", [], yield_(0))])
    (found,) = check(simple(inner))
    assert found.notes == ("in ^then in ^entry of @main",)


def test_loops_see_what_is_defined_around_them() -> None:
    condition = block("condition", [], yield_(1, 3), v3=F)
    body = block("body", [op(5, "Add", [4, 0])], yield_(5), v4=F)
    assert codes(simple(op(2, "While", [0], F, [condition, body]), to=ret(2))) == []


def test_flat_modules_have_no_branches() -> None:
    made = Module(Functions([Function("main", (Block((), br("entry")),))]))
    assert codes(made) == ["E4103"]
    assert codes(Module(made.functions, "core-functions")) == ["E4124"]


def test_regions_may_nest_64_deep() -> None:
    assert codes(nested(64)) == []


def test_many_blocks() -> None:
    assert codes(chain(30_000)) == []
    assert codes(chain(1_000, returned=4)) == ["E4116"]


def test_many_functions() -> None:
    assert codes(calls(10_000)) == []
    assert codes(calls(10_000, "f0")) == ["E4118"]


def test_very_many_findings_are_counted() -> None:
    blocks = [block(f"b{i}", [op(i + 2, "Neg", [10**6 + i])], ret(i + 2)) for i in range(3000)]
    found = check(main(block("entry", [], br("b0"), v0=F), *blocks))
    assert len(found) == 1001
    assert found[-1].context["omitted"] == 2999 + 3000 - 1000


def test_partial_indices_belong_to_functions() -> None:
    index = op(2, "Index", [0], F, indices=())
    assert codes(simple(index)) == []
    (found,) = check(Module.flat([op(0, "Input", (), F, name="x"), index], [2]))
    assert found.code == "E4006"


def test_division_belongs_to_functions() -> None:
    division = op(2, "Div", [0, 0])
    assert codes(simple(division)) == []
    (found,) = check(Module.flat([op(0, "Input", (), F, name="x"), division], [2]))
    assert found.code == "E4102"


@pytest.mark.parametrize("opcode", ["Cond", "While", "Call"])
def test_control_flow_belongs_to_functions(opcode: str) -> None:
    (found,) = check(Module.flat([op(0, "Input", (), F, name="x"), op(1, opcode, [0])], [1]))
    assert found.code == "E4102"
    assert "core-functions" in (found.help or "")


def test_flat_modules_have_no_regions() -> None:
    negation = op(1, "Neg", [0], F, [block("then", [], yield_(0))])
    assert codes(Module.flat([op(0, "Input", (), F, name="x"), negation], [1])) == ["E4103"]
