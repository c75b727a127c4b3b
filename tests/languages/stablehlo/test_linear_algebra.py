"""Cholesky, LU and QR factors and equations, as StableHLO's operations and as jax's calls of LAPACK."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import mind_mlir

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

_SPELLED = {"float32": "f32", "float64": "f64", "complex64": "complex<f32>", "int32": "i32"}
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c"}


def spelled(shape: tuple[int, ...], dtype: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, _SPELLED[dtype])))}>"


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape)
    if dtype.startswith("c"):
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


def positive(shape: tuple[int, ...], dtype: str) -> Array:
    half = random(shape, dtype)
    return (half @ half.conj().swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1])).astype(dtype)


def run(statement: str, arguments: list[Array], results: list[tuple[tuple[int, ...], str]]) -> list[Any]:
    """Run a program of one statement, compiled and interpreted; ``{operands}`` is filled in."""
    taken = [spelled(each.shape, each.dtype.name) for each in arguments]
    given = [spelled(*each) for each in results]
    operands = ", ".join(f"%a{number}" for number in range(len(arguments)))
    types = f"({', '.join(taken)}) -> ({', '.join(given)})"
    named = ", ".join(f"%a{number}: {type_}" for number, type_ in enumerate(taken))
    returned = ", ".join(f"%r#{number}" for number in range(len(given))) if len(given) > 1 else "%r"
    text = f"""
