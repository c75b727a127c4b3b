"""Runs single operations both ways, interpreted and compiled, on ordinary values and on awkward ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import guarded
import ml_dtypes
import numpy as np
from index_values import INDICES, indices_of

import mind_mlir
from mind_mlir import interpreter
from mind_mlir.builders.builder import Builder
from mind_mlir.ir.elements import limits, wide_integer
from mind_mlir.ir.module import Functions, Module
from mind_mlir.ir.profiles import ANY_PROFILE, CORE_FUNCTIONS, CORE_V1, PTIR, Profile
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.accumulation import summation_error, term_magnitudes
from mind_mlir.ops.complex_numbers import joined
from mind_mlir.ops.contexts import EvalContext, TypeContext
from mind_mlir.ops.example_types import parse_type
from mind_mlir.ops.infer import infer_types
from mind_mlir.ops.numbers import widened
from mind_mlir.ops.opdef import COMPLEX, Domain, Example, NotDifferentiable, OpDef, Rounding
from mind_mlir.ops.vjp import VjpContext

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mind_mlir.diagnostics import Diagnostic
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.value import Value

#: What multiplies elements: their product may underflow.
_PRODUCTS = ("ReduceProd", "Cumulate")


@dataclass(frozen=True)
class Use:
    """One operation with concrete operand types."""

    record: OpDef
    types: tuple[TensorType, ...]
    attributes: Mapping[str, Any]

    def __str__(self) -> str:
        operands = ", ".join(map(str, self.types))
        return f"{self.record.opcode} ({operands}) {dict(self.attributes)}"


def use_of(record: OpDef, example: Example, dtype: DType | None) -> Use:
    """Return one example with ``dtype`` for its ``T``."""
    return Use(record, tuple(parse_type(o, dtype) for o in example.operands), example.attributes)


def uses_of(record: OpDef, dtype: DType | None) -> list[Use]:
    """Return all examples of a record with ``dtype`` for their ``T``; broadcasting ones where Core has it.

    Of truth values and those that Core lacks, it is the examples that may be of them.
    """
    uses = [use_of(record, example, dtype) for example in record.examples]
    if dtype is DType.I1:
        return [use for use in uses if not findings(record, use.types, use.attributes)]
    if dtype is None or dtype in CORE_V1.dtypes:
        return uses
    return [use for use in uses if not findings(record, use.types, use.attributes, PTIR)]


# Values


def edge_values(dtype: DType) -> Array:
    """Return the awkward values of a dtype: extremes, zeros, infinities, NaN, subnormals."""
    if dtype is DType.I1:
        return np.array([False, True])
    if dtype.is_integer:
        least, greatest = limits(dtype)
        numbers = [0, 1, -1, 2, -7, least, least + 1, greatest, greatest - 1]
        exact = [each for each in numbers if least <= each <= greatest]
        return np.array(exact, wide_integer(dtype)).astype(dtype.numpy)
    if dtype in COMPLEX:
        parts = edge_values(dtype.part)
        return joined(np.repeat(parts, len(parts)), np.tile(parts, len(parts)))
    info: Any = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]  # ml_dtypes has none
    ends = [0.0, 1.0, 0.5, 3.0, info.smallest_subnormal, info.tiny, info.max, np.inf, np.nan]
    magnitudes = np.array([float(each) for each in ends]).astype(dtype.numpy)
    payload = np.array([np.nan], dtype.numpy)  # the bit next to the last one tells it from the NaN above
    if dtype is not DType.FP8_E4M3:
        payload.view(np.uint8)[0] |= 1
    positive = np.concatenate([magnitudes, payload])
    return np.concatenate([positive, -positive])


def random_operands(use: Use, rng: np.random.Generator) -> list[Array]:
    """Return ordinary operands, each in its operand's domain."""
    return [_random(use, index, type_, rng) for index, type_ in enumerate(use.types)]


