"""Recurrent layers: LSTM, GRU and RNN, in one direction or both."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import mind_mlir.numpy as mnp
from mind_mlir.models.functions.activations import hard_sigmoid
from mind_mlir.models.onnx.graphs.refusals import broken
from mind_mlir.models.onnx.graphs.use import Array, NodeUse, OnnxRule
from mind_mlir.models.onnx.rules.activations import softplus
from mind_mlir.tracing.control import scan

if TYPE_CHECKING:
    #: From a state, and the product of a step's inputs, to the next state.
    Step: TypeAlias = Callable[[list[Array], Array], list[Array]]

#: Activations by name, of a number and two parameters.
_ACTIVATIONS: dict[str, tuple[Callable[[Array, float, float], Array], float, float]] = {
    "sigmoid": (lambda x, _a, _b: mnp.logistic(x), 0.0, 0.0),
    "tanh": (lambda x, _a, _b: mnp.tanh(x), 0.0, 0.0),
    "relu": (lambda x, _a, _b: mnp.maximum(x, 0.0), 0.0, 0.0),
    "affine": (lambda x, a, b: x * a + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, _b: mnp.where(x < 0, x * a, x), 0.01, 0.0),
    "thresholdedrelu": (lambda x, a, _b: mnp.where(x > a, x, mnp.zeros_like(x)), 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: mnp.tanh(x * b) * a, 1.0, 1.0),
    "hardsigmoid": (hard_sigmoid, 0.2, 0.5),
    "elu": (lambda x, a, _b: mnp.where(x < 0, mnp.expm1(x) * a, x), 1.0, 0.0),
    "softsign": (lambda x, _a, _b: mnp.div(x, abs(x) + 1.0), 0.0, 0.0),
    "softplus": (lambda x, _a, _b: softplus(x), 0.0, 0.0),
}
#: Those that a node may give the parameters of.
_WITH_BETA = ("affine", "scaledtanh", "hardsigmoid")
_WITH_ALPHA = (*_WITH_BETA, "leakyrelu", "thresholdedrelu", "elu")


class RecurrentLayer:
    """A recurrent node: its operands, taken apart by direction.

    Attributes:
        x: The inputs, [steps, batch, features].
        directions: How many directions there are.
        hidden: How many numbers the state of one has.
    """

    def __init__(self, use: NodeUse, gates: int, default: tuple[str, ...]) -> None:
        """Take a node apart whose cells have so many gates."""
        self.use, self.gates = use, gates
        self.batch_first = bool(use.attr("layout", 0))
        x, self.w, self.r = use[0], use[1], use[2]
        if x.ndim != 3 or self.w.ndim != 3 or self.r.ndim != 3:
            broken(f"its operands have ranks {x.ndim}, {self.w.ndim} and {self.r.ndim}, not 3 each")
        self.x = x.swapaxes(0, 1) if self.batch_first else x
        self.directions, self.hidden = self.r.shape[0], self.r.shape[2]
        wanted = {"forward": 1, "reverse": 1, "bidirectional": 2}.get(use.attr("direction", "forward"))
        if wanted != self.directions or self.w.shape[1] != gates * self.hidden:
            broken(f"weights of {list(self.w.shape)} are none of {gates} gates of {self.hidden} numbers")
        self.activations = self._activations(default)
        self.clip = use.attr("clip")
        self.lengths = use.get(4)

    def _activations(self, default: tuple[str, ...]) -> list[list[Callable[[Array], Array]]]:
        names = self.use.attr("activations", default * self.directions)
        alphas, betas = ([*self.use.attr(f"activation_{name}", ())] for name in ("alpha", "beta"))
        found: list[Any] = []
        for name in names:
            if name.lower() not in _ACTIVATIONS:
                broken(f"its activation {name} is none of {', '.join(_ACTIVATIONS)}")
            function, alpha, beta = _ACTIVATIONS[name.lower()]
            alpha = alphas.pop(0) if name.lower() in _WITH_ALPHA and alphas else alpha
            beta = betas.pop(0) if name.lower() in _WITH_BETA and betas else beta
            found.append(lambda x, f=function, a=alpha, b=beta: f(x, a, b))
        size = len(default)
        if len(found) != size * self.directions:
            broken(f"it has {len(found)} activations, of {size * self.directions}")
        return [found[size * at : size * (at + 1)] for at in range(self.directions)]

    def is_backward(self, direction: int) -> bool:
        """Return whether a direction begins at the last step."""
        return direction == 1 or self.use.attr("direction", "forward") == "reverse"

    def bias(self, direction: int) -> tuple[Array | None, Array | None]:
        """Return what is added to the products with inputs, and to those with states."""
        bias = self.use.get(3)
        if bias is None:
            return None, None
        row, half = bias[direction], self.gates * self.hidden
        return row[:half], row[half:]

    def initial(self, place: int, direction: int) -> Array:
        """Return a state before the first step."""
        given = self.use.get(place)
        if given is None:
            return mnp.zeros((self.x.shape[1], self.hidden), self.x.dtype)
        return given[:, direction] if self.batch_first else given[direction]

    def clipped(self, x: Array) -> Array:
        """Return what an activation is given."""
        return x if self.clip is None else mnp.minimum(mnp.maximum(x, -self.clip), self.clip)

    def run(self, direction: int, first: list[Array], step: Step) -> tuple[list[Array], Array]:
        """Return the last state, and the first of its arrays after all steps, in one direction."""
        bias, _ = self.bias(direction)
        rows = mnp.tensordot(self.x, self.w[direction].T, 1)
        rows = rows if bias is None else rows + bias
        numbers = mnp.arange(self.x.shape[0], dtype="i64")

        def one(state: list[Array], row: tuple[Array, Array]) -> tuple[list[Array], Array]:
            after = step(state, row[0])
            if self.lengths is None:
                return after, after[0]
            goes_on = mnp.expand_dims(row[1] < self.lengths.astype("i64"), 1)
            kept = [mnp.where(goes_on, new, old) for new, old in zip(after, state, strict=True)]
            return kept, mnp.where(goes_on, after[0], mnp.zeros_like(after[0]))

        return scan(one, first, (rows, numbers), reverse=self.is_backward(direction))

    def results(self, places: tuple[int, ...], cell: Callable[[int], Step]) -> tuple[Array, ...]:
        """Return the results of the node: all outputs, and the last states.

        Args:
            places: The operands that states before the first step are.
            cell: Returns the step of a direction.
        """
        found = []
        for direction in range(self.directions):
            step = cell(direction)
            found.append(self.run(direction, [self.initial(place, direction) for place in places], step))
        every = mnp.stack([each for _, each in found], 1)
        states = [mnp.stack(each, 0) for each in zip(*(last for last, _ in found), strict=True)]
        if self.batch_first:
            every = every.transpose((2, 0, 1, 3))
            states = [each.swapaxes(0, 1) for each in states]
        return (every, *states)


def _plus(x: Array, bias: Array | None) -> Array:
    return x if bias is None else x + bias


def _lstm(use: NodeUse) -> tuple[Array, ...]:
    layer = RecurrentLayer(use, 4, ("Sigmoid", "Tanh", "Tanh"))
    hidden, coupled = layer.hidden, bool(use.attr("input_forget", 0))

    def cell(direction: int) -> Step:
        f, g, h = layer.activations[direction]
        weights, bias = layer.r[direction].T, layer.bias(direction)[1]
        peep = use[7][direction] if use.has(7) else None

        def step(state: list[Array], row: Array) -> list[Array]:
            last, cell = state
            gates = _plus(row + last @ weights, bias)
            i, o, forget, c = [gates[:, at * hidden : (at + 1) * hidden] for at in range(4)]
            if peep is not None:
                i, forget = i + cell * peep[:hidden], forget + cell * peep[2 * hidden :]
            i = f(layer.clipped(i))
            forget = 1.0 - i if coupled else f(layer.clipped(forget))
            cell = forget * cell + i * g(layer.clipped(c))
            if peep is not None:
                o = o + cell * peep[hidden : 2 * hidden]
            return [f(layer.clipped(o)) * h(cell), cell]

        return step

    return layer.results((5, 6), cell)


def _gru(use: NodeUse) -> tuple[Array, ...]:
    layer = RecurrentLayer(use, 3, ("Sigmoid", "Tanh"))
    hidden, after = layer.hidden, bool(use.attr("linear_before_reset", 0))

    def cell(direction: int) -> Step:
        f, g = layer.activations[direction]
        weights, bias = layer.r[direction].T, layer.bias(direction)[1]

        def step(state: list[Array], row: Array) -> list[Array]:
            (last,) = state
            both = _plus(
                row[:, : 2 * hidden] + last @ weights[:, : 2 * hidden],
                None if bias is None else bias[: 2 * hidden],
            )
            update, reset = f(layer.clipped(both[:, :hidden])), f(layer.clipped(both[:, hidden:]))
            own = None if bias is None else bias[2 * hidden :]
            if after:
                inner = reset * _plus(last @ weights[:, 2 * hidden :], own)
            else:
                inner = _plus((reset * last) @ weights[:, 2 * hidden :], own)
            new = g(layer.clipped(row[:, 2 * hidden :] + inner))
            return [(1.0 - update) * new + update * last]

        return step

    return layer.results((5,), cell)


def _rnn(use: NodeUse) -> tuple[Array, ...]:
    layer = RecurrentLayer(use, 1, ("Tanh",))

    def cell(direction: int) -> Step:
        (f,) = layer.activations[direction]
        weights, bias = layer.r[direction].T, layer.bias(direction)[1]
        return lambda state, row: [f(layer.clipped(_plus(row + state[0] @ weights, bias)))]

    return layer.results((5,), cell)


RULES = {
    "LSTM": OnnxRule(_lstm),
    "GRU": OnnxRule(_gru),
    "RNN": OnnxRule(_rnn),
}
