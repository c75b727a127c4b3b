"""Models of torchvision; each is called with two images of so many pixels a side."""

from __future__ import annotations

from typing import Any

from benchmarks.models.entry import Entry


def _row(name: str, side: int, *, trains: bool = True, quick: bool = False, **always: Any) -> Entry:
    return Entry(
        name,
        "torchvision",
        name,
        small={"side": side, "num_classes": 10},
        always=always,
        trains=trains,
        quick=quick,
    )


ENTRIES = (
    _row("alexnet", 64),
    _row("convnext_tiny", 32, trains=False),
    _row("deeplabv3_mobilenet_v3_large", 64, trains=False, weights_backbone=None),
    _row("densenet121", 32, trains=False),
    _row("efficientnet_b0", 32),
    _row("efficientnet_v2_s", 32, trains=False),
    _row("fasterrcnn_mobilenet_v3_large_320_fpn", 64, trains=False, weights_backbone=None),
    _row("fcn_resnet50", 32, trains=False, weights_backbone=None),
    _row("googlenet", 32, aux_logits=False, init_weights=False),
    _row("inception_v3", 75, trains=False, aux_logits=False, init_weights=False),
    _row("lraspp_mobilenet_v3_large", 64, trains=False, weights_backbone=None),
    _row("maxvit_t", 224, trains=False),
    _row("mnasnet0_5", 32),
    _row("mobilenet_v2", 32),
    _row("mobilenet_v3_small", 32, quick=True),
    _row("r3d_18", 16, trains=False),
    _row("regnet_x_400mf", 32, trains=False),
    _row("regnet_y_400mf", 32),
    _row("resnet18", 32, quick=True),
    _row("resnet50", 32, trains=False),
    _row("resnext50_32x4d", 32, trains=False),
    _row("shufflenet_v2_x0_5", 32),
    _row("squeezenet1_1", 32, quick=True),
    _row("ssdlite320_mobilenet_v3_large", 64, trains=False, weights_backbone=None),
    _row("swin_t", 32, trains=False),
    _row("swin_v2_t", 32, trains=False),
    _row("vgg11", 32),
    _row("vit_b_16", 224, trains=False),
    _row("wide_resnet50_2", 32, trains=False),
)
