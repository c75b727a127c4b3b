"""Functions of jax, lax and nn that import is tested with, each with its arguments; needs jax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class Case:
    """A function of arrays.

    Attributes:
        function: Takes the arguments, and returns an array or a tree of them.
        arguments: Arrays; the gradient is by those of floats.
        is_smooth: Whether the gradient is tested.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    is_smooth: bool = True

    def scalar(self, *arguments: Any) -> Any:
        """Return the weighted sum of what it gives, and that itself."""
        result = self.function(*arguments)
        terms = [
            jnp.sum(each * (1 + jnp.arange(each.size, dtype=each.dtype).reshape(each.shape) / each.size))
            for each in jax.tree.leaves(result)
            if each.dtype.kind == "f"
        ]
        return sum(terms), result

    def with_gradient(self) -> Callable[..., Any]:
        """Return what gives the result, and the gradient of the weighted sum of it."""
        floats = [index for index, each in enumerate(self.arguments) if each.dtype.kind == "f"]
        if not self.is_smooth:
            return self.function

        def both(*arguments: Any) -> Any:
            gradient, result = jax.grad(self.scalar, argnums=floats, has_aux=True)(*arguments)
            return result, gradient

        return both


_RANDOM = np.random.default_rng(7)


def _normal(*shape: int) -> Any:
    return _RANDOM.standard_normal(shape).astype(np.float32)


def _within(low: float, high: float, *shape: int) -> Any:
    return _RANDOM.uniform(low, high, shape).astype(np.float32)


def _below(high: int, *shape: int) -> Any:
    return _RANDOM.integers(0, high, shape).astype(np.int32)


def _conv(**options: Any) -> Callable[[Any, Any], Any]:
    return lambda image, filter_: lax.conv_general_dilated(image, filter_, **options)


def _power_sum(x: Any) -> Any:
    return lax.fori_loop(0, 4, lambda step, total: total + x**2 / (1.0 + step), x)


