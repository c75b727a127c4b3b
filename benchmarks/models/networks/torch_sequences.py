"""Networks over sequences: recurrent, convolutional, with state spaces and mixtures of experts."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

#: What a network is built and called with.
Built = tuple[Any, tuple[Any, ...]]


def lstm(width: int) -> Built:
    """Two layers of LSTM."""
    return nn.LSTM(width, width, 2, batch_first=True), (torch.randn(2, 7, width),)


def gru_both_ways(width: int) -> Built:
    """Two layers of GRU that read forwards and backwards."""
    return nn.GRU(width, width, 2, bidirectional=True), (torch.randn(7, 2, width),)


def elman(width: int) -> Built:
    """A plain recurrent network."""
    return nn.RNN(width, width, batch_first=True), (torch.randn(2, 9, width),)


def transformer(width: int) -> Built:
    """The encoder and decoder of torch itself."""
    model = nn.Transformer(width, 2, 1, 1, 2 * width, batch_first=True)
    return model, (torch.randn(2, 7, width), torch.randn(2, 5, width))


class _Dilated(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Gated convolutions that look back further with each layer, as in WaveNet."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.steps = [1, 2, 4, 8]
        self.gates = nn.ModuleList([nn.Conv1d(width, 2 * width, 2, dilation=each) for each in self.steps])
        self.mixed = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in self.steps])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skipped = torch.zeros_like(x)
        for step, gate, mix in zip(self.steps, self.gates, self.mixed, strict=True):
            filtered, opened = gate(functional.pad(x, (step, 0))).chunk(2, 1)
            now = mix(torch.tanh(filtered) * torch.sigmoid(opened))
            skipped, x = skipped + now, x + now
        return skipped


def wavenet(width: int) -> Built:
    """Convolutions with dilations."""
    return _Dilated(width), (torch.randn(2, width, 32),)


class _Experts(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Each row goes to the two experts of four that its gate likes best."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 4)
        self.up = nn.Parameter(torch.randn(4, width, 2 * width) * 0.2)
        self.down = nn.Parameter(torch.randn(4, 2 * width, width) * 0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, chosen = self.gate(x).topk(2, -1)
        shares = torch.zeros(x.shape[0], 4).scatter(1, chosen, weights.softmax(-1))
        hidden = functional.silu(torch.einsum("nd,edh->enh", x, self.up))
        return torch.einsum("enh,ehd,ne->nd", hidden, self.down, shares)


def mixture_of_experts(width: int) -> Built:
    """A mixture of experts."""
    return _Experts(width), (torch.randn(12, width),)


class _StateSpace(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A selective state space, a step at a time."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.rates = nn.Parameter(torch.rand(width, 4))
        self.ways, self.pace = nn.Linear(width, 8), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        into, out = self.ways(x).chunk(2, -1)
        pace = functional.softplus(self.pace(x))
        state, found = x.new_zeros(x.shape[0], x.shape[2], 4), []
        for step in range(x.shape[1]):
            kept = torch.exp(-pace[:, step, :, None] * self.rates.abs())
            state = kept * state + (pace[:, step] * x[:, step])[..., None] * into[:, step, None]
            found.append((state * out[:, step, None]).sum(-1))
        return torch.stack(found, 1)


def state_space(width: int) -> Built:
    """A state space."""
    return _StateSpace(width), (torch.randn(2, 10, width),)


class _Linear(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Attention without softmax, whose past is a sum of outer products."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.parts, self.last = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        queries, keys, values = self.parts(x).chunk(3, -1)
        queries, keys = functional.elu(queries) + 1, functional.elu(keys) + 1
        past = (keys[..., :, None] * values[..., None, :]).cumsum(1)
        scale = (queries * keys.cumsum(1)).sum(-1, keepdim=True)
        found: torch.Tensor = self.last(torch.einsum("bld,bldv->blv", queries, past) / (scale + 1e-6))
        return found


def linear_attention(width: int) -> Built:
    """Linear attention."""
    return _Linear(width), (torch.randn(2, 11, width),)


class _Tagger(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Words of a bag, embedded and summed, beside numbers: a recommender."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bags = nn.ModuleList([nn.EmbeddingBag(20, width, mode="sum") for _ in range(3)])
        self.dense, self.top = nn.Linear(5, width), nn.Linear(width + 6, 1)

    def forward(self, numbers: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        dense = torch.relu(self.dense(numbers))
        parts = torch.stack([dense, *(bag(words[:, place]) for place, bag in enumerate(self.bags))], 1)
        rows, columns = torch.triu_indices(4, 4, 1)
        products = (parts @ parts.transpose(1, 2))[:, rows, columns]
        return torch.sigmoid(self.top(torch.cat([dense, products], 1)))


def recommender(width: int) -> Built:
    """A recommender."""
    return _Tagger(width), (torch.randn(4, 5), torch.randint(0, 20, (4, 3, 6)))
