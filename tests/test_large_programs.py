"""Programs with much of one kind: right, and compiled with work and code in proportion to their size.

Work is counted in calls of Python functions, which do not depend on the machine.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest

import mind_mlir
from benchmarks.large_programs import FAMILIES, products, repeated_output
from mind_mlir import differentiate, interpret, verify
from mind_mlir.ir.module import Functions
from mind_mlir.lowering.buffers.destination import pass_destinations
from mind_mlir.lowering.emission.constants import ROW_PROGRAM_GROUPS
from mind_mlir.lowering.functions import splitting as parts
from mind_mlir.lowering.pipeline import Lowering
from mind_mlir.mlir.bindings import func, ir
from mind_mlir.mlir.passes import find_all
from mind_mlir.passes.structure.inline import inline_calls
from mind_mlir.passes.structure.module import structure_function
from mind_mlir.target.abi import TABLE_ATTRIBUTE

if TYPE_CHECKING:
    from collections.abc import Callable

    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array
    from mind_mlir.mlir.bindings import Module as MLIRModule
    from mind_mlir.mlir.bindings import Operation


def arguments(module: Module) -> dict[str, Array]:
    rng = np.random.default_rng(5)
    return {
        name: rng.uniform(0.05, 0.1, op.tensor_type.extents).astype(op.tensor_type.dtype.numpy)
        for name, op in module.inputs_by_name.items()
    }


def check(module: Module) -> None:
    """Compile ``module`` and compare it with the interpreter."""
    given = arguments(module)
    for actual, expected in zip(mind_mlir.compile(module)(**given), interpret(module, given), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_large_programs_are_right(name: str) -> None:
    check(FAMILIES[name](700))


@pytest.mark.parametrize("count", [parts.MAX_BUFFERS - 2, parts.MAX_BUFFERS - 1, parts.MAX_BUFFERS])
def test_around_the_largest_number_of_arguments(count: int) -> None:
    check(FAMILIES["sum of inputs"](count))


def test_the_gradient_of_many_products_is_right() -> None:
    check(differentiate(products(30)).module)


def test_the_gradient_of_many_reductions_is_right() -> None:
    check(differentiate(FAMILIES["chained reductions"](200)).module)


def python_calls(action: Callable[[], object]) -> int:
    """Return how many Python functions ``action`` calls."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("name", FAMILIES)
def test_work_is_in_proportion_to_size(name: str) -> None:
    small, large = (FAMILIES[name](count) for count in (100, 200))
    Lowering().run(small)  # fills what is cached for good
    work = [python_calls(partial(Lowering().run, module)) for module in (small, large)]
    assert work[1] < 2.5 * work[0]


def functions_in_a_row(count: int) -> Module:
    """Return ``count`` functions, each of which calls the one before it, once."""
    head = "(%x: tensor<f32[3]>) -> (tensor<f32[3]>) {\n^entry:\n"
    texts = [f"internal func @f0 {head}  return %x\n}}"]
    for step in range(1, count + 1):
        name = "func @main" if step == count else f"internal func @f{step}"
        called = f"  %y = call @f{step - 1} (%x) : tensor<f32[3]>\n"
        texts.append(f"{name} {head}{called}  %z = Sub (%x, %y) : tensor<f32[3]>\n  return %z\n}}")
    module: Module = mind_mlir.parse("\n".join(texts))
    return module


@pytest.mark.parametrize("every", [False, True])
def test_functions_in_a_row_are_written_once(every: bool) -> None:
    small, large = (structured(functions_in_a_row(count)) for count in (100, 200))
    work = [python_calls(partial(inline_calls, module, every=every)) for module in (small, large)]
    assert work[1] < 2.5 * work[0]
    inlined = verify(inline_calls(large, every=every))
    assert [function.name for function in inlined.functions] == ["main"]
    assert len(inlined.functions["main"].entry.operations) == 200


def structured(module: Module) -> Module:
    """Return ``module`` in structured form, with its calls."""
    return replace(module, functions=Functions(map(structure_function, module.functions)))


def test_a_thousand_functions_in_a_row_are_right() -> None:
    module = functions_in_a_row(1000)
    argument = np.array([0.1, -0.0, 7.5], np.float32)
    (found,) = mind_mlir.compile(module)(argument)
    np.testing.assert_array_equal(found, interpret(module, {"x": argument})[0])


