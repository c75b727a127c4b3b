"""Tensors of torch as arrays of numpy, and back, on the same memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.diagnostics import ArgumentError, Diagnostic, UnsupportedError
from mind_mlir.ir.types import DType
from mind_mlir.models.torch.reading import dtype_of, name_of_dtype

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: Dtypes that numpy lacks, with integers of their width, which both have.
_AS_INTEGERS = {DType.BF16: "uint16", DType.FP8_E4M3: "uint8", DType.FP8_E5M2: "uint8"}


def load_torch() -> Any:
    """Return the module torch (E7003: it is not installed)."""
    try:
        import torch.fx  # noqa: PLC0415 -- only here, and only where somebody asks; any folder may be a torch
    except ImportError:
        raise UnsupportedError(
            Diagnostic("E7003", "torch is not installed", help="run: pip install torch")
        ) from None
    return torch


def reader_of(dtype: DType) -> Callable[[Any], Array]:
    """Return the function from tensors of a dtype to arrays on their memory."""
    if dtype in _AS_INTEGERS:
        integers, own = getattr(load_torch(), _AS_INTEGERS[dtype]), dtype.numpy
        return lambda tensor: tensor.detach().view(integers).numpy().view(own)
    return lambda tensor: tensor.detach().numpy()


def writer_of(dtype: DType) -> Callable[[Array], Any]:
    """Return the function from arrays of a dtype to tensors on their memory."""
    torch = load_torch()
    from_numpy: Callable[[Array], Any] = torch.from_numpy
    if dtype in _AS_INTEGERS:
        integers, own = _AS_INTEGERS[dtype], torch_dtype(dtype)
        return lambda array: from_numpy(array.view(integers)).view(own)
    return from_numpy


def torch_dtype(dtype: DType) -> Any:
    """Return torch's dtype for one of ours."""
    return getattr(load_torch(), name_of_dtype(dtype))


def as_array(tensor: Any, name: str) -> Array:
    """Return a tensor as an array, on its memory where that can be.

    Raises:
        ArgumentError: E6105, it is no dense tensor of this machine's memory, or has no dtype of ours.
    """
    torch = load_torch()
    if not isinstance(tensor, torch.Tensor):
        raise _refused(name, f"it is of type {type(tensor).__name__}", "pass a torch.Tensor")
    if tensor.device.type != "cpu":
        raise _refused(name, f"it is on the device {tensor.device}", f"move it: {name}.cpu()")
    if tensor.layout is not torch.strided:
        raise _refused(name, f"its layout is {tensor.layout}", f"convert it: {name}.to_dense()")
    dtype = dtype_of(tensor.dtype)
    if dtype is None:
        raise _refused(name, f"it holds {tensor.dtype}, which has no counterpart", "convert it")
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor) or type(tensor).__name__ == "FakeTensor":
        raise _refused(
            name, "it holds no numbers yet", "call the model on tensors outside of the transformation"
        )
    plain = tensor.detach().resolve_conj().resolve_neg()
    if dtype in _AS_INTEGERS and not plain.is_contiguous():
        plain = plain.contiguous()
    return reader_of(dtype)(plain)


def check_values(leaves: Sequence[tuple[Any, Any]]) -> None:
    """Refuse arguments, with their paths in ``(args, kwargs)``, that no program can be made for.

    Raises:
        ArgumentError: E6105, one is an array of numpy, or a tensor that `as_array` refuses.
    """
    torch = load_torch()
    for path, leaf in leaves:
        name = ("args", "kwargs")[path[0].idx] + torch.utils._pytree.keystr(path[1:])
        if isinstance(leaf, np.ndarray | np.generic):
            raise _refused(name, "it is of numpy", f"pass a tensor on its memory: torch.from_numpy({name})")
        if isinstance(leaf, torch.Tensor):
            as_array(leaf, name)


def _refused(name: str, reason: str, help: str) -> ArgumentError:
    return ArgumentError(
        Diagnostic("E6105", f"argument '{name}' is no array of numbers here: {reason}", help=help)
    )
