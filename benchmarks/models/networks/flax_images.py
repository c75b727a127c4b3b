"""Networks over images in flax's linen."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

#: What a network is built and called with.
Built = tuple[Any, tuple[Any, ...]]


def _images(side: int, channels: int = 3) -> jax.Array:
    return jax.random.normal(jax.random.key(1), (2, side, side, channels))


class _LeNet(nn.Module):
    """Convolutions, pooling and products."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.avg_pool(nn.tanh(nn.Conv(self.width, (5, 5))(x)), (2, 2), (2, 2))
        x = nn.max_pool(nn.tanh(nn.Conv(2 * self.width, (5, 5), padding="VALID")(x)), (2, 2), (2, 2))
        return nn.Dense(10)(nn.tanh(nn.Dense(32)(x.reshape(x.shape[0], -1))))


def lenet(width: int) -> Built:
    """LeNet."""
    return _LeNet(width), (_images(16),)


class _Residual(nn.Module):
    """Blocks with ``groups`` of channels; ``squeezed`` ones weigh these by their means."""

    width: int
    groups: int = 1
    squeezed: bool = False
    training: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for stage in range(2):
            width, stride = self.width << stage, 1 + stage
            y = nn.relu(self._norm(nn.Conv(width, (3, 3), (stride, stride), use_bias=False)(x)))
            y = self._norm(nn.Conv(width, (3, 3), feature_group_count=self.groups, use_bias=False)(y))
            if self.squeezed:
                scale = nn.Dense(width)(nn.relu(nn.Dense(width // 4)(y.mean((1, 2)))))
                y = y * nn.sigmoid(scale)[:, None, None]
            x = nn.relu(y + nn.Conv(width, (1, 1), (stride, stride))(x))
        return nn.Dense(10)(x.mean((1, 2)))

    def _norm(self, x: Any) -> Any:
        return nn.BatchNorm(use_running_average=not self.training)(x)


def resnet(width: int) -> Built:
    """A residual network."""
    return _Residual(width), (_images(16),)


def resnext(width: int) -> Built:
    """A residual network with groups of channels."""
    return _Residual(width, groups=4), (_images(16),)


def squeeze_excite(width: int) -> Built:
    """A residual network whose channels are weighed."""
    return _Residual(width, squeezed=True), (_images(16),)


class _Plain(nn.Module):
    """Convolutions one after another, with pooling: VGG."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for stage in range(3):
            for _ in range(2):
                x = nn.relu(nn.Conv(self.width << stage, (3, 3))(x))
            x = nn.max_pool(x, (2, 2), (2, 2))
        return nn.Dense(10)(x.reshape(x.shape[0], -1))


def vgg(width: int) -> Built:
    """VGG."""
    return _Plain(width), (_images(16),)


class _Separable(nn.Module):
    """Convolutions of each channel by itself between products of channels: MobileNet."""

    width: int
    training: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.width, (3, 3), (2, 2))(x)
        for _ in range(2):
            y = nn.Conv(4 * self.width, (1, 1), use_bias=False)(x)
            y = jax.nn.relu6(nn.BatchNorm(use_running_average=not self.training)(y))
            y = nn.Conv(4 * self.width, (3, 3), feature_group_count=4 * self.width)(y)
            x = x + nn.Conv(self.width, (1, 1))(jax.nn.hard_swish(y))
        return nn.Dense(10)(x.mean((1, 2)))


def mobilenet(width: int) -> Built:
    """MobileNet."""
    return _Separable(width), (_images(16),)


class _Dense(nn.Module):
    """Each layer sees all before it: DenseNet."""

    width: int
    training: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.width, (3, 3))(x)
        for _ in range(3):
            y = nn.relu(nn.BatchNorm(use_running_average=not self.training)(x))
            x = jnp.concatenate([x, nn.Conv(self.width, (3, 3))(y)], -1)
        return nn.Dense(10)(nn.avg_pool(x, (2, 2), (2, 2)).mean((1, 2)))


def densenet(width: int) -> Built:
    """DenseNet."""
    return _Dense(width), (_images(8),)


class _ConvNext(nn.Module):
    """Large filters of each channel, norms of layers, and scales of branches."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.LayerNorm()(nn.Conv(self.width, (4, 4), (4, 4))(x))
        for _ in range(2):
            y = nn.LayerNorm()(nn.Conv(self.width, (7, 7), feature_group_count=self.width)(x))
            y = nn.Dense(self.width)(nn.gelu(nn.Dense(4 * self.width)(y)))
            x = x + y * self.param(f"scale_{_}", nn.initializers.constant(0.1), (self.width,))
        return nn.Dense(10)(nn.LayerNorm()(x.mean((1, 2))))


def convnext(width: int) -> Built:
    """ConvNeXt."""
    return _ConvNext(width), (_images(32),)


class _UNet(nn.Module):
    """Down and up again; with a time, the denoiser of a diffusion model."""

    width: int

    @nn.compact
    def __call__(self, x: Any, time: Any) -> Any:
        waves = time[:, None] * 2.0 ** jnp.arange(4)
        time = nn.swish(nn.Dense(self.width)(jnp.concatenate([jnp.sin(waves), jnp.cos(waves)], -1)))
        one = nn.swish(nn.GroupNorm(4)(nn.Conv(self.width, (3, 3))(x)) + time[:, None, None])
        two = nn.swish(nn.GroupNorm(4)(nn.Conv(2 * self.width, (3, 3), (2, 2))(one)))
        flat = two.reshape(two.shape[0], -1, two.shape[-1])
        two = two + nn.SelfAttention(2)(nn.LayerNorm()(flat)).reshape(two.shape)
        shape = (two.shape[0], *one.shape[1:3], two.shape[-1])
        up = nn.Conv(self.width, (3, 3))(jax.image.resize(two, shape, "nearest"))
        return nn.Conv(3, (3, 3))(jnp.concatenate([one, up], -1))


def denoiser(width: int) -> Built:
    """The denoiser of a diffusion model."""
    return _UNet(width), (_images(8), jnp.array([0.1, 0.7]))


class _Generator(nn.Module):
    """Noise made an image by transposed convolutions."""

    width: int
    training: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Dense(16 * self.width)(x).reshape(-1, 4, 4, self.width)
        for _ in range(2):
            x = nn.BatchNorm(use_running_average=not self.training)(x)
            x = nn.leaky_relu(nn.ConvTranspose(self.width, (4, 4), (2, 2))(x))
        return nn.tanh(nn.Conv(3, (3, 3))(x))


def gan_generator(width: int) -> Built:
    """The generator of a GAN."""
    return _Generator(width), (jax.random.normal(jax.random.key(2), (3, 8)),)


class _Autoencoder(nn.Module):
    """A variational autoencoder; its noise is an argument."""

    width: int

    @nn.compact
    def __call__(self, x: Any, noise: Any) -> Any:
        y = nn.relu(nn.Conv(self.width, (3, 3), (2, 2))(x))
        y = nn.Dense(2 * noise.shape[-1])(y.reshape(y.shape[0], -1))
        mean, logarithm = jnp.split(y, 2, -1)
        z = nn.relu(nn.Dense(16 * self.width)(mean + noise * jnp.exp(logarithm / 2)))
        image = nn.ConvTranspose(3, (3, 3), (2, 2))(z.reshape(-1, 4, 4, self.width))
        divergence = -0.5 * (1 + logarithm - mean**2 - jnp.exp(logarithm)).sum(-1)
        return nn.sigmoid(image), divergence


def variational_autoencoder(width: int) -> Built:
    """A variational autoencoder."""
    return _Autoencoder(width), (_images(8), jax.random.normal(jax.random.key(3), (2, 6)))


class _Spatial(nn.Module):
    """An image looked at through places that the network chooses: a spatial transformer."""

    width: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.relu(nn.Conv(self.width, (3, 3), (2, 2))(x)).reshape(x.shape[0], -1)
        turn = nn.Dense(6, bias_init=lambda *_: jnp.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]))(y)
        side = x.shape[1]
        line = jnp.linspace(-1.0, 1.0, side)
        grid = jnp.stack([*jnp.meshgrid(line, line), jnp.ones((side, side))], -1)
        places = (jnp.einsum("hwk,bik->bihw", grid, turn.reshape(-1, 2, 3)) + 1) * (side - 1) / 2

        def seen(image: Any, where: Any) -> Any:
            def look(channel: Any) -> Any:
                return jax.scipy.ndimage.map_coordinates(channel, [where[1], where[0]], 1, "nearest")

            return jax.vmap(look, -1, -1)(image)

        return nn.Dense(4)(jax.vmap(seen)(x, places).mean((1, 2)))


def spatial_transformer(width: int) -> Built:
    """A spatial transformer."""
    return _Spatial(width), (_images(8),)