func.func public @main({named}) -> ({", ".join(given)}) {{
  %r{f":{len(given)}" if len(given) > 1 else ""} = {statement.format(operands=operands)} : {types}
  return {returned} : {", ".join(given)}
}}"""
    module = mind_mlir.from_stablehlo(text)
    found = mind_mlir.compile(module)(*arguments)
    again = mind_mlir.interpret(module, {f"arg{number}": each for number, each in enumerate(arguments)})
    for one, other in zip(found, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3 if one.dtype.itemsize <= 8 else 1e-10)
    return list(found)


def lapack(routine: str, dtype: str, **letters: str) -> str:
    """Return a call of LAPACK as jax writes it."""
    config = ", ".join(f"{name} = {ord(value)} : ui8" for name, value in letters.items())
    name = f"lapack_{_LETTERS[dtype]}{routine}_ffi"
    attributes = f'call_target_name = "{name}", mhlo.backend_config = {{{{{config}}}}}'
    return f'"stablehlo.custom_call"({{operands}}) {{{{{attributes}}}}}'


def near(dtype: str) -> float:
    return 1e-11 if dtype == "float64" else 2e-4


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 4, 4), (70, 70)])
def test_cholesky_factors(shape: tuple[int, ...], dtype: str) -> None:
    matrix = positive(shape, dtype)
    expected = np.linalg.cholesky(matrix)
    above = np.triu(np.full(shape, np.nan), 1)  # what is not looked at may be anything
    given = np.where(np.isnan(above), above, matrix).astype(dtype)
    (found,) = run('"stablehlo.cholesky"({operands}) {{lower = true}}', [given], [(shape, dtype)])
    np.testing.assert_allclose(found, expected, atol=near(dtype))
    upper, info = run(lapack("potrf", dtype, uplo="U"), [matrix], [(shape, dtype), (shape[:-2], "int32")])
    np.testing.assert_allclose(upper, expected.conj().swapaxes(-1, -2), atol=near(dtype))
    assert not info.any()


def test_what_has_no_cholesky_factor_says_where() -> None:
    matrix = np.diag(np.array([1, 1, -1, 1], np.float32))
    found, info = run(lapack("potrf", "float32", uplo="L"), [matrix], [((4, 4), "float32"), ((), "int32")])
    assert info == 3
    assert np.isnan(found[2, 2])


@pytest.mark.parametrize("transposed", ["N", "T", "C"])
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("side", ["L", "R"])
def test_triangular_equations(side: str, uplo: str, transposed: str) -> None:
    dtype = "complex64"
    for size, diag in ((3, "U"), (70, "N")):
        matrix = (random((size, size), dtype) / size + 2 * np.eye(size)).astype(dtype)
        half = np.tril(matrix) if uplo == "L" else np.triu(matrix)
        if diag == "U":
            np.fill_diagonal(half, 1)
        turned = {"N": half, "T": half.T, "C": half.conj().T}[transposed]
        right = random((size, 5) if side == "L" else (5, size), dtype, 1)
        call = lapack("trsm", dtype, side=side, uplo=uplo, diag=diag, trans_x=transposed)
        (found,) = run(call, [matrix, right], [(right.shape, dtype)])
        product = turned @ found if side == "L" else found @ turned
        np.testing.assert_allclose(product, right, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 4), (70, 90)])
def test_lu_factors(shape: tuple[int, ...], dtype: str) -> None:
    matrix = random(shape, dtype)
    least = min(shape[-2:])
    results = [(shape, dtype), ((*shape[:-2], least), "int32"), (shape[:-2], "int32")]
    found, pivots, info = run(lapack("getrf", dtype), [matrix], results)
    assert not info.any()
    matrices, factors = (each.reshape(-1, *shape[-2:]) for each in (matrix, found))
    for one, both, exchanged in zip(matrices, factors, pivots.reshape(-1, least), strict=True):
        rows = list(range(shape[-2]))
        for row, other in enumerate(exchanged - 1):
            rows[row], rows[other] = rows[other], rows[row]
        lower = np.tril(both, -1)[:, :least] + np.eye(shape[-2], least)
        np.testing.assert_allclose(lower @ np.triu(both)[:least], one[rows], atol=near(dtype))
        assert np.abs(np.tril(both, -1)).max() <= 1.5  # the greatest of each column is its pivot


def test_a_singular_matrix_says_which_pivot_is_zero() -> None:
    ones = np.ones((3, 3), np.float32)
    *_, info = run(lapack("getrf", "float32"), [ones], [((3, 3), "float32"), ((3,), "int32"), ((), "int32")])
    assert info == 2


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (2, 3, 5), (40, 30)])
def test_qr_factors(shape: tuple[int, ...], dtype: str) -> None:
    matrix = random(shape, dtype)
    *batch, rows, columns = shape
    least = min(rows, columns)
    factors, scales = run(lapack("geqrf", dtype), [matrix], [(shape, dtype), ((*batch, least), dtype)])
    vectors = factors[..., :least].copy()
    routine = "ungqr" if dtype.startswith("c") else "orgqr"
    (q,) = run(lapack(routine, dtype), [vectors, scales], [(vectors.shape, dtype)])
    np.testing.assert_allclose(q @ np.triu(factors)[..., :least, :], matrix, atol=near(dtype))
    unit = np.broadcast_to(np.eye(least), (*batch, least, least))
    np.testing.assert_allclose(q.conj().swapaxes(-1, -2) @ q, unit, atol=near(dtype))


def test_columns_of_zeros_are_not_reflected() -> None:
    zeros = np.zeros((4, 3), np.float32)
    factors, scales = run(lapack("geqrf", "float32"), [zeros], [((4, 3), "float32"), ((3,), "float32")])
    assert not factors.any()
    assert not scales.any()


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_eigenvalues_of_hermitian_matrices(dtype: str) -> None:
    matrix = positive((2, 5, 5), dtype)
    results = [((2, 5, 5), dtype), ((2, 5), "float32"), ((2,), "int32")]
    routine = "heevd" if dtype.startswith("c") else "syevd"
    vectors, values, info = run(lapack(routine, dtype, mode="V", uplo="L"), [matrix], results)
    np.testing.assert_allclose(matrix @ vectors, vectors * values[:, None], atol=1e-4)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-4)
    assert not info.any()


def test_eigenvalues_of_square_matrices() -> None:
    matrix = random((6, 6), "float32")
    results = [((6,), "float32"), ((6,), "float32"), *[((6, 6), "complex64")] * 2, ((), "int32")]
    call = lapack("geev", "float32", compute_left="V", compute_right="V")
    real, imaginary, left, right, info = run(call, [matrix], results)
    values = real + 1j * imaginary
    np.testing.assert_allclose(matrix @ right, right * values, atol=1e-4)
    np.testing.assert_allclose(left.conj().T @ matrix, values[:, None] * left.conj().T, atol=1e-4)
    assert not info.any()
    matrix[0, 0] = np.nan
    *_, info = run(call, [matrix], results)
    assert info == 1


@pytest.mark.parametrize("mode", ["A", "S", "N"])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_singular_values(dtype: str, mode: str) -> None:
    matrix = random((2, 5, 3), dtype)
    left = 5 if mode == "A" else 3
    results = [
        (matrix.shape, dtype),
        ((2, 3), "float32"),
        ((2, 5, left), dtype),
        ((2, 3, 3), dtype),
        ((2,), "int32"),
    ]
    _, values, one, other, info = run(lapack("gesdd", dtype, mode=mode), [matrix], results)
    np.testing.assert_allclose(values, np.linalg.svd(matrix, compute_uv=False), atol=1e-4)
    if mode != "N":
        np.testing.assert_allclose(one[..., :3] * values[:, None] @ other, matrix, atol=1e-4)
    assert not info.any()


def test_threads_call_back_at_the_same_time() -> None:
    types = [((20, 20), "float64"), ((20,), "float64"), ((), "int32")]
    matrices = [positive((20, 20), "float64") * (1 + number) for number in range(8)]
    text = f"""
func.func public @main(%a: {spelled(*types[0])}) -> {spelled(*types[1])} {{
  %r:3 = {lapack("syevd", "float64", mode="V", uplo="L").format(operands="%a")}
    : ({spelled(*types[0])}) -> ({", ".join(spelled(*each) for each in types)})
  return %r#1 : {spelled(*types[1])}
}}"""
    executable = mind_mlir.compile(mind_mlir.from_stablehlo(text))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda each: executable(each)[0], matrices * 5))
    for one, matrix in zip(found, matrices * 5, strict=True):
        np.testing.assert_allclose(one, np.linalg.eigvalsh(matrix))