def edge_operands(use: Use, rng: np.random.Generator) -> list[Array]:
    """Return operands sprinkled with awkward values, whatever the domain but for indices."""
    operands = []
    for index, type_ in enumerate(use.types):
        array = _random(use, index, type_, rng)
        domain = use.record.operand(index).domain
        if domain not in INDICES:
            values = edge_values(type_.dtype)
            if domain is Domain.NONZERO and type_.dtype.is_integer:
                values = values[widened(values) != 0]
            if use.record.rounding is Rounding.ACCUMULATING and not type_.dtype.is_integer:
                # Whether a sum of the largest numbers overflows on the way is a matter of its order.
                wide = widened(values)
                parts = [np.abs(part) for part in (wide.real, wide.imag)]
                values = values[np.all([~np.isfinite(part) | (part <= 3) for part in parts], axis=0)]
                if use.record.opcode in _PRODUCTS:  # nor whether one of the smallest underflows
                    small = np.abs(widened(values))
                    values = values[~((small > 0) & (small < 0.3))]
            share = 0.1 if use.record.rounding is Rounding.ACCUMULATING else 0.7
            chosen = rng.random(array.shape) < share
            array = np.where(chosen, values[rng.integers(0, len(values), array.shape)], array)
        operands.append(np.asarray(array, type_.dtype.numpy))
    return operands


def _random(use: Use, index: int, type_: TensorType, rng: np.random.Generator) -> Array:
    domain = use.record.operand(index).domain
    if domain in INDICES:
        return indices_of(domain, use.types, index, use.attributes, rng)
    return random_array(type_, domain, rng)


def random_array(type_: TensorType, domain: Domain, rng: np.random.Generator) -> Array:
    """Return ordinary numbers of ``type_`` in a domain other than that of indices."""
    shape, dtype = type_.extents, type_.dtype
    if dtype is DType.I1:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.is_integer:
        least, greatest = limits(dtype)
        integers = rng.integers(max(-50, least), min(50, greatest) + 1, shape)
        chosen = np.where(integers == 0, 7, integers) if domain is Domain.NONZERO else integers
        return np.asarray(chosen).astype(dtype.numpy)
    if dtype in COMPLEX:
        part = type_.with_dtype(dtype.part)
        return joined(random_array(part, domain, rng), random_array(part, Domain.ANY, rng))
    if domain is Domain.NONZERO:
        numbers = np.exp(rng.uniform(-2, 2, shape)) * rng.choice([-1, 1], shape)
    elif domain is Domain.POSITIVE:
        numbers = np.exp(rng.uniform(-2, 2, shape))
    else:
        numbers = rng.standard_normal(shape) * 2
    return np.asarray(numbers).astype(dtype.numpy)


# Running


def findings(
    record: OpDef,
    types: Sequence[TensorType],
    attributes: Mapping[str, Any],
    profile: Profile = ANY_PROFILE,
) -> list[Diagnostic]:
    """Return what the verifier finds wrong with one operation."""
    context = TypeContext(record.opcode, 7, tuple(types), attributes, profile=profile)
    result = infer_types(record, context)
    assert (result is None) == bool(context.diagnostics)
    return context.diagnostics


def type_of(array: Array) -> TensorType:
    """Return our type of a numpy array."""
    dtype = DType.from_numpy(array.dtype)
    assert dtype is not None
    return TensorType(dtype, array.shape)


