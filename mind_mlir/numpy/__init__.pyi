"""Functions for every operation. Written by `python -m mind_mlir.numpy.stub`; do not edit."""

from collections.abc import Sequence
from typing import Final, Literal

from ml_dtypes import (
    bfloat16 as bfloat16,
    float8_e4m3fn as float8_e4m3fn,
    float8_e5m2 as float8_e5m2,
    int4 as int4,
    uint4 as uint4,
)
from numpy import (
    bool_ as bool_,
    complex128 as complex128,
    complex64 as complex64,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int8 as int8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    uint8 as uint8,
)
from mind_mlir.numpy.arrays import (
    Array as Array,
    ArrayLike as ArrayLike,
    DTypeLike as DTypeLike,
)
from mind_mlir.numpy.assembling import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    column_stack as column_stack,
    diag as diag,
    diagonal as diagonal,
    diff as diff,
    dstack as dstack,
    fliplr as fliplr,
    flipud as flipud,
    hstack as hstack,
    meshgrid as meshgrid,
    trace as trace,
    vstack as vstack,
)
from mind_mlir.numpy.creation import (
    arange as arange,
    array as array,
    asarray as asarray,
    empty as empty,
    empty_like as empty_like,
    eye as eye,
    full as full,
    full_like as full_like,
    geomspace as geomspace,
    identity as identity,
    linspace as linspace,
    logspace as logspace,
    ones as ones,
    ones_like as ones_like,
    tri as tri,
    zeros as zeros,
    zeros_like as zeros_like,
)
from mind_mlir.numpy.einstein import (
    einsum as einsum,
)
from mind_mlir.numpy.elementwise import (
    abs as abs,
    absolute as absolute,
    astype as astype,
    clip as clip,
    divide as divide,
    equal as equal,
    floor_divide as floor_divide,
    greater as greater,
    greater_equal as greater_equal,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    mod as mod,
    not_equal as not_equal,
    remainder as remainder,
    right_shift as right_shift,
    square as square,
    true_divide as true_divide,
    trunc as trunc,
    where as where,
)
from mind_mlir.numpy.indexing import (
    take as take,
    take_along_axis as take_along_axis,
)
from mind_mlir.numpy.products import (
    convolve as convolve,
    correlate as correlate,
    cross as cross,
    dot as dot,
    inner as inner,
    kron as kron,
    matmul as matmul,
    outer as outer,
    tensordot as tensordot,
    vdot as vdot,
)
from mind_mlir.numpy.reductions import (
    all as all,
    amax as amax,
    amin as amin,
    any as any,
    argmax as argmax,
    argmin as argmin,
    argsort as argsort,
    count_nonzero as count_nonzero,
    cumprod as cumprod,
    cumsum as cumsum,
    max as max,
    mean as mean,
    min as min,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmin as nanmin,
    nanprod as nanprod,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
    prod as prod,
    sort as sort,
    std as std,
    sum as sum,
    top_k as top_k,
    var as var,
)
from mind_mlir.numpy.shaping import (
    broadcast_to as broadcast_to,
    concat as concat,
    concatenate as concatenate,
    expand_dims as expand_dims,
    flip as flip,
    moveaxis as moveaxis,
    pad as pad,
    permute_dims as permute_dims,
    ravel as ravel,
    repeat as repeat,
    reshape as reshape,
    roll as roll,
    split as split,
    squeeze as squeeze,
    stack as stack,
    swapaxes as swapaxes,
    tile as tile,
    transpose as transpose,
    tril as tril,
    triu as triu,
)
from mind_mlir.numpy.statistics import (
    average as average,
    bincount as bincount,
    corrcoef as corrcoef,
    cov as cov,
    histogram as histogram,
    interp as interp,
    median as median,
    percentile as percentile,
    ptp as ptp,
    quantile as quantile,
    searchsorted as searchsorted,
)
from mind_mlir.numpy.transcendental import (
    acos as acos,
    acosh as acosh,
    allclose as allclose,
    angle as angle,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctanh as arctanh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atanh as atanh,
    conj as conj,
    conjugate as conjugate,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    exp2 as exp2,
    fabs as fabs,
    fmax as fmax,
    fmin as fmin,
    hypot as hypot,
    imag as imag,
    isclose as isclose,
    log10 as log10,
    log2 as log2,
    logaddexp as logaddexp,
    nan_to_num as nan_to_num,
    polyval as polyval,
    rad2deg as rad2deg,
    radians as radians,
    real as real,
    sinh as sinh,
)
from mind_mlir.numpy import (
    fft as fft,
    linalg as linalg,
)

