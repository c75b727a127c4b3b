"""Convolutions of all kinds beside torch's: first layers, few pixels, groups, strided, transposed."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import mind_mlir
from benchmarks.command import is_child, parser, run_child, show
from benchmarks.measure import ROUND_SECONDS, compare
from benchmarks.report import Report
from mind_mlir import Builder, DType, TensorType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.report import Row


class Case(NamedTuple):
    """A convolution of square images.

    Attributes:
        name: What it stands for.
        image: Its input, ``[N, H, W, C]``.
        window: Height and width of the filter.
        features: How many features are computed.
        stride: How far apart windows begin; of a transposed one, how far apart pixels lie.
        groups: How many groups there are.
        is_transposed: Whether it makes images larger.
    """

    name: str
    image: tuple[int, int, int, int]
    window: int
    features: int
    stride: int = 1
    groups: int = 1
    is_transposed: bool = False

    @property
    def filter_shape(self) -> tuple[int, int, int, int]:
        """Return the shape of the filter."""
        return (self.window, self.window, self.image[-1] // self.groups, self.features)


CASES = (
    Case("first layer", (1, 224, 224, 3), 7, 64, 2),
    Case("first layer", (1, 224, 224, 3), 3, 32, 2),
    Case("patches", (1, 224, 224, 3), 16, 768, 16),
    Case("3x3", (1, 56, 56, 64), 3, 64),
    Case("3x3", (1, 28, 28, 128), 3, 128),
    Case("3x3", (1, 14, 14, 256), 3, 256),
    Case("few pixels", (1, 7, 7, 512), 3, 512),
    Case("few pixels", (1, 4, 4, 512), 3, 512),
    Case("strided", (1, 56, 56, 64), 3, 128, 2),
    Case("strided", (1, 28, 28, 128), 1, 256, 2),
    Case("1x1", (1, 56, 56, 64), 1, 256),
    Case("1x1", (1, 14, 14, 480), 1, 112),
    Case("1x1", (1, 7, 7, 960), 1, 160),
    Case("grouped", (1, 56, 56, 128), 3, 128, 1, 32),
    Case("grouped", (1, 14, 14, 512), 3, 512, 1, 32),
    Case("grouped", (1, 28, 28, 240), 3, 240, 1, 10),
    Case("depthwise", (1, 112, 112, 32), 3, 32, 1, 32),
    Case("depthwise", (1, 56, 56, 96), 3, 96, 2, 96),
    Case("depthwise", (1, 14, 14, 480), 5, 480, 1, 480),
    Case("depthwise", (1, 7, 7, 960), 5, 960, 1, 960),
    Case("depthwise", (1, 32, 32, 96), 7, 96, 1, 96),
    Case("depthwise", (1, 7, 7, 768), 7, 768, 1, 768),
    Case("transposed", (1, 14, 14, 256), 2, 128, 2, 1, True),
    Case("transposed", (1, 14, 14, 256), 4, 128, 2, 1, True),
    Case("transposed", (1, 28, 28, 64), 3, 32, 2, 1, True),
)

_ROUNDS = 7
_NOTES = [
    "times are those of the processor, the best of alternating rounds",
    "ratio is the median of torch / ours, above 1 ours is faster",
    "torch has images in its own layout or with channels last, whichever is faster",
]


def module_of(case: Case) -> mind_mlir.Module:
    """Return a case as a program of the image and the filter."""
    builder = Builder()
    low = case.window - 1 - (case.window - 1) // 2 if case.is_transposed else (case.window - 1) // 2
    high = (case.window - 1) // 2 + (case.stride - 1 if case.is_transposed else 0)
    if case.name == "patches":
        low = high = 0
    steps = "base_dilation" if case.is_transposed else "strides"
    x, w = (
        builder.input(n, TensorType(DType.F32, s)) for n, s in (("x", case.image), ("w", case.filter_shape))
    )
    attributes: dict[str, Any] = {
        "padding_low": (low, low),
        "padding_high": (high, high),
        steps: (case.stride, case.stride),
        "groups": case.groups,
        "accum_dtype": DType.F32,
        "out_dtype": DType.F32,
    }
    return builder.build([builder.emit("Convolution", x, w, **attributes)])


def _torch(case: Case, x: Any, w: Any, *, last: bool) -> Callable[[], object]:
    """Return a call of torch's convolution of the same size."""
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    image, taps = torch.from_numpy(x).permute(0, 3, 1, 2), torch.from_numpy(w).permute(3, 2, 0, 1)
    form = {"memory_format": torch.channels_last if last else torch.contiguous_format}
    image, taps = image.contiguous(**form), taps.contiguous(**form)
    function = torch.nn.functional.conv2d
    padding = 0 if case.name == "patches" else (case.window - 1) // 2
    more: dict[str, Any] = {"stride": case.stride, "padding": padding, "groups": case.groups}
    if case.is_transposed:
        function = torch.nn.functional.conv_transpose2d
        taps = taps.transpose(0, 1).contiguous(**form)
        more["output_padding"] = case.stride - 1 if case.window % 2 else case.stride - 2
    return lambda: function(image, taps, **more)


def _row(case: Case, seconds: float, *, constant: bool) -> Row:
    random = np.random.default_rng(0)
    x = random.standard_normal(case.image, dtype=np.float32)
    w = random.standard_normal(case.filter_shape, dtype=np.float32)
    if constant:
        ours = mind_mlir.compile(module_of(case), threads=1, constants={"w": w}).bind(x)
    else:
        ours = mind_mlir.compile(module_of(case), threads=1).bind(x, w)
    with import_module("torch").no_grad():
        found = [
            compare(
                ours, _torch(case, x, w, last=last), rounds=_ROUNDS, seconds=seconds, clock=time.thread_time
            )
            for last in (False, True)
        ]
    times = min(found, key=lambda each: each.ratio)
    return {
        "kind": case.name,
        "image": " x ".join(map(str, case.image)),
        "window": case.window,
        "features": case.features,
        "stride": case.stride,
        "groups": case.groups,
        "ours ms": times.ours * 1e3,
        "torch ms": times.theirs * 1e3,
        "ratio": times.ratio,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options_parser = parser("convolutions", __doc__)
    options_parser.add_argument("--seconds", type=float, default=ROUND_SECONDS, help="a candidate, a round")
    options_parser.add_argument("--only", default="", help="kinds to measure, for example depthwise,grouped")
    options_parser.add_argument("--constant", action="store_true", help="the filter is part of the program")
    options = options_parser.parse_args(arguments)
    if not is_child():
        return run_child("convolutions", arguments)
    wanted = [each for each in CASES if not options.only or each.name in options.only.split(",")]
    rows = [_row(case, options.seconds, constant=options.constant) for case in wanted]
    return show(Report("f32 convolutions on one thread", rows, _NOTES), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
