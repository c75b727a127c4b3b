"""The parts of arrays that a checkpoint is made of: who writes which, and who reads which.

A part is a box of an array, and a tensor of a safetensors file that one process writes. Boxes of an array are
its shards, or it has one. The manifest says of each where it lies and what its digest is.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.collectives.sharded_array import ShardedArray
from mind_mlir.collectives.world import ranks_here
from mind_mlir.distributed.checkpoint_problems import CheckpointProblem
from mind_mlir.distributed.checkpoint_tree import number_as_json
from mind_mlir.ir.types import DType
from mind_mlir.models.weights.errors import UnknownType, WeightsProblem
from mind_mlir.models.weights.mapped_file import MappedFile
from mind_mlir.models.weights.safetensors import STORED, header_of, read_safetensors
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.collectives.world import World
    from mind_mlir.distributed.checkpoint_tree import Leaf
    from mind_mlir.ir.attributes import Array

Box = tuple[slice, ...]


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part that is going to be written.

    Attributes:
        tensor: Its name in the file.
        box: Which part of the array it is.
        process: Who writes it.
        data: Its elements, where this process has them.
    """

    tensor: str
    box: Box
    process: int
    data: Array | None


class Plan:
    """Who writes what: the same in all processes.

    Attributes:
        parts: The parts of each array, by name.
    """

    def __init__(self, leaves: Mapping[str, Leaf], world: World) -> None:
        self._leaves, self._world = leaves, world
        self._load = [0] * world.size
        self.parts: dict[str, list[PlannedPart]] = {}
        for name, leaf in leaves.items():
            if isinstance(leaf, ShardedArray):
                self.parts[name] = list(self._shards(name, leaf))
            elif isinstance(leaf, np.ndarray):
                self.parts[name] = [self._whole(name, leaf)]

    def _whole(self, name: str, array: Array) -> PlannedPart:
        """Leave an array that all processes have to the one that has the least to write."""
        process = self._load.index(min(self._load))
        self._load[process] += array.nbytes
        return PlannedPart(name, tuple([slice(0, extent) for extent in array.shape]), process, array)

    def _shards(self, name: str, array: ShardedArray) -> Iterator[PlannedPart]:
        """Leave each shard to the process of the first rank that has it."""
        mesh, own = array.mesh, ranks_here(array.mesh, self._world)
        seen = set()
        for rank in range(mesh.size):
            box = array.sharding.part(mesh, rank, array.shape)
            where = ",".join(f"{part.start}:{part.stop}" for part in box)
            if where not in seen:
                seen.add(where)
                data = np.asarray(array.parts[rank]) if rank in own else None
                yield PlannedPart(f"{name}[{where}]", box, rank // len(own), data)

    def described(self, digests: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        """Return each leaf as JSON: a number, or a type and parts.

        Args:
            digests: What `write` has returned in each process; a plan alone has none.
        """
        return {
            name: number_as_json(leaf) or self._array(name, leaf, digests)
            for name, leaf in self._leaves.items()
        }

    def _array(self, name: str, leaf: Any, digests: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        parts = [
            {
                "file": file_of(part.process),
                "tensor": part.tensor,
                "begin": [each.start for each in part.box],
                "shape": [each.stop - each.start for each in part.box],
                "sha256": digests[part.process][part.tensor] if digests else "",
            }
            for part in self.parts[name]
        ]
        return {"dtype": str(DType.from_numpy(leaf.dtype)), "shape": list(leaf.shape), "parts": parts}

    def write(self, folder: Path) -> dict[str, str]:
        """Write the parts of this process, and return their digests by the names of their tensors."""
        own = [part for parts in self.parts.values() for part in parts if part.process == self._world.rank]
        if not own:
            return {}
        tensors = {part.tensor: _stored(part.data) for part in own}
        with (folder / file_of(self._world.rank)).open("xb") as file:
            file.write(header_of({name: (dtype, array.shape) for name, (dtype, array) in tensors.items()}))
            digests = {}
            for name, (_, array) in tensors.items():
                data = _bytes(array)
                digests[name] = hashlib.sha256(data).hexdigest()
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        return digests


def file_of(process: int) -> str:
    """Return the name of the file that a process writes."""
    return f"process-{process}.safetensors"


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _stored(data: Array | None) -> tuple[DType, Array]:
    """Return an array as safetensors has it: bytes, with an axis of them, where it has no such dtype."""
    assert data is not None, "who writes a part has it"
    array, dtype = np.ascontiguousarray(data).reshape(data.shape), DType.from_numpy(data.dtype)
    if dtype in STORED:
        return dtype, array
    return DType.UI8, array.reshape(*array.shape, 1).view(np.uint8)


class PartsReader:
    """Reads boxes of arrays from the files of a checkpoint; parts that it reads are held to their digests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, Mapping[str, Any]] = {}
        self._read: dict[tuple[str, str], Array] = {}

    def box(self, name: str, said: Mapping[str, Any], box: Box | None) -> Array:
        """Return a box of an array, or all of it.

        Raises:
            CheckpointProblem: A part of it is missing, or damaged.
        """
        dtype = DType.from_name(said["dtype"])
        if dtype is None:
            raise CheckpointProblem(f"{name} has elements of type {said['dtype']}, which is none")
        wanted = box if box is not None else tuple([slice(0, extent) for extent in said["shape"]])
        out = np.empty([each.stop - each.start for each in wanted], dtype.numpy)
        filled = 0
        for part in said["parts"]:
            begin, shape = part["begin"], part["shape"]
            both = [
                (max(each.start, first), min(each.stop, first + extent))
                for each, first, extent in zip(wanted, begin, shape, strict=True)
            ]
            if any(start >= stop for start, stop in both):
                continue
            source = tuple([slice(a - first, b - first) for (a, b), first in zip(both, begin, strict=True)])
            target = tuple(
                [slice(a - each.start, b - each.start) for (a, b), each in zip(both, wanted, strict=True)]
            )
            out[target] = self._part(part, dtype, shape)[source]
            filled += math.prod(stop - start for start, stop in both)
        if filled != out.size:
            raise CheckpointProblem(f"parts of {name} are missing")
        return out

    def _part(self, part: Mapping[str, Any], dtype: DType, shape: Sequence[int]) -> Array:
        key = part["file"], part["tensor"]
        if key not in self._read:
            stored = self._tensor(*key)
            if hashlib.sha256(_bytes(stored)).hexdigest() != part["sha256"]:
                raise CheckpointProblem(f"{key[0]}: tensor '{key[1]}' was changed after it was written")
            self._read[key] = stored.reshape(-1).view(dtype.numpy).reshape(shape)
        return self._read[key]

    def _tensor(self, file: str, tensor: str) -> Array:
        try:
            if file not in self._files:
                if Path(file).name != file:
                    raise WeightsProblem("it is no file of the checkpoint")
                self._files[file] = read_safetensors(MappedFile(str(self._folder / file))).tensors
            if tensor not in self._files[file]:
                raise WeightsProblem(f"it has no tensor '{tensor}'")
            found: Array = self._files[file][tensor]()
        except (WeightsProblem, UnknownType) as problem:
            raise CheckpointProblem(f"{file}: {problem}") from None
        return found
