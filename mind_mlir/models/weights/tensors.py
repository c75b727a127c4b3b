"""What readers of formats give: the tensors of a file, each of them made when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeAlias

from mind_mlir.ir.attributes import Array
from mind_mlir.models.weights.quantized import QuantizedWeights
from mind_mlir.support.lazy_dataclass import dataclass

#: A tensor of a file.
Weight: TypeAlias = Array | QuantizedWeights


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a file of weights.

    Attributes:
        format: What it is: ``safetensors``, ``GGUF``, ``npz`` or ``npy``.
        tensors: What makes each tensor, by name, in the order of the file; it may raise the exceptions of
            `mind_mlir.models.weights.errors`.
        metadata: What else it says.
    """

    format: str
    tensors: Mapping[str, Callable[[], Weight]]
    metadata: Mapping[str, Any] = field(default_factory=dict)
