"""The builder of functions: regions, several results, copies, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mind_mlir import Builder, DType, Module, TensorType, VerificationError, verify
from mind_mlir.interpreter import run
from mind_mlir.ir.module import Functions
from mind_mlir.ops.contexts import Signature

if TYPE_CHECKING:
    from mind_mlir.builders.region import Region
    from mind_mlir.ir.value import Value

X = TensorType(DType.F32, (2,))
P = TensorType(DType.I1)
N = TensorType(DType.SI64)


def builder(**functions: Signature) -> Builder:
    return Builder(functions=functions, profile="core-functions")


def result(b: Builder, *values: Value, **arguments: Any) -> list[Any]:
    module = Module(Functions((b.function("main", values),)), "core-functions")
    arrays = {name: np.asarray(value) for name, value in arguments.items()}
    return [array.tolist() for array in run(verify(module), arrays, "main")]


def doubled(b: Builder, n: Value, x: Value) -> tuple[Value, ...]:
    """Return how often, and what, a loop doubles ``x``: n times."""
    with b.region([N, X]) as condition:
        i, y = condition.parameters
        condition.yield_([b.emit("Compare", i, n, op="Less"), i, y])
    with b.region([N, X]) as body:
        i, y = body.parameters
        body.yield_([b.emit("Add", i, b.constant(1, DType.SI64)), b.emit("Add", y, y)])
    return b.emit_all("While", b.constant(0, DType.SI64), x, regions=(condition, body))


def test_loops_and_branches_run() -> None:
    b = builder()
    n, x, p = b.parameter(N, "n"), b.parameter(X, "x"), b.parameter(P, "p")
    count, y = doubled(b, n, x)
    with b.region() as then:
        then.yield_(b.emit("Neg", y))
    with b.region() as otherwise:
        otherwise.yield_(y)
    z = b.emit_all("Cond", p, regions=(then, otherwise))[0]
    x_ = np.array([1, 2], np.float32)
    assert result(b, count, z, n=np.int64(3), x=x_, p=True) == [3, [-8, -16]]


def test_an_operation_of_one_result_with_regions_may_be_emitted_alone() -> None:
    b = builder()
    p, x = b.parameter(P, "p"), b.parameter(X, "x")
    with b.region() as then:
        then.yield_(x)
    with b.region() as otherwise:
        otherwise.yield_(b.emit("Add", x, x))
    y = b.emit("Cond", p, regions=(then, otherwise))
    assert y.type == X


def test_emit_refuses_several_results_and_appends_nothing() -> None:
    b = builder(f=Signature((X,), (X, X)))
    x = b.parameter(X, "x")
    with pytest.raises(ValueError, match="emit_all"):
        b.emit("Call", x, callee="f")
    assert not b.operations


def test_calls_are_checked_at_once() -> None:
    b = builder(f=Signature((X,), (X, N)))
    x, n = b.parameter(X, "x"), b.parameter(N, "n")
    assert [v.type for v in b.emit_all("Call", x, callee="f")] == [X, N]
    for operands, callee, code in (((n,), "f", "E2001"), ((), "f", "E2007"), ((x,), "g", "E4121")):
        with pytest.raises(VerificationError) as caught:
            b.emit_all("Call", *operands, callee=callee)
        assert caught.value.diagnostics[0].code == code


def test_a_value_of_a_region_is_not_visible_outside() -> None:
    b = builder()
    p, x = b.parameter(P, "p"), b.parameter(X, "x")
    with b.region([X]) as first:
        inner = b.emit("Neg", first.parameters[0])
        with b.region() as nested:
            innermost = b.emit("Neg", inner)
            nested.yield_(innermost)
        first.yield_(inner)
    with b.region() as second:
        for value in (inner, innermost, first.parameters[0]):
            with pytest.raises(VerificationError, match="of a region that has ended") as caught:
                second.yield_(value)
            assert caught.value.diagnostics[0].code == "E4001"
        second.yield_(x)
    with pytest.raises(VerificationError, match="of a region that has ended"):
        b.emit("Neg", inner)
    with pytest.raises(VerificationError, match="of a region that has ended") as caught:
        b.function("main", [inner])
    assert caught.value.diagnostics[0].code == "E4003"
    assert b.emit("Neg", x).type == X  # what is defined around it stays visible
    assert p.type == P


def test_ill_typed_regions_are_refused_at_once() -> None:
    b = builder()
    p, x, n = b.parameter(P, "p"), b.parameter(X, "x"), b.parameter(N, "n")
    with b.region() as then:
        then.yield_(x)
    with b.region() as otherwise:
        otherwise.yield_(n)
    with pytest.raises(VerificationError) as caught:
        b.emit_all("Cond", p, regions=(then, otherwise))
    assert caught.value.diagnostics[0].code == "E2001"
    with pytest.raises(VerificationError) as caught:
        b.emit_all("Cond", p, regions=(then,))
    assert caught.value.diagnostics[0].code == "E4120"


def test_a_region_belongs_to_one_operation_and_yields() -> None:
    b, other = builder(), builder()
    p, x = b.parameter(P, "p"), b.parameter(X, "x")
    regions = []
    for _ in range(2):
        with b.region() as region:
            region.yield_(x)
        regions.append(region)
    with b.region() as silent:
        pass
    with other.region() as foreign:
        foreign.yield_([])
    for wrong in ([regions[0], regions[0]], [regions[0], silent], [regions[0], foreign]):
        with pytest.raises(ValueError, match="each of regions"):
            b.emit_all("Cond", p, regions=wrong)
    b.emit_all("Cond", p, regions=regions)
    with pytest.raises(ValueError, match="no operation has yet"):
        b.emit_all("Cond", p, regions=regions)


@pytest.mark.parametrize("rubbish", [7, [7], "x", None])
def test_regions_of_another_kind_are_a_type_error(rubbish: Any) -> None:
    b = builder()
    p = b.parameter(P, "p")
    if rubbish is not None:
        with pytest.raises(TypeError, match="regions"):
            b.emit_all("Cond", p, regions=rubbish)
    with pytest.raises(TypeError, match="types"):
        b.region(rubbish)


def test_an_error_in_a_region_leaves_the_builder_outside() -> None:
    b = builder()
    x = b.parameter(X, "x")
    with pytest.raises(VerificationError), b.region():
        b.emit("Add", x)
    b.emit("Neg", x)
    assert [op.opcode for op in b.operations] == ["Neg"]


def test_aliases_of_the_profile_are_resolved() -> None:
    b = builder()
    x = b.parameter(X, "x")
    total = b.emit("tensor.sum_all", x)
    assert total.type == X.with_shape(())
    assert b.operations[-1].opcode == "Sum"
    with pytest.raises(VerificationError):
        Builder().emit("tensor.sum_all", x)


def test_copies_have_regions_of_their_own() -> None:
    b = builder()
    n, x = b.parameter(N, "n"), b.parameter(X, "x")
    doubled(b, n, x)
    loop = b.operations[-1]

    copier = builder()
    m, y = copier.parameter(N, "n"), copier.parameter(X, "x")
    zero = copier.constant(0, DType.SI64)
    around = {n.id: m}
    first = copier.copy_all(loop, [zero, y], around)
    second = copier.copy_all(loop, [zero, first[1]], around)
    x_ = np.array([1, 2], np.float32)
    assert result(copier, *second, n=np.int64(2), x=x_) == [2, [16, 32]]


def test_copies_of_deep_nests_do_not_recurse() -> None:
    b = builder()
    p, x = b.parameter(P, "p"), b.parameter(X, "x")
    open_: list[Region] = []
    for _ in range(3000):
        region = b.region()
        region.__enter__()
        open_.append(region)
    value = b.emit("Neg", x)
    while open_:
        region = open_.pop()
        region.yield_(value)
        region.__exit__(None, None, None)
        with b.region() as otherwise:
            otherwise.yield_(x)
        value = b.emit("Cond", p, regions=(region, otherwise))
    copier = builder()
    q, y = copier.parameter(P, "p"), copier.parameter(X, "x")
    (copied,) = copier.copy_all(b.operations[-1], [q], {p.id: q, x.id: y})
    assert copied.type == X
