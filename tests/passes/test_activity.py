"""Through which values gradients flow."""

from __future__ import annotations

from control import F64, I64, INDEX, SCALAR, TRUTH, VECTOR, branch, counted, function_builder, module_of

from mind_mlir.passes.activity import Flow, summarise


def test_a_loop_hands_values_on_until_nothing_changes() -> None:
    """x flows into the third value after three iterations only; the fourth never gets anything."""
    b = function_builder()
    x, n, zero = b.parameter(SCALAR, "x"), b.parameter(INDEX, "n"), b.constant(0.0, F64)
    found = counted(b, n, [x, zero, zero, zero], lambda v, _: [v[0], v[0], v[1], v[3]])
    function = b.function("main", list(found))
    reached = Flow.of(function.entry, {}).reached_from([x.id])
    assert [value.id in reached for value in found] == [True, True, True, False]


def test_integers_and_comparisons_end_the_flow() -> None:
    b = function_builder()
    x = b.parameter(VECTOR, "x")
    whole = b.emit("Cast", b.emit("Cast", x, dtype="i64"), dtype="f64")
    less = b.emit("Compare", x, x, op="Less")
    chosen = b.emit("Select", less, whole, whole)
    function = b.function("main", [chosen])
    assert Flow.of(function.entry, {}).reached_from([x.id]) == {x.id}


def test_both_branches_flow_into_the_result() -> None:
    b = function_builder()
    p, x, y, z = (
        b.parameter(TRUTH, "p"),
        b.parameter(SCALAR, "x"),
        b.parameter(SCALAR, "y"),
        b.parameter(SCALAR, "z"),
    )
    (found,) = branch(b, p, lambda: [b.emit("Neg", x)], lambda: [y])
    b.emit("Exp", z)
    function = b.function("main", [found])
    flow = Flow.of(function.entry, {})
    reaching = flow.reaching([found.id])
    assert {x.id, y.id} < reaching
    assert z.id not in reaching
    assert found.id in flow.reached_from([y.id])


def test_summaries_of_functions_follow_calls() -> None:
    low = function_builder()
    x, y, n = low.parameter(SCALAR), low.parameter(SCALAR), low.parameter(INDEX)
    leaf = low.function("leaf", [low.emit("Neg", y), n, low.emit("Mul", x, y)], public=False)
    b = function_builder(leaf=leaf)
    u, v, m = b.parameter(SCALAR, "u"), b.parameter(SCALAR, "v"), b.parameter(INDEX, "m")
    first, second, third = b.emit_all("Call", u, v, m, callee="leaf")
    main = b.function("main", [third, second, first, b.constant(1, I64)])
    module_of(main, leaf)
    _, summaries = summarise([leaf, main])
    assert summaries["leaf"] == [(1, 0), (0, 2), (1, 2)]
    assert summaries["main"] == [(0, 0), (1, 0), (1, 2)]
