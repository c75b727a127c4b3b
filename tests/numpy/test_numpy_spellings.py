"""Functions with numpy's names take numpy's arguments, and give what numpy gives."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import test_numpy_compositions

import mind_mlir
import mind_mlir.numpy as typed
from mind_mlir import TracingError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable

mnp: Any = typed

RNG = np.random.default_rng(11)
V = RNG.standard_normal(7).astype(np.float32)
M = RNG.standard_normal((3, 4)).astype(np.float32)
N = RNG.standard_normal((4, 5)).astype(np.float32)
T = RNG.standard_normal((2, 3, 4)).astype(np.float32)
K = RNG.integers(-9, 10, (3, 4))
J = RNG.integers(1, 5, (3, 4))
P = RNG.integers(0, 2, (3, 4)).astype(bool)
U = RNG.standard_normal((1, 3, 1, 4))
TIES = np.array([[2, 1, 2], [0, 0, -(2**63)]])
ODD = np.array([0.0, -0.0, 0.5, 1.5, -2.5, np.nan, np.inf, -np.inf, 3.7, -3.7])

#: What is computed by numpy's functions, or by those of `mind_mlir.numpy`, given as ``m``.
CASES: dict[str, list[Callable[[Any], Any]]] = {
    "elementwise": [
        lambda m: m.divide(M, T),
        lambda m: m.floor_divide(K, J),
        lambda m: m.floor_divide(M, M[0]),
        lambda m: m.remainder(K, -J),
        lambda m: m.remainder(M, 0.7),
        lambda m: m.fmod(K, J),
        lambda m: m.subtract(M, 2),
        lambda m: m.multiply(2, K),
        lambda m: m.power(abs(M), 1.5),
        lambda m: m.negative(M),
        lambda m: m.absolute(K),
        lambda m: m.square(M),
        lambda m: m.arctan2(M, M[::-1]),
        lambda m: m.maximum(M, 0),
        lambda m: m.less(M, M[0]),
        lambda m: m.greater_equal(K, 3),
        lambda m: m.equal(K, K[:, :1]),
        lambda m: m.not_equal(2, K),
        lambda m: m.greater(M, 0),
        lambda m: m.less_equal(M, T),
        lambda m: m.logical_and(K, P),
        lambda m: m.logical_or(P, M),
        lambda m: m.logical_xor(P, K),
        lambda m: m.logical_not(K),
        lambda m: m.bitwise_and(K, 6),
        lambda m: m.bitwise_or(K, J),
        lambda m: m.bitwise_xor(K, J),
        lambda m: m.invert(K),
        lambda m: m.left_shift(K, J),
        lambda m: m.right_shift(K, J),
        lambda m: m.where(P, M, 0),
        lambda m: m.where(P[:, :1], 1.5, M),
        lambda m: m.where(K, M, T),
        lambda m: m.where(M > 0, P, False),
        lambda m: m.equal(P, True),
        lambda m: m.clip(M, -0.5, 0.5),
        lambda m: m.clip(K, J, None),
        lambda m: m.clip(M, None, M[0]),
        lambda m: m.clip(M, min=M[:, :1], max=M[0]),
        lambda m: m.astype(M, "int64"),
        lambda m: m.astype(K, m.float32),
        lambda m: m.isnan(ODD),
        lambda m: m.isinf(ODD),
        lambda m: m.isfinite(ODD),
        lambda m: m.trunc(ODD),
        lambda m: m.rint(ODD),
        lambda m: m.round(ODD),
        lambda m: m.floor(ODD),
        lambda m: m.sign(K),
    ],
    "reductions": [
        lambda m: m.sum(T),
        lambda m: m.sum(T, axis=-1),
        lambda m: m.sum(T, (0, -1), keepdims=True),
        lambda m: m.sum(T, axis=()),
        lambda m: m.sum(P, axis=0),
        lambda m: m.sum(T, axis=1, dtype=np.float64),
        lambda m: m.sum(3.5),
        lambda m: m.mean(T, axis=(1, 2)),
        lambda m: m.mean(T, keepdims=True),
        lambda m: m.prod(T, axis=1),
        lambda m: m.prod(J),
        lambda m: m.max(T, axis=-2, keepdims=True),
        lambda m: m.max(K),
        lambda m: m.max(P, axis=0),
        lambda m: m.sort(P, axis=1),
        lambda m: m.min(K, axis=0),
        lambda m: m.any(P, axis=1),
        lambda m: m.all(K, axis=(0, 1)),
        lambda m: m.count_nonzero(K > 0, axis=0),
        lambda m: m.var(T, axis=-1),
        lambda m: m.var(T, axis=(0, 1), ddof=1, keepdims=True),
        lambda m: m.std(M),
        lambda m: m.argmax(T, axis=-1),
        lambda m: m.argmax(K),
        lambda m: m.argmax(T, axis=0, keepdims=True),
        lambda m: m.argmin(TIES, axis=1),
        lambda m: m.argmin(M),
        lambda m: m.argmin(P, axis=1),
        lambda m: m.argmax(ODD),
        lambda m: m.argsort(M, stable=True),
        lambda m: m.argsort(TIES, axis=0, stable=True),
        lambda m: m.argsort(M, axis=None, stable=True),
        lambda m: m.sort(T, axis=1),
        lambda m: m.sort(K),
        lambda m: m.sort(ODD, stable=True),
        lambda m: m.cumsum(K, axis=1),
        lambda m: m.cumsum(T, axis=-2),
        lambda m: m.cumsum(M),
        lambda m: m.cumsum(P, axis=0),
        lambda m: m.cumprod(P, axis=0),
        lambda m: m.cumprod(K),
    ],
    "shaping": [
        lambda m: m.reshape(M, (2, -1)),
        lambda m: m.reshape(M, -1),
        lambda m: m.ravel(T),
        lambda m: m.expand_dims(M, -1),
        lambda m: m.expand_dims(M, (0, -2)),
        lambda m: m.squeeze(U),
        lambda m: m.squeeze(U, axis=-2),
        lambda m: m.squeeze(U, (0, 2)),
        lambda m: m.transpose(T),
        lambda m: m.transpose(T, (1, -1, 0)),
        lambda m: m.swapaxes(T, 0, -1),
        lambda m: m.moveaxis(T, 0, -1),
        lambda m: m.moveaxis(T, (0, 1), (-1, 0)),
        lambda m: m.broadcast_to(V, (2, 7)),
        lambda m: m.concatenate([M, M[:1]]),
        lambda m: m.concatenate((T, T), axis=-1),
        lambda m: m.concatenate([V, M], axis=None),
        lambda m: m.stack([M, -M]),
        lambda m: m.stack((M, M), axis=-1),
        lambda m: m.split(V[:6], 3),
        lambda m: m.split(M, [1, 3], axis=-1),
        lambda m: m.tile(V, 2),
        lambda m: m.tile(M, (2, 1, 3)),
        lambda m: m.tile(T, 2),
        lambda m: m.repeat(M, 2),
        lambda m: m.repeat(M, 3, axis=-1),
        lambda m: m.repeat(M, 2, axis=0),
        lambda m: m.pad(M, 1),
        lambda m: m.pad(M, ((1, 0), (0, 2)), constant_values=2.5),
        lambda m: m.pad(K, (2, 1)),
        lambda m: m.flip(T),
        lambda m: m.flip(T, (0, -1)),
        lambda m: m.roll(M, 2),
        lambda m: m.roll(M, -1, axis=1),
        lambda m: m.roll(M, 5, axis=-1),
        lambda m: m.tril(M),
        lambda m: m.triu(T, 1),
        lambda m: m.tril(K, -1),
        lambda m: m.triu(P),
        lambda m: m.pad(P, ((1, 0), (0, 1))),
        lambda m: m.repeat(P, 2, axis=0),
    ],
    "creation": [
        lambda m: m.zeros(3),
        lambda m: m.ones((2, 3), dtype=np.int32),
        lambda m: m.full((2, 2), 7),
        lambda m: m.full((2, 4), M[0], dtype="float64"),
        lambda m: m.zeros_like(K),
        lambda m: m.ones_like(M, dtype=bool),
        lambda m: m.full_like(M, 2.5),
        lambda m: m.eye(3),
        lambda m: m.eye(3, 4, k=-1, dtype=np.int64),
        lambda m: m.identity(2, dtype=np.float32),
        lambda m: m.arange(5),
        lambda m: m.arange(2, 11, 3),
        lambda m: m.arange(5, 1, -2),
        lambda m: m.arange(0.5, 2.0, 0.25),
        lambda m: m.arange(4, dtype=np.float32),
        lambda m: m.linspace(0, 1, 5),
        lambda m: m.linspace(-1, 3, 7, endpoint=False),
        lambda m: m.linspace(2, 2.5, 1),
        lambda m: m.linspace(0, 10, 4, dtype=int),
        lambda m: m.asarray([[1, 2], [3, 4]]),
        lambda m: m.asarray(M, dtype=np.float64),
        lambda m: m.array(2.5),
    ],
    "products": [
        lambda m: m.matmul(M, N),
        lambda m: m.matmul(T, N),
        lambda m: m.matmul(V, V),
        lambda m: m.matmul(M[0], T.transpose(0, 2, 1)),
        lambda m: m.matmul(T, N[:, 0]),
        lambda m: m.dot(M, N),
        lambda m: m.dot(T, N),
        lambda m: m.dot(M, T.transpose(0, 2, 1)),
        lambda m: m.dot(V, np.float32(2)),
        lambda m: m.dot(T, N[:, 1]),
        lambda m: m.tensordot(T, T.transpose(1, 2, 0)),
        lambda m: m.tensordot(M, N, 1),
        lambda m: m.tensordot(V, V, 0),
        lambda m: m.tensordot(T, M, axes=((1, -1), (0, 1))),
        lambda m: m.outer(M, V),
        lambda m: m.inner(T, M),
        lambda m: m.inner(V, V),
        lambda m: m.einsum("ij,jk->ik", M, N),
        lambda m: m.einsum("bij,jk", T, N),
        lambda m: m.einsum("bij, bkj -> kbi", T, T),
        lambda m: m.einsum("bij->jb", T),
        lambda m: m.einsum("i,j", V, V),
        lambda m: m.einsum("bij,ij,jk->kb", T, M, N),
        lambda m: m.einsum("ij,kl->il", M, N),
        lambda m: m.einsum("ij,ij->", K, J),
    ],
    "indexing": [
        lambda m: m.take(M, np.array([5, 0, -1])),
        lambda m: m.take(M, np.array([[1], [-1]]), axis=1),
        lambda m: m.take(T, np.array([2, 0, 0]), axis=-2),
        lambda m: m.take(T, 1, axis=0),
        lambda m: m.take_along_axis(M, np.array([[0, -1], [1, 2], [3, 3]]), axis=1),
        lambda m: m.take_along_axis(M, np.array([3, 11]), axis=None),
    ],
}


@pytest.mark.parametrize("group", CASES)
def test_it_gives_what_numpy_does(group: str) -> None:
    found = mind_mlir.jit(lambda: [case(mnp) for case in CASES[group]])()
    for case, result in zip(CASES[group], found, strict=True):
        with np.errstate(invalid="ignore"):
            expected = case(np)
        source = inspect.getsource(case).strip()
        parts = zip(result, expected, strict=True) if isinstance(expected, list) else [(result, expected)]
        for one, its in parts:
            other = np.asarray(its)
            assert (one.shape, one.dtype) == (other.shape, other.dtype), source
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6, err_msg=source)
            assert (
                np.array_equal(np.signbit(one), np.signbit(other)) or one.dtype.kind != "f" or 0 not in other
            ), source


def test_functions_run_by_themselves() -> None:
    for case in (case for cases in CASES.values() for case in cases[:2]):
        expected, found = case(np), case(mnp)
        assert isinstance(found, np.ndarray)
        np.testing.assert_allclose(found, expected, rtol=2e-5)
    np.testing.assert_array_equal(mnp.concatenate([[1, 2], [3]]), [1, 2, 3])
    np.testing.assert_array_equal(mnp.clip([1.5, 9.0], max=2), [1.5, 2])
    assert mnp.exp(1).dtype == np.float64


def test_every_name_of_numpy_is_tested() -> None:
    """One that numpy has, too, is compared with numpy above, unless it is an operation as it is."""
    every = [*CASES.values(), *test_numpy_compositions.CASES.values()]
    used = [inspect.getclosurevars(case) for cases in every for case in cases]
    tested = {name for each in used for name in (*each.unbound, *each.builtins)}
    named = {name for name in dir(mnp) if inspect.isfunction(getattr(mnp, name)) and hasattr(np, name)}
    assert named - tested <= {
        *(
            "abs",
            "absolute",
            "add",
            "atan2",
            "bitwise_invert",
            "bitwise_left_shift",
            "bitwise_not",
            "cbrt",
            "ceil",
            "concat",
        ),
        *(
            "cos",
            "exp",
            "expm1",
            "log",
            "log1p",
            "minimum",
            "permute_dims",
            "pow",
            "reciprocal",
            "sin",
            "sqrt",
        ),
        *("tan", "tanh"),
    }


def test_numbers_take_the_dtype_of_arrays() -> None:
    x = np.ones(2, np.float32)

    @mind_mlir.jit
    def function(x: Any, n: Any) -> Any:
        root = mnp.sqrt(n)
        return mnp.where(x > 0, x, 0), x * root, root, mnp.exp(2), mnp.maximum(1, x)

    chosen, scaled, root, power, most = function(x, 4)
    assert [each.dtype for each in (chosen, scaled, most)] == [np.float32] * 3
    assert (root.dtype, power.dtype, float(root)) == (np.float64, np.float64, 2)


def test_lists_of_traced_arrays_are_arrays() -> None:
    found = mind_mlir.jit(lambda x, y: mnp.asarray([[x, y], [1, x + y]]))(np.float32(2), np.float32(3))
    np.testing.assert_array_equal(found, np.array([[2, 3], [1, 5]], np.float32))


def test_numpy_itself_calls_them() -> None:
    @mind_mlir.jit
    def function(x: Any) -> Any:
        return np.concatenate([np.sum(x, axis=1), np.where(x[0] > 0, x[0], 0.0)])

    np.testing.assert_allclose(function(M), np.concatenate([M.sum(1), np.maximum(M[0], 0)]), rtol=1e-6)


def test_gradients_flow() -> None:
    x = M.astype(np.float64)
    functions: list[Callable[[Any], Any]] = [
        lambda x: mnp.sum(mnp.sort(x, axis=1) * mnp.arange(4, dtype="f64")),
        lambda x: mnp.sum(mnp.cumsum(x, axis=0) * x),
        lambda x: mnp.std(x, ddof=1) + mnp.max(x) + mnp.sum(mnp.clip(x, -0.3, 0.4) * x),
        lambda x: mnp.sum(mnp.tril(mnp.tensordot(x, x, ((1,), (1,))), 1) ** 2),
    ]
    found = mind_mlir.grad(lambda x: sum(function(x) for function in functions))(x)
    total = mind_mlir.jit(lambda x: sum(function(x) for function in functions))
    direction = RNG.standard_normal(x.shape)
    slope = (total(x + 1e-6 * direction) - total(x - 1e-6 * direction)) / 2e-6
    np.testing.assert_allclose((found * direction).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mnp.sum(M, axis=2), VerificationError, "axis 2 is outside of an array of rank 2"),
        (lambda: mnp.add(M, V), VerificationError, "E3001"),
        (lambda: mnp.negative(P), VerificationError, "E2005"),
        (lambda: mnp.where(P, M, V), VerificationError, "E3001"),
        (lambda: mnp.exp("x"), TracingError, "E2305"),
        (lambda: mnp.reshape(M, (5, -1)), VerificationError, "E3007"),
        (
            lambda: mnp.reshape(M, "x"),
            TypeError,
            "shape must be an integer or a sequence of integers, not the str",
        ),
        (lambda: mnp.arange("x"), TypeError, "stop must be a number"),
        (lambda: mnp.arange(0, 5, 0), ValueError, "step must not be 0"),
        (lambda: mnp.astype(M, "f31"), TypeError, "dtype must be a dtype"),
        (lambda: mnp.pad(M, (1, 2, 3)), ValueError, "pad_width must be an integer, a pair"),
        (lambda: mnp.pad(M, 1, mode="edge"), ValueError, "mode must be one of constant"),
        (lambda: mnp.split(V, 2), ValueError, "indices_or_sections must divide the extent, 7"),
        (lambda: mnp.concatenate([]), ValueError, "arrays must be one or more"),
        (lambda: mnp.concatenate(M, axis=5), VerificationError, "E3004"),
        (
            lambda: mnp.tensordot(M, N, axes=[[1]]),
            ValueError,
            "axes must be those of each of the two operands",
        ),
        (
            lambda: mnp.moveaxis(T, (0, 1), 0),
            ValueError,
            "destination must be as many axes as source, 2, not 1",
        ),
        (lambda: mnp.einsum("ij,jk", M), ValueError, "subscripts must have as many letters as the operands"),
        (
            lambda: mnp.einsum("ii", N[:, :4]),
            ValueError,
            "subscripts must name no dimension of one array twice",
        ),
        (
            lambda: mnp.einsum("ij->k", M),
            ValueError,
            "subscripts must have letters of operands in the result",
        ),
        (lambda: mnp.einsum("i...->i", M), ValueError, "subscripts must hold letters, such as 'ij,jk->ik'"),
        (lambda: mnp.einsum("ij,jk", M, M), VerificationError, "E3003"),
        (lambda: mnp.tril(V), ValueError, "m must be an array of rank 2 or more, not 1"),
    ],
)
def test_mistakes(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
