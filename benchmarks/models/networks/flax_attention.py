"""Networks with attention, and what has been put in its place, in flax's linen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

#: What a network is built and called with.
Built = tuple[Any, tuple[Any, ...]]
_WORDS = 50


def _text(length: int = 12) -> jax.Array:
    return jax.random.randint(jax.random.key(1), (2, length), 0, _WORDS)


class _Layer(nn.Module):
    """One layer: attention, then a perceptron, each beside what comes in."""

    width: int

    @nn.compact
    def __call__(self, x: Any, other: Any = None, mask: Any = None) -> Any:
        x = x + nn.MultiHeadDotProductAttention(2)(nn.LayerNorm()(x), other, mask=mask)
        y = nn.gelu(nn.Dense(4 * self.width)(nn.LayerNorm()(x)))
        return x + nn.Dense(self.width)(y)


class _Encoder(nn.Module):
    """BERT: words, places and kinds; ``causal``, a GPT."""

    width: int
    causal: bool = False

    @nn.compact
    def __call__(self, text: Any) -> Any:
        words = nn.Embed(_WORDS, self.width)
        x = words(text) + nn.Embed(32, self.width)(jnp.arange(text.shape[1]))
        mask = nn.make_causal_mask(text) if self.causal else nn.make_attention_mask(text > 3, text > 3)
        for _ in range(2):
            x = _Layer(self.width)(x, mask=mask)
        return words.attend(nn.LayerNorm()(x))


def bert(width: int) -> Built:
    """BERT."""
    return _Encoder(width), (_text(),)


def gpt(width: int) -> Built:
    """GPT."""
    return _Encoder(width, causal=True), (_text(),)


class _Pair(nn.Module):
    """An encoder and a decoder, which knows how far words are apart: T5."""

    width: int

    @nn.compact
    def __call__(self, text: Any, begun: Any) -> Any:
        words = nn.Embed(_WORDS, self.width)
        x = _Layer(self.width)(words(text))
        y = words(begun)
        apart = jnp.arange(begun.shape[1])[:, None] - jnp.arange(begun.shape[1])
        bucket = jnp.where(apart < 4, jnp.clip(apart, 0), 4 + jnp.log(jnp.maximum(apart, 4) / 4)).astype(int)
        bias = nn.Embed(8, 2)(bucket).transpose(2, 0, 1)[None]
        y = y + nn.MultiHeadDotProductAttention(2)(nn.RMSNorm()(y), mask=nn.make_causal_mask(begun))
        y = y + jnp.einsum("bhqk,bkd->bqd", nn.softmax(bias, -1), y)
        return words.attend(_Layer(self.width)(y, x))


def t5(width: int) -> Built:
    """T5."""
    return _Pair(width), (_text(), _text(7))


class _Llama(nn.Module):
    """Rotated queries and keys, fewer keys than queries, gated perceptrons."""

    width: int

    @nn.compact
    def __call__(self, text: Any) -> Any:
        x = nn.Embed(_WORDS, self.width)(text)
        for _ in range(2):
            x = x + self._attention(nn.RMSNorm()(x))
            y = nn.RMSNorm()(x)
            gate = nn.silu(nn.Dense(2 * self.width, use_bias=False)(y))
            x = x + nn.Dense(self.width, use_bias=False)(gate * nn.Dense(2 * self.width, use_bias=False)(y))
        return nn.Dense(_WORDS, use_bias=False)(nn.RMSNorm()(x))

    def _attention(self, x: Any) -> Any:
        head = self.width // 4
        queries = nn.DenseGeneral((4, head), use_bias=False)(x)
        keys, values = nn.DenseGeneral((2, head), use_bias=False)(x), nn.DenseGeneral((2, head))(x)
        angles = jnp.arange(x.shape[1])[:, None] / 10000.0 ** (jnp.arange(0, head, 2) / head)
        queries, keys = self._turned(queries, angles), self._turned(keys, angles)
        found = jax.nn.dot_product_attention(queries, keys, values, is_causal=True)
        return nn.DenseGeneral(self.width, (-2, -1), use_bias=False)(found)

    @staticmethod
    def _turned(x: Any, angles: Any) -> Any:
        one, two = jnp.split(x, 2, -1)
        cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
        return jnp.concatenate([one * cos - two * sin, two * cos + one * sin], -1)


def llama(width: int) -> Built:
    """Llama."""
    return _Llama(width), (_text(),)


class _Patches(nn.Module):
    """A vision transformer; ``windows`` of patches only see one another, first as they are, then moved."""

    width: int
    windows: int = 0

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.width, (4, 4), (4, 4))(x)
        batch, side = x.shape[0], x.shape[1]
        if not self.windows:
            x = x.reshape(batch, -1, self.width)
            start = self.param("start", nn.initializers.normal(), (1, 1, self.width))
            x = jnp.concatenate([jnp.broadcast_to(start, (batch, 1, self.width)), x], 1)
            x = x + self.param("places", nn.initializers.normal(), (1, side * side + 1, self.width))
            for _ in range(2):
                x = _Layer(self.width)(x)
            return nn.Dense(10)(nn.LayerNorm()(x[:, 0]))
        many, size = side // self.windows, self.windows
        for moved in (0, size // 2):
            y = jnp.roll(x, (-moved, -moved), (1, 2)).reshape(batch, many, size, many, size, self.width)
            y = _Layer(self.width)(y.transpose(0, 1, 3, 2, 4, 5).reshape(-1, size * size, self.width))
            y = y.reshape(batch, many, many, size, size, self.width).transpose(0, 1, 3, 2, 4, 5)
            x = jnp.roll(y.reshape(x.shape), (moved, moved), (1, 2))
        return nn.Dense(10)(x.mean((1, 2)))


def vit(width: int) -> Built:
    """A vision transformer."""
    return _Patches(width), (jax.random.normal(jax.random.key(1), (2, 16, 16, 3)),)


def swin(width: int) -> Built:
    """A vision transformer with windows."""
    return _Patches(width, windows=2), (jax.random.normal(jax.random.key(1), (2, 16, 16, 3)),)


class _Mixer(nn.Module):
    """Perceptrons over places and over channels, by turns."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.width, (4, 4), (4, 4))(x).reshape(x.shape[0], -1, self.width)
        for _ in range(2):
            y = nn.LayerNorm()(x).swapaxes(1, 2)
            x = x + nn.Dense(x.shape[1])(nn.gelu(nn.Dense(8)(y))).swapaxes(1, 2)
            x = x + nn.Dense(self.width)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))
        return nn.Dense(10)(x.mean(1))


