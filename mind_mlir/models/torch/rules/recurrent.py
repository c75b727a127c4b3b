"""Recurrent layers: LSTM, GRU and RNN, of any number of layers, in one direction or both.

The products with the inputs of all steps are one; a step of the loop has the product with its state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.ir.types import DType
from mind_mlir.models.torch.rules.products import product
from mind_mlir.models.torch.rules.random import kept
from mind_mlir.models.torch.rules.values import cast, full, reshaped
from mind_mlir.numpy.arrays import op
from mind_mlir.tracing.control import scan

if TYPE_CHECKING:
    from mind_mlir.models.torch.rules.use import OperatorUse, Rule
    from mind_mlir.tracing.array import TracedArray

    #: From the product of a step's inputs, the state, and what multiplies it, to the next state.
    Cell: TypeAlias = Callable[
        [TracedArray, list[TracedArray], Callable[..., TracedArray]], list[TracedArray]
    ]


def _plus(x: TracedArray, bias: TracedArray | None) -> TracedArray:
    return x if bias is None else x + bias


def _first(x: TracedArray) -> TracedArray:
    """Return an array as the only one along a leading axis."""
    return reshaped(x, (1, *x.shape))


def _gates(x: TracedArray, count: int) -> list[TracedArray]:
    size = x.shape[-1] // count
    return [x[:, size * at : size * (at + 1)] for at in range(count)]


def _lstm_cell(
    row: TracedArray, state: list[TracedArray], times: Callable[..., TracedArray]
) -> list[TracedArray]:
    into, forget, new, out = _gates(row + times(state[0]), 4)
    cell = op("Logistic", forget) * state[1] + op("Logistic", into) * op("Tanh", new)
    return [op("Logistic", out) * op("Tanh", cell), cell]


def _gru_cell(
    row: TracedArray, state: list[TracedArray], times: Callable[..., TracedArray]
) -> list[TracedArray]:
    (reset, update, new), (reset_, update_, new_) = _gates(row, 3), _gates(times(state[0]), 3)
    new = op("Tanh", new + op("Logistic", reset + reset_) * new_)
    return [new + op("Logistic", update + update_) * (state[0] - new)]


def _plain_cell(opcode: str) -> Cell:
    return lambda row, state, times: [op(opcode, row + times(state[0]))]


def _direction(
    cell: Cell, x: TracedArray, first: list[TracedArray], weights: Sequence[TracedArray], backwards: bool
) -> tuple[list[TracedArray], TracedArray]:
    """Return the last state, and what all steps give, ``[steps, batch, hidden]``."""
    inputs, states, *others = weights
    biases = others[:2] if len(others) > 1 else [None, None]
    projection = others[-1] if len(others) % 2 else None
    factor, own = states.T, biases[1]
    rows = _plus(product(x, inputs.T), biases[0])

    def step(state: list[TracedArray], row: TracedArray) -> tuple[list[TracedArray], TracedArray]:
        after = cell(row, state, lambda last: _plus(product(last, factor), own))
        if projection is not None:
            after[0] = product(after[0], projection.T)
        return after, after[0]

    return scan(step, first, rows, reverse=backwards)


def _layers(
    to: OperatorUse,
    cell: Cell,
    x: TracedArray,
    states: Sequence[TracedArray],
    weights: Sequence[TracedArray],
    layers: int,
    dropout: float,
    bidirectional: bool,
    batch_first: bool,
) -> list[TracedArray]:
    """Return the outputs of the last layer, and the last states of all."""
    x = x.swapaxes(0, 1) if batch_first else x
    directions = 2 if bidirectional else 1
    each = len(weights) // (layers * directions)
    last: list[list[TracedArray]] = []
    for layer in range(layers):
        outputs = []
        for backwards in (False, True)[:directions]:
            at = len(last)
            first = [state[at] for state in states]
            after, found = _direction(cell, x, first, weights[at * each : (at + 1) * each], backwards)
            last.append(after)
            outputs.append(found)
        x = outputs[0] if directions == 1 else op("Concat", *outputs, axis=2)
        if dropout and layer < layers - 1:
            x, _ = kept(to, x, dropout)
    ends = [op("Concat", *map(_first, every), axis=0) for every in zip(*last, strict=True)]
    return [cast(x.swapaxes(0, 1) if batch_first else x, to.dtype), *ends]


def _rule(cell: Cell) -> Rule:
    def layers(
        to: OperatorUse,
        x: TracedArray,
        states: Any,
        weights: Sequence[TracedArray],
        _has_biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> list[TracedArray]:
        given = list(states) if isinstance(states, list | tuple) else [states]
        dropout = dropout if train else 0.0
        return _layers(to, cell, x, given, weights, layers, dropout, bidirectional, batch_first)

    return layers


def _onednn_layer(_to: OperatorUse, x: TracedArray, *given: TracedArray | Any) -> list[TracedArray]:
    """One direction of an LSTM's layer, as decompositions of torch write it; its last result is not read."""
    weights, (hidden, cell), backwards = given[:4], given[4:6], bool(given[6])
    has_biases = given[11]
    weights = weights if has_biases else weights[:2]
    after, found = _direction(_lstm_cell, x, [hidden[0], cell[0]], weights, backwards)
    return [found, *map(_first, after), full((0,), 0, DType.UI8)]


_SEVERAL: Mapping[str, Rule] = {
    "aten.lstm.input": _rule(_lstm_cell),
    "aten.gru.input": _rule(_gru_cell),
    "aten.rnn_tanh.input": _rule(_plain_cell("Tanh")),
    "aten.rnn_relu.input": _rule(_plain_cell("Relu")),
}
RULES: Mapping[str, Rule] = {**_SEVERAL, "aten.mkldnn_rnn_layer": _onednn_layer}


def draws(operator: str, args: Sequence[Any]) -> bool:
    """Return whether a use of such layers draws random numbers, for dropout between them."""
    return operator in _SEVERAL and bool(args[6]) and args[5] > 0 and args[4] > 1