def run_numpy(record: OpDef, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Return the one result of the record's numpy rule; as `run_numpy_all`."""
    (result,) = run_numpy_all(record, operands, attributes)
    return result


def run_numpy_all(
    record: OpDef, operands: Sequence[Array], attributes: Mapping[str, Any]
) -> tuple[Array, ...]:
    """Apply the record's numpy rule, and check that it keeps its promises about types and operands."""
    types = tuple(map(type_of, operands))
    context = TypeContext(record.opcode, 0, types, attributes, profile=ANY_PROFILE)
    result_types = infer_types(record, context)
    assert result_types is not None, context.diagnostics
    assert len(result_types) == len(record.results)
    given = [operand.copy() for operand in operands]
    for operand in given:
        operand.setflags(write=False)
    with np.errstate(all="ignore"):
        result = record.evaluate(
            EvalContext(
                record.opcode,
                "%0",
                tuple(given),
                context.attributes,
                result_types[0],
                result_types=result_types,
            )
        )
    results = results_of(result)
    for array, type_ in zip(results, result_types, strict=True):
        assert isinstance(array, np.ndarray)
        assert type_of(array) == type_
    return results


def results_of(result: Any) -> tuple[Array, ...]:
    """Return the arrays of what a numpy rule or `compile_uses` gives for a use: one, or several."""
    return result if isinstance(result, tuple) else (result,)


def build(uses: Sequence[Use]) -> Module:
    """Return a module that applies each use to inputs of its own, ``x<use>_<operand>``.

    It is a flat one, or where Core v1 refuses an operation a function, and a PTIR one where it lacks a dtype.
    """
    profile = profile_of(uses)
    flat = profile is CORE_V1
    builder = Builder(profile=profile.name)
    declare = builder.input if flat else lambda name, type_: builder.parameter(type_, name)
    inputs = [
        [_input(builder, declare, f"x{position}_{index}", type_) for index, type_ in enumerate(use.types)]
        for position, use in enumerate(uses)
    ]
    results = [
        result
        for use, values in zip(uses, inputs, strict=True)
        for result in builder.emit_all(use.record.opcode, *values, **use.attributes)
    ]
    if flat:
        return builder.build(results)
    return Module(Functions((builder.function("main", results),)), profile.name)


def profile_of(uses: Sequence[Use]) -> Profile:
    """Return the first profile that has all operations and dtypes of ``uses``."""
    dtypes = {type_.dtype for use in uses for type_ in use.types}
    dtypes |= {value for use in uses for value in use.attributes.values() if isinstance(value, DType)}
    if not dtypes <= {*CORE_V1.dtypes}:
        return PTIR
    return CORE_FUNCTIONS if any(use.record.opcode in CORE_V1.refused for use in uses) else CORE_V1


def _input(
    builder: Builder, declare: Callable[[str, TensorType], Value], name: str, type_: TensorType
) -> Value:
    """Declare an input; an empty tensor, which no input may be, is sliced from one."""
    declared = tuple(max(extent, 1) for extent in type_.extents)
    value = declare(name, type_.with_shape(declared))
    if declared == type_.extents:
        return value
    rank = type_.rank
    return builder.emit("Slice", value, starts=(0,) * rank, ends=type_.extents, steps=(1,) * rank)


def compile_uses(uses: Sequence[Use], opt_level: int = 3) -> Callable[[Sequence[Sequence[Array]]], list[Any]]:
    """Compile all uses into one function, and return one that takes the operands of each.

    That returns the result of each use, a tuple of them where the operation has several.
    """
    executable = mind_mlir.compile(build(uses), opt_level=opt_level)

    def call(operands: Sequence[Sequence[Array]]) -> list[Any]:
        arguments = {}
        for position, arrays in enumerate(operands):
            for index, array in enumerate(arrays):
                given = array if array.size else np.zeros([max(e, 1) for e in array.shape], array.dtype)
                arguments[f"x{position}_{index}"] = given
        results = iter(guarded.call_executable(executable, arguments))
        found = [tuple(islice(results, len(use.record.results))) for use in uses]
        return [each if len(each) > 1 else each[0] for each in found]

    return call


def run_compiled(record: OpDef, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Any:
    """Compile one operation for the types of ``operands`` and run it."""
    use = Use(record, tuple(map(type_of, operands)), attributes)
    (result,) = compile_uses([use])([operands])
    return result


def run_both(record: OpDef, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    """Return the numpy rule's one result, having checked that compiled code agrees with it."""
    (result,) = run_both_all(record, operands, attributes)
    return result


def run_both_all(
    record: OpDef, operands: Sequence[Array], attributes: Mapping[str, Any]
) -> tuple[Array, ...]:
    """Return the numpy rule's results, having checked that compiled code agrees with them."""
    expected = run_numpy_all(record, operands, attributes)
    compiled = run_compiled(record, operands, attributes)
    assert_agrees(record, compiled, expected, operands, attributes)
    return expected


def run_vjp(
    record: OpDef, operands: Sequence[Array], cotangent: Array, attributes: Mapping[str, Any]
) -> list[Array | None]:
    """Return the cotangents that the record's derivative rule gives, interpreted.

    Of several results, the first has ``cotangent`` and the others none.
    """
    assert not isinstance(record.derivative, NotDifferentiable)
    builder = Builder()
    values = tuple(builder.input(f"x{i}", type_of(operand)) for i, operand in enumerate(operands))
    seed = builder.input("seed", type_of(cotangent))
    results = builder.emit_all(record.opcode, *values, **attributes)
    complete = builder.operations[-1].attributes
    needs = tuple(value.type.dtype.is_float for value in values)
    context = VjpContext(builder, values, results[0], seed, complete, needs)
    if len(results) > 1:
        context = replace(context, results=results, cotangents=(seed, *(None for _ in results[1:])))
    cotangents = record.derivative(context)
    assert len(cotangents) == len(operands)
    module = builder.build([value for value in cotangents if value is not None])
    arguments = {f"x{i}": operand for i, operand in enumerate(operands)} | {"seed": cotangent}
    with np.errstate(all="ignore"):
        arrays = iter(interpreter.run(module, arguments))
    return [None if value is None else next(arrays) for value in cotangents]


# Comparing


def assert_agrees(
    record: OpDef,
    actual: Any,
    expected: Any,
    operands: Sequence[Array],
    attributes: Mapping[str, Any],
) -> None:
    """Check compiled results against the numpy rule's, as closely as the operation promises."""
    for left, right in zip(results_of(actual), results_of(expected), strict=True):
        _assert_agrees(record, left, right, operands, attributes)


def _assert_agrees(
    record: OpDef,
    actual: Array,
    expected: Array,
    operands: Sequence[Array],
    attributes: Mapping[str, Any],
) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    dtype = DType.from_numpy(expected.dtype)
    magnitude = None
    if dtype in COMPLEX:
        with np.errstate(all="ignore"):
            magnitude = np.abs(expected)[..., np.newaxis]
        actual, expected = (np.stack([each.real, each.imag], axis=-1) for each in (actual, expected))
        dtype = dtype.part
    if dtype is None or not dtype.is_float:
        np.testing.assert_array_equal(actual, expected)
        return
    actual, expected = widened(actual), widened(expected)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected), "NaNs differ")
    if record.rounding is Rounding.EXACT:
        np.testing.assert_array_equal(actual, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(
            np.signbit(actual)[numbers], np.signbit(expected)[numbers], "signs differ"
        )
        return
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite], "infinities differ")
    relative = dtype.tolerance
    if magnitude is None:
        magnitude = np.abs(expected)
    if record.terms is not None:
        terms = record.terms([o.shape for o in operands], attributes)
        # Narrow floats are summed in f32, and rounded.
        if dtype.bits < 32:
            relative += summation_error(terms, DType.F32)
        else:
            relative = summation_error(terms, dtype)
        # Rounding errors are relative to the sum of the terms' magnitudes, which cancellation may hide.
        found = widened(
            term_magnitudes(record, operands, attributes, lambda given: run_numpy(record, given, attributes))
        )
        magnitude = found.real[..., np.newaxis] if found.dtype.kind == "c" else found
    with np.errstate(all="ignore"):
        allowed = np.broadcast_to(relative * magnitude + dtype.format.smallest_subnormal, expected.shape)
        error = np.abs(actual.astype(np.float64) - expected)
        excess = np.asarray(error > allowed)[finite]
    assert not excess.any(), (
        f"{int(excess.sum())} of {expected.size} elements differ; largest error "
        f"{error[finite].max()} where {allowed[finite][np.argmax(error[finite])]} is allowed"
    )
