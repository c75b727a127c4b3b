"""What compiled code calls for collectives: a function of the runtime, wherever the other ranks run."""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.collectives.call import CollectiveCall
from mind_mlir.collectives.team import finish, meet, part, position, start
from mind_mlir.ir.analysis.effects import FINISH
from mind_mlir.ir.sharding import sharding_of
from mind_mlir.runtime.memory import pool
from mind_mlir.support.callbacks import guarded

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.types import DType

_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_FUNCTION = ctypes.CFUNCTYPE(None, _POINTERS, _POINTERS, ctypes.c_void_p, ctypes.c_char_p)


@cache
def collective_address() -> int:
    """Return where the function is; it takes the arguments of a custom call (`mind_mlir.target.abi`)."""
    address = ctypes.cast(_function(), ctypes.c_void_p).value
    assert address is not None
    return address


@cache
def _function() -> Any:
    return _FUNCTION(guarded(_run))


@lru_cache(maxsize=4096)
def _call_of(attrs: bytes) -> CollectiveCall:
    return CollectiveCall(attrs.decode())


def _run(inputs: Any, outputs: Any, extents: Any, attrs: bytes) -> None:
    call = _call_of(attrs)
    if call.bucket is not None:
        token = start(call, _array(inputs[0], call.dtype, call.shape), _new)
        ctypes.c_int64.from_address(outputs[0]).value = token
        return
    out = _array(outputs[0], call.dtype, call.result_shape)
    if call.opcode == "AxisIndex":
        out[...] = position(str(call.mesh), call.axes)
        return
    if call.opcode == "TakePart":
        whole = _array(inputs[0], call.dtype, call.shape)
        np.copyto(out, whole[part(str(call.mesh), sharding_of(call.attributes["sharding"]), call.shape)])
        return
    if call.opcode == FINISH:
        finish(str(call.mesh), ctypes.c_int64.from_address(inputs[0]).value, out)
        return
    meet(call, _array(inputs[0], call.dtype, call.shape), out)


def _new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return memory for a collective that goes on beside compiled code, which is used again and again."""
    return pool.allocator(shape, dtype)()


def _array(address: int, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return memory of compiled code as an array."""
    element = dtype.numpy
    size = int(np.prod(shape, dtype=np.int64)) * element.itemsize
    if not size:
        return np.empty(shape, element)
    memory: Array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    return memory.view(element).reshape(shape)
