"""PyTorch on the CPU, eager and compiled by Inductor."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as its own documentation imports it

from benchmarks.peers.peer import Prepared
from benchmarks.peers.references import HEADS, SEQUENCE, WIDTH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from benchmarks.peers.draws import Array
    from benchmarks.peers.workloads import Workload


def _perceptron(x: Any, *parameters: Any) -> Any:
    for place in range(0, len(parameters), 2):
        x = torch.addmm(parameters[place + 1], x, parameters[place])
        x = x if place + 2 == len(parameters) else torch.relu(x)
    return x


def _loss(x: Any, t: Any, *parameters: Any) -> Any:
    return (_perceptron(x, *parameters) - t).square().mean()


def _block(x: Any, g1: Any, b1: Any, wa: Any, ba: Any, *rest: Any) -> Any:
    wp, bp, g2, b2, wf, bf, wo, bo = rest
    mixed = torch.addmm(ba, F.layer_norm(x, (WIDTH,), g1, b1, 1e-5).view(SEQUENCE, WIDTH), wa)
    heads = (1, SEQUENCE, HEADS, WIDTH // HEADS)
    q, k, v = (part.view(heads).transpose(1, 2) for part in mixed.split(WIDTH, -1))
    attended = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    x = x.view(SEQUENCE, WIDTH) + torch.addmm(bp, attended.reshape(SEQUENCE, WIDTH), wp)
    inner = F.gelu(torch.addmm(bf, F.layer_norm(x, (WIDTH,), g2, b2, 1e-5), wf), approximate="tanh")
    return (x + torch.addmm(bo, inner, wo)).view(1, SEQUENCE, WIDTH)


def _heat(start: Any, rate: Any) -> Any:
    now, count = start, 0
    while True:
        neighbours = (now[:-2, 1:-1] + now[2:, 1:-1]) + (now[1:-1, :-2] + now[1:-1, 2:])
        change = F.pad(rate * (neighbours - 4 * now[1:-1, 1:-1]), (1, 1, 1, 1))
        now, count = now + change, count + 1
        if (change * change).sum() <= 1e-12 or count >= 5000:
            return now, torch.tensor(count)


def _training(data: Any, labels: Any, weights: Any, rate: Any) -> Any:
    momentum = torch.zeros_like(weights)
    for number in range(20):
        first = number % 4 * 16
        x, y = data[first : first + 16], labels[first : first + 16]
        slope = (torch.sigmoid(x @ weights) - y) @ x / 16
        momentum = 0.9 * momentum - rate * slope
        weights = weights + momentum
    z = data @ weights
    return weights, (F.softplus(z) - labels * z).mean()


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "scalar": lambda x: x * 2 + 1,
    "product": lambda a, b: a @ b,
    "chain": lambda x, a, b, c: torch.relu(x * a + b) * torch.exp(-c * x) + x,
    "softmax": lambda x: torch.softmax(x, -1),
    "layer_norm": lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b, 1e-5),
    "sum_axis0": lambda x: x.sum(0),
    "sum_axis1": lambda x: x.sum(1),
    "mean": lambda x: x.mean(),
    "transpose": lambda x: x.t().contiguous(),
    "attention": F.scaled_dot_product_attention,
    "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    "perceptron": _perceptron,
    "gradients": _loss,
    "gather": lambda tab, idx: tab[idx],
    "scatter": lambda g, idx: torch.zeros(50000, 256).index_add_(0, idx, g),
    "block": _block,
    "heat": _heat,
    "training": _training,
}


_IMAGES = ("convolution", "depthwise")


def _convolution(workload: Workload) -> Callable[[Any, Any], Any]:
    stride = workload.stride
    groups = workload.draws["w"](np.random.default_rng(0)).shape[-1] if workload.kind == "depthwise" else 1
    if stride == 1:
        return lambda x, w: F.conv2d(x, w, padding="same", groups=groups)
    return lambda x, w: F.conv2d(F.pad(x, (2, 3, 2, 3)), w, stride=stride)  # SAME pads one side more


class TorchPeer:
    """PyTorch; functions are compiled if asked for."""

    versions: Mapping[str, str] = {
        "torch": torch.__version__,
        "torch kernels": torch.backends.cpu.get_cpu_capability(),
    }

    def __init__(self, threads: int, *, compiled: bool) -> None:
        torch.set_num_threads(threads)
        self._compiled = compiled
        warm = torch.compile(lambda x: torch.relu(x) - 3) if compiled else torch.exp
        warm(torch.ones(17))

    def prepare(self, workload: Workload) -> Prepared:
        """See `Peer`."""
        tensors = [_tensor(array) for array in workload.inputs().values()]
        function = _FUNCTIONS.get(workload.kind) or _convolution(workload)
        note = ""
        if workload.kind in _IMAGES:
            image, filters = tensors
            filters = filters if filters.ndim == 4 else filters.unsqueeze(2)
            filters = filters.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
            tensors = [image.permute(0, 3, 1, 2), filters]
            note = "channels_last"
        if workload.kind == "gradients":
            return self._gradients(function, tensors)
        if self._compiled:
            torch._dynamo.reset()
            function = torch.compile(function, dynamic=False)
        return Prepared(lambda: function(*tensors), _outputs(workload), None, self._compiled, note)

    def _gradients(self, function: Callable[..., Any], tensors: list[Any]) -> Prepared:
        parameters = [tensor.clone().requires_grad_() for tensor in tensors[2:]]

        def loss_and_gradients(loss_of: Callable[..., Any]) -> Any:
            loss = loss_of(*tensors[:2], *parameters)
            return (loss, *torch.autograd.grad(loss, parameters))

        if not self._compiled:
            return Prepared(lambda: loss_and_gradients(function), _arrays)
        torch._dynamo.reset()
        compiled = torch.compile(function, dynamic=False)
        argnums = tuple(range(2, len(tensors)))
        as_one = torch.compile(torch.func.grad_and_value(function, argnums=argnums), dynamic=False)

        def whole() -> Any:
            slopes, loss = as_one(*tensors)
            return (loss, *slopes)

        def loss_only() -> Any:
            return loss_and_gradients(compiled)

        # Both ways to write it; the faster one counts, with its own compile time.
        ways = ((whole, "func.grad_and_value"), (loss_only, "compiled loss, autograd.grad"))
        timed = [(*_first_and_best(call), call, note) for call, note in ways]
        first, best, call, note = min(timed, key=lambda row: row[1])
        return Prepared(call, _arrays, compile_seconds=first - best, note=note)


def _first_and_best(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of the first call, and of the fastest of some more."""
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return seconds[0], min(seconds)


def _tensor(array: Array) -> Any:
    """Return ``array`` as a tensor; torch knows nothing of the bf16 of numpy arrays."""
    if array.dtype.name != "bfloat16":
        return torch.from_numpy(array)
    return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)


def _arrays(result: Any) -> list[Array]:
    results = result if isinstance(result, (tuple, list)) else (result,)
    found = [tensor.detach() for tensor in results]
    return [(each.float() if each.dtype == torch.bfloat16 else each).numpy() for each in found]


def _outputs(workload: Workload) -> Callable[[Any], list[Array]]:
    if workload.kind in _IMAGES:
        return lambda result: _arrays(result.permute(0, 2, 3, 1))
    return _arrays


def peer(name: str, threads: int) -> TorchPeer:
    """Return ``torch`` or ``torch.compile``."""
    return TorchPeer(threads, compiled=name == "torch.compile")
