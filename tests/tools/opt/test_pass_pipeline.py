"""Textual pass pipelines: taken apart, checked, and what is said of those that are wrong."""

from __future__ import annotations

import pytest

from mind_mlir.mlir.bindings import new_context
from mind_mlir.tools.opt.mlir_names import MLIR_DIALECTS, MLIR_PASSES
from mind_mlir.tools.opt.pass_pipeline import (
    Pipeline,
    PipelineError,
    PipelinePass,
    merge_neighbours,
    parse_pipeline,
)
from mind_mlir.tools.opt.pass_plan import (
    MLIRStep,
    NestedSteps,
    OurStep,
    check_pass_name,
    plan_passes,
    plan_pipeline,
)

OURS = "mind-schedule"


def plan(text: str, *, each: bool = False) -> list[str | tuple[object, ...]]:
    """Return the steps of a pipeline: names of ours, texts of MLIR's, tuples of what is nested."""
    with new_context():
        return [_plain(step) for step in plan_pipeline(text, each=each)]


def _plain(step: OurStep | MLIRStep | NestedSteps) -> str | tuple[object, ...]:
    if isinstance(step, NestedSteps):
        return (step.anchor, *map(_plain, step.steps))
    return step.name if isinstance(step, OurStep) else step.pipeline


@pytest.mark.parametrize(
    ("text", "elements"),
    [
        ("builtin.module()", ()),
        ("builtin.module( )", ()),
        ("builtin.module(a)", (PipelinePass("a"),)),
        ("builtin.module( a , b{x=1 y=2} )", (PipelinePass("a"), PipelinePass("b", "{x=1 y=2}"))),
        ("builtin.module(a {x=1})", (PipelinePass("a", "{x=1}"),)),
        ("builtin.module(c{p=a(x,y),q})", (PipelinePass("c", "{p=a(x,y),q}"),)),
        ('builtin.module(a{s="),"},b)', (PipelinePass("a", '{s="),"}'), PipelinePass("b"))),
        (
            "builtin.module(func.func(a,scf.for(b)),c)",
            (
                Pipeline("func.func", (PipelinePass("a"), Pipeline("scf.for", (PipelinePass("b"),)))),
                PipelinePass("c"),
            ),
        ),
    ],
)
def test_taking_a_pipeline_apart(text: str, elements: tuple[PipelinePass | Pipeline, ...]) -> None:
    assert parse_pipeline(text) == Pipeline("builtin.module", elements)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("builtin.module(a{x=1)", "missing '}'"),
        ("builtin.module(a(b)", "missing '\\)'"),
        ("builtin.module(a))", "unexpected '\\)'"),
        ('builtin.module(a{s="x})', "missing '\"'"),
        ("builtin.module(a,)", "expected the name of a pass"),
        ("builtin.module(,a)", "expected the name of a pass"),
        ("builtin.module(a;b)", "expected ',' or options in '{}' after 'a'"),
        ("builtin.module(a b)", "expected ',' or options in '{}' after 'a'"),
        ("a,b", "names the operation that it runs on"),
        ("", "names the operation that it runs on"),
        ("builtin.module(" + "func.func(" * 200 + ")" * 200 + ")", "nest more than 100 deep"),
    ],
)
def test_malformed_pipelines(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        parse_pipeline(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"builtin.module({OURS}{{x=1}})", "takes no options"),
        (f"builtin.module(func.func({OURS}))", "runs on a whole builtin.module, found it in 'func.func"),
        (f"func.func({OURS})", "runs on a whole builtin.module"),
        (f"builtin.module(cse,func.func(cse,scf.for({OURS}{{}})))", f"pass '{OURS}' runs on"),
        ("func.func(cse)", r"write 'builtin.module\(func.func\(cse\)\)'"),
        ("builtin.module(affine-loop-tile)", r"runs on a 'func.func'.*write 'func.func\(affine-loop-tile\)'"),
        ("builtin.module(cannonicalize)", "did you mean 'canonicalize'"),
        ("builtin.module(mind-shedule)", "did you mean 'mind-schedule'"),
        ("builtin.module(canonicalize{max-iteration=1})", "has no option .*did you mean 'max-iterations'"),
        ("builtin.module(cse{x=1})", "pass 'cse' has no option 'x'$"),
        (
            "builtin.module(canonicalize{max-iterations=x})",
            "cannot be given the options '{max-iterations=x}'",
        ),
    ],
)
def test_pipelines_that_cannot_run(text: str, message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        plan(text)


def test_a_pipeline_of_many_passes_is_taken_apart_in_linear_time() -> None:
    text = f"builtin.module({','.join(['func.func(a)', 'b'] * 20_000)})"
    assert len(parse_pipeline(text).elements) == 40_000
    same = parse_pipeline(f"builtin.module({','.join(['func.func(a)'] * 40_000)})")
    (merged,) = merge_neighbours(same.elements)
    assert merged == Pipeline("func.func", (PipelinePass("a"),) * 40_000)


def test_neighbours_of_mlir_are_one_step() -> None:
    assert plan(f"builtin.module(cse,sccp,{OURS},func.func(cse),symbol-dce)") == [
        "builtin.module(cse,sccp)",
        OURS,
        "builtin.module(func.func(cse),symbol-dce)",
    ]
    assert plan("any(cse)") == ["any(cse)"]
    assert plan("builtin.module()") == []


def test_every_pass_is_a_step_where_somebody_looks() -> None:
    text = f"builtin.module(func.func(cse),func.func(sccp),any(cse),{OURS},sccp)"
    assert plan(text, each=True) == [
        ("func.func", "func.func(cse)", "func.func(sccp)"),
        "builtin.module(any(cse))",
        OURS,
        "builtin.module(sccp)",
    ]


def test_a_named_pipeline_is_taken_apart() -> None:
    steps = plan("builtin.module(buffer-deallocation-pipeline)", each=True)
    assert len(steps) > 3
    assert all("pipeline" not in str(step) for step in steps)


def test_passes_for_functions_are_nested_where_they_are_given_one_by_one() -> None:
    with new_context():
        steps = plan_passes(
            [PipelinePass("cse"), PipelinePass("affine-loop-tile"), PipelinePass("affine-scalrep")],
            each=False,
        )
    assert [_plain(step) for step in steps] == [
        "builtin.module(cse,func.func(affine-loop-tile,affine-scalrep))"
    ]


def test_all_names_that_are_listed_are_registered() -> None:
    context = new_context()
    with context:
        for name in MLIR_PASSES:
            check_pass_name(name)
    for name in MLIR_DIALECTS:
        context.get_dialect_descriptor(name)
