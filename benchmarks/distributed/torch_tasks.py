"""The tasks by torch, as people write them: DistributedDataParallel and collectives of gloo."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from benchmarks.distributed.child import RATE, arguments, factors, serve, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIONS = arguments()
WIDTH, HEADS, VOCABULARY, CONTEXT = 768, 12, 50304, 1024


class Layer(nn.Module):  # type: ignore[misc] # torch may not be there
    """A layer: attention, and what follows it."""

    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc, self.out = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """Return what goes on along the layers."""
        batch, length, _ = x.shape
        mixed = self.qkv(self.ln_1(x)).view(batch, length, 3, HEADS, WIDTH // HEADS)
        q, k, v = mixed.permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.out(functional.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt2(nn.Module):  # type: ignore[misc] # torch may not be there
    """GPT-2: from tokens to the mean cross-entropy."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(OPTIONS.layers))
        self.ln_f = nn.LayerNorm(WIDTH)
        for each in (self.wte, self.wpe):
            nn.init.normal_(each.weight, std=0.02)

    def forward(self, given: Any) -> Any:
        """Return the loss."""
        seen = given[:, :-1]
        x = self.wte(seen) + self.wpe.weight[: seen.shape[1]]
        for layer in self.layers:
            x = layer(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return functional.cross_entropy(logits.reshape(-1, VOCABULARY), given[:, 1:].reshape(-1))


def gpt2() -> Callable[[], object]:
    """Return what makes a step of training: processes share the batch."""
    torch.manual_seed(0)
    model: Any = Gpt2()
    if OPTIONS.processes > 1:
        model = DistributedDataParallel(model)
    optimiser = torch.optim.AdamW(model.parameters(), RATE, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    given = torch.tensor(tokens(OPTIONS)).long().chunk(OPTIONS.processes)[OPTIONS.rank]

    def advance() -> None:
        optimiser.zero_grad(set_to_none=True)
        model(given).backward()
        optimiser.step()

    return advance


def product() -> Callable[[], object]:
    """Return what multiplies: processes share the columns."""
    x, w = map(torch.tensor, factors(OPTIONS))
    part = w.chunk(OPTIONS.processes, 1)[OPTIONS.rank].contiguous()

    def multiply() -> Any:
        found = x @ part
        if OPTIONS.task == "product" or OPTIONS.processes == 1:
            return found
        parts = [torch.empty_like(found) for _ in range(OPTIONS.processes)]
        distributed.all_gather(parts, found)
        return torch.cat(parts, 1)

    return multiply


torch.set_num_threads(1)
if OPTIONS.processes > 1:
    os.environ |= {"MASTER_ADDR": "localhost", "MASTER_PORT": str(OPTIONS.port)}
    distributed.init_process_group("gloo", rank=OPTIONS.rank, world_size=OPTIONS.processes)
serve(
    OPTIONS,
    OPTIONS.rank,
    distributed.barrier if OPTIONS.processes > 1 else list,
    gpt2() if OPTIONS.task == "gpt2" else product(),
)
