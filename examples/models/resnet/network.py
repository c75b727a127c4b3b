"""The network: torchvision's residual networks, whose form the names and shapes of weights say."""

from __future__ import annotations

from typing import Any

import numpy as np

import mind_mlir.numpy as mnp

#: What keeps the norms from dividing by zero.
_EPSILON = 1e-5


class ModelError(Exception):
    """A model or an image that the example cannot use."""


#: Blocks of the four stages, and whether blocks have three convolutions; widths of the stages.
SIZES = {
    "tiny": ((1, 1, 1, 1), False, (8, 16, 16, 32)),
    "18": ((2, 2, 2, 2), False, (64, 128, 256, 512)),
    "34": ((3, 4, 6, 3), False, (64, 128, 256, 512)),
    "50": ((3, 4, 6, 3), True, (64, 128, 256, 512)),
}
#: How many classes the networks of random weights tell apart: those of ImageNet.
CLASSES = 1000
#: How much wider than its convolution of 3 x 3 the result of a block of three is.
_EXPANSION = 4


def random_weights(size: str, seed: int = 0) -> dict[str, Any]:
    """Return weights of a network of one of the `SIZES`, under torchvision's names."""
    counts, deep, widths = SIZES[size]
    random = np.random.default_rng(seed)
    found: dict[str, Any] = {}

    def add(convolution: str, norm: str, outputs: int, inputs: int, window: int) -> None:
        scale = (2 / (inputs * window * window)) ** 0.5
        shape = (outputs, inputs, window, window)
        found[f"{convolution}.weight"] = (scale * random.standard_normal(shape)).astype(np.float32)
        found[f"{norm}.weight"] = np.full(outputs, 0.7, np.float32)
        found[f"{norm}.bias"] = np.zeros(outputs, np.float32)
        found[f"{norm}.running_mean"] = np.zeros(outputs, np.float32)
        found[f"{norm}.running_var"] = np.ones(outputs, np.float32)

    inputs = widths[0]
    add("conv1", "bn1", inputs, 3, 7)
    for stage, (count, width) in enumerate(zip(counts, widths, strict=True), start=1):
        for block in range(count):
            name = f"layer{stage}.{block}"
            outputs = width * _EXPANSION if deep else width
            windows = (1, 3, 1) if deep else (3, 3)
            middles = (inputs, *(width for _ in windows[1:]), outputs)
            for place, window in enumerate(windows):
                first, last = middles[place], middles[place + 1]
                add(f"{name}.conv{place + 1}", f"{name}.bn{place + 1}", last, first, window)
            if inputs != outputs or (stage > 1 and not block):
                add(f"{name}.downsample.0", f"{name}.downsample.1", outputs, inputs, 1)
            inputs = outputs
    found["fc.weight"] = (inputs**-0.5 * random.standard_normal((CLASSES, inputs))).astype(np.float32)
    found["fc.bias"] = np.zeros(CLASSES, np.float32)
    return found


def check_weights(params: Any) -> None:
    """Raise a `ModelError` where ``params`` are not those of a residual network."""
    wanted = ("conv1.weight", "bn1.running_var", "layer4.0.conv2.weight", "fc.weight", "fc.bias")
    missing = [name for name in wanted if name not in params]
    if missing:
        raise ModelError(f"these are no weights of a residual network: there is no {', '.join(missing)}")


def logits(params: Any, images: Any) -> Any:
    """Return f32[images, classes] for f32[images, 3, height, width]."""
    x = images.transpose(0, 2, 3, 1)  # convolutions have channels last
    x = mnp.relu(_convolved(params, "conv1", "bn1", x, stride=2))
    x = mnp.reduce_window(
        x,
        window_dims=(1, 3, 3, 1),
        strides=(1, 2, 2, 1),
        padding_low=(0, 1, 1, 0),
        padding_high=(0, 1, 1, 0),
        base_dilation=(1,) * 4,
        window_dilation=(1,) * 4,
        reduce="Max",
    )
    for stage in range(1, 5):
        block = 0
        while f"layer{stage}.{block}.conv1.weight" in params:
            x = _block(params, f"layer{stage}.{block}", x, stride=2 if stage > 1 and not block else 1)
            block += 1
    return x.mean(axis=(1, 2)) @ params["fc.weight"].T + params["fc.bias"]


def _block(params: Any, name: str, x: Any, stride: int) -> Any:
    """Return what a residual block makes of ``x``; its first convolution of 3 x 3 has the stride."""
    steps = [step for step in (1, 2, 3) if f"{name}.conv{step}.weight" in params]
    y = x
    for step in steps:
        taps = params[f"{name}.conv{step}.weight"].shape[2]
        y = _convolved(params, f"{name}.conv{step}", f"{name}.bn{step}", y, stride if taps == 3 else 1)
        stride = 1 if taps == 3 else stride
        y = mnp.relu(y) if step != steps[-1] else y
    if f"{name}.downsample.0.weight" in params:
        apart = x.shape[1] // y.shape[1]
        x = _convolved(params, f"{name}.downsample.0", f"{name}.downsample.1", x, apart)
    return mnp.relu(x + y)


def _convolved(params: Any, name: str, norm: str, x: Any, stride: int = 1) -> Any:
    """Return a convolution of ``x``, and the norm with the statistics of training behind it."""
    filter_ = params[f"{name}.weight"]
    _, inputs, window, _ = filter_.shape
    y = mnp.convolution(
        x,
        filter_.transpose(2, 3, 1, 0),
        strides=(stride, stride),
        padding_low=(window // 2,) * 2,
        padding_high=(window // 2,) * 2,
        groups=x.shape[-1] // inputs,
    )
    scale = params[f"{norm}.weight"] * mnp.rsqrt(params[f"{norm}.running_var"] + _EPSILON)
    return y * scale + (params[f"{norm}.bias"] - params[f"{norm}.running_mean"] * scale)
