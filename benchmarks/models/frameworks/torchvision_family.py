"""Models of torchvision, by the function that builds each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torchvision

if TYPE_CHECKING:
    from benchmarks.models.entry import Entry

_DETECTORS = ("rcnn", "ssd", "retinanet", "fcos")


def build(entry: Entry, *, real: bool) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return a model, and the arguments that it is called with."""
    settings = entry.settings(real=real)
    side = settings.pop("side", 224)
    model = torchvision.models.get_model(entry.architecture, weights=None, **settings)
    if any(each in entry.architecture for each in _DETECTORS):
        return model, ([torch.rand(3, side, side) for _ in range(2)],), {}
    shape = (2, 3, 4, side, side) if "3d" in entry.architecture else (2, 3, side, side)
    return model, (torch.randn(shape),), {}