class Function(NamedTuple):
    """A function of the LLVM dialect: its arguments, how many operations, and pointers in its table."""

    arguments: list[str]
    size: int
    pointers: int | None


def lowered(module: Module, until: str) -> MLIRModule:
    lowering = Lowering()
    lowering.run(module, until=until)
    assert lowering.mlir is not None
    return lowering.mlir


def llvm_functions(module: Module) -> dict[str, Function]:
    found = lowered(module, "llvm")
    assert found.operation.verify()
    return {
        ir.StringAttr(op.attributes["sym_name"]).value: _described(op)
        for op in found.body.operations
        if op.operation.name == "llvm.func" and op.regions[0].blocks
    }


def _described(op: Operation) -> Function:
    arguments = [str(argument.type) for argument in op.regions[0].blocks[0].arguments]
    table = op.attributes[TABLE_ATTRIBUTE].value if TABLE_ATTRIBUTE in op.attributes else None
    return Function(arguments, sum(len(block.operations) for block in op.regions[0].blocks), table)


@pytest.mark.parametrize("name", FAMILIES)
def test_no_function_grows_with_the_program(name: str) -> None:
    functions = llvm_functions(FAMILIES[name](1000)).values()
    assert max(len(function.arguments) for function in functions) < 200
    assert max(function.size for function in functions) < 2000


def test_a_function_of_many_buffers_takes_a_table() -> None:
    main = llvm_functions(FAMILIES["inputs as outputs"](100))["main"]
    assert (main.arguments, main.pointers) == (["!llvm.ptr"], 201)
    few = llvm_functions(FAMILIES["chained reductions"](600))["main"]
    assert (few.arguments, few.pointers) == (["!llvm.ptr"] * 3, None)


def stage(module: Module, name: str) -> str:
    return str(lowered(module, name))


def test_an_output_that_is_listed_often_is_materialized_once() -> None:
    """Bufferization takes a time that is quadratic in how often that happens."""
    found = lowered(repeated_output(40), "scheduled")
    with found.context:
        pass_destinations(found, find_all(found, func.CallOp))
    assert str(found).count("bufferization.materialize_in_destination") == 1


@pytest.mark.parametrize("program", [products, lambda count: differentiate(products(count)).module])
def test_products_share_one_kernel(program: Callable[[int], Module]) -> None:
    few, many = (stage(program(count), "llvm") for count in (20, 60))
    tiles = [text.count("llvm.intr.fma") + text.count("llvm.fmul") for text in (few, many)]
    assert tiles[0] == tiles[1] > 0
    assert many.count("call @mind_product_") > 30


def test_shared_products_keep_layouts_apart() -> None:
    b = mind_mlir.Builder()
    x, w = (b.input(name, mind_mlir.TensorType(mind_mlir.DType.F32, (17, 17))) for name in "xw")
    outputs = []
    for step in range(40):
        factor = w if step % 2 else b.emit("Transpose", w, permutation=(1, 0))
        x = b.emit("MatMul", x, factor)
        outputs.append(x)
    check(b.build(outputs))


def test_shared_groups_keep_apart_what_differs() -> None:
    """Groups of the same operations, but with other constants, operands and uses of their results."""
    b = mind_mlir.Builder()
    x, y = (b.input(name, mind_mlir.TensorType(mind_mlir.DType.F32, (3, 18))) for name in "xy")
    outputs = []
    for step in range(60):
        left, right = (x, y) if step % 2 else (y, x)
        one = b.constant(0.5 + step % 3, mind_mlir.DType.F32)
        difference = b.emit("Sub", b.emit("Mul", left, one), right)
        total = b.emit("Sum", difference, axes=(step % 2,), keepdims=True)
        outputs += [b.emit("Mul", total, right)] + [difference] * (step % 5 == 0)
    check(b.build(outputs))


def test_nests_that_a_program_repeats_are_emitted_once() -> None:
    # Whole programs over rows: what is left of a chain, less than one of them, is a nest of its own.
    counts = (4 * ROW_PROGRAM_GROUPS, 8 * ROW_PROGRAM_GROUPS)
    few, many = (stage(FAMILIES["chained reductions"](count), "scheduled") for count in counts)
    assert few.count("vector.transfer_read") == many.count("vector.transfer_read") > 0