def mlp_mixer(width: int) -> Built:
    """A mixer."""
    return _Mixer(width), (jax.random.normal(jax.random.key(1), (2, 16, 16, 3)),)


class _Latents(nn.Module):
    """A few latents that look at everything, and at one another: a perceiver."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        latents = self.param("latents", nn.initializers.normal(), (4, self.width))
        latents = jnp.broadcast_to(latents, (x.shape[0], 4, self.width))
        x = nn.Dense(self.width)(x)
        return nn.Dense(5)(_Layer(self.width)(_Layer(self.width)(latents, x)).mean(1))


def perceiver(width: int) -> Built:
    """A perceiver."""
    return _Latents(width), (jax.random.normal(jax.random.key(1), (2, 20, 6)),)


class _Conformer(nn.Module):
    """Attention and convolutions over frames of sound."""

    width: int
    training: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Dense(self.width)(nn.relu(nn.Conv(self.width, (3,), (2,))(x)))
        x = x + 0.5 * nn.Dense(self.width)(nn.swish(nn.Dense(2 * self.width)(nn.LayerNorm()(x))))
        x = x + nn.SelfAttention(2)(nn.LayerNorm()(x))
        y = nn.glu(nn.Dense(2 * self.width)(nn.LayerNorm()(x)))
        y = nn.Conv(self.width, (5,), feature_group_count=self.width)(y)
        y = nn.swish(nn.BatchNorm(use_running_average=not self.training)(y))
        return nn.log_softmax(nn.Dense(11)(x + nn.Dense(self.width)(y)))


def conformer(width: int) -> Built:
    """A conformer."""
    return _Conformer(width), (jax.random.normal(jax.random.key(1), (2, 16, 8)),)


class _Experts(nn.Module):
    """Words go to the expert that their gate likes best, as many as it has room for."""

    width: int

    @nn.compact
    def __call__(self, text: Any) -> Any:
        x = nn.Embed(_WORDS, self.width)(text).reshape(-1, self.width)
        shares = nn.softmax(nn.Dense(4)(x))
        weight, chosen = jax.lax.top_k(shares, 1)
        goes = jax.nn.one_hot(chosen[:, 0], 4)
        place = (jnp.cumsum(goes, 0) * goes).sum(-1) - 1
        sent = goes[:, :, None] * jax.nn.one_hot(place.astype(int), 8)[:, None]
        inside = jnp.einsum("nec,nd->ecd", sent, x)
        up = self.param("up", nn.initializers.lecun_normal(), (4, self.width, 2 * self.width))
        down = self.param("down", nn.initializers.lecun_normal(), (4, 2 * self.width, self.width))
        found = jnp.einsum("ech,ehd->ecd", nn.relu(jnp.einsum("ecd,edh->ech", inside, up)), down)
        return jnp.einsum("nec,ecd->nd", sent, found) * weight


def switch_experts(width: int) -> Built:
    """A mixture of experts with room for so many."""
    return _Experts(width), (_text(),)


class _Fourier(nn.Module):
    """Fourier transforms in place of attention."""

    width: int

    @nn.compact
    def __call__(self, text: Any) -> Any:
        x = nn.Embed(_WORDS, self.width)(text)
        x = nn.LayerNorm()(x + jnp.fft.fft2(x, axes=(1, 2)).real)
        return nn.Dense(5)(x + nn.Dense(self.width)(nn.gelu(nn.Dense(2 * self.width)(x))))


def fnet(width: int) -> Built:
    """FNet."""
    return _Fourier(width), (_text(),)
