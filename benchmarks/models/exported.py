"""ONNX Runtime on what torch exports of a model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import onnxruntime
import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def session_of(model: Any, args: Any, kwargs: Any, threads: int) -> tuple[Callable[[], Any], float]:
    """Return a call of ONNX Runtime with the given arguments bound, and the seconds from graph to session.

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
    binding = session.io_binding()
    leaves = [each for each in torch.utils._pytree.tree_leaves((args, kwargs)) if each is not None]
    for each, leaf in zip(session.get_inputs(), leaves, strict=True):
        value = onnxruntime.OrtValue.ortvalue_from_numpy(leaf.detach().contiguous().numpy())
        binding.bind_ortvalue_input(each.name, value)
    for each in session.get_outputs():
        binding.bind_output(each.name, "cpu")
    return lambda: session.run_with_iobinding(binding), seconds
