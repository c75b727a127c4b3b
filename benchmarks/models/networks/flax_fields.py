"""Networks over points, graphs and functions, in flax's linen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

#: What a network is built and called with.
Built = tuple[Any, tuple[Any, ...]]


def _draw(*shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(1), shape)


class _Perceptron(nn.Module):
    """Products, norms and activations."""

    width: int
    training: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.relu(nn.BatchNorm(use_running_average=not self.training)(nn.Dense(self.width)(x)))
        return nn.log_softmax(nn.Dense(5)(nn.swish(nn.LayerNorm()(nn.Dense(self.width)(x)))))


def perceptron(width: int) -> Built:
    """A perceptron."""
    return _Perceptron(width), (_draw(4, 7),)


class _Graph(nn.Module):
    """Means of neighbours; with ``attention``, weighed by how they fit."""

    width: int
    attention: bool = False

    @nn.compact
    def __call__(self, nodes: Any, sources: Any, targets: Any) -> Any:
        count = nodes.shape[0]
        for _ in range(2):
            nodes = nn.Dense(self.width)(nodes)
            weights = jnp.ones(sources.shape[0])
            if self.attention:
                pairs = jnp.concatenate([nodes[sources], nodes[targets]], -1)
                scores = nn.leaky_relu(nn.Dense(1)(pairs))[:, 0]
                most = jax.ops.segment_max(scores, targets, count)
                weights = jnp.exp(scores - most[targets])
            total = jax.ops.segment_sum(weights, targets, count)[:, None]
            sent = jax.ops.segment_sum(nodes[sources] * weights[:, None], targets, count)
            nodes = nn.relu(nodes + sent / (total + 1e-6))
        return nodes


def _edges() -> tuple[jax.Array, jax.Array, jax.Array]:
    ends = jax.random.randint(jax.random.key(2), (2, 20), 0, 8)
    return _draw(8, 5), ends[0], ends[1]


def graph_convolution(width: int) -> Built:
    """A graph network."""
    return _Graph(width), _edges()


def graph_attention(width: int) -> Built:
    """A graph network with attention."""
    return _Graph(width, attention=True), _edges()


class _Sets(nn.Module):
    """Sums and maxima over points, in whatever order they come: PointNet."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        turn = nn.Dense(9)(nn.relu(nn.Dense(self.width)(x)).max(1)).reshape(-1, 3, 3)
        x = nn.relu(nn.Dense(self.width)(jnp.einsum("bnd,bde->bne", x, turn + jnp.eye(3))))
        return nn.Dense(5)(jnp.concatenate([x.max(1), x.sum(1)], -1))


def point_set(width: int) -> Built:
    """PointNet."""
    return _Sets(width), (_draw(2, 12, 3),)


class _Waves(nn.Module):
    """Sines all the way, and the gradient of what they say by the place: SIREN."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        one, two, three = nn.Dense(self.width), nn.Dense(self.width), nn.Dense(1)
        return three(jnp.sin(3 * two(jnp.sin(3 * one(x)))))


def siren(width: int) -> Built:
    """SIREN."""
    return _Waves(width), (_draw(6, 2),)


class _Flow(nn.Module):
    """Couplings that can be undone, and the logarithm of their volume."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        volume = jnp.zeros(x.shape[0])
        for _ in range(3):
            still, moved = jnp.split(x, 2, -1)
            scale, shift = jnp.split(nn.Dense(x.shape[-1])(nn.tanh(nn.Dense(self.width)(still))), 2, -1)
            x = jnp.concatenate([moved * jnp.exp(jnp.tanh(scale)) + shift, still], -1)
            volume = volume + jnp.tanh(scale).sum(-1)
        return x, volume


def normalising_flow(width: int) -> Built:
    """A flow."""
    return _Flow(width), (_draw(5, 6),)


class _Equation(nn.Module):
    """A differential equation whose right-hand side is a network, by Runge and Kutta."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        one, two = nn.Dense(self.width), nn.Dense(x.shape[-1])
        two(one(x))

        def slope(place: Any) -> Any:
            return two(nn.tanh(one(place)))

        for _ in range(4):
            first = slope(x)
            second = slope(x + 0.05 * first)
            third = slope(x + 0.05 * second)
            x = x + 0.1 / 6 * (first + 2 * second + 2 * third + slope(x + 0.1 * third))
        return x


def neural_equation(width: int) -> Built:
    """A neural differential equation."""
    return _Equation(width), (_draw(5, 3),)


class _Recommender(nn.Module):
    """Bags of words beside numbers, multiplied pair by pair."""

    width: int

    @nn.compact
    def __call__(self, numbers: Any, words: Any) -> Any:
        bags = nn.Embed(20, self.width)(words).sum(2)
        parts = jnp.concatenate([nn.relu(nn.Dense(self.width)(numbers))[:, None], bags], 1)
        rows, columns = jnp.triu_indices(parts.shape[1], 1)
        products = jnp.einsum("bid,bjd->bij", parts, parts)[:, rows, columns]
        return nn.sigmoid(nn.Dense(1)(products))


def recommender(width: int) -> Built:
    """A recommender."""
    words = jax.random.randint(jax.random.key(2), (4, 3, 5), 0, 20)
    return _Recommender(width), (_draw(4, 6), words)


class _Capsules(nn.Module):
    """Votes that agree count more, in three rounds."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        votes = self.param("votes", nn.initializers.lecun_normal(), (6, 4, 8, self.width))
        given = jnp.einsum("bid,ijdw->bijw", nn.Dense(48)(x).reshape(-1, 6, 8), votes)

        def squashed(each: Any) -> Any:
            size = (each**2).sum(-1, keepdims=True)
            return size / (1 + size) * each / jnp.sqrt(size + 1e-6)

        def round_of(_: Any, scores: Any) -> Any:
            found = squashed((nn.softmax(scores, 2)[..., None] * given).sum(1))
            return scores + jnp.einsum("bijw,bjw->bij", given, found)

        scores = jax.lax.fori_loop(0, 3, round_of, jnp.zeros(given.shape[:3]))
        return squashed((nn.softmax(scores, 2)[..., None] * given).sum(1))


def capsules(width: int) -> Built:
    """Capsules."""
    return _Capsules(width), (_draw(3, 10),)


class _Memory(nn.Module):
    """Patterns recalled by what they resemble, until nothing changes: a Hopfield network."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        stored = self.param("stored", nn.initializers.normal(1.0), (7, self.width))
        state = nn.Dense(self.width)(x)
        for _ in range(3):
            state = nn.softmax(state @ stored.T) @ stored
        return nn.Dense(4)(state)


def hopfield(width: int) -> Built:
    """A Hopfield network."""
    return _Memory(width), (_draw(3, 5),)


class _Process(nn.Module):
    """A Gaussian process over what a network makes of its inputs."""

    width: int

    @nn.compact
    def __call__(self, x: Any, y: Any) -> Any:
        z = nn.Dense(4)(nn.tanh(nn.Dense(self.width)(x)))
        apart = ((z[:, None] - z[None]) ** 2).sum(-1)
        factor = jnp.linalg.cholesky(jnp.exp(-apart / 2) + 0.1 * jnp.eye(x.shape[0]))
        solved = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return (solved**2).sum() / 2 + jnp.log(jnp.diag(factor)).sum()


def gaussian_process(width: int) -> Built:
    """A Gaussian process with a deep kernel."""
    return _Process(width), (_draw(8, 3), _draw(8))
