"""Weights of torch's models made such that every one of them counts.

As they are built, norms are the identity, biases and scales of layers zero or nearly so, and deep networks in
evaluation mode return zeros: nothing of that would show that a result is wrong.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

#: Weights below this are those of scales that start at next to nothing.
_NOTHING = 1e-3
#: Ends of names of classes whose `p` is a probability.
_CHANCES = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "StochasticDepth")
_NORMS = nn.modules.batchnorm._BatchNorm


def enliven(model: Any, args: Any, kwargs: Any) -> None:
    """Move biases and scales from where they start, and let norms of batches see a batch."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point() and (weight.ndim < 2 or weight.abs().max() < _NOTHING):
                weight.add_(torch.randn_like(weight) * 0.1)
        norms = [each for each in model.modules() if isinstance(each, _NORMS) and each.track_running_stats]
        if not norms:
            return
        kept = [each.momentum for each in norms]
        for each in norms:
            each.momentum = 1.0
        model.eval()
        for each in norms:
            each.train()
        model(*args, **kwargs)
        for each, momentum in zip(norms, kept, strict=True):
            each.momentum = momentum


def without_chance(model: Any) -> None:
    """Turn off all that draws random numbers while a model trains: two frameworks draw different ones."""
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, float) and (
                "drop" in name or (name == "p" and "Dropout" in type(module).__name__)
            ):
                setattr(module, name, 0.0)
    config = getattr(model, "config", None)
    for name in list(vars(config)) if config is not None else ():
        if "drop" in name and isinstance(getattr(config, name), float):
            setattr(config, name, 0.0)
