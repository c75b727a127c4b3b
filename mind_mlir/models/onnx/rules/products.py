"""Products of matrices and tensors."""

from __future__ import annotations

import numpy as np

import mind_mlir.numpy as mnp
from mind_mlir.models.onnx.graphs.refusals import broken, unsupported
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule

#: Determinants of greater matrices would take too many operations, each row being written out.
_MAX_ROWS = 16


def _gemm(use: NodeUse) -> Array:
    x, y = use[0], use[1]
    if x.ndim != 2 or y.ndim != 2:
        broken(f"it multiplies arrays of rank {x.ndim} and {y.ndim}, no matrices")
    x = x.T if use.attr("transA", 0) else x
    y = y.T if use.attr("transB", 0) else y
    found = scaled(x @ y, use.attr("alpha", 1.0))
    if not use.has(2):
        return found
    return found + scaled(use[2], use.attr("beta", 1.0))


def scaled(x: Array, factor: float) -> Array:
    """Return the multiple of an array; of integers, with the factor rounded towards zero."""
    if factor == 1:
        return x
    return x * (int(factor) if x.dtype.kind in "iu" else factor)


def _einsum(use: NodeUse) -> Array:
    equation = use.needed("equation", str).replace(" ", "")
    operands = use.all()
    shown, arrow, result = equation.partition("->")
    terms = shown.split(",")
    if len(terms) != len(operands):
        broken(f"its equation '{equation}' is of {len(terms)} operands, not {len(operands)}")
    if "..." in equation:
        terms, result = _without_ellipsis(terms, result if arrow else None, [each.ndim for each in operands])
    elif not arrow:
        result = _implied(terms)
    operands = [_diagonal(term, each) for term, each in zip(terms, operands, strict=True)]
    terms = ["".join(dict.fromkeys(term)) for term in terms]
    return mnp.einsum(f"{','.join(terms)}->{result}", *operands)


def _implied(terms: list[str]) -> str:
    letters = "".join(terms)
    return "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))


def _without_ellipsis(terms: list[str], result: str | None, ranks: list[int]) -> tuple[list[str], str]:
    """Return an equation whose ellipses are letters of their own."""
    free = [chr(code) for code in range(ord("A"), ord("z") + 1) if chr(code).isalpha()]
    free = [letter for letter in free if letter not in "".join(terms)]
    counts = [rank - len(term) + 3 if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)]
    most = max(counts)
    if min(counts) < 0 or most > len(free):
        broken("its equation has more letters than its operands have axes")
    letters = "".join(free[:most])
    plain = [term.replace("...", letters[most - count :]) for term, count in zip(terms, counts, strict=True)]
    if result is None:
        return plain, letters + _implied([term.replace("...", "") for term in terms])
    return plain, result.replace("...", letters)


def _diagonal(term: str, x: Array) -> Array:
    """Return an operand whose axes have different letters: of equal ones, the diagonal."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            one = term.index(letter)
            two = term.index(letter, one + 1)
            rows = np.arange(x.shape[one])
            moved = mnp.moveaxis(x, (one, two), (0, 1))
            x = mnp.moveaxis(moved[rows, rows], 0, one)
            term = term[:two] + term[two + 1 :]
    return x


def _determinant(use: NodeUse) -> Array:
    """Return determinants, by elimination with the greatest pivot of each column."""
    x = use[0]
    size = x.shape[-1]
    if x.ndim < 2 or x.shape[-2] != size:
        broken(f"{list(x.shape)} are no square matrices")
    if size > _MAX_ROWS:
        unsupported(f"determinants of more than {_MAX_ROWS} rows")
    found = mnp.ones(x.shape[:-2], x.dtype)
    for at in range(size):
        below = abs(x[..., at:, at])
        pivot = below.argmax(axis=-1, keepdims=True) + at
        rows = mnp.iota(shape=(*x.shape[:-2], size), dtype="i64", axis=x.ndim - 2)
        order = mnp.where(rows == at, pivot, mnp.where(rows == pivot, mnp.full((), at, "i64"), rows))
        x = mnp.take_along_axis(x, mnp.broadcast_to(mnp.expand_dims(order, -1), x.shape), -2)
        head = x[..., at, at]
        moved = mnp.where(pivot[..., 0] == at, head, -head)
        found = found * moved
        factors = mnp.div(x[..., at + 1 :, at : at + 1], mnp.expand_dims(head, (-2, -1)))
        rest = (
            x[..., at + 1 :, :]
            - mnp.where(mnp.isnan(factors), mnp.zeros_like(factors), factors) * x[..., at : at + 1, :]
        )
        x = mnp.concatenate([x[..., : at + 1, :], rest], -2) if at + 1 < size else x
    return found


RULES = {
    "MatMul": OnnxRule(lambda use: use[0] @ use[1]),
    "Gemm": OnnxRule(_gemm),
    "Einsum": OnnxRule(_einsum),
    "Det": OnnxRule(_determinant),
}
