"""The interpreter in functions with control flow: what runs, what is freed, and how deep it goes."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mind_mlir import Builder, DType, ExecutionError, TensorType, VerificationError
from mind_mlir.interpreter import run
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ops.contexts import Signature

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir.ir.module import Function
    from mind_mlir.ir.value import Value

P = TensorType(DType.I1)
N = TensorType(DType.SI64)
BIG = TensorType(DType.F32, (1 << 18,))


def module(*functions: Function) -> Module:
    return Module(Functions(functions), "core-functions")


def counted(
    b: Builder, n: Value, inits: list[Value], body: Callable[[list[Value]], list[Value]]
) -> list[Value]:
    """Append a loop that runs ``body`` n times, and return what is carried out of it."""
    types = [N, *(value.type for value in inits)]
    zero = b.constant(0, DType.SI64)
    with b.region(types) as condition:
        more = b.emit("Compare", condition.parameters[0], n, op="Less")
        condition.yield_([more, *condition.parameters])
    with b.region(types) as step:
        i, *carried = step.parameters
        new = body(carried)
        step.yield_([b.emit("Add", i, b.constant(1, DType.SI64)), *new])
    return list(b.emit_all("While", zero, *inits, regions=[condition, step]))[1:]


def fibonacci() -> Module:
    b = Builder()
    n = b.parameter(N, "n")
    one = b.constant(1, DType.SI64)
    results = counted(b, n, [b.constant(0, DType.SI64), one], lambda v: [v[1], b.emit("Add", v[0], v[1])])
    return module(b.function("main", results))


@pytest.mark.parametrize(("n", "expected"), [(0, (0, 1)), (1, (1, 1)), (10, (55, 89)), (-3, (0, 1))])
def test_a_loop_runs_while_its_condition_says_so(n: int, expected: tuple[int, int]) -> None:
    assert tuple(map(int, run(fibonacci(), {"n": np.int64(n)}))) == expected  # type: ignore[dict-item] # a scalar is taken


def test_a_branch_runs_one_region_and_reads_what_is_around_it() -> None:
    b = Builder()
    p, x = b.parameter(P, "p"), b.parameter(TensorType(DType.F32, (3,)), "x")
    with b.region() as then:
        then.yield_([b.emit("Index", x, indices=(1,)), x])
    with b.region() as otherwise:
        # Out of bounds, where it runs.
        otherwise.yield_([b.emit("Index", x, indices=(3,)), x])
    first, same = b.emit_all("Cond", p, regions=[then, otherwise])
    chosen = module(b.function("main", [first, same]))
    x_ = np.array([1, 2, 3], np.float32)
    one, all_ = run(chosen, {"p": np.array(True), "x": x_})
    assert (one.item(), all_.tolist()) == (2, [1, 2, 3])
    with pytest.raises(ExecutionError, match=r"Index %\d: index 3 is out of bounds") as caught:
        run(chosen, {"p": np.array(False), "x": x_})
    assert caught.value.code == "E6001"


def chain_of_calls(length: int) -> Module:
    """Return a module of functions, each of which adds 1 to what the next one returns."""
    functions = []
    for position in range(length):
        b = Builder(functions={f"f{position + 1}": Signature((N,), (N,))})
        x = b.parameter(N, "x")
        if position + 1 < length:
            (x,) = b.emit_all("Call", x, callee=f"f{position + 1}")
        name = f"f{position}" if position else "main"
        functions.append(b.function(name, [b.emit("Add", x, b.constant(1, DType.SI64))], public=not position))
    return module(*functions)


def test_calls_go_as_deep_as_there_are_functions() -> None:
    (result,) = run(chain_of_calls(5000), {"x": np.array(0)})
    assert result == 5000


def test_regions_go_as_deep_as_they_are_nested() -> None:
    b = Builder()
    p, x = b.parameter(P, "p"), b.parameter(N, "x")
    depth = 300
    regions = []
    for _ in range(depth):
        regions.append(b.region())
        regions[-1].__enter__()
    value = b.emit("Add", x, x)
    for region in reversed(regions):
        region.yield_([value])
        region.__exit__(None, None, None)
        with b.region() as otherwise:
            otherwise.yield_([x])
        (value,) = b.emit_all("Cond", p, regions=[region, otherwise])
    deep = module(b.function("main", [value]))
    assert [run(deep, {"p": np.array(p), "x": np.array(3)})[0] for p in (True, False)] == [6, 3]


def test_a_function_is_called_again_with_other_values() -> None:
    b = Builder()
    x = b.parameter(N, "x")
    inner = b.function("twice", [b.emit("Add", x, x)], public=False)
    b = Builder(functions={"twice": Signature((N,), (N,))})
    n = b.parameter(N, "n")
    (y,) = counted(
        b,
        n,
        [n],
        lambda v: list(b.emit_all("Call", *b.emit_all("Call", v[0], callee="twice"), callee="twice")),
    )
    (result,) = run(module(b.function("main", [y]), inner), {"n": np.array(3)})
    assert result == 3 * 4**3


def test_which_function_runs() -> None:
    def constant(name: str, number: int, *, public: bool = True) -> Function:
        b = Builder()
        return b.function(name, [b.constant(number, DType.SI64)], public=public)

    one, two, hidden = constant("one", 1), constant("main", 2), constant("hidden", 3, public=False)
    assert run(module(one, hidden), {})[0] == 1
    assert run(module(one, two, hidden), {})[0] == 2
    assert run(module(one, two, hidden), {}, "one")[0] == 1
    wrong = {"hidden": "E2101", "four": "E2002"}
    for name, code in wrong.items():
        with pytest.raises(VerificationError) as caught:
            run(module(one, two, hidden), {}, name)
        assert caught.value.code == code
    with pytest.raises(VerificationError) as caught:
        run(module(one, constant("three", 3), hidden), {})
    assert caught.value.code == "E2102"


def test_a_loop_holds_no_more_than_what_it_carries() -> None:
    """Each iteration makes four values of a mebibyte; at most the old state and two new ones live at once."""
    b = Builder()
    n, x = b.parameter(N, "n"), b.parameter(BIG, "x")

    def body(values: list[Value]) -> list[Value]:
        (value,) = values
        for _ in range(4):
            value = b.emit("Neg", value)
        return [value]

    loop = module(b.function("main", counted(b, n, [x], body)))
    gc.collect()
    tracemalloc.start()
    try:
        run(loop, {"n": np.array(50), "x": np.ones(1 << 18, np.float32)})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5 << 20
