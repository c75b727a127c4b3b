"""Derivatives through branches, loops and calls, against finite differences and unrolled programs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from control import (
    F64,
    I64,
    INDEX,
    SCALAR,
    TRUTH,
    VECTOR,
    array,
    branch,
    check_gradient,
    counted,
    evaluate,
    function_builder,
    gradient_of,
    gradient_with_calls,
    module_of,
    while_loop,
)

import mind_mlir
from mind_mlir import DType, TensorType
from mind_mlir.interpreter import machine
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.ops import loop_state
from mind_mlir.ops.loop_state import room_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Builder, Module
    from mind_mlir.ir.value import Value

X = np.array([0.3, 0.5, 0.2])
A = np.array([0.9, 1.1, 0.7])

Body: TypeAlias = "Callable[[Builder, Value, Value, Value], Value]"


def opcodes(module: Module, function: str = "main") -> list[str]:
    return [op.opcode for op in operations_of(module.functions[function].blocks)]


def iterated(body: Body) -> Module:
    """Return x after n times ``body(builder, x, a, index)``."""
    b = function_builder()
    x, a, n = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a"), b.parameter(INDEX, "n")
    (y,) = counted(b, n, [x], lambda values, index: [body(b, values[0], a, index)])
    return module_of(b.function("main", [y]))


def give_room_for_eight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep and record 8 states."""
    for limit in ("_MOST", "_MANY_KEPT", "_MANY_RECORDED"):
        monkeypatch.setattr(loop_state, limit, 8)


def linear(b: Builder, x: Value, a: Value, _: Value) -> Value:
    return b.emit("Mul", x, a)


def logistic(b: Builder, x: Value, a: Value, _: Value) -> Value:
    return b.emit("Sub", x, b.emit("Mul", b.emit("Mul", x, x), a))


def indexed(b: Builder, x: Value, a: Value, index: Value) -> Value:
    """Scale by 1 + 0.1 * index: the index is a part of the state that the derivative needs."""
    scale = b.emit("Mul", b.emit("Cast", index, dtype="f64"), b.constant(0.1, F64))
    return b.emit("Mul", b.emit("Mul", x, a), b.emit("Add", scale, b.constant(1.0, F64)))


# Loops


@pytest.mark.parametrize("n", [0, 1, 2, 5, 30])
@pytest.mark.parametrize("body", [linear, logistic, indexed])
@pytest.mark.parametrize("wrt", [["x"], ["a"], ["x", "a"]])
def test_a_loop(n: int, body: Body, wrt: list[str]) -> None:
    check_gradient(iterated(body), {"x": X, "a": A, "n": array(n)}, wrt)


def test_a_linear_loop_needs_no_state() -> None:
    gradient = gradient_of(iterated(linear), ["x"])
    assert opcodes(gradient).count("While") == 2
    assert "DynamicUpdateSlice" not in opcodes(gradient)