def _collatz(count: Any) -> Any:
    def halve(state: Any) -> Any:
        number, steps = state
        return jnp.where(number % 2 == 0, number // 2, 3 * number + 1), steps + 1

    return lax.while_loop(lambda state: state[0] != 1, halve, (count, 0))[1]


def _recurrence(weights: Any, inputs: Any) -> Any:
    def step(state: Any, row: Any) -> Any:
        state = jnp.tanh(state @ weights + row)
        return state, state.sum()

    return lax.scan(step, jnp.zeros(weights.shape[0]), inputs)


def _branches(index: Any, x: Any) -> Any:
    return lax.switch(index, [jnp.sin, jnp.cos, lambda value: value * 3.0], x)


def _random_numbers(key: Any) -> Any:
    return jax.random.normal(jax.random.wrap_key_data(key), (5,))


_IMAGE, _FILTER = _normal(2, 6, 7, 4), _normal(3, 2, 4, 6)
_NHWC = ("NHWC", "HWIO", "NHWC")

CASES: dict[str, Case] = {
    # jax.numpy, element by element
    "sin": Case(jnp.sin, (_normal(3, 5),)),
    "cos": Case(jnp.cos, (_normal(3, 5),)),
    "tan": Case(jnp.tan, (_within(-1, 1, 7),)),
    "arcsin": Case(jnp.arcsin, (_within(-0.9, 0.9, 7),)),
    "arctan2": Case(jnp.arctan2, (_normal(3, 5), _normal(5))),
    "sinh": Case(jnp.sinh, (_normal(7),)),
    "arcsinh": Case(jnp.arcsinh, (_normal(7),)),
    "arctanh": Case(jnp.arctanh, (_within(-0.9, 0.9, 7),)),
    "expm1": Case(jnp.expm1, (_normal(7),)),
    "log1p": Case(jnp.log1p, (_within(-0.5, 3, 7),)),
    "log2": Case(jnp.log2, (_within(0.1, 3, 7),)),
    "sqrt": Case(jnp.sqrt, (_within(0.1, 3, 7),)),
    "cbrt": Case(jnp.cbrt, (_within(0.1, 3, 7),)),
    "power": Case(jnp.power, (_within(0.1, 3, 3, 5), _normal(5))),
    "hypot": Case(jnp.hypot, (_normal(7), _normal(7))),
    "logaddexp": Case(jnp.logaddexp, (_normal(3, 5), _normal(5))),
    "fmod": Case(jnp.fmod, (_normal(7), _within(0.5, 1, 7))),
    "floor_divide": Case(jnp.floor_divide, (_below(99, 7) - 50, _below(9, 7) - 4), is_smooth=False),
    "clip": Case(lambda x: jnp.clip(x, -0.5, 0.5), (_normal(3, 5),)),
    "nan_to_num": Case(jnp.nan_to_num, (np.array([np.nan, 1, -np.inf], np.float32),)),
    "where": Case(lambda x, y: jnp.where(x > y, x, 2 * y), (_normal(3, 5), _normal(5))),
    "round": Case(jnp.round, (_normal(7) * 4,), is_smooth=False),
    # jax.numpy, along axes
    "mean": Case(lambda x: jnp.mean(x, axis=1), (_normal(3, 5),)),
    "std": Case(lambda x: jnp.std(x, axis=0), (_normal(3, 5),)),
    "prod": Case(lambda x: jnp.prod(x, axis=1), (_normal(3, 5),)),
    "max": Case(lambda x: jnp.max(x, axis=1), (_normal(3, 5),)),
    "all": Case(lambda x: jnp.all(x > -1, axis=0), (_normal(3, 5),), is_smooth=False),
    "argmax": Case(lambda x: jnp.argmax(x, axis=1), (_normal(3, 5),), is_smooth=False),
    "cumsum": Case(lambda x: jnp.cumsum(x, axis=1), (_normal(3, 5),)),
    "cumprod": Case(lambda x: jnp.cumprod(x, axis=0), (_normal(3, 5),)),
    "sort": Case(lambda x: jnp.sort(x, axis=1), (_normal(3, 5),)),
    "argsort": Case(lambda x: jnp.argsort(x, axis=0), (_below(4, 6, 3),), is_smooth=False),
    "median": Case(lambda x: jnp.median(x, axis=1), (_normal(3, 5),)),
    "searchsorted": Case(jnp.searchsorted, (np.sort(_normal(9)), _normal(5)), is_smooth=False),
    # jax.numpy, places
    "pad": Case(lambda x: jnp.pad(x, ((1, 2), (0, 1)), constant_values=2.0), (_normal(3, 5),)),
    "roll": Case(lambda x: jnp.roll(x, 2, axis=1), (_normal(3, 5),)),
    "flip": Case(lambda x: jnp.flip(x, axis=0), (_normal(3, 5),)),
    "repeat": Case(lambda x: jnp.repeat(x, 3, axis=1), (_normal(3, 2),)),
    "triu": Case(jnp.triu, (_normal(4, 4),)),
    "take": Case(lambda x, index: jnp.take(x, index, axis=1), (_normal(3, 5), _below(5, 4))),
    "take_along_axis": Case(lambda x, i: jnp.take_along_axis(x, i, axis=1), (_normal(3, 5), _below(5, 3, 2))),
    "index_window": Case(lambda x, y: x.at[1:-1, 1:].set(y * x[1:-1, :-1]), (_normal(5, 3), _normal(3, 2))),
    "index_steps": Case(lambda x, y: x.at[::2].multiply(y), (_normal(5, 3), _normal(3, 3))),
    "index_row": Case(lambda x, i, y: x.at[i].add(y), (_normal(5, 3), np.int32(-2), _normal(3))),
    "index_add": Case(lambda x, i, y: x.at[i].add(y), (_normal(5, 3), _below(5, 4), _normal(4, 3))),
    "index_max": Case(
        lambda x, i, y: x.at[i].max(y), (_normal(5), _below(5, 4), _normal(4)), is_smooth=False
    ),
    "strided": Case(lambda x: x[::-2, 1::2], (_normal(5, 6),)),
    # jax.numpy, products
    "matmul": Case(jnp.matmul, (_normal(2, 3, 4), _normal(4, 5))),
    "einsum": Case(lambda x, y: jnp.einsum("bij,bkj->kbi", x, y), (_normal(2, 3, 4), _normal(2, 5, 4))),
    "convolve": Case(jnp.convolve, (_normal(9), _normal(4))),
    # jax.lax
    "conv_strided": Case(
        _conv(window_strides=(2, 1), padding="SAME", dimension_numbers=_NHWC), (_IMAGE, _FILTER)
    ),
    "conv_dilated": Case(
        _conv(
            window_strides=(1, 1),
            padding=[(1, 2), (0, 1)],
            lhs_dilation=(2, 1),
            rhs_dilation=(1, 3),
            dimension_numbers=_NHWC,
        ),
        (_IMAGE, _FILTER),
    ),
    "conv_groups": Case(
        _conv(window_strides=(1, 1), padding="VALID", feature_group_count=2, dimension_numbers=_NHWC),
        (_IMAGE, _normal(3, 2, 2, 6)),
    ),
    "conv_1d": Case(_conv(window_strides=(2,), padding="SAME"), (_normal(2, 3, 9), _normal(4, 3, 3))),
    "max_pool": Case(
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME"), (_IMAGE,)
    ),
    "average_pool": Case(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4, (_IMAGE,)
    ),
    "dynamic_slice": Case(
        lambda x, start: lax.dynamic_slice(x, (start, 1), (2, 3)), (_normal(5, 6), np.int32(4))
    ),
    "dynamic_update_slice": Case(
        lambda x, y, start: lax.dynamic_update_slice(x, y, (start, 1)),
        (_normal(5, 6), _normal(2, 3), np.int32(2)),
    ),
    "fori_loop": Case(_power_sum, (_normal(4),)),
    "while_loop": Case(_collatz, (np.int32(27),), is_smooth=False),
    "scan": Case(_recurrence, (_normal(4, 4), _normal(6, 4))),
    "switch": Case(_branches, (np.int32(1), _normal(4))),
    "top_k": Case(lambda x: lax.top_k(x, 3), (_normal(2, 7),)),
    "cummax": Case(lambda x: lax.cummax(x, axis=1), (_normal(3, 6),), is_smooth=False),
    "associative_scan": Case(lambda x: lax.associative_scan(jnp.multiply, x), (_normal(6, 2),)),
    "erf_inv": Case(lax.erf_inv, (_within(-0.9, 0.9, 7),)),
    "lgamma": Case(lax.lgamma, (_within(0.2, 6, 7),)),
    "population_count": Case(lax.population_count, (_below(1 << 30, 7),), is_smooth=False),
    "bits": Case(
        lambda x: (x.view(jnp.int32) >> 3) ^ lax.clz(x.view(jnp.int32)), (_normal(7),), is_smooth=False
    ),
    "reduce_precision": Case(
        lambda x: lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7), (_normal(7),)
    ),
    "random_normal": Case(_random_numbers, (np.array([3, 5], np.uint32),), is_smooth=False),
    # jax.nn
    "gelu": Case(nn.gelu, (_normal(3, 5),)),
    "gelu_exact": Case(lambda x: nn.gelu(x, approximate=False), (_normal(3, 5),)),
    "silu": Case(nn.silu, (_normal(3, 5),)),
    "softplus": Case(nn.softplus, (_normal(3, 5),)),
    "elu": Case(nn.elu, (_normal(3, 5),)),
    "selu": Case(nn.selu, (_normal(3, 5),)),
    "hard_tanh": Case(nn.hard_tanh, (_normal(3, 5),)),
    "softmax": Case(lambda x: nn.softmax(x, axis=-1), (_normal(3, 5),)),
    "log_softmax": Case(lambda x: nn.log_softmax(x, axis=0), (_normal(3, 5),)),
    "logsumexp": Case(lambda x: nn.logsumexp(x, axis=1), (_normal(3, 5),)),
    "glu": Case(nn.glu, (_normal(3, 6),)),
    "standardize": Case(nn.standardize, (_normal(3, 5),)),
    "one_hot": Case(lambda index: nn.one_hot(index, 5), (_below(6, 4),), is_smooth=False),
    "attention": Case(
        lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True),
        (_normal(2, 5, 2, 4), _normal(2, 5, 2, 4), _normal(2, 5, 2, 4)),
    ),
    "bf16": Case(
        lambda x, y: nn.relu(x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16)).astype(jnp.float32),
        (_normal(3, 5), _normal(5, 2)),
    ),
    # linear algebra and transforms
    "solve": Case(jnp.linalg.solve, (_normal(4, 4) + 4 * np.eye(4, dtype=np.float32), _normal(4, 2))),
    "cholesky": Case(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)), (_normal(4, 4),)),
    "qr": Case(lambda x: jnp.linalg.qr(x)[1], (_normal(5, 3),)),
    "eigenvalues": Case(lambda x: jnp.linalg.eigvalsh(x + x.T), (_normal(4, 4),)),
    "singular_values": Case(lambda x: jnp.linalg.svd(x, compute_uv=False), (_normal(4, 3),), is_smooth=False),
    "spectrum": Case(lambda x: jnp.abs(jnp.fft.rfft(x)), (_normal(3, 12),)),
    "filtered": Case(lambda x, y: jnp.fft.irfft2(jnp.fft.rfft2(x) * y), (_normal(6, 8), _normal(6, 5))),
}
