"""`ShardedArray`: an array of which each rank has its part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.collectives.call import CollectiveCall, written
from mind_mlir.collectives.team import meet, run_ranks
from mind_mlir.collectives.world import current_world, ranks_here
from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ir.mesh import Mesh
from mind_mlir.ir.sharding import Sharding, Spec
from mind_mlir.ir.types import DType
from mind_mlir.support import argument_checks

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: What puts parts together.
JOIN = "JoinParts"


class ShardedArray:
    """An array in parts, of which this process has those of its ranks.

    `mind_mlir.shard` makes one of a whole array, and functions that `shard_map` and `partition` make return
    them where they are told not to gather.

    Attributes:
        mesh: Its ranks.
        sharding: Which axes of the mesh divide which dimensions.
        shape: Of the whole.
        dtype: The dtype of its elements, as numpy has it.
        parts: The parts of the ranks that this process has, by rank; nobody writes to them.
    """

    __slots__ = ("dtype", "mesh", "parts", "shape", "sharding")

    def __init__(
        self, mesh: Mesh, sharding: Spec, shape: tuple[int, ...], parts: Mapping[int, Array]
    ) -> None:
        """Put parts together.

        Raises:
            ValueError: There is not one part for each rank of this process, or one is of another type.
        """
        self.mesh, self.sharding, self.shape = mesh, Sharding(sharding), tuple(shape)
        self.parts = {rank: parts[rank] for rank in sorted(parts)}
        here = ranks_here(mesh, current_world())
        if tuple(self.parts) != tuple(here):
            raise ValueError(f"parts must be those of ranks {here.start} to {here.stop - 1}")
        local = self.sharding.local(mesh, self.shape)
        self.dtype: Any = next(iter(self.parts.values())).dtype
        for rank, part in self.parts.items():
            if part.shape != local or part.dtype != self.dtype:
                raise ValueError(
                    f"the part of rank {rank} must be {self.dtype}{local}, not {part.dtype}{part.shape}"
                )

    def __repr__(self) -> str:
        return f"<ShardedArray {self.dtype}{self.shape} along {str(self.sharding)!r} of {self.mesh}>"

    @property
    def ndim(self) -> int:
        """Return the number of dimensions of the whole."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the size in bytes of the parts that this process has."""
        return sum(part.nbytes for part in self.parts.values())

    @public
    def gather(self) -> Array:
        """Return the whole array. All processes have to do so: it is a collective."""
        text = written(
            JOIN,
            {"mesh": str(self.mesh), "sharding": str(self.sharding), "axes": ",".join(self.sharding.names)},
            DType.from_numpy(self.dtype) or DType.F64,
            self.sharding.local(self.mesh, self.shape),
            self.shape,
            "ShardedArray.gather()",
        )
        call = CollectiveCall(text)

        def gather(rank: int) -> Array:
            whole: Array = np.empty(self.shape, self.dtype)
            if self.sharding.names:
                meet(call, np.ascontiguousarray(self.parts[rank]), whole)
            else:
                np.copyto(whole, self.parts[rank])
            return whole

        return run_ranks(self.mesh, gather)[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the whole array, where this process has all parts of it.

        Raises:
            ValueError: Others have some of them: call `gather` in all processes.
        """
        if copy is False:
            raise ValueError("an array of several parts cannot be had without a copy")
        whole: Array = np.empty(self.shape, self.dtype)
        if len(self.parts) < self.mesh.size and self.sharding.names:
            raise ValueError("other processes have parts of the array: call gather() in all of them")
        for rank, part in self.parts.items():
            whole[self.sharding.part(self.mesh, rank, self.shape)] = part
        return whole if dtype is None else whole.astype(dtype)


def held_part(
    array: ShardedArray, mesh: Mesh, sharding: Sharding, rank: int, *, taker: str, advice: str
) -> Array:
    """Return the part of a rank of an array that is given to ``taker``, which takes it in parts as these are.

    Raises:
        ValueError: It is in other parts; ``advice`` says what to do.
    """
    if array.mesh != mesh or array.sharding != sharding:
        raise ValueError(
            f"{taker} takes an array along {str(sharding)!r} of {mesh}, and is given {array!r}: {advice}"
        )
    return array.parts[rank]


@public
def shard(array: Any, mesh: Mesh, sharding: Spec) -> ShardedArray:
    """Return an array in parts: each process keeps those of its ranks.

    Args:
        array: The whole array, which all processes give alike.
        mesh: The ranks.
        sharding: Which axes of the mesh divide which dimensions, as in ``"data,*"``.

    Raises:
        TypeError: An argument is not of the type above.
        ValueError: An extent is no multiple of the number of its parts, or an axis is none of the mesh.
        ExecutionError: E6201, the ranks cannot be spread over the processes.
    """
    argument_checks.expect(mesh, Mesh, "mesh", "a Mesh")
    whole, spec = np.asarray(array), Sharding(sharding)
    ranks = ranks_here(mesh, current_world())
    parts = {rank: np.array(whole[spec.part(mesh, rank, whole.shape)], order="C") for rank in ranks}
    return ShardedArray(mesh, spec, whole.shape, parts)
