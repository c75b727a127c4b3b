"""GPT-2 by torch, as people write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from benchmarks.gpt2.timing import STEPS, report, task
from examples.gpt2.model import EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable

GIVEN = task()
CONFIG = GIVEN.config
W: dict[str, Any] = {name: torch.tensor(array) for name, array in GIVEN.weights.items()}


def norm(name: str, x: Any) -> Any:
    """Apply a layer norm."""
    return functional.layer_norm(x, (CONFIG.width,), W[f"{name}.g"], W[f"{name}.b"], EPSILON)


def affine(name: str, x: Any) -> Any:
    """Apply a product and a bias."""
    return torch.addmm(W[f"{name}.b"], x, W[f"{name}.w"])


def heads(layer: int, x: Any) -> Any:
    """Return queries, keys and values of a layer, each [heads, length, depth]."""
    mixed = affine(f"h{layer}.qkv", norm(f"h{layer}.ln_1", x))
    return mixed.view(len(x), 3, CONFIG.heads, CONFIG.depth).permute(1, 2, 0, 3)


def after(layer: int, x: Any, attended: Any) -> Any:
    """Return what a layer makes of its input and of what it attends to."""
    rows = attended.transpose(0, 1).reshape(len(x), CONFIG.width)
    x = x + affine(f"h{layer}.proj", rows)
    inner = functional.gelu(affine(f"h{layer}.fc", norm(f"h{layer}.ln_2", x)), approximate="tanh")
    return x + affine(f"h{layer}.out", inner)


def logits(tokens: Any) -> Any:
    """Return the logits after each token."""
    x = W["wte"][tokens] + W["wpe"][: len(tokens)]
    for layer in range(CONFIG.layers):
        q, k, v = heads(layer, x)
        x = after(layer, x, functional.scaled_dot_product_attention(q, k, v, is_causal=True))
    return norm("ln_f", x) @ W["wte"].T


def main() -> None:
    """Time the three functions."""
    torch.set_num_threads(GIVEN.threads)
    tokens, targets = torch.tensor(GIVEN.tokens).long(), torch.tensor(GIVEN.targets).long()

    def train() -> None:
        for weight in W.values():
            weight.requires_grad_(True)
            weight.grad = None
        functional.cross_entropy(logits(tokens), targets).backward()
        for weight in W.values():
            weight.requires_grad_(False)

    def decode() -> None:
        shape = (CONFIG.heads, STEPS, CONFIG.depth)
        caches = [(torch.zeros(shape), torch.zeros(shape)) for _ in range(CONFIG.layers)]
        token = torch.tensor([1])
        for place in range(STEPS):
            x = W["wte"][token] + W["wpe"][place : place + 1]
            for layer, (keys, values) in enumerate(caches):
                q, k, v = heads(layer, x)
                keys[:, place], values[:, place] = k[:, 0], v[:, 0]
                seen = keys[:, : place + 1], values[:, : place + 1]
                x = after(layer, x, functional.scaled_dot_product_attention(q, *seen))
            token = (norm("ln_f", x) @ W["wte"].T).argmax(1)

    def without_gradients(run: Callable[[], Any]) -> Callable[[], Any]:
        def inner() -> Any:
            with torch.no_grad():
                return run()

        return inner

    report(0.0, without_gradients(lambda: logits(tokens)), train, without_gradients(decode))


main()
