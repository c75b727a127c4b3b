"""Calls between functions: the order of the called ones, and cycles, which are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.ir.analysis.call_graph import CallGraph, callee_of, operations_of
from mind_mlir.ir.module import Block, CoreOperation, Function, Return, Yield
from mind_mlir.ir.types import DType, TensorType

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue

F32 = TensorType(DType.F32)


def call(callee: AttributeValue, value: int = 0) -> CoreOperation:
    return CoreOperation.create(value, "Call", (), {"callee": callee}, F32)


def function(name: str, *operations: CoreOperation) -> Function:
    return Function(name, (Block(operations, Return(())),), result_types=())


def functions(**calls: str) -> CallGraph:
    return CallGraph.of([function(name, *map(call, callees.split())) for name, callees in calls.items()])


def names(graph: CallGraph) -> list[str]:
    return [function.name for function in graph.callees_first()]


def test_what_is_called_comes_first() -> None:
    assert names(functions(main="f g", f="h", g="h f", h="")) == ["h", "f", "g", "main"]
    assert names(functions(a="", b="", c="a")) == ["a", "b", "c"]


def test_functions_that_do_not_exist_are_left_out() -> None:
    graph = functions(main="f nowhere", f="")
    assert names(graph) == ["f", "main"]
    assert list(graph.calls["main"]) == ["f"]
    assert graph.cycles() == []


def test_recursion() -> None:
    assert functions(f="f").cycles() == [["f"]]
    assert functions(main="f", f="g", g="h f", h="f").cycles() == [["f", "g"]]
    assert functions(a="b", b="c", c="a", x="y", y="x a").cycles() == [["a", "b", "c"], ["x", "y"]]
    # The group holds a shorter cycle than the one through all of it.
    assert functions(a="b c", b="c", c="a").cycles() == [["a", "c"]]


def test_calls_in_regions_count() -> None:
    def region(*operations: CoreOperation) -> Block:
        return Block(operations, Yield(()))

    inner = CoreOperation.create(2, "Cond", (), {}, F32, regions=(region(call("g", 3)), region(call("h", 4))))
    outer = CoreOperation.create(1, "Cond", (), {}, F32, regions=(region(inner), region(call("k", 5))))
    f = function("f", outer, call("m", 6))
    assert [operation.value_id for operation in operations_of(f.blocks)] == [1, 2, 3, 4, 5, 6]
    graph = CallGraph.of([f, *map(function, "ghkm")])
    assert list(graph.calls["f"]) == ["g", "h", "k", "m"]


def test_what_calls_nothing() -> None:
    assert callee_of(call("f")) == "f"
    assert callee_of(call(3)) is None
    assert callee_of(CoreOperation.create(0, "Neg", (1,), {}, F32)) is None


def test_long_chains_and_cycles() -> None:
    count = 10_000
    chain = [function(f"f{i}", *([call(f"f{i + 1}")] if i + 1 < count else [])) for i in range(count)]
    graph = CallGraph.of(chain)
    assert names(graph) == [f"f{i}" for i in reversed(range(count))]
    assert graph.cycles() == []
    ring = CallGraph.of([*chain[:-1], function(f"f{count - 1}", call("f0"))])
    assert ring.cycles() == [[f"f{i}" for i in range(count)]]
