"""Compiled control flow computes what the interpreter does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from control_harness import agrees, compiled, module

from mind_mlir import Builder, DType, ExecutionError, TensorType
from mind_mlir.ops.contexts import Signature

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.module import Module
    from mind_mlir.ir.value import Value

N, P = TensorType(DType.SI64), TensorType(DType.I1)
EXTENTS = ((), (0,), (1,), (3,), (16,), (37,), (2, 5))


def f32(*shape: int) -> TensorType:
    return TensorType(DType.F32, shape)


def numbers(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    count = int(np.prod(shape))
    return (np.arange(1, count + 1).reshape(shape) / max(count, 1)).astype(dtype)


def counted(
    b: Builder,
    n: Value,
    inits: Sequence[Value],
    body: Callable[[Value, list[Value]], Sequence[Value]],
    op: str = "Less",
) -> list[Value]:
    """Append a loop that counts from 0 while that compares so with ``n``; return what else it carries."""
    types = [N, *(value.type for value in inits)]
    zero = b.constant(0, DType.SI64)
    with b.region(types) as condition:
        more = b.emit("Compare", condition.parameters[0], n, op=op)
        condition.yield_([more, *condition.parameters])
    with b.region(types) as step:
        i, *carried = step.parameters
        new = body(i, carried)
        step.yield_([b.emit("Add", i, b.constant(1, DType.SI64)), *new])
    return list(b.emit_all("While", zero, *inits, regions=[condition, step]))[1:]


def choose(b: Builder, p: Value, then: Callable[[], Value], otherwise: Callable[[], Value]) -> Value:
    with b.region() as first:
        first.yield_(then())
    with b.region() as second:
        second.yield_(otherwise())
    return b.emit_all("Cond", p, regions=[first, second])[0]


def loop_of(type_: TensorType, body: Callable[[Builder, Value, Value], Value]) -> Module:
    """A function that applies ``body``, given a captured value, ``n`` times to ``x``."""
    b = Builder()
    x, y, n = b.parameter(type_, "x"), b.parameter(type_, "y"), b.parameter(N, "n")
    return module(b.function("main", counted(b, n, [x], lambda _, c: [body(b, c[0], y)])))


@pytest.mark.parametrize("shape", EXTENTS)
def test_an_elementwise_update_of_any_shape_runs_any_number_of_times(shape: tuple[int, ...]) -> None:
    program = loop_of(f32(*shape), lambda b, x, y: b.emit("Add", b.emit("Mul", x, y), y))
    function = compiled(program)
    for n in (-1, 0, 1, 2, 9):
        agrees(function, {"x": numbers(shape), "y": numbers(shape), "n": np.int64(n)})


def test_an_elementwise_update_is_done_where_the_state_lies() -> None:
    program = loop_of(f32(64), lambda b, x, y: b.emit("Add", b.emit("Mul", x, y), y))
    text = compiled(program).forms["bufferized"]
    assert "mind.scratch_bytes = 0" in text
    assert text.count("memref.copy") == 1  # into the output, before the loop


def test_an_update_that_reads_other_elements_sees_the_old_ones() -> None:
    def body(b: Builder, x: Value, y: Value) -> Value:
        return b.emit("Add", b.emit("Transpose", x, permutation=[1, 0]), b.emit("Mul", x, y))

    function = compiled(loop_of(f32(5, 5), body))
    for n in (0, 1, 2, 5):
        agrees(function, {"x": numbers((5, 5)), "y": numbers((5, 5)), "n": np.int64(n)})


@pytest.mark.parametrize("dtype", [DType.I1, DType.SI32, DType.SI64, DType.F32, DType.F64])
def test_scalars_of_all_dtypes_are_carried_in_registers(dtype: DType) -> None:
    b = Builder()
    type_ = TensorType(dtype)
    x, y, n = b.parameter(type_, "x"), b.parameter(type_, "y"), b.parameter(N, "n")

    def body(_: Value, carried: list[Value]) -> list[Value]:
        first, second = carried
        new = b.emit("Xor", first, second) if dtype is DType.I1 else b.emit("Add", first, second)
        return [second, new]

    function = compiled(module(b.function("main", counted(b, n, [x, y], body))))
    loop = function.forms["linalg"].split("scf.for")[1].split("tensor.from_elements")[0]
    assert "tensor<" not in loop
    for count in (0, 1, 7):
        agrees(
            function, {"x": np.asarray(1, dtype.numpy), "y": np.asarray(1, dtype.numpy), "n": np.int64(count)}
        )


def test_carried_values_are_swapped() -> None:
    b = Builder()
    x, y, n = b.parameter(f32(9), "x"), b.parameter(f32(9), "y"), b.parameter(N, "n")
    results = counted(b, n, [x, y], lambda _, c: [c[1], b.emit("Sub", c[0], c[1])])
    function = compiled(module(b.function("main", results)))
    for count in (0, 1, 2, 3, 8):
        agrees(function, {"x": numbers((9,)), "y": numbers((9,)) + 1, "n": np.int64(count)})


def test_one_value_starts_two_that_are_carried_and_is_used_again() -> None:
    b = Builder()
    x, n = b.parameter(f32(9), "x"), b.parameter(N, "n")
    start = b.emit("Exp", x)
    first, second = counted(
        b, n, [start, start], lambda _, c: [b.emit("Add", c[0], c[1]), b.emit("Neg", c[1])]
    )
    function = compiled(module(b.function("main", [first, second, b.emit("Add", start, second)])))
    for count in (0, 1, 4):
        agrees(function, {"x": numbers((9,)), "n": np.int64(count)}, rtol=1e-6)


def nested() -> Module:
    """For i: for j below i: a branch on a carried flag, all on captured values."""
    b = Builder()
    x, y, n = b.parameter(f32(2, 3), "x"), b.parameter(f32(3), "y"), b.parameter(N, "n")

    def outer(i: Value, carried: list[Value]) -> list[Value]:
        def inner(j: Value, state: list[Value]) -> list[Value]:
            value, flag = state
            odd = b.emit("Compare", j, i, op="Equal")
            new = choose(
                b, flag, lambda: b.emit("Add", value, y), lambda: b.emit("Mul", value, b.emit("Add", x, y))
            )
            return [new, b.emit("Xor", flag, odd)]

        return counted(b, i, carried, inner, op="LessEqual")

    start = b.constant(True, DType.I1)
    return module(b.function("main", counted(b, n, [x, start], outer)))


def test_nested_loops_with_a_branch_inside() -> None:
    function = compiled(nested())
    for n in (0, 1, 2, 6):
        agrees(function, {"x": numbers((2, 3)), "y": numbers((3,)), "n": np.int64(n)})


@pytest.mark.parametrize("shape", EXTENTS)
def test_a_branch_in_a_loop_updates_or_leaves(shape: tuple[int, ...]) -> None:
    b = Builder()
    x, n = b.parameter(f32(*shape), "x"), b.parameter(N, "n")

    def body(i: Value, carried: list[Value]) -> list[Value]:
        (state,) = carried
        early = b.emit("Compare", i, b.constant(3, DType.SI64), op="Less")
        return [choose(b, early, lambda: b.emit("Add", state, state), lambda: state)]

    function = compiled(module(b.function("main", counted(b, n, [x], body))))
    for count in (0, 2, 5):
        agrees(function, {"x": numbers(shape), "n": np.int64(count)})


def test_products_of_a_state_and_a_captured_matrix() -> None:
    b = Builder()
    a, x, n = b.parameter(f32(6, 6), "a"), b.parameter(f32(6, 4), "x"), b.parameter(N, "n")

    def body(_: Value, carried: list[Value]) -> list[Value]:
        product = b.emit("MatMul", a, carried[0])
        scale = b.emit("Reciprocal", b.emit("Sum", b.emit("Mul", product, product), axes=[], keepdims=False))
        return [b.emit("Mul", product, scale), b.emit("Add", carried[1], scale)]

    zero = b.constant(0.0, DType.F32)
    function = compiled(module(b.function("main", counted(b, n, [x, zero], body))))
    for count in (0, 1, 4):
        agrees(function, {"a": numbers((6, 6)), "x": numbers((6, 4)), "n": np.int64(count)}, rtol=1e-4)


def test_work_that_is_the_same_each_time_is_done_before_the_loop() -> None:
    def body(b: Builder, x: Value, y: Value) -> Value:
        return b.emit("Add", x, b.emit("Exp", b.emit("MatMul", y, y)))

    function = compiled(loop_of(f32(5, 5), body))
    before, after = function.forms["linalg"].split("scf.for")
    assert "linalg.matmul" in before
    assert "linalg.exp" in before
    assert "linalg.matmul" not in after
    for n in (0, 1, 3):
        agrees(function, {"x": numbers((5, 5)), "y": numbers((5, 5)) / 8, "n": np.int64(n)}, rtol=1e-5)


def stack() -> Module:
    """Writes each state to a row of a carried stack, whose rows it reads again."""
    b = Builder()
    x, n = b.parameter(f32(8), "x"), b.parameter(N, "n")
    rows = b.emit("BroadcastTo", b.constant(0.0, DType.F32), result_shape=[5, 8])

    def body(i: Value, carried: list[Value]) -> list[Value]:
        state, whole = carried
        start = b.emit(
            "Pad", b.emit("Reshape", i, new_shape=[1]), low=[0], high=[1], interior=[0], pad_value=0
        )
        even = b.emit("Compare", b.emit("Mul", i, i), i, op="Greater")
        whole = choose(
            b,
            even,
            lambda: b.emit("DynamicUpdateSlice", whole, b.emit("Reshape", state, new_shape=[1, 8]), start),
            lambda: whole,
        )
        top = b.emit("Reshape", b.emit("DynamicSlice", whole, start, sizes=[1, 8]), new_shape=[8])
        return [b.emit("Add", b.emit("Add", state, top), x), whole]

    return module(b.function("main", counted(b, n, [x, rows], body)))


def test_a_carried_stack_is_written_in_place() -> None:
    function = compiled(stack())
    for n in (0, 1, 3, 9):
        agrees(function, {"x": numbers((8,)), "n": np.int64(n)})
    text = function.forms["bufferized"]
    loop, _ = text.split("} {mind.loop}")
    assert "memref<5x8xf32> to memref<5x8xf32>" not in loop  # no copy of the whole stack


# Calls.


def test_functions_call_functions_and_each_public_one_can_be_called() -> None:
    b = Builder()
    x, n = b.parameter(f32(4), "x"), b.parameter(N, "n")
    power = b.function("power", counted(b, n, [x], lambda _, c: [b.emit("Mul", c[0], x)]))
    signature = Signature((f32(4), N), (f32(4),))
    b = Builder(functions={"power": signature})
    y, n = b.parameter(f32(4), "y"), b.parameter(N, "n")
    (first,) = b.emit_all("Call", y, n, callee="power")
    (second,) = b.emit_all("Call", first, b.constant(2, DType.SI64), callee="power")
    main = b.function("main", [second, first, b.emit("Sum", second, axes=[], keepdims=False)])
    program = module(main, power)
    for count in (0, 1, 3):
        agrees(compiled(program), {"y": numbers((4,)), "n": np.int64(count)}, rtol=1e-6)
        agrees(compiled(program, "power"), {"x": numbers((4,)), "n": np.int64(count)})


def test_each_public_function_has_its_own_scratch_size() -> None:
    b = Builder()
    x = b.parameter(f32(64, 64), "x")
    product = b.emit("MatMul", x, x)
    large = b.function("main", [b.emit("MatMul", x, product)])
    b = Builder()
    small = b.function("small", [b.emit("Neg", b.parameter(f32(3), "x"))])
    program = module(large, small)
    sizes = [compiled(program, name).native.scratch_bytes for name in ("main", "small")]
    assert sizes[0] >= 64 * 64 * 4
    assert sizes[1] == 0


# Run-time checks.


def gathering(where: str) -> Module:
    """Gathers at ``i`` of a [4] in a loop, a branch of one, or a function called there; ends at ``n``."""
    signature = Signature((f32(4), N), (f32(),))
    b = Builder()
    a, k = b.parameter(f32(4)), b.parameter(N)
    read = b.function("read", [b.emit("Gather", a, k)], public=False)
    b = Builder(functions={"read": signature})
    x, n, s = b.parameter(f32(4), "x"), b.parameter(N, "n"), b.parameter(N, "step")
    types = [N, f32()]

    def gather(i: Value) -> Value:
        if where == "call":
            return b.emit_all("Call", x, i, callee="read")[0]
        return b.emit("Gather", x, i)

    with b.region(types) as condition:
        i, total = condition.parameters
        if where == "condition":
            total = b.emit("Add", total, gather(i))
        condition.yield_([b.emit("Compare", i, n, op="NotEqual"), i, total])
    with b.region(types) as body:
        i, total = body.parameters
        if where == "branch":
            large = b.emit("Compare", i, b.constant(1, DType.SI64), op="Greater")
            total = choose(b, large, lambda: b.emit("Add", total, gather(i)), lambda: total)
        elif where != "condition":
            total = b.emit("Add", total, gather(i))
        body.yield_([b.emit("Add", i, s), total])
    results = b.emit_all(
        "While", b.constant(0, DType.SI64), b.constant(0.0, DType.F32), regions=[condition, body]
    )
    main = b.function("main", results)
    return module(main, read) if where == "call" else module(main)


@pytest.mark.parametrize("where", ["body", "condition", "branch", "call"])
def test_a_check_that_fails_inside_ends_the_loop_and_is_reported(where: str) -> None:
    function = compiled(gathering(where))
    for n, step in ((0, 1), (3, 1), (4, 2), (-4, -1)):
        agrees(function, {"x": numbers((4,)), "n": np.int64(n), "step": np.int64(step)})
    for n, step in ((9, 1), (5, 2), (-5, 3), (1, 7)):  # the last three would not end in a lifetime
        with pytest.raises(ExecutionError, match="out of bounds for axis 0 with extent 4"):
            function({"x": numbers((4,)), "n": np.int64(n), "step": np.int64(step)})


def test_a_check_that_fails_before_a_loop_keeps_it_from_running_for_ever() -> None:
    """The clamped index gives a step of 0."""
    b = Builder()
    x, k = b.parameter(TensorType(DType.SI64, (3,)), "x"), b.parameter(N, "k")
    step = b.emit("Gather", x, k)
    with b.region([N]) as condition:
        (i,) = condition.parameters
        condition.yield_([b.emit("Compare", i, b.constant(10, DType.SI64), op="Less"), i])
    with b.region([N]) as body:
        body.yield_(b.emit("Add", body.parameters[0], step))
    results = b.emit_all("While", b.constant(0, DType.SI64), regions=[condition, body])
    function = compiled(module(b.function("main", results)))
    agrees(function, {"x": np.array([3, 4, 0]), "k": np.int64(1)})
    with pytest.raises(ExecutionError, match="index 7 is out of bounds"):
        function({"x": np.array([3, 4, 0]), "k": np.int64(7)})


def test_a_check_in_the_branch_that_is_not_taken_says_nothing() -> None:
    b = Builder()
    x, p, k = b.parameter(f32(3), "x"), b.parameter(P, "p"), b.parameter(N, "k")
    result = choose(b, p, lambda: b.emit("Gather", x, k), lambda: b.emit("Index", x, indices=[0]))
    function = compiled(module(b.function("main", [result])))
    for p_, k_ in ((True, 2), (False, 2), (False, 99)):
        agrees(function, {"x": numbers((3,)), "p": np.bool_(p_), "k": np.int64(k_)})
    with pytest.raises(ExecutionError, match="index 99"):
        function({"x": numbers((3,)), "p": np.bool_(True), "k": np.int64(99)})


def test_hoisted_work_fails_only_where_the_loop_runs() -> None:
    b = Builder()
    x, k, n = b.parameter(f32(3, 4), "x"), b.parameter(N, "k"), b.parameter(N, "n")
    start = b.emit("BroadcastTo", b.constant(0.0, DType.F32), result_shape=[4])
    results = counted(b, n, [start], lambda _, c: [b.emit("Add", c[0], b.emit("Gather", x, k))])
    function = compiled(module(b.function("main", results)))
    for k_, n_ in ((1, 3), (1, 0), (8, 0)):
        agrees(function, {"x": numbers((3, 4)), "k": np.int64(k_), "n": np.int64(n_)})
    with pytest.raises(ExecutionError, match="index 8"):
        function({"x": numbers((3, 4)), "k": np.int64(8), "n": np.int64(1)})


def test_integer_division_by_zero_ends_a_loop() -> None:
    b = Builder()
    x, d = b.parameter(N, "x"), b.parameter(N, "d")
    types = [N, N]
    with b.region(types) as condition:
        value, divisor = condition.parameters
        condition.yield_([b.emit("Compare", value, b.constant(0, DType.SI64), op="NotEqual"), value, divisor])
    with b.region(types) as body:
        value, divisor = body.parameters
        quotient = b.emit("Div", value, divisor)
        body.yield_([quotient, b.emit("Sub", divisor, b.constant(1, DType.SI64))])
    results = b.emit_all("While", x, d, regions=[condition, body])
    function = compiled(module(b.function("main", results)))
    agrees(function, {"x": np.int64(20), "d": np.int64(7)})
    with pytest.raises(ExecutionError, match="division of an integer by zero"):
        function({"x": np.int64(2**40), "d": np.int64(2)})


def test_a_million_iterations_take_no_memory_but_the_state() -> None:
    function = compiled(loop_of(f32(256), lambda b, x, y: b.emit("Mul", b.emit("Add", x, y), y)))
    assert function.native.scratch_bytes == 0
    arguments = {"x": numbers((256,)), "y": numbers((256,)) / 2, "n": np.int64(1_000_000)}
    (result,) = function(arguments, guard=False)
    assert np.all(np.isfinite(result))


def test_many_nests_in_a_loop_become_kernels_and_equal_ones_one() -> None:
    def body(b: Builder, x: Value, y: Value) -> Value:
        for _ in range(6):
            x = b.emit("Transpose", b.emit("Sub", x, b.emit("MatMul", x, y)), permutation=[1, 0])
        return x

    function = compiled(loop_of(f32(9, 9), body))
    kernels = [
        line for line in function.forms["llvm"].splitlines() if "llvm.func" in line and "_kernel_" in line
    ]
    assert 0 < len(kernels) < 6
    for n in (0, 1, 3):
        agrees(function, {"x": numbers((9, 9)), "y": numbers((9, 9)) / 9, "n": np.int64(n)}, rtol=1e-4)


@pytest.mark.parametrize(("m", "k", "n"), [(17, 9, 50), (3, 40, 33), (9, 64, 64), (1, 3, 2)])
def test_a_matrix_that_a_loop_does_not_change_is_packed_before_it(m: int, k: int, n: int) -> None:
    b = Builder()
    x, w, count = b.parameter(f32(m, k), "x"), b.parameter(f32(n, k), "w"), b.parameter(N, "n")
    zero = b.emit("BroadcastTo", b.constant(0.0, DType.F32), result_shape=[m, n])

    def body(_: Value, carried: list[Value]) -> list[Value]:
        product = b.emit("MatMul", carried[1], b.emit("Transpose", w, permutation=[1, 0]))
        return [b.emit("Add", carried[0], product), b.emit("Add", carried[1], x)]

    function = compiled(module(b.function("main", counted(b, count, [zero, x], body))))
    for trips in (0, 1, 3):
        agrees(function, {"x": numbers((m, k)), "w": numbers((n, k)), "n": np.int64(trips)}, rtol=1e-5)
    if m > 2:  # else sums along rows, without panels
        before, loop = function.forms["bufferized"].split(" : i64 {", 1)
        assert "call @mind_transpose_" in before
        assert "call @mind_transpose_" not in loop
        assert "call @mind_product_" in loop


GREATEST = 2**63 - 1


def counting(op: str, bound: int | None, step: int, *, mirrored: bool = False) -> Module:
    """Counts from ``start``; returns the counter and how often the body ran; the bound may be an argument."""
    b = Builder()
    start = b.parameter(N, "start")
    limit = b.parameter(N, "n") if bound is None else b.constant(bound, DType.SI64)
    with b.region([N, N]) as condition:
        i, trips = condition.parameters
        sides = (limit, i) if mirrored else (i, limit)
        condition.yield_([b.emit("Compare", *sides, op=op), i, trips])
    with b.region([N, N]) as body:
        i, trips = body.parameters
        one = b.constant(1, DType.SI64)
        body.yield_([b.emit("Add", i, b.constant(step, DType.SI64)), b.emit("Add", trips, one)])
    zero = b.constant(0, DType.SI64)
    return module(b.function("main", b.emit_all("While", start, zero, regions=[condition, body])))


@pytest.mark.parametrize(
    ("op", "bound", "step", "mirrored", "counts"),
    [
        ("Less", None, 1, False, True),
        ("Greater", None, 1, True, True),
        ("Less", 10, 3, False, True),
        ("LessEqual", 10, 3, False, True),
        ("GreaterEqual", 10, 4, True, True),
        ("Less", GREATEST, 1, False, True),
        ("LessEqual", GREATEST - 1, 1, False, True),
        ("Less", GREATEST - 2, 3, False, True),
        ("Less", GREATEST - 1, 3, False, False),  # steps past the greatest number, and then begins again
        ("LessEqual", None, 1, False, False),  # never ends if the bound is the greatest number
        ("Less", None, 2, False, False),
        ("NotEqual", None, 1, False, False),
        ("Greater", None, -1, False, False),
    ],
)
def test_loops_that_count_run_as_often_as_they_did(
    op: str, bound: int | None, step: int, mirrored: bool, counts: bool
) -> None:
    function = compiled(counting(op, bound, step, mirrored=mirrored))
    assert ("scf.for" in function.forms["linalg"]) is counts
    if bound is not None and not counts:
        return  # it may not end
    n = 10 if bound is None else bound
    for distance in (-3, 0, 1, 2, 3, 7):
        if op == "NotEqual" and distance < 0:
            continue
        arguments = {"start": np.int64(min(n - distance, GREATEST)), "n": np.int64(n)}
        agrees(function, arguments if bound is None else {"start": arguments["start"]})


def test_loops_nest_deeply() -> None:
    b = Builder()
    x, n = b.parameter(f32(3), "x"), b.parameter(N, "n")

    def nested_in(depth: int, state: Value) -> Value:
        if depth == 0:
            return b.emit("Add", state, x)
        return counted(b, n, [state], lambda _, c: [nested_in(depth - 1, c[0])])[0]

    function = compiled(module(b.function("main", [nested_in(20, x)])))
    for trips in (0, 1):
        agrees(function, {"x": numbers((3,)), "n": np.int64(trips)})


def test_what_is_computed_before_a_loop_may_be_handed_on_in_it() -> None:
    b = Builder()
    x, n = b.parameter(f32(6), "x"), b.parameter(N, "n")
    doubled = b.emit("Add", x, x)
    results = counted(b, n, [x], lambda _, c: [doubled])
    function = compiled(module(b.function("main", [*results, doubled])))
    for trips in (0, 1, 2):
        agrees(function, {"x": numbers((6,)), "n": np.int64(trips)})
