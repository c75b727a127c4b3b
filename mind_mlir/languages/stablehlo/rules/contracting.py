"""Products: contractions in general, and convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.languages.stablehlo.rules.elementwise import converted, with_bits
from mind_mlir.languages.stablehlo.rules.use import Rule, Use
from mind_mlir.mlir.bindings import stablehlo
from mind_mlir.ops.accumulators import default_accumulator

if TYPE_CHECKING:
    from mind_mlir.ir.types import DType
    from mind_mlir.ir.value import Value


def product(
    use: Use,
    left: Value,
    right: Value,
    dtype: DType,
    contract: tuple[Sequence[int], Sequence[int]],
    batch: tuple[Sequence[int], Sequence[int]] = ((), ()),
) -> Value:
    """Append a contraction whose result has ``dtype``: of integers that do not fit, the lowest bits."""
    total = use.emit(
        "DotGeneral",
        left,
        right,
        batch_lhs=tuple(batch[0]),
        batch_rhs=tuple(batch[1]),
        contract_lhs=tuple(contract[0]),
        contract_rhs=tuple(contract[1]),
        **_dtypes(left.type.dtype, dtype),
    )
    return converted(use, total, dtype)


def _dtypes(source: DType, dtype: DType) -> dict[str, DType]:
    """Return what products of ``source`` accumulate in, and give, on their way to ``dtype``."""
    is_whole = source.is_integer and dtype.is_integer
    accumulator = default_accumulator(source)
    if dtype.bits > accumulator.bits:
        # Numbers of another sign would saturate on their way in.
        accumulator = with_bits(source, dtype.bits) if is_whole else dtype
    return {"accum_dtype": accumulator, "out_dtype": accumulator if is_whole else dtype}


def _dot_general(use: Use) -> Value:
    numbers = stablehlo().DotDimensionNumbers(use.attribute("dot_dimension_numbers"))
    contract = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    batch = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    return product(use, *_alike(use), use.result_type().dtype, contract, batch)


def _alike(use: Use) -> tuple[Value, Value]:
    """Return the factors, in one dtype that loses nothing that the result has of them."""
    left, right = use.operands
    dtypes = (left.type.dtype, right.type.dtype, use.result_type().dtype)
    if left.type.dtype is right.type.dtype:
        return left, right
    bits = max(dtype.bits for dtype in dtypes)
    if all(dtype.is_integer for dtype in dtypes):
        wider = with_bits(dtypes[-1], bits)
    else:
        wider = max(dtypes[:2], key=lambda dtype: dtype.bits)
    return converted(use, left, wider), converted(use, right, wider)


def _dot(use: Use) -> Value:
    left, right = _alike(use)
    return product(use, left, right, use.result_type().dtype, ((left.type.rank - 1,), (0,)))


def _convolution(use: Use) -> Value:
    """A Convolution, between transposes of its operands and of its result."""
    dims = stablehlo().ConvDimensionNumbers(use.attribute("dimension_numbers"))
    image, kernel = _alike(use)
    space = len(dims.input_spatial_dimensions)
    ones = (1,) * space
    image = use.transposed(
        image, (dims.input_batch_dimension, *dims.input_spatial_dimensions, dims.input_feature_dimension)
    )
    kernel = use.transposed(
        kernel,
        (
            *dims.kernel_spatial_dimensions,
            dims.kernel_input_feature_dimension,
            dims.kernel_output_feature_dimension,
        ),
    )
    turned = [axis for axis, turn in enumerate(use.integers("window_reversal", [0] * space)) if turn]
    kernel = use.reversed(kernel, turned)
    groups = use.integer("feature_group_count", 1)
    if (batches := use.integer("batch_group_count", 1)) > 1:
        image, groups = _batches_as_features(use, image, batches), batches
    low, high = zip(*use.pairs("padding", space), strict=True) if space else ((), ())
    dtype = use.result_type().dtype
    result = use.emit(
        "Convolution",
        image,
        kernel,
        strides=use.integers("window_strides", ones),
        padding_low=low,
        padding_high=high,
        base_dilation=use.integers("lhs_dilation", ones),
        window_dilation=use.integers("rhs_dilation", ones),
        groups=groups,
        **_dtypes(image.type.dtype, dtype),
    )
    order = [0] * (space + 2)
    places = (dims.output_batch_dimension, *dims.output_spatial_dimensions, dims.output_feature_dimension)
    for axis, place in enumerate(places):
        order[place] = axis
    return use.transposed(converted(use, result, dtype), order)


def _batches_as_features(use: Use, image: Value, groups: int) -> Value:
    """Append the parts of the batch as groups of features."""
    batch, *spatial, features = image.type.extents
    rank = image.type.rank
    parts = use.reshaped(image, (groups, batch // groups, *spatial, features))
    turned = use.transposed(parts, (*range(1, rank), 0, rank))
    return use.reshaped(turned, (batch // groups, *spatial, groups * features))


RULES: Mapping[str, Rule] = {
    "stablehlo.convolution": Rule(_convolution),
    "stablehlo.dot": Rule(_dot),
    "stablehlo.dot_general": Rule(_dot_general),
}