@pytest.mark.parametrize("n", [7, 8, 9, 16, 64, 65, 359, 360, 361, 1500])
def test_a_long_loop_is_replayed_from_kept_states(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    give_room_for_eight(monkeypatch)  # chunks of 8 iterations: 45 chunks are replayed twice
    values = {"x": X, "a": A * 0.01, "n": array(n)}
    check_gradient(iterated(logistic), values, ["x", "a"])


@pytest.mark.parametrize(("n", "replays"), [(8, 0), (72, 1), (360, 2), (1320, 3)])
def test_no_iteration_is_replayed_more_often_than_promised(
    n: int, replays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is room for 8 states and 8 records: b(8, t) is 1, 9, 45 and 165 chunks of 8 iterations."""
    give_room_for_eight(monkeypatch)
    gradient = gradient_of(iterated(lambda b, x, a, _: b.emit("Neg", b.emit("Exp", b.emit("Neg", x)))), ["x"])
    counts: Counter[str] = Counter()
    store = machine._store

    def counting(step: Any, values: Any, result: Any) -> None:
        counts[step.operation.opcode] += 1
        store(step, values, result)

    monkeypatch.setattr(machine, "_store", counting)
    evaluate(gradient, {"x": X, "a": A, "n": array(n)})
    # Once by the loop itself, once by the record, once by the derivative, which reads the result of Exp.
    assert counts["Exp"] <= (3 + replays) * n
    assert counts["Exp"] > (3 + replays - 1) * n or replays == 0


@pytest.mark.parametrize("n", [0, 1, 6])
def test_a_loop_of_known_length_records_its_states(n: int) -> None:
    b = function_builder()
    x, a = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a")
    (y,) = counted(b, b.constant(n, I64), [x], lambda values, _: [logistic(b, values[0], a, a)])
    gradient = check_gradient(module_of(b.function("main", [y])), {"x": X, "a": A}, ["x", "a"])
    assert opcodes(gradient).count("While") == 2
    assert opcodes(gradient).count("DynamicUpdateSlice") == 1


def test_a_large_record_is_not_made() -> None:
    b = function_builder()
    x, a = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a")
    (y,) = counted(b, b.constant(10**9, I64), [x], lambda values, _: [logistic(b, values[0], a, a)])
    gradient = gradient_of(module_of(b.function("main", [y])), ["x"])
    sizes = [op.tensor_type.element_count for op in operations_of(gradient.functions["main"].blocks)]
    assert max(sizes) * 8 <= 2**20


def test_a_loop_whose_length_depends_on_the_data() -> None:
    """Newton's method for the square root: until x*x is near a."""
    b = function_builder()
    a = b.parameter(SCALAR, "a")
    half, one = b.constant(0.5, F64), b.constant(1.0, F64)

    def more(b: Builder, values: list[Value]) -> Value:
        error = b.emit("Sub", b.emit("Mul", values[0], values[0]), a)
        return b.emit("Compare", b.emit("Mul", error, error), b.constant(1e-20, F64), op="Greater")

    def body(b: Builder, values: list[Value]) -> list[Value]:
        (x,) = values
        return [b.emit("Mul", half, b.emit("Add", x, b.emit("Div", a, x)))]

    (root,) = while_loop(b, [one], more, body)
    module = module_of(b.function("main", [root]))
    gradient = gradient_of(module, ["a"])
    for value in (0.5, 2.0, 1000.0):
        found, derivative = evaluate(gradient, {"a": array(value)})
        np.testing.assert_allclose([found, derivative], [value**0.5, 0.5 * value**-0.5], rtol=1e-9)


def test_a_condition_that_computes_what_it_passes_on() -> None:
    """As a do-while loop: the work stands in the condition, whose last run gives the results."""
    b = function_builder()
    x, a = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a")

    def given(b: Builder, values: list[Value]) -> list[Value]:
        y = b.emit("Mul", b.emit("Exp", b.emit("Neg", values[0])), a)
        return [b.emit("Sum", y, axes=[0]), y, b.emit("Add", values[1], b.constant(1, I64))]

    def more(b: Builder, values: list[Value]) -> Value:
        return b.emit("Compare", values[1], b.constant(3, I64), op="Less")

    def body(b: Builder, values: list[Value]) -> list[Value]:
        return [b.emit("Mul", values[1], values[0]), values[2]]

    total, y, _ = while_loop(b, [x, b.constant(0, I64)], more, body, given)
    check_gradient(module_of(b.function("main", [total, y])), {"x": X, "a": A}, ["x", "a"])


def test_values_that_only_leave_the_loop() -> None:
    """One carried value is not read by the next iteration, another is never used."""
    b = function_builder()
    x, n = b.parameter(VECTOR, "x"), b.parameter(INDEX, "n")

    def body(values: list[Value], _: Value) -> list[Value]:
        state, _last, _unused = values
        following = b.emit("Mul", state, b.emit("Exp", b.emit("Neg", state)))
        return [following, b.emit("Mul", state, following), b.emit("Exp", following)]

    _, last, _ = counted(b, n, [x, x, x], body)
    module = module_of(b.function("main", [last]))
    for n_ in (0, 1, 4):
        check_gradient(module, {"x": X, "n": array(n_)}, ["x"])


def test_values_that_change_places() -> None:
    b = function_builder()
    x, a, n = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a"), b.parameter(INDEX, "n")

    def body(values: list[Value], _: Value) -> list[Value]:
        return [b.emit("Mul", values[1], values[0]), values[0]]

    found = counted(b, n, [x, a], body)
    module = module_of(b.function("main", list(found)))
    for n_ in (0, 1, 2, 7):
        check_gradient(module, {"x": X, "a": A, "n": array(n_)}, ["x", "a"])


def test_a_loop_that_yields_what_is_around_it() -> None:
    b = function_builder()
    x, a, n = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a"), b.parameter(INDEX, "n")
    (y,) = counted(b, n, [x], lambda _values, _index: [a])
    module = module_of(b.function("main", [b.emit("Mul", y, y)]))
    for n_ in (0, 1, 2):
        check_gradient(module, {"x": X, "a": A, "n": array(n_)}, ["x", "a"])


@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_state_of_truth_values_and_numbers_of_32_bits(n: int) -> None:
    """The derivative needs a flag and a small integer, which are replayed with the state."""
    b = function_builder()
    x, count = b.parameter(VECTOR, "x"), b.parameter(INDEX, "n")
    start = b.constant(3, DType.SI32)

    def body(values: list[Value], _: Value) -> list[Value]:
        state, flag, number = values
        scale = b.emit("Mul", b.emit("Cast", number, dtype="f64"), b.constant(0.2, F64))
        (chosen,) = branch(b, flag, lambda: [b.emit("Mul", state, state)], lambda: [b.emit("Exp", state)])
        return [b.emit("Mul", chosen, scale), b.emit("Not", flag), b.emit("Add", number, number)]

    (y, _, _) = counted(b, count, [x, b.constant(True, DType.I1), start], body)
    module = module_of(b.function("main", [y]))
    check_gradient(module, {"x": X * 0.1, "n": array(n)}, ["x"])


def test_loops_one_after_the_other() -> None:
    b = function_builder()
    x, a, n = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a"), b.parameter(INDEX, "n")
    value = x
    for _ in range(3):
        (value,) = counted(b, n, [value], lambda values, _: [logistic(b, values[0], a, n)])
        (value,) = counted(b, b.constant(3, I64), [value], lambda v, _: [logistic(b, v[0], a, n)])
    module = module_of(b.function("main", [value]))
    check_gradient(module, {"x": X, "a": A, "n": array(4)}, ["x", "a"])


def test_loops_in_the_condition() -> None:
    b = function_builder()
    x, a, n = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a"), b.parameter(INDEX, "n")

    def given(b: Builder, values: list[Value]) -> list[Value]:
        (inner,) = counted(b, n, [values[0]], lambda v, _: [logistic(b, v[0], a, n)])
        return [inner, values[1]]

    def more(b: Builder, values: list[Value]) -> Value:
        return b.emit("Compare", values[1], n, op="Less")

    def body(b: Builder, values: list[Value]) -> list[Value]:
        return [b.emit("Exp", b.emit("Neg", values[0])), b.emit("Add", values[1], b.constant(1, I64))]

    y, _ = while_loop(b, [x, b.constant(0, I64)], more, body, given)
    module = module_of(b.function("main", [y]))
    for count in (0, 1, 3):
        check_gradient(module, {"x": X, "a": A, "n": array(count)}, ["x", "a"])


@pytest.mark.parametrize("depth", [0, 1, 5])
@pytest.mark.parametrize("size", [0, 1, 1000, 2**20, 2**40])
def test_the_room_for_states_is_bounded(size: int, depth: int) -> None:
    room = room_for([TensorType(F64, (size,))], depth)
    assert 8 <= room.kept <= 1024
    assert 4 <= room.records <= 1024
    if 8 * size <= 2**20:
        assert (room.kept + room.records) * 8 * size <= 2**25 + 2**20


# Branches


def choosing() -> Module:
    b = function_builder()
    p, x, a = b.parameter(TRUTH, "p"), b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a")
    y = b.emit("Exp", x)
    first, second = branch(
        b, p, lambda: [b.emit("Mul", y, x), y], lambda: [b.emit("Mul", a, a), b.emit("Mul", y, y)]
    )
    return module_of(b.function("main", [b.emit("Mul", first, second)]))


@pytest.mark.parametrize("p", [True, False])
def test_a_branch(p: bool) -> None:
    check_gradient(choosing(), {"p": array(p), "x": X, "a": A}, ["x", "a"])


def test_what_the_other_branch_uses_has_gradient_zero() -> None:
    gradient = gradient_of(choosing(), ["a"])
    _, da = evaluate(gradient, {"p": array(True), "x": X, "a": A})
    assert not da.any()


@pytest.mark.parametrize("n", [0, 1, 6])
def test_nested_loops_with_a_branch_inside(n: int) -> None:
    b = function_builder()
    x, a, n_ = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a"), b.parameter(INDEX, "n")

    def inner(values: list[Value], index: Value) -> list[Value]:
        (state,) = values
        total = b.emit("Sum", state, axes=[0])
        large = b.emit("Compare", total, b.constant(0.8, F64), op="Greater")
        return list(
            branch(
                b,
                large,
                lambda: [b.emit("Sub", state, b.emit("Mul", b.emit("Mul", state, state), a))],
                lambda: [b.emit("Exp", b.emit("Mul", state, b.constant(0.3, F64)))],
            )
        )

    def outer(values: list[Value], index: Value) -> list[Value]:
        (state,) = counted(b, index, values, inner)
        return [b.emit("Mul", state, a)]

    module = module_of(b.function("main", list(counted(b, n_, [x], outer))))
    check_gradient(module, {"x": X, "a": A, "n": array(n)}, ["x", "a"])


# Calls


def with_calls() -> Module:
    leaf = function_builder()
    x, y = leaf.parameter(VECTOR), leaf.parameter(VECTOR)
    product = leaf.emit("Mul", x, leaf.emit("Exp", y))
    low = leaf.function("leaf", [product, leaf.emit("Sum", y, axes=[0])], public=False)

    middle = function_builder(leaf=low)
    x, y = middle.parameter(VECTOR), middle.parameter(VECTOR)
    product, total = middle.emit_all("Call", x, y, callee="leaf")
    again, _ = middle.emit_all("Call", product, x, callee="leaf")
    mid = middle.function("middle", [middle.emit("Mul", again, total)], public=False)

    b = function_builder(leaf=low, middle=mid)
    x, a, n = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a"), b.parameter(INDEX, "n")

    def body(values: list[Value], _: Value) -> list[Value]:
        scaled = b.emit("Mul", values[0], b.constant(0.1, F64))
        return [b.emit("Call", scaled, a, callee="middle")]

    (y,) = counted(b, n, [x], body)
    first, _ = b.emit_all("Call", y, a, callee="leaf")
    return module_of(b.function("main", [first]), low, mid)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("differentiated", [gradient_of, gradient_with_calls])
def test_calls_in_loops(n: int, differentiated: Any) -> None:
    values = {"x": X, "a": A, "n": array(n)}
    check_gradient(with_calls(), values, ["x", "a"], differentiated=differentiated)


def test_other_functions_are_dropped_and_what_is_called_is_internal() -> None:
    module = with_calls()
    b = function_builder()
    other = b.function("other", [b.parameter(VECTOR, "x")])
    gradient = gradient_with_calls(module_of(*module.functions, other), ["a"])
    assert [f.name for f in gradient.functions if f.public] == ["main"]
    assert {"leaf", "middle"} < {f.name for f in gradient.functions}
    assert "other" not in {f.name for f in gradient.functions}


def test_only_what_is_needed_of_a_callee_is_differentiated() -> None:
    gradient = gradient_with_calls(with_calls(), ["a"])
    for function in gradient.functions:
        if "_vjp" in function.name:
            assert len(function.result_types or ()) <= 2


def test_many_ways_to_call_a_function_share_a_derivative() -> None:
    """Of three arguments, every choice needs a gradient somewhere, and each of two results has one or not."""
    leaf = function_builder()
    x, y, z = leaf.parameter(SCALAR), leaf.parameter(SCALAR), leaf.parameter(SCALAR)
    product = leaf.emit("Mul", leaf.emit("Mul", x, y), z)
    low = leaf.function("leaf", [product, leaf.emit("Exp", leaf.emit("Add", product, x))], public=False)
    b = function_builder(leaf=low)
    p, q = b.parameter(SCALAR, "p"), b.parameter(SCALAR, "q")
    total = p
    for choice in range(1, 8):
        arguments = [p if choice >> place & 1 else q for place in range(3)]
        first, second = b.emit_all("Call", *arguments, callee="leaf")
        total = b.emit("Add", total, first if choice % 2 else b.emit("Mul", second, first))
    module = module_of(b.function("main", [total]), low)
    gradient = gradient_with_calls(module, ["p"])
    assert sum("_vjp" in function.name for function in gradient.functions) == 5
    values = {"p": array(0.7), "q": array(0.4)}
    check_gradient(module, values, ["p"], differentiated=gradient_with_calls)


# Gradients of gradients


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("body", [linear, logistic])
def test_second_derivatives_of_loops(n: int, body: Body) -> None:
    gradient = gradient_of(iterated(body), ["x"])
    check_gradient(gradient, {"x": X, "a": A, "n": array(n)}, ["x", "a"])


def test_second_derivatives_of_branches_and_calls() -> None:
    check_gradient(gradient_of(choosing(), ["x"]), {"p": array(True), "x": X, "a": A}, ["x", "a"])
    for differentiated in (gradient_of, gradient_with_calls):
        gradient = differentiated(with_calls(), ["x"])
        values = {"x": X, "a": A, "n": array(2)}
        check_gradient(gradient, values, ["x", "a"], differentiated=differentiated)


# Against the unrolled program


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("body", [linear, logistic])
def test_the_gradient_of_a_loop_is_that_of_the_unrolled_program(n: int, body: Body) -> None:
    b = function_builder()
    x, a = b.parameter(VECTOR, "x"), b.parameter(VECTOR, "a")
    value = x
    for index in range(n):
        value = body(b, value, a, b.constant(index, I64))
    unrolled = gradient_of(module_of(b.function("main", [value])), ["x", "a"])
    rolled = gradient_of(iterated(body), ["x", "a"])
    expected = evaluate(unrolled, {"x": X, "a": A})
    found = evaluate(rolled, {"x": X, "a": A, "n": array(n)})
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-14)


# Compiled


@pytest.mark.parametrize("n", [0, 1, 7, 1500])
def test_compiled_gradients_of_loops(n: int) -> None:
    values = {"x": X, "a": A * 0.01, "n": array(n)}
    for body in (linear, logistic):
        gradient = gradient_of(iterated(body), ["x", "a"])
        expected = evaluate(gradient, values)
        for found, wanted in zip(mind_mlir.compile(gradient)(**values), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_compiled_gradients_of_branches_and_calls() -> None:
    values = {"x": X, "a": A, "n": array(3)}
    for gradient in (gradient_of(with_calls(), ["x", "a"]), gradient_with_calls(with_calls(), ["x", "a"])):
        expected = evaluate(gradient, values)
        for found, wanted in zip(mind_mlir.compile(gradient)(**values), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
