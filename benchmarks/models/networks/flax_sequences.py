"""Networks that go through sequences, in flax's linen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

#: What a network is built and called with.
Built = tuple[Any, tuple[Any, ...]]


def _numbers(length: int = 10, width: int = 6) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (2, length, width))


def lstm(width: int) -> Built:
    """An LSTM."""
    return nn.RNN(nn.OptimizedLSTMCell(width)), (_numbers(),)


def gru(width: int) -> Built:
    """A GRU."""
    return nn.RNN(nn.GRUCell(width)), (_numbers(),)


class _BothWays(nn.Module):
    """Read forwards and backwards."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        there, back = nn.RNN(nn.SimpleCell(self.width)), nn.RNN(nn.LSTMCell(self.width))
        return nn.Dense(5)(nn.Bidirectional(there, back)(x))


def both_ways(width: int) -> Built:
    """Two recurrent networks."""
    return _BothWays(width), (_numbers(),)


def conv_lstm(width: int) -> Built:
    """An LSTM of images."""
    images = jax.random.normal(jax.random.key(1), (2, 4, 6, 6, 2))
    return nn.RNN(nn.ConvLSTMCell(width, (3, 3))), (images,)


class _Dilated(nn.Module):
    """Convolutions that look back, further with each layer."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for step in (1, 2, 4):
            y = nn.Conv(2 * self.width, (3,), kernel_dilation=(step,), padding="CAUSAL")(x)
            one, two = jnp.split(y, 2, -1)
            y = nn.tanh(one) * nn.sigmoid(two)
            x = y + nn.Conv(self.width, (1,))(x)
        return nn.Dense(8)(x)


def wavenet(width: int) -> Built:
    """WaveNet."""
    return _Dilated(width), (_numbers(20),)


class _Diagonal(nn.Module):
    """A diagonal state space, all steps at once by an associative scan."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        rates = jax.nn.sigmoid(self.param("rates", nn.initializers.normal(), (self.width,)))
        given = nn.Dense(self.width)(x)
        kept = jnp.broadcast_to(rates, given.shape)

        def joined(one: Any, two: Any) -> Any:
            return one[0] * two[0], one[1] * two[0] + two[1]

        _, states = jax.lax.associative_scan(joined, (kept, given), axis=1)
        return nn.Dense(4)(nn.gelu(states))


def linear_recurrence(width: int) -> Built:
    """A linear recurrent unit."""
    return _Diagonal(width), (_numbers(16),)


class _Selective(nn.Module):
    """A state space whose pace depends on what comes: Mamba."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x, gate = jnp.split(nn.Dense(2 * self.width)(x), 2, -1)
        x = nn.silu(nn.Conv(self.width, (4,), feature_group_count=self.width, padding="CAUSAL")(x))
        pace = nn.softplus(nn.Dense(self.width)(x))
        into, out = jnp.split(nn.Dense(8)(x), 2, -1)
        rates = -jnp.exp(self.param("rates", nn.initializers.normal(), (self.width, 4)))

        def step(state: Any, now: Any) -> Any:
            speed, coming, way, seen = now
            state = jnp.exp(speed[..., None] * rates) * state + (speed * coming)[..., None] * way[:, None]
            return state, (state * seen[:, None]).sum(-1)

        start = jnp.zeros((x.shape[0], self.width, 4))
        _, found = jax.lax.scan(
            step, start, jax.tree.map(lambda each: each.swapaxes(0, 1), (pace, x, into, out))
        )
        return nn.Dense(6)(found.swapaxes(0, 1) * nn.silu(gate))


def mamba(width: int) -> Built:
    """Mamba."""
    return _Selective(width), (_numbers(),)


class _Mixed(nn.Module):
    """Words mixed with the one before, and a past that fades, channel by channel: RWKV."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        before = jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1]
        share = self.param("share", nn.initializers.uniform(1.0), (x.shape[-1],))
        seen = x * share + before * (1 - share)
        keys, values, opened = (nn.Dense(self.width)(seen) for _ in range(3))
        fades = -jnp.exp(self.param("fades", nn.initializers.normal(), (self.width,)))

        def step(state: Any, now: Any) -> Any:
            above, below, most = state
            key, value = now
            largest = jnp.maximum(most, key)
            old, new = jnp.exp(most - largest), jnp.exp(key - largest)
            found = (above * old + new * value) / (below * old + new)
            largest = jnp.maximum(most + fades, key)
            old, new = jnp.exp(most + fades - largest), jnp.exp(key - largest)
            return (above * old + new * value, below * old + new, largest), found

        nothing = jnp.zeros((x.shape[0], self.width))
        start = (nothing, nothing, nothing - 1e30)
        _, found = jax.lax.scan(step, start, (keys.swapaxes(0, 1), values.swapaxes(0, 1)))
        return nn.Dense(5)(found.swapaxes(0, 1) * nn.sigmoid(opened))


def rwkv(width: int) -> Built:
    """RWKV."""
    return _Mixed(width), (_numbers(),)


class _Linear(nn.Module):
    """Attention without softmax."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        queries, keys, values = (nn.Dense(self.width)(x) for _ in range(3))
        queries, keys = nn.elu(queries) + 1, nn.elu(keys) + 1
        past = jnp.cumsum(keys[..., :, None] * values[..., None, :], 1)
        scale = jnp.einsum("bld,bld->bl", queries, jnp.cumsum(keys, 1))
        return jnp.einsum("bld,bldv->blv", queries, past) / (scale[..., None] + 1e-6)


def linear_attention(width: int) -> Built:
    """Linear attention."""
    return _Linear(width), (_numbers(),)


class _Searched(nn.Module):
    """The best way through states, by their scores and those of steps between them: Viterbi over a tagger."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        scores = nn.Dense(4)(nn.tanh(nn.Dense(self.width)(x)))
        steps = self.param("steps", nn.initializers.normal(), (4, 4))

        def step(best: Any, now: Any) -> Any:
            ways = best[:, :, None] + steps
            return ways.max(1) + now, ways.argmax(1)

        best, come = jax.lax.scan(step, scores[:, 0], scores[:, 1:].swapaxes(0, 1))
        total = jax.nn.logsumexp(best, -1)
        return total, come


def tagger(width: int) -> Built:
    """A tagger whose tags are searched for."""
    return _Searched(width), (_numbers(),)
