"""The workloads in plain numpy: what numpy is measured with, and in f64 what errors are relative to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: Sequence, width and heads of the transformer block.
SEQUENCE, WIDTH, HEADS = 128, 768, 12


def product(a: Any, b: Any) -> Any:
    """Matrix product of the last two axes."""
    return a @ b


def chain(x: Any, a: Any, b: Any, c: Any) -> Any:
    """Seven elementwise operations with broadcast rows."""
    return np.maximum(x * a + b, 0) * np.exp(-c * x) + x


def softmax(x: Any) -> Any:
    """Softmax of the last axis."""
    exponentials = np.exp(x - x.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def layer_norm(x: Any, g: Any, b: Any) -> Any:
    """Normalisation of the last axis, with gain and offset."""
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / np.sqrt(variance + 1e-5) * g + b


def transposed(x: Any) -> Any:
    """The transpose in memory of its own."""
    return np.ascontiguousarray(x.T)


def attention(q: Any, k: Any, v: Any) -> Any:
    """Scaled dot-product attention, heads of 64."""
    return softmax((q * (1 / 8)) @ k.swapaxes(-1, -2)) @ v


def causal(q: Any, k: Any, v: Any) -> Any:
    """Attention in which no row sees a later one."""
    scores = (q * (1 / 8)) @ k.swapaxes(-1, -2)
    below = np.tril(np.ones(scores.shape[-2:], bool))
    return softmax(np.where(below, scores, scores.dtype.type(-np.inf))) @ v


def depthwise(x: Any, w: Any) -> Any:
    """Convolution of NHWC by 3x3 filters, one a channel, with padding SAME."""
    _, rows, columns, _ = x.shape
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    total = np.zeros_like(x)
    for row in range(3):
        for column in range(3):
            total += padded[:, row : row + rows, column : column + columns] * w[row, column]
    return total


def convolution(x: Any, w: Any, *, stride: int) -> Any:
    """Convolution of NHWC by HWIO with padding SAME."""
    height, width, depth, filters = w.shape
    count, rows, columns, _ = x.shape
    out = -(-rows // stride), -(-columns // stride)
    pads = [
        max((extent - 1) * stride + window - size, 0)
        for extent, window, size in zip(out, (height, width), (rows, columns), strict=True)
    ]
    around = [(pad // 2, pad - pad // 2) for pad in pads]
    padded = np.pad(x, ((0, 0), *around, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (1, 2))
    patches = windows[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)
    flat = patches.reshape(count * out[0] * out[1], height * width * depth)
    return (flat @ w.reshape(height * width * depth, filters)).reshape(count, *out, filters)


def layers(parameters: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return weights and biases, a pair a layer, of parameters called ``w0``, ``b0``, ``w1``..."""
    return [(parameters[f"w{i}"], parameters[f"b{i}"]) for i in range(len(parameters) // 2)]


def perceptron(x: Any, **parameters: Any) -> Any:
    """Dense layers with relu between them."""
    *hidden, (weights, bias) = layers(parameters)
    for inner, offset in hidden:
        x = np.maximum(x @ inner + offset, 0)
    return x @ weights + bias


def perceptron_gradients(x: Any, t: Any, **parameters: Any) -> tuple[Any, ...]:
    """Mean squared error and its gradients, in the order of the parameters."""
    stack = layers(parameters)
    inputs = [x]
    for number, (weights, bias) in enumerate(stack, 1):
        x = x @ weights + bias
        inputs.append(x if number == len(stack) else np.maximum(x, 0))
        x = inputs[-1]
    error = x - t
    slope = error * (2.0 / error.size)
    gradients: list[Any] = []
    for number in reversed(range(len(stack))):
        gradients += [slope.sum(0), inputs[number].T @ slope]
        if number:
            slope = (slope @ stack[number][0].T) * (inputs[number] > 0)
    return ((error * error).mean(), *reversed(gradients))


def gathered(tab: Any, idx: Any) -> Any:
    """Rows of a table."""
    return tab[idx]


def scattered(g: Any, idx: Any) -> Any:
    """Rows added into a fresh table of 50,000 rows."""
    table = np.zeros((50000, g.shape[1]), g.dtype)
    np.add.at(table, idx, g)
    return table


def gelu(x: Any) -> Any:
    """Gelu in its tanh form."""
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def block(
    x: Any,
    g1: Any,
    b1: Any,
    wa: Any,
    ba: Any,
    wp: Any,
    bp: Any,
    g2: Any,
    b2: Any,
    wf: Any,
    bf: Any,
    wo: Any,
    bo: Any,
) -> Any:  # fmt: skip -- the names of the parameters, a line
    """Block of GPT-2 with causal attention."""
    heads = (1, SEQUENCE, HEADS, WIDTH // HEADS)
    mixed = layer_norm(x, g1, b1) @ wa + ba
    q, k, v = (part.reshape(heads).transpose(0, 2, 1, 3) for part in np.split(mixed, 3, -1))
    scores = (q @ k.swapaxes(-1, -2)) * (1 / 8)
    scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, scores.dtype.type(-1e30))
    attended = (softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(1, SEQUENCE, WIDTH)
    x = x + (attended @ wp + bp)
    return x + (gelu(layer_norm(x, g2, b2) @ wf + bf) @ wo + bo)


def scalar(x: Any) -> Any:
    """Next to nothing: what a call costs."""
    return x * 2 + 1


def heat(start: Any, rate: Any) -> tuple[Any, Any]:
    """The heat equation of examples/control/heat.ir: the steady temperature, and the number of steps."""
    now, count = start, 0
    while True:
        change = np.zeros_like(now)
        neighbours = (now[:-2, 1:-1] + now[2:, 1:-1]) + (now[1:-1, :-2] + now[1:-1, 2:])
        change[1:-1, 1:-1] = rate * (neighbours - 4 * now[1:-1, 1:-1])
        now, count = now + change, count + 1
        if (change * change).sum() <= 1e-12 or count >= 5000:
            return now, np.int64(count)


def training(data: Any, labels: Any, weights: Any, rate: Any) -> tuple[Any, Any]:
    """The training loop of examples/control/training.ir: the weights, and the loss with them."""
    momentum = np.zeros_like(weights)
    for _ in range(5):
        for first in range(0, 64, 16):
            x, y = data[first : first + 16], labels[first : first + 16]
            slope = (1 / (1 + np.exp(-(x @ weights))) - y) @ x / 16
            momentum = 0.9 * momentum - rate * slope
            weights = weights + momentum
    z = data @ weights
    return weights, (np.log(1 + np.exp(z)) - labels * z).mean()
