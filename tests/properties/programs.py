"""The strategy of random programs, their arguments, and how close two runs of one must be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from growth import SMALL, Growth, InputDomain, Sizes, sample
from hypothesis import strategies as st
from recipes import CONSTANTS, RECIPES

from mind_mlir import print_module
from mind_mlir.builders.builder import Builder
from mind_mlir.interpreter import trace
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.accumulation import term_magnitudes
from mind_mlir.ops.contexts import EvalContext
from mind_mlir.ops.infer import complete_attributes
from mind_mlir.ops.opdef import ANY, Rounding
from mind_mlir.ops.registry import by_opcode

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from hypothesis.strategies import DrawFn

    from mind_mlir import CoreOperation, Module
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

#: Relative error that one inexact operation may have, well above what one has.
ROUNDING = {DType.F32: 2e-6, DType.F64: 4e-15}


@dataclass(frozen=True)
class Program:
    """A generated module, and what its inputs take."""

    module: Module
    domains: Mapping[str, InputDomain]

    def __repr__(self) -> str:
        return f"Program:\n{print_module(self.module)}"

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:  # what Hypothesis shows
        printer.text(repr(self))

    def arguments(self, seed: int, wild: bool = False) -> dict[str, Array]:
        """Return random arguments, in the domains of the inputs."""
        rng = np.random.default_rng(seed)
        return {
            str(op.attributes["name"]): sample(
                tensor(op), self.domains.get(str(op.attributes["name"]), InputDomain()), rng, wild
            )
            for op in self.module.inputs
        }


@st.composite
def programs(
    draw: DrawFn,
    opcodes: Collection[str] = frozenset(RECIPES),
    dtypes: Sequence[DType] = ANY,
    size: int = 10,
    wild: bool = False,
    empties: bool = True,
    sizes: Sizes = SMALL,
) -> Program:
    """Generate programs of up to ``size`` operations (and the inputs and constants they need).

    Args:
        draw: Given by Hypothesis.
        opcodes: What they are made of.
        dtypes: What dtypes they use, where operations leave a choice.
        size: The most operations.
        wild: Whether constants may be awkward and functions leave their domain.
        empties: Whether tensors without elements appear.
        sizes: What shapes they have.
    """
    growth = Growth(
        draw,
        draw(st.permutations(dtypes)),
        sizes,
        draw(st.lists(st.sampled_from(sizes.extents), min_size=1, max_size=3)),
        wild=wild,
        empties=empties,
        builder=Builder(next_id=draw(st.sampled_from([0, 0, 41]))),
    )
    names = [opcode for opcode in RECIPES if opcode in opcodes]
    names.sort(key=lambda opcode: opcode in CONSTANTS)  # the simplest choice is an operation
    for _ in range(draw(st.integers(1, size))):
        RECIPES[draw(st.sampled_from(names))](growth)
    return Program(growth.builder.build(_outputs(growth)), growth.domains)


def _outputs(growth: Growth) -> list[Value]:
    """Return the values that nothing reads, often, and any others."""
    read = {operand for operation in growth.builder.operations for operand in operation.operands}
    latest = growth.values[::-1]
    unread = [value for value in latest if value.id not in read]
    outputs = unread if growth.number(0, 3) < 3 else unread[:1]
    return outputs + growth.draw(st.lists(st.sampled_from(latest), max_size=3))


def tensor(operation: CoreOperation) -> TensorType:
    """Return the result type of an operation of a flat module."""
    assert isinstance(operation.result_type, TensorType)
    return operation.result_type


# Comparing


def same_bits(left: Array, right: Array) -> bool:
    """Return whether two results are equal bit for bit, except for the signs and payloads of NaNs."""
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.dtype.kind == "f":
        left, right = (np.where(np.isnan(array), np.nan, array) for array in (left, right))
    return left.tobytes() == right.tobytes()


def assert_same_bits(left: Sequence[Array], right: Sequence[Array]) -> None:
    for position, (a, b) in enumerate(zip(left, right, strict=True)):
        assert same_bits(a, b), f"output {position} differs:\n{a!r}\n{b!r}"


def allowed_errors(module: Module, arguments: Mapping[str, Array], runs: int = 6) -> list[Array]:
    """Return how much each element of each output may be off, by stochastic arithmetic.

    The module is interpreted several times, each time with every inexact operation off by its `ROUNDING` in
    random directions. An element may be off by a multiple of the largest deviation that this causes; one that
    does not stay finite may be off by anything. Elements that no rounding reaches must be exact.
    """
    reference = _run(module, arguments, None)
    allowed: list[Array] = [np.zeros(array.shape) for array in reference]
    for seed in range(runs):
        perturbed = _run(module, arguments, np.random.default_rng(seed))
        for position, (a, b) in enumerate(zip(reference, perturbed, strict=True)):
            if a.dtype.kind == "f":
                with np.errstate(all="ignore"):
                    deviation = np.abs(a.astype(np.float64) - b)
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                deviation = np.where(same, 0.0, np.where(np.isnan(deviation), np.inf, deviation))
                allowed[position] = np.maximum(allowed[position], 8 * deviation)
    return allowed


def assert_close(module: Module, arguments: Mapping[str, Array], actual: Sequence[Array]) -> None:
    """Check outputs of ``module`` against the interpreter, within what rounding explains."""
    expected, allowed = _run(module, arguments, None), allowed_errors(module, arguments)
    for position, (a, e, bound) in enumerate(zip(actual, expected, allowed, strict=True)):
        assert (a.dtype, a.shape) == (e.dtype, e.shape)
        if e.dtype.kind != "f":
            np.testing.assert_array_equal(a, e)
            continue
        with np.errstate(all="ignore"):
            near = np.abs(a.astype(np.float64) - e) <= bound
        equal = (a == e) & (np.signbit(a) == np.signbit(e) | (bound > 0)) | (np.isnan(a) & np.isnan(e))
        wrong = ~(near & (bound > 0) | equal | np.isinf(bound))
        assert not wrong.any(), f"output {position} differs at {np.argwhere(wrong)[:4].tolist()}:\n{a}\n{e}"


def _run(module: Module, arguments: Mapping[str, Array], rng: np.random.Generator | None) -> list[Array]:
    values: dict[int, Array] = {}
    for operation, array in trace(module, arguments, values):
        noisy = rng is not None and array.dtype.kind == "f"
        values[operation.value_id] = _perturb(operation, array, values, rng) if noisy and rng else array
    return [values[output] for output in module.outputs]


def _perturb(
    operation: CoreOperation, array: Array, values: Mapping[int, Array], rng: np.random.Generator
) -> Array:
    record = by_opcode()[operation.opcode]
    if record.rounding is Rounding.EXACT:
        return array
    magnitude = np.abs(array)
    if record.rounding is Rounding.ACCUMULATING:
        # Rounding is relative to the terms, which may cancel.
        attributes = complete_attributes(record, operation.attributes)

        def evaluated(terms: Sequence[Array]) -> Array:
            type_ = tensor(operation)
            context = EvalContext(operation.opcode, operation.label, tuple(terms), attributes, type_)
            return np.asarray(record.evaluate(context))

        with np.errstate(all="ignore"):
            operands = [values[operand] for operand in operation.operands]
            magnitude = term_magnitudes(record, operands, attributes, evaluated)
    dtype = tensor(operation).dtype
    # Of different sizes, or those of two operations would often cancel.
    sign = rng.choice([-1.0, 1.0], array.shape) * rng.uniform(0.5, 1.5, array.shape)
    with np.errstate(all="ignore"):
        off = array + sign * (ROUNDING[dtype] * magnitude + 4 * np.finfo(array.dtype).smallest_subnormal)
        # An exact sum (of one term, of zeros) stays exact where nothing rounds.
        return np.asarray(np.where(np.isfinite(array) & (magnitude > 0), off, array), array.dtype)


def finite(module: Module, arguments: Mapping[str, Array], limit: float = math.inf) -> bool:
    """Return whether every float value on the way is finite and at most ``limit`` in magnitude."""
    values: dict[int, Array] = {}
    for operation, array in trace(module, arguments, values):
        values[operation.value_id] = array
        if array.dtype.kind == "f" and array.size and not np.all(np.abs(array) <= limit):
            return False
    return True
