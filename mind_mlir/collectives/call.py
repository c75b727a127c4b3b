"""`CollectiveCall`: what the ranks of a group do together, as all of them have to say it."""

from __future__ import annotations

import json
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mind_mlir.ir.mesh import mesh_of
from mind_mlir.ir.types import DType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mind_mlir.ir.mesh import Mesh

_DTYPES = {str(dtype): dtype for dtype in DType}


class CollectiveCall:
    """An operation of a program that takes all ranks of a group.

    Attributes:
        opcode: The operation.
        mesh: The mesh.
        axes: The axes along which the ranks of a group differ.
        attributes: The others of its attributes, complete.
        dtype: Of operand and result.
        shape: Of the operand of each rank.
        result_shape: Of the result of each rank.
        place: Where the program has it, as messages say it.
        bucket: What those have in common that are done together; None for what is done by itself, at once.
        members: How many these are.
        key: A text that is equal where ranks do the same; places are no part of it.
    """

    def __init__(self, text: str) -> None:
        """Read what `written` has written."""
        data = json.loads(text)
        self.opcode: str = data["opcode"]
        self.attributes: Mapping[str, Any] = data["attributes"]
        self.mesh: Mesh = mesh_of(self.attributes["mesh"])
        self.axes: str = self.attributes["axes"]
        self.dtype: DType = _DTYPES[data["dtype"]]
        self.shape: tuple[int, ...] = tuple(data["shape"])
        self.result_shape: tuple[int, ...] = tuple(data["result_shape"])
        self.place: str = data.pop("place")
        self.bucket: int | None = data.get("bucket")
        self.members: int = data.get("members", 1)
        self.key = json.dumps(data, sort_keys=True)

    @cached_property
    def count(self) -> int:
        """Return how many ranks a group has."""
        return self.mesh.extent(self.axes)

    @property
    def nbytes(self) -> int:
        """Return the size of the operand of a rank in bytes."""
        return math.prod(self.shape) * self.dtype.numpy.itemsize

    @property
    def result_nbytes(self) -> int:
        """Return the size of the result of a rank in bytes."""
        return math.prod(self.result_shape) * self.dtype.numpy.itemsize

    def __str__(self) -> str:
        kind = self.attributes.get("kind")
        what = self.opcode if kind is None else f"{self.opcode} ({kind})"
        shape = ", ".join(map(str, self.shape))
        return f"{what} of {self.dtype}[{shape}] along {self.axes}, {self.place}"


def written(
    opcode: str,
    attributes: Mapping[str, Any],
    dtype: DType,
    shape: tuple[int, ...],
    result_shape: tuple[int, ...],
    place: str,
    **bucket: int,
) -> str:
    """Return a call as a text, which `CollectiveCall` reads; ``bucket`` are its `bucket` and `members`."""
    data = {
        "opcode": opcode,
        "attributes": dict(attributes),
        "dtype": str(dtype),
        "shape": shape,
        "result_shape": result_shape,
        "place": place,
        **bucket,
    }
    return json.dumps(data, sort_keys=True, separators=(",", ":"))
