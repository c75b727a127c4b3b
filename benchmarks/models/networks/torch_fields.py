"""Networks over images, points, graphs and functions."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

#: What a network is built and called with.
Built = tuple[Any, tuple[Any, ...]]


def perceptron(width: int) -> Built:
    """Products and activations."""
    layers = [nn.Linear(width, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10), nn.LogSoftmax(-1)]
    return nn.Sequential(*layers), (torch.randn(8, width),)


def autoencoder(width: int) -> Built:
    """An image made small and large again."""
    model = nn.Sequential(
        nn.Conv2d(3, width, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(width, 2 * width, 3, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 3, 2, 1, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 3, 3, 2, 1, 1),
        nn.Sigmoid(),
    )
    return model, (torch.rand(2, 3, 16, 16),)


def gan_generator(width: int) -> Built:
    """Noise made an image."""
    model = nn.Sequential(
        nn.ConvTranspose2d(width, 4 * width, 4, bias=False),
        nn.BatchNorm2d(4 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(4 * width, 2 * width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, 3, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
    return model, (torch.randn(4, width, 1, 1),)


def gan_discriminator(width: int) -> Built:
    """An image judged, with weights of norm one."""
    normed = nn.utils.parametrizations.weight_norm
    model = nn.Sequential(
        normed(nn.Conv2d(3, width, 4, 2, 1)),
        nn.LeakyReLU(0.2),
        normed(nn.Conv2d(width, 2 * width, 4, 2, 1)),
        nn.InstanceNorm2d(2 * width, affine=True),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(32 * width, 1),
    )
    return model, (torch.randn(4, 3, 16, 16),)


class _UNet(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Two levels down and up again, with what was seen on the way beside it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = self._block(3, width), self._block(width, 2 * width)
        self.middle = self._block(2 * width, 4 * width)
        self.up, self.third = (
            nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
            self._block(4 * width, 2 * width),
        )
        self.last = self._block(3 * width, width)
        self.out = nn.Conv2d(width, 2, 1)

    @staticmethod
    def _block(into: int, out: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(into, out, 3, padding=1), nn.GroupNorm(4, out), nn.SiLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.first(x)
        two = self.second(functional.max_pool2d(one, 2))
        three = self.up(self.middle(functional.max_pool2d(two, 2)))
        two = self.third(torch.cat([two, three], 1))
        wide = functional.interpolate(two, scale_factor=2, mode="bilinear", align_corners=False)
        found: torch.Tensor = self.out(self.last(torch.cat([one, wide], 1)))
        return found


def unet(width: int) -> Built:
    """A U-Net."""
    return _UNet(width), (torch.randn(2, 3, 16, 16),)


class _Graph(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Messages along edges, weighed by attention, summed where they arrive."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.message, self.score = nn.Linear(2 * width, width), nn.Linear(2 * width, 1)
        self.update = nn.GRUCell(width, width)

    def forward(self, nodes: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            pairs = torch.cat([nodes[edges[0]], nodes[edges[1]]], -1)
            weights = functional.leaky_relu(self.score(pairs)).exp()
            total = torch.zeros(len(nodes), 1).index_add(0, edges[1], weights)
            sent = torch.relu(self.message(pairs)) * weights / (total[edges[1]] + 1e-6)
            nodes = self.update(torch.zeros_like(nodes).index_add(0, edges[1], sent), nodes)
        return nodes


def graph_attention(width: int) -> Built:
    """A network over a graph."""
    return _Graph(width), (torch.randn(9, width), torch.randint(0, 9, (2, 20)))


class _Variational(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A variational autoencoder; its noise is an argument."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(20, 2 * width), nn.Sequential(nn.Linear(width, 20), nn.Sigmoid())

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, logarithm = self.into(x).chunk(2, -1)
        divergence = -0.5 * (1 + logarithm - mean**2 - logarithm.exp()).sum(-1)
        return self.out(mean + noise * (logarithm / 2).exp()), divergence


def variational(width: int) -> Built:
    """A variational autoencoder."""
    return _Variational(width), (torch.randn(4, 20), torch.randn(4, width))


class _Field(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Colours along rays from places: waves of each coordinate, and the light that gets through."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(24, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        scaled = points[..., None] * 2.0 ** torch.arange(4) * math.pi
        found = self.layers(torch.cat([scaled.sin(), scaled.cos()], -1).flatten(-2))
        opaque = 1 - torch.exp(-torch.relu(found[..., 3]) * 0.1)
        through = torch.cumprod(1 - opaque + 1e-6, -1).roll(1, -1)
        through = torch.cat([torch.ones_like(through[..., :1]), through[..., 1:]], -1)
        return ((opaque * through)[..., None] * found[..., :3].sigmoid()).sum(-2)


def radiance_field(width: int) -> Built:
    """A radiance field."""
    return _Field(width), (torch.randn(6, 8, 3),)


class _Flow(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Couplings whose inverse is known, and the logarithm of their volume."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            [nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 6)) for _ in range(3)]
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        volume = x.new_zeros(len(x))
        for part in self.parts:
            still, moved = x[:, 0::2], x[:, 1::2]
            scale, shift = part(still).chunk(2, -1)
            x = torch.cat([moved * scale.tanh().exp() + shift, still], -1)
            volume = volume + scale.tanh().sum(-1)
        return x, volume


def normalising_flow(width: int) -> Built:
    """A flow."""
    return _Flow(width), (torch.randn(5, 6),)
