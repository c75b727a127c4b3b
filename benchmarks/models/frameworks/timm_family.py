"""Models of timm, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import timm
import torch

if TYPE_CHECKING:
    from benchmarks.models.entry import Entry


def build(entry: Entry, *, real: bool) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a model, and the arguments that it is called with."""
    settings = entry.settings(real=real)
    side = settings.pop("side", None)
    model = timm.create_model(entry.architecture, pretrained=False, **settings)
    return model, (torch.randn(2, 3, *([side, side] if side else model.default_cfg["input_size"][1:])),), {}
