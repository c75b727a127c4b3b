"""Helps the tests of derivatives through control flow: functions from Python, and finite differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mind_mlir import Builder, DType, Module, TensorType, canonicalize, differentiate, verify
from mind_mlir.interpreter import run
from mind_mlir.ir.module import Functions
from mind_mlir.passes.autodiff_functions import chosen_parameters, gradient_functions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.builders.region import Region
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Function
    from mind_mlir.ir.value import Value

F64, I64 = DType.F64, DType.SI64
SCALAR, INDEX, TRUTH = TensorType(F64), TensorType(I64), TensorType(DType.I1)
VECTOR = TensorType(F64, (3,))

Arrays = dict[str, "Array"]


def function_builder(**functions: Function) -> Builder:
    from mind_mlir.ops.contexts import Signature  # noqa: PLC0415 -- a test helper's own detail

    signatures = {
        name: Signature(
            tuple(parameter.tensor_type for parameter in function.parameters),
            tuple(type_ for type_ in function.result_types or () if isinstance(type_, TensorType)),
        )
        for name, function in functions.items()
    }
    return Builder(functions=signatures, profile="core-functions")


def module_of(*functions: Function) -> Module:
    return verify(Module(Functions(functions), "core-functions"))


def while_loop(
    b: Builder,
    initial: Sequence[Value],
    more: Callable[[Builder, list[Value]], Value],
    body: Callable[[Builder, list[Value]], list[Value]],
    given: Callable[[Builder, list[Value]], list[Value]] = lambda _, values: values,
) -> tuple[Value, ...]:
    """Emit a loop; ``given`` is what the condition passes on."""
    with b.region([value.type for value in initial]) as condition:
        passed = given(b, list(condition.parameters))
        condition.yield_([more(b, list(condition.parameters)), *passed])
    with b.region([value.type for value in passed]) as again:
        again.yield_(body(b, list(again.parameters)))
    return b.emit_all("While", *initial, regions=(condition, again))


def counted(
    b: Builder, count: Value, initial: Sequence[Value], body: Callable[[list[Value], Value], list[Value]]
) -> tuple[Value, ...]:
    """Emit a loop that runs ``count`` times; ``body`` is given the values and the number of the iteration."""

    def step(b: Builder, values: list[Value]) -> list[Value]:
        index, *rest = values
        return [b.emit("Add", index, b.constant(1, I64)), *body(rest, index)]

    zero = b.constant(0, I64)
    found = while_loop(b, [zero, *initial], lambda b, v: b.emit("Compare", v[0], count, op="Less"), step)
    return found[1:]


def branch(
    b: Builder, predicate: Value, then: Callable[[], list[Value]], otherwise: Callable[[], list[Value]]
) -> tuple[Value, ...]:
    """Emit a branch."""
    regions: list[Region] = []
    for side in (then, otherwise):
        with b.region() as region:
            region.yield_(side())
        regions.append(region)
    return b.emit_all("Cond", predicate, regions=regions)


def gradient_of(module: Module, wrt: Sequence[str], cotangents: str = "unit") -> Module:
    """Return the gradient module of function ``main``, verified; canonical form changes nothing in it."""
    word: Literal["unit", "given"] = "given" if cotangents == "given" else "unit"
    gradient = differentiate(module, wrt=wrt, cotangents=word).module
    assert canonicalize(gradient) == gradient
    return gradient


def gradient_with_calls(module: Module, wrt: Sequence[str], cotangents: str = "unit") -> Module:
    """Return the gradient module of ``main`` of a structured module: small functions stay functions."""
    main = module.functions["main"]
    modes = [cotangents] * len(main.result_types or ())
    chosen = chosen_parameters(main, wrt)
    return verify(gradient_functions(module, "main", chosen, modes, extensions=False))


def evaluate(module: Module, values: Arrays) -> list[Array]:
    return list(run(module, values, "main"))


def check_gradient(
    module: Module,
    values: Arrays,
    wrt: Sequence[str],
    step: float = 1e-6,
    rtol: float = 1e-6,
    differentiated: Callable[[Module, Sequence[str], str], Module] = gradient_of,
) -> Module:
    """Compare the gradient with central differences along random directions; return the gradient module.

    That is the inner-product identity, too: the cotangents of the results are random.
    """
    gradient = differentiated(module, wrt, "given")
    rng = np.random.default_rng(7)
    primal = evaluate(module, values)
    cotangents = [rng.standard_normal(np.shape(value)) for value in primal]
    names = [p.name for p in gradient.functions["main"].parameters][len(values) :]
    floats = [i for i, value in enumerate(primal) if value.dtype.kind == "f"]
    given = {str(n): np.asarray(cotangents[i]) for n, i in zip(names, floats, strict=True)}
    found = evaluate(gradient, {**values, **given})
    for expected, again in zip(primal, found, strict=False):
        np.testing.assert_array_equal(again, expected)
    for name, derivative in zip(wrt, found[len(primal) :], strict=True):
        direction: Any = rng.standard_normal(np.shape(values[name]))
        sides = [
            evaluate(module, {**values, name: np.asarray(values[name] + sign * step * direction)})
            for sign in (1, -1)
        ]
        slope = sum(np.sum((sides[0][i] - sides[1][i]) * cotangents[i]) / (2 * step) for i in floats)
        np.testing.assert_allclose(np.sum(derivative * direction), slope, rtol=rtol, atol=1e-8)
    return gradient


def array(value: Any) -> Any:
    """Return a number as an array of rank 0, or a list as one of its rank."""
    return np.array(value)
