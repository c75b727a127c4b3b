"""ONNX Runtime on what torch exports of a model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import onnxruntime
import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def session_of(model: Any, args: Any, kwargs: Any, threads: int) -> tuple[Callable[[], Any], float]:
    """Return a call of ONNX Runtime with these tensors, and the seconds from graph to session.

    The export is not counted, for people do it once; results are allocated by the runtime.
    """
    program = torch.onnx.export(model, args, kwargs=kwargs, dynamo=True, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    graph = program.model_proto.SerializeToString()
    start = time.perf_counter()
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    seconds = time.perf_counter() - start
    leaves = [each for each in torch.utils._pytree.tree_leaves((args, kwargs)) if each is not None]
    given = dict(zip([each.name for each in session.get_inputs()], leaves, strict=True))
    return lambda: session.run(None, {name: each.numpy() for name, each in given.items()}), seconds
