"""`from_onnx`: an ONNX model as a `Model`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.types import DType
from mind_mlir.models.model import Model
from mind_mlir.models.onnx.evaluation import ModelEvaluator, missing_operators, node_places
from mind_mlir.models.onnx.files import current, load
from mind_mlir.models.onnx.graphs.scope import GraphScope
from mind_mlir.models.onnx.graphs.tensors import Tensors
from mind_mlir.models.onnx.reading import model_data
from mind_mlir.models.ports import checked_bindings
from mind_mlir.runtime.options import Options, options_of, takes
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    import os

    from mind_mlir.ir.attributes import Array
    from mind_mlir.models.onnx.graphs.graph import ModelData

#: Initializers of integers that have no more elements are shapes, axes and the like.
_MAX_INTEGERS = 1024


@public
@takes(Options)
def from_onnx(
    source: str | os.PathLike[str] | bytes | Any,
    *,
    bindings: Mapping[str, int] | None = None,
    frozen: bool = False,
    static: Collection[str] | str = (),
    buckets: Sequence[int] | None = None,
    **options: Unpack[Options],
) -> Model:
    """Return an ONNX model as a function of arrays, which is compiled when it is called.

    Args:
        source: The path of a file, its bytes, or an `onnx.ModelProto`. External data lies in the folder of
            the file, or below.
        bindings: Numbers for extents that the model leaves open, by name.
        frozen: Whether the weights become constants of the code.
        static: Inputs whose numbers are part of the program, which is made for each of them. Small inputs of
            integers that decide on shapes are found without being named.
        buckets: The greatest extents of ranges that share a program, of extents that the model leaves open.
        options: As of `mind_mlir.compile`.

    Raises:
        UnsupportedError: E7003, the package onnx is not installed; E7001, there are operators without a rule:
            a finding for each of them.
        ParseError: E1106, the file cannot be read; E1120, it is no ONNX model.
        TypeError: An argument is not of the type above.
        ValueError: ``bindings`` names no open extent, ``static`` no input; or as `mind_mlir.compile`.
    """
    chosen = options_of(options, "from_onnx", Options)
    is_frozen = argument_checks.flag(frozen, "frozen")
    proto, name, folder = load(source)
    data = model_data(current(proto, name), Tensors(name, folder))
    missing = missing_operators(data)
    if missing is not None:
        raise missing
    return _model(data, name, bindings, static, is_frozen, buckets, chosen)


def _model(
    data: ModelData,
    name: str,
    bindings: object,
    static: object,
    is_frozen: bool,
    buckets: Sequence[int] | None,
    options: Any,
) -> Model:
    graph = data.graph
    inputs = [port for port in graph.inputs if port.name not in graph.initializers]
    settled = checked_bindings(bindings, inputs)
    named = argument_checks.names(static, "static")
    for each in named:
        if each not in {port.name for port in inputs}:
            raise ValueError(f"static names {each!r}, which is no input of the model")
    weights = {key: array for key, array in graph.initializers.items() if _is_weight(array)}

    return Model(
        name,
        inputs,
        graph.outputs,
        weights,
        partial(_evaluated, data, name),
        options=options,
        bindings=settled,
        static=named,
        frozen=is_frozen,
        buckets=buckets,
    )


def _evaluated(
    data: ModelData, name: str, values: Mapping[str, Any], weights: Mapping[str, Any]
) -> list[Any]:
    """Append a model to the trace that runs."""
    scope = GraphScope()
    for key, value in (*weights.items(), *values.items()):
        scope.set(key, value, frozenset((key,)))
    return ModelEvaluator(data, node_places(data.graph.nodes, name)).graph(data.graph, scope)


def _is_weight(array: Array) -> bool:
    """Return whether an initializer is passed at each call; a scalar, or a few integers, is known."""
    if array.ndim == 0 or DType.from_numpy(array.dtype) is None:
        return False
    is_float = array.dtype.kind in "fcV" or np.issubdtype(array.dtype, np.floating)
    return is_float or array.size > _MAX_INTEGERS
