"""jax's calls of LAPACK, which stand in programs for processors: by programs of our own.

A call is named ``lapack_<letter><routine>_ffi``; the letter says the dtype, as the operands do. Its
attributes are letters' codes, as LAPACK has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mind_mlir.builders.compositions.factors import lu
from mind_mlir.builders.compositions.reflections import qr, reflected
from mind_mlir.builders.compositions.spectra import eig, eigh, svd
from mind_mlir.builders.compositions.triangular import cholesky_of, failure, triangular_solved
from mind_mlir.mlir.bindings import ir

if TYPE_CHECKING:
    from mind_mlir.ir.value import Value
    from mind_mlir.languages.stablehlo.rules.use import Use

_NAME = re.compile(r"lapack_([sdcz])([a-z0-9]+)_ffi")
#: What LAPACK calls the transposed and the adjoint matrix.
_TRANSPOSED = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def lapack_call(use: Use, target: str) -> Sequence[Value] | None:
    """Append what a call of LAPACK gives; None where there is no program for ``target``."""
    found = _NAME.fullmatch(target)
    routine = _ROUTINES.get(_same_routine(found[2])) if found else None
    if routine in (_syevd, _geev, _gesdd) and 0 in use.operands[0].shape:
        use.refuse("matrices without elements")
    return None if routine is None else routine(use)


def _same_routine(name: str) -> str:
    """Return a routine's name for real numbers."""
    return {"ungqr": "orgqr", "heevd": "syevd"}.get(name, name)


def letter(use: Use, name: str) -> str:
    """Return a letter among the attributes of a call."""
    config = ir.DictAttr(use.attribute("mhlo.backend_config"))
    return chr(ir.IntegerAttr(config[name]).value)


def _potrf(use: Use) -> Sequence[Value]:
    (matrix,) = use.operands
    factor = cholesky_of(use, matrix, lower=letter(use, "uplo") == "L")
    return factor, failure(use, factor)


def _trsm(use: Use) -> Sequence[Value]:
    matrix, right = use.operands
    if 0 in right.shape:
        return [right]
    return [
        triangular_solved(
            use,
            matrix,
            right,
            left_side=letter(use, "side") == "L",
            lower=letter(use, "uplo") == "L",
            unit=letter(use, "diag") == "U",
            transposed=_TRANSPOSED[letter(use, "trans_x")],
        )
    ]


def _syevd(use: Use) -> Sequence[Value]:
    return eigh(use, use.operands[0], lower=letter(use, "uplo") == "L")


def _geev(use: Use) -> Sequence[Value]:
    return eig(use, use.operands[0], left=letter(use, "compute_left") == "V")


def _gesdd(use: Use) -> Sequence[Value]:
    """LAPACK leaves nothing of use in the matrix, which is a result."""
    (matrix,), mode = use.operands, letter(use, "mode")
    left, right = use.result_type(2).extents, use.result_type(3).extents
    is_full = left[-1] == matrix.type.extents[-2] and right[-2] == matrix.type.extents[-1]
    one, values, other, info = svd(use, matrix, full=is_full, vectors=mode != "N")
    return matrix, values, one, other, info


_ROUTINES: Mapping[str, Callable[[Use], Sequence[Value]]] = {
    "geev": _geev,
    "geqrf": lambda use: qr(use, use.operands[0]),
    "gesdd": _gesdd,
    "getrf": lambda use: lu(use, use.operands[0]),
    "orgqr": lambda use: [reflected(use, *use.operands)],
    "potrf": _potrf,
    "syevd": _syevd,
    "trsm": _trsm,
}
