"""Custom calls of numpy's LAPACK: eigenvalues and singular values of matrices.

`mind.eigh.v1`, `mind.eig.v1` and `mind.svd.v1` take matrices, a[batch, m, n]. As a C function has one result,
all that is computed for a matrix is a row of it, one part after the other, and ends with a number that is 0
where LAPACK succeeded; else the row is NaN but for that. Compiled code calls back into Python, so that no
file of compiled code can hold it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.ir.types import DType, TensorType
from mind_mlir.ops.custom_attributes import of_target, of_text
from mind_mlir.ops.custom_targets import CustomAttribute, CustomTarget
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

_DTYPES = (DType.F32, DType.F64, DType.CF32, DType.CF64)
_COMPLEX = {each.part: each for each in (DType.CF32, DType.CF64)}
_DTYPE = CustomAttribute("String", "the dtype of the matrices", choices=tuple(each.value for each in _DTYPES))
_FUNCTION = ctypes.CFUNCTYPE(
    None,
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_int64),
    ctypes.c_char_p,
)


def _eigh(matrix: Array, attributes: Mapping[str, Any]) -> Sequence[Array]:
    values, vectors = np.linalg.eigh(matrix, "L" if attributes["lower"] else "U")
    return vectors, values


def _eig(matrix: Array, attributes: Mapping[str, Any]) -> Sequence[Array]:
    values, right = np.linalg.eig(matrix)
    if not attributes["left"]:
        return values, np.zeros_like(right), right
    left = np.linalg.inv(right).conj().T
    return values, left / np.linalg.norm(left, axis=0), right


def _svd(matrix: Array, attributes: Mapping[str, Any]) -> Sequence[Array]:
    rows, columns = matrix.shape
    if attributes["vectors"]:
        return np.linalg.svd(matrix, full_matrices=attributes["full"])
    values = np.linalg.svd(matrix, compute_uv=False)
    left, right = _svd_sides(rows, columns, attributes)
    return np.zeros((rows, left)), values, np.zeros((right, columns))


def _svd_sides(rows: int, columns: int, attributes: Mapping[str, Any]) -> tuple[int, int]:
    least = min(rows, columns)
    return (rows, columns) if attributes["full"] else (least, least)


def _svd_length(rows: int, columns: int, attributes: Mapping[str, Any]) -> int:
    left, right = _svd_sides(rows, columns, attributes)
    return rows * left + min(rows, columns) + right * columns + 1


def _rows(
    compute: Callable[[Array, Mapping[str, Any]], Sequence[Array]],
    matrices: Array,
    attributes: Mapping[str, Any],
    result: Array,
) -> None:
    """Write what LAPACK finds for each matrix to a row of ``result``."""
    result[...] = np.nan
    result[:, -1] = 1
    for matrix, row in zip(matrices, result, strict=True):
        try:
            with np.errstate(all="ignore"):
                parts = compute(matrix, attributes)
        except np.linalg.LinAlgError:
            continue
        row[:-1] = np.concatenate([part.reshape(-1) for part in parts])
        row[-1] = 0


#: For each target: what it does, how long a row is, whether the result is complex, and its own attributes.
_TARGETS: Mapping[str, tuple[Any, Any, bool, Mapping[str, CustomAttribute], str]] = {
    "mind.eigh.v1": (
        _eigh,
        lambda rows, _columns, _attributes: rows * rows + rows + 1,
        False,
        {"lower": CustomAttribute("Bool", "whether the lower half is looked at", default=True)},
        "eigenvectors as columns and ascending eigenvalues of Hermitian matrices",
    ),
    "mind.eig.v1": (
        _eig,
        lambda rows, _columns, _attributes: rows + 2 * rows * rows + 1,
        True,
        {"left": CustomAttribute("Bool", "whether left eigenvectors are computed", default=False)},
        "eigenvalues, left and right eigenvectors as columns, of square matrices",
    ),
    "mind.svd.v1": (
        _svd,
        _svd_length,
        False,
        {
            "full": CustomAttribute("Bool", "whether both sides are square", default=True),
            "vectors": CustomAttribute("Bool", "whether singular vectors are computed", default=True),
        },
        "left singular vectors as columns, singular values and right singular vectors as rows",
    ),
}


@cache
def spectral_target(name: str) -> CustomTarget | None:
    """Return the target called ``name``, or None."""
    if name not in _TARGETS:
        return None
    compute, length, is_complex, attributes, doc = _TARGETS[name]
    types = partial(_types, length, is_complex, name != "mind.svd.v1")
    evaluate = partial(_evaluated, compute, types)

    def called(inputs: Any, outputs: Any, extents: Any, text: bytes) -> None:
        given = of_target(target, of_text(text.decode()))
        type_ = TensorType(DType(given["dtype"]), tuple(extents[:3]))
        result = types([type_], given)
        matrices, rows = _array(inputs[0], type_), _array(outputs[0], result)
        _rows(compute, matrices, given, rows)

    native = _FUNCTION(called)
    target = CustomTarget(
        name=name,
        doc=doc,
        attributes=FrozenDict({"dtype": _DTYPE, **attributes}),
        types=types,
        evaluate=evaluate,
        address=ctypes.cast(native, ctypes.c_void_p).value,
        keep=native,
    )
    return target


def _types(
    length: Any,
    is_complex: bool,
    is_square: bool,
    operands: Sequence[TensorType],
    attributes: Mapping[str, Any],
) -> TensorType:
    if len(operands) != 1 or operands[0].rank != 3 or operands[0].dtype not in _DTYPES:
        raise ValueError("it takes matrices of f32, f64, cf32 or cf64, with one dimension before theirs")
    (operand,) = operands
    batch, rows, columns = operand.extents
    if is_square and rows != columns:
        raise ValueError("its matrices are square")
    if attributes["dtype"] != operand.dtype.value:
        raise ValueError(f"its attribute dtype says {attributes['dtype']}")
    dtype = _COMPLEX.get(operand.dtype, operand.dtype) if is_complex else operand.dtype
    return TensorType(dtype, (batch, length(rows, columns, attributes)))


def _evaluated(compute: Any, types: Any, operands: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    (matrices,) = operands
    type_ = types([TensorType(DType(attributes["dtype"]), matrices.shape)], attributes)
    result = np.empty(type_.extents, type_.dtype.numpy)
    _rows(compute, matrices, attributes, result)
    return result


def _array(address: int, type_: TensorType) -> Array:
    size = type_.element_count * type_.dtype.itemsize
    found: Array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    return found.view(type_.dtype.numpy).reshape(type_.extents)