e: Final[float]
inf: Final[float]
nan: Final[float]
pi: Final[float]
newaxis: None

def add(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Adds two tensors elementwise, with broadcasting."""

def arctan2(y: ArrayLike, x: ArrayLike, /) -> Array:
    """Computes the angles of points elementwise, with broadcasting."""

def arg_sort(
    key: ArrayLike,
    /,
    *keys: ArrayLike,
    axis: int,
    indices_dtype: DTypeLike,
    descending: bool = False,
    total_order: bool = False,
) -> Array:
    """Computes where the elements of an axis lie in order: the first one, the second, and so on."""

def atan2(y: ArrayLike, x: ArrayLike, /) -> Array:
    """Computes the angles of points elementwise, with broadcasting."""

def bitcast(input: ArrayLike, /, *, dtype: DTypeLike) -> Array:
    """Takes the bits of a tensor as those of numbers of another dtype."""

def bitwise_and(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Computes the logical and of two tensors elementwise, with broadcasting."""

def bitwise_invert(input: ArrayLike, /) -> Array:
    """Computes the logical negation elementwise."""

def bitwise_left_shift(input: ArrayLike, amount: ArrayLike, /) -> Array:
    """Shifts the bits of integers to the left, elementwise with broadcasting."""

def bitwise_not(input: ArrayLike, /) -> Array:
    """Computes the logical negation elementwise."""

def bitwise_or(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Computes the logical or of two tensors elementwise, with broadcasting."""

def bitwise_xor(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Computes the logical xor of two tensors elementwise, with broadcasting."""

def cast(input: ArrayLike, /, *, dtype: DTypeLike) -> Array:
    """Converts a tensor to another dtype elementwise."""

def cbrt(input: ArrayLike, /) -> Array:
    """Computes the cube root elementwise."""

def ceil(input: ArrayLike, /) -> Array:
    """Rounds a tensor to integers elementwise: to the least integer that is not less."""

def clamp(x: ArrayLike, lo: ArrayLike, hi: ArrayLike, /) -> Array:
    """Holds a tensor between two others elementwise."""

def compare(
    lhs: ArrayLike,
    rhs: ArrayLike,
    /,
    *,
    op: Literal["Less", "LessEqual", "Equal", "GreaterEqual", "Greater", "NotEqual"],
) -> Array:
    """Compares two tensors elementwise."""

def complex_of(real: ArrayLike, imag: ArrayLike, /) -> Array:
    """Makes complex numbers of their parts elementwise."""

def conv2d(
    input: ArrayLike, filter: ArrayLike, /, *, strides: Sequence[int], padding: str | Sequence[Sequence[int]]
) -> Array:
    """Computes a two-dimensional convolution."""

def convolution(
    input: ArrayLike,
    filter: ArrayLike,
    /,
    *,
    strides: Sequence[int] = (),
    padding_low: Sequence[int] = (),
    padding_high: Sequence[int] = (),
    base_dilation: Sequence[int] = (),
    window_dilation: Sequence[int] = (),
    groups: int = 1,
    accum_dtype: DTypeLike | None = None,
    out_dtype: DTypeLike | None = None,
) -> Array:
    """Computes a convolution along any number of axes."""

def cos(input: ArrayLike, /) -> Array:
    """Computes the cosine elementwise."""

def count_leading_zeros(input: ArrayLike, /) -> Array:
    """Counts the bits of integers that are not set, in front of the first one that is, elementwise."""

def cumulate(
    input: ArrayLike,
    /,
    *,
    kind: Literal["Sum", "Prod", "Max", "Min"],
    axis: int,
    exclusive: bool = False,
    reverse: bool = False,
) -> Array:
    """Computes the sums, the products, the greatest or the least elements up to each one."""

def custom_call(*inputs: ArrayLike, target: str, attrs: str = "{}") -> Array:
    """Calls a function that is registered by name."""

def dequantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike,
    /,
    *,
    output_dtype: DTypeLike,
    axis: Sequence[int] = (),
) -> Array:
    """Turns quantized integers back into floats."""

def div(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Divides two tensors elementwise, with broadcasting."""

def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    /,
    *,
    batch_lhs: Sequence[int] = (),
    batch_rhs: Sequence[int] = (),
    contract_lhs: Sequence[int] = (),
    contract_rhs: Sequence[int] = (),
    accum_dtype: DTypeLike | None = None,
    out_dtype: DTypeLike | None = None,
) -> Array:
    """Computes sums of products of two tensors, over any of their dimensions."""

def dynamic_slice(input: ArrayLike, start: ArrayLike, /, *, sizes: Sequence[int]) -> Array:
    """Takes a window of a tensor, at a place known when the function runs."""

def dynamic_update_slice(operand: ArrayLike, update: ArrayLike, start: ArrayLike, /) -> Array:
    """Replaces a window of a tensor, at a place known when the function runs."""

def erf(input: ArrayLike, /) -> Array:
    """Computes the error function elementwise."""

def exp(input: ArrayLike, /) -> Array:
    """Computes the exponential elementwise."""

def expm1(input: ArrayLike, /) -> Array:
    """Computes the exponential less one elementwise."""

def extract_patches(
    input: ArrayLike,
    /,
    *,
    window: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    padding_low: Sequence[int],
    padding_high: Sequence[int],
    pad_value: float,
) -> Array:
    """Extracts sliding windows from a tensor whose last dimension are channels."""

def floor(input: ArrayLike, /) -> Array:
    """Rounds a tensor to integers elementwise: to the greatest integer that is not greater."""

def fmod(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Computes the remainders of divisions elementwise, with broadcasting."""

def gather(input: ArrayLike, indices: ArrayLike, /) -> Array:
    """Reads rows of a tensor at given indices."""

def gather_elements(input: ArrayLike, indices: ArrayLike, /, *, axis: int) -> Array:
    """Reads single elements along an axis at given positions."""

def gather_windows(
    operand: ArrayLike,
    indices: ArrayLike,
    /,
    *,
    offset_dims: Sequence[int],
    collapsed_slice_dims: Sequence[int],
    start_index_map: Sequence[int],
    index_vector_dim: int,
    slice_sizes: Sequence[int],
    operand_batching_dims: Sequence[int] = (),
    start_indices_batching_dims: Sequence[int] = (),
    checked: bool = False,
) -> Array:
    """Reads windows of a tensor at given positions."""

def index(input: ArrayLike, /, *, indices: Sequence[int]) -> Array:
    """Reads a single element, or where the profile allows it a row."""

def invert(input: ArrayLike, /) -> Array:
    """Computes the logical negation elementwise."""

def iota(*, shape: Sequence[int], dtype: DTypeLike, axis: int) -> Array:
    """Produces numbers that count along an axis."""

def is_finite(input: ArrayLike, /) -> Array:
    """Computes elementwise whether numbers are finite."""

def isfinite(input: ArrayLike, /) -> Array:
    """Computes elementwise whether numbers are finite."""

def layer_norm(
    x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, /, *, epsilon: float, feature_axis: int
) -> Array:
    """Computes features of mean 0 and variance 1, then scales and shifts them."""

def left_shift(input: ArrayLike, amount: ArrayLike, /) -> Array:
    """Shifts the bits of integers to the left, elementwise with broadcasting."""

def log(input: ArrayLike, /) -> Array:
    """Computes the natural logarithm elementwise."""

def log1p(input: ArrayLike, /) -> Array:
    """Computes the natural logarithm of one more than a number elementwise."""

def logistic(input: ArrayLike, /) -> Array:
    """Computes the logistic function elementwise."""

def maximum(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Computes the greater of two tensors elementwise, with broadcasting."""

def minimum(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Computes the lesser of two tensors elementwise, with broadcasting."""

def mul(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Multiplies two tensors elementwise, with broadcasting."""

def multiply(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Multiplies two tensors elementwise, with broadcasting."""

def neg(input: ArrayLike, /) -> Array:
    """Negates a tensor elementwise."""

def negative(input: ArrayLike, /) -> Array:
    """Negates a tensor elementwise."""

def population_count(input: ArrayLike, /) -> Array:
    """Counts the bits of integers that are set, elementwise."""

def pow(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Raises a tensor to powers elementwise, with broadcasting."""

def power(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Raises a tensor to powers elementwise, with broadcasting."""

def quantize(
    x: ArrayLike,
    scale: ArrayLike,
    zero_point: ArrayLike,
    /,
    *,
    output_dtype: DTypeLike,
    axis: Sequence[int] = (),
) -> Array:
    """Quantizes floats to integers of few bits."""

def quantized_matmul(
    x: ArrayLike,
    weights: ArrayLike,
    /,
    *parameters: ArrayLike,
    format: Literal["q8_0", "q4_0", "int8", "int4", "fp8"],
    activations: Literal["float", "int8"] = "float",
) -> Array:
    """Multiplies activations with weights of few bits, as they lie in memory."""

def reciprocal(input: ArrayLike, /) -> Array:
    """Computes the reciprocal elementwise."""

def reduce(
    input: ArrayLike,
    /,
    *,
    kind: Literal["Sum", "Max", "Min"],
    axes: Sequence[int],
    keepdims: bool = False,
    accum_dtype: DTypeLike | None = None,
    out_dtype: DTypeLike | None = None,
) -> Array:
    """Computes the sum, the greatest or the least element along axes."""

def reduce_bits(
    input: ArrayLike, /, *, axes: Sequence[int], kind: Literal["And", "Or", "Xor"], keepdims: bool = False
) -> Array:
    """Computes And, Or or Xor of the bits of elements along axes."""

def reduce_prod(input: ArrayLike, /, *, axes: Sequence[int], keepdims: bool = False) -> Array:
    """Computes the product of elements along axes."""

def reduce_window(
    input: ArrayLike,
    /,
    *,
    window_dims: Sequence[int],
    strides: Sequence[int],
    padding_low: Sequence[int],
    padding_high: Sequence[int],
    base_dilation: Sequence[int],
    window_dilation: Sequence[int],
    reduce: Literal["Sum", "Max", "Min"],
    accum_dtype: DTypeLike | None = None,
) -> Array:
    """Computes sums, the greatest or the least elements of sliding windows."""

def relu(input: ArrayLike, /) -> Array:
    """Computes the rectified linear unit elementwise."""

def requantize(
    x: ArrayLike,
    in_scale: ArrayLike,
    in_zero_point: ArrayLike,
    out_scale: ArrayLike,
    out_zero_point: ArrayLike,
    /,
    *,
    output_dtype: DTypeLike,
    axis: Sequence[int] = (),
) -> Array:
    """Turns quantized integers into ones of another scale, zero point or dtype."""

def rint(input: ArrayLike, /) -> Array:
    """Rounds a tensor to integers elementwise: to the nearest integer, of two the even one."""

def rng_normal(seed: ArrayLike, /, *, shape: Sequence[int], dtype: DTypeLike, stream: int) -> Array:
    """Draws numbers of the standard normal distribution."""

def rng_uniform(seed: ArrayLike, /, *, shape: Sequence[int], dtype: DTypeLike, stream: int) -> Array:
    """Draws uniformly distributed numbers."""

def round(input: ArrayLike, /) -> Array:
    """Rounds a tensor to integers elementwise: to the nearest integer, of two the even one."""

def round_even(input: ArrayLike, /) -> Array:
    """Rounds a tensor to integers elementwise: to the nearest integer, of two the even one."""

def round_half_away(input: ArrayLike, /) -> Array:
    """Rounds a tensor to integers elementwise: to the nearest integer, of two the one away from zero."""

def rsqrt(input: ArrayLike, /) -> Array:
    """Computes the reciprocal square root elementwise."""

def scatter_add(
    operand: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    /,
    *,
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    scatter_dims_to_operand_dims: Sequence[int],
    index_vector_dim: int,
    from_end: bool = True,
) -> Array:
    """Adds windows to a tensor at given indices."""

def scatter_reduce(
    operand: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    /,
    *,
    axis: int,
    reduce: Literal["Add", "Max", "Min", "Replace"],
) -> Array:
    """Combines elements with those of a tensor at given positions along an axis."""

def scatter_windows(
    operand: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    /,
    *,
    update_window_dims: Sequence[int],
    inserted_window_dims: Sequence[int],
    scatter_dims_to_operand_dims: Sequence[int],
    index_vector_dim: int,
    reduce: Literal["Add", "Mul", "Max", "Min", "Replace"],
    input_batching_dims: Sequence[int] = (),
    scatter_indices_batching_dims: Sequence[int] = (),
    checked: bool = False,
) -> Array:
    """Combines windows with those of a tensor at given positions, as far as these exist."""

def segment_reduce(
    values: ArrayLike,
    segment_ids: ArrayLike,
    /,
    *,
    kind: Literal["Sum", "Max"],
    num_segments: int,
    accum_dtype: DTypeLike | None = None,
    indices_are_sorted: bool = False,
    unique: bool = False,
) -> Array:
    """Computes sums or the greatest elements of rows by segment."""

def shift_left(input: ArrayLike, amount: ArrayLike, /) -> Array:
    """Shifts the bits of integers to the left, elementwise with broadcasting."""

def shift_right_arithmetic(input: ArrayLike, amount: ArrayLike, /) -> Array:
    """Shifts the bits of integers to the right, the first bit staying what it is, elementwise with broadcasting."""

def shift_right_logical(input: ArrayLike, amount: ArrayLike, /) -> Array:
    """Shifts the bits of integers to the right, zeros coming in, elementwise with broadcasting."""

def sign(input: ArrayLike, /) -> Array:
    """Computes the signs of numbers elementwise."""

def sin(input: ArrayLike, /) -> Array:
    """Computes the sine elementwise."""

def slice(input: ArrayLike, /, *, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> Array:
    """Takes every step-th element of a range on each axis."""

def sqrt(input: ArrayLike, /) -> Array:
    """Computes the square root elementwise."""

def stop_gradient(input: ArrayLike, /) -> Array:
    """Returns its operand, to which no gradient flows."""

def sub(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Subtracts two tensors elementwise, with broadcasting."""

def subtract(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Subtracts two tensors elementwise, with broadcasting."""

def tan(input: ArrayLike, /) -> Array:
    """Computes the tangent elementwise."""

def tanh(input: ArrayLike, /) -> Array:
    """Computes the hyperbolic tangent elementwise."""

def xor(lhs: ArrayLike, rhs: ArrayLike, /) -> Array:
    """Computes the logical xor of two tensors elementwise, with broadcasting."""
