"""The type rules of control flow: what regions and functions may take and give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mind_mlir.diagnostics import Location
from mind_mlir.diagnostics.source import SourceText
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.contexts import RegionTypes, Signature, TypeContext
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from mind_mlir.diagnostics import Diagnostic

P = TensorType(DType.I1)
X = TensorType(DType.F32, (2,))
N = TensorType(DType.SI64)


def region(name: str, parameters: list[TensorType], *yields: TensorType) -> RegionTypes:
    return RegionTypes(tuple(parameters), yields, name)


def typed(
    opcode: str, operands: list[TensorType], *regions: RegionTypes, **facts: Any
) -> tuple[tuple[TensorType, ...] | None, list[Diagnostic]]:
    """Return the result types of an operation, and what is wrong with it."""
    attributes = {"callee": facts.pop("callee")} if "callee" in facts else {}
    context = TypeContext(opcode, 7, tuple(operands), attributes, regions=regions, **facts)
    return infer_types(by_opcode()[opcode], context), context.diagnostics


def branches(then: list[TensorType], otherwise: list[TensorType]) -> list[RegionTypes]:
    return [region("then", [], *then), region("else", [], *otherwise)]


LOOP = (region("condition", [X, N], P, X), region("body", [X], X, N))
FUNCTIONS = {
    "f": Signature((X, N), (X, N)),
    "nothing": Signature((), ()),
    "broken": None,
}


def test_results_are_what_the_regions_and_the_function_give() -> None:
    assert typed("Cond", [P], *branches([X, N], [X, N])) == ((X, N), [])
    assert typed("While", [X, N], *LOOP) == ((X,), [])
    assert typed("Call", [X, N], callee="f", functions=FUNCTIONS) == ((X, N), [])


def test_regions_without_names_are_told_by_their_place() -> None:
    assert typed("Cond", [P], region("", [], X), region("", [], X)) == ((X,), [])


def test_a_call_of_a_function_whose_signature_is_reported_elsewhere_says_nothing() -> None:
    assert typed("Call", [], callee="broken", functions=FUNCTIONS) == (None, [])


@pytest.mark.parametrize(
    ("case", "code", "message"),
    [
        (("Cond", [P]), "E4120", "the regions of Cond are ^then, ^else; found none"),
        (("Cond", [P], *reversed(branches([X], [X]))), "E4120", "found ^else, ^then"),
        (("Cond", [P], *branches([X], [X]), region("then", [])), "E4120", "found ^then, ^else, ^then"),
        (("Add", [X, X], region("then", [], X)), "E4120", "the regions of Add are none; found ^then"),
        (("Cond", [X], *branches([X], [X])), "E2005", "does not take f32 as its pred"),
        (("Cond", [P.with_shape((2,))], *branches([X], [X])), "E3002", "found one of rank 1"),
        (("Cond", [], *branches([X], [X])), "E2007", "Cond takes 1 operand, found 0"),
        (("Cond", [P], *branches([], [])), "E4122", "^then of Cond yields nothing"),
        (("Cond", [P], *branches([X], [])), "E2007", "^else of Cond yields 1 value, found 0"),
        (("Cond", [P], *branches([X], [N])), "E2001", "yield 0 of ^else of Cond is tensor<i64[]>, expected"),
        (
            ("Cond", [P], region("then", [N], X), region("else", [], X)),
            "E2007",
            "^then of Cond has 0 parameters, found 1",
        ),
        (("While", [X, N], LOOP[0]), "E4120", "found ^condition"),
        (
            ("While", [X], *LOOP),
            "E2007",
            "^condition of While has 1 parameter, found 2",
        ),
        (
            ("While", [N, N], *LOOP),
            "E2001",
            "parameter 0 of ^condition of While is tensor<f32[2]>, expected tensor<i64[]>",
        ),
        (
            ("While", [X], region("condition", [X]), region("body", [X], X)),
            "E2007",
            "yields a predicate of type tensor<i1[]> first, found nothing",
        ),
        (
            ("While", [X], region("condition", [X], X), region("body", [X], X)),
            "E2001",
            "yields a predicate of type tensor<i1[]> first, found tensor<f32[2]>",
        ),
        (
            ("While", [X], region("condition", [X], P), region("body", [], X)),
            "E4122",
            "^condition of While yields nothing but its predicate",
        ),
        (
            ("While", [X], region("condition", [X], P, X), region("body", [N], X)),
            "E2001",
            "parameter 0 of ^body of While is tensor<i64[]>, expected tensor<f32[2]>",
        ),
        (
            ("While", [X], region("condition", [X], P, X), region("body", [X], N)),
            "E2001",
            "yield 0 of ^body of While is tensor<i64[]>, expected tensor<f32[2]>",
        ),
    ],
)
def test_what_does_not_fit(case: tuple[Any, ...], code: str, message: str) -> None:
    types, (finding,) = typed(*case)
    assert types is None
    assert (finding.code, message in finding.message) == (code, True), finding.message
    assert finding.help


@pytest.mark.parametrize(
    ("operands", "callee", "code", "message"),
    [
        ([X, N], "g", "E4121", "there is no function @g"),
        ([X], "f", "E2007", "a call of @f takes 2 arguments, found 1"),
        ([X, X], "f", "E2001", "argument 1 of a call of @f is tensor<f32[2]>, expected tensor<i64[]>"),
        ([], "nothing", "E4122", "@nothing returns nothing"),
    ],
)
def test_calls_that_do_not_fit(operands: list[TensorType], callee: str, code: str, message: str) -> None:
    _, (finding,) = typed("Call", operands, callee=callee, functions=FUNCTIONS)
    assert (finding.code, finding.message) == (code, message)
    assert finding.help


@pytest.mark.parametrize(
    ("regions", "places"),
    [
        (branches([X], [N]), ["yield 0 of ^then of Cond is tensor<f32[2]>, expected tensor<i64[]>"]),
        (branches([N], [X]), ["yield 0 of ^else of Cond is tensor<f32[2]>, expected tensor<i64[]>"]),
        (branches([N], [N]), []),
        (branches([X], [X]), []),  # that something else is declared is for the verifier to say
    ],
)
def test_what_is_declared_says_which_region_is_wrong(regions: list[RegionTypes], places: list[str]) -> None:
    _, found = typed("Cond", [P], *regions, declared=N)
    assert [finding.message for finding in found] == places


@pytest.mark.parametrize(
    ("condition", "body", "place"),
    [(X, N, "yield 1 of ^condition of While"), (N, X, "parameter 0 of ^body of While")],
)
def test_what_is_declared_says_which_half_of_a_loop_is_wrong(
    condition: TensorType, body: TensorType, place: str
) -> None:
    halves = region("condition", [X], P, condition), region("body", [body], X)
    _, (finding,) = typed("While", [X], *halves, declared=N, declared_results=None)
    assert finding.message == f"{place} is tensor<f32[2]>, expected tensor<i64[]>"


def test_findings_point_at_the_yield() -> None:
    source = SourceText("f.ir", "\n\n  yield %x\n")
    yielded, label = Location(source, 3, 9, 2), Location(source, 1, 1, 5)
    wrong = RegionTypes((), (N,), "else", yield_locations=(yielded,), location=label)
    _, (finding,) = typed("Cond", [P], region("then", [], X), wrong)
    assert finding.location == yielded
    few = RegionTypes((), (), "else", location=label)
    _, (finding,) = typed("Cond", [P], region("then", [], X), few)
    assert finding.location == label
