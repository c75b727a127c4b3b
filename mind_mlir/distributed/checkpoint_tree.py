"""Trees as a checkpoint describes them: containers as JSON, and each leaf by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mind_mlir.arguments.tensors import viewed
from mind_mlir.collectives.sharded_array import ShardedArray
from mind_mlir.distributed.checkpoint_problems import UNLIKE, CheckpointProblem
from mind_mlir.ir.types import DType
from mind_mlir.support import argument_checks, pytrees

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import Array

#: A leaf: what stays as it is, an array, or one of which each process has some parts.
Leaf: TypeAlias = "bool | int | float | complex | Array | ShardedArray"

#: What the leaves of a tree are called together; names of them begin with it.
ROOT = "tree"
_NUMBERS = {kind.__name__: kind for kind in (bool, int, float, complex)}


def leaves_of(tree: Any) -> tuple[dict[str, Leaf], Any]:
    """Return the leaves of a tree by name, and the value of JSON from which `rebuilt` makes it again.

    Raises:
        TypeError: A leaf is no array and no number, or is an array of what no dtype has.
    """
    leaves, form = pytrees.flatten(tree, ROOT)
    names = form.names(ROOT)
    return dict(zip(names, map(_leaf, names, leaves), strict=True)), _described(
        form, iter(range(len(leaves)))
    )


def _leaf(name: str, value: Any) -> Leaf:
    if type(value) in _NUMBERS.values() or isinstance(value, ShardedArray):
        found: Leaf = value
        return found
    array, reason = (None, "it is a text") if isinstance(value, (str, bytes)) else viewed(value)
    if array is None:
        argument_checks.reject(name, f"a number or an array ({reason})", value)
    array = np.asarray(array, array.dtype.newbyteorder("="))
    if DType.from_numpy(array.dtype) is None:
        argument_checks.refuse(f"{name} has elements of type {array.dtype}, which no dtype has")
    return array


def _described(form: pytrees.Form, numbers: Any) -> Any:
    """Return what is in a form: the number of a leaf, or the kind of a container with its parts."""
    if form.container is None:
        return next(numbers)
    parts = [_described(part, numbers) for part in form.parts]
    if form.keys:
        by_key = dict(zip(form.keys, parts, strict=True))
        return {"dict": [[key, by_key[key]] for key in form.order or form.keys]}
    kinds = {type(None): "none", tuple: "tuple", dict: "dict"}
    return {kinds.get(form.container.cls, "list"): parts}


def rebuilt(described: Any, leaves: Sequence[Any]) -> Any:
    """Return the tree that `leaves_of` has described; records and mappings of other classes are dicts."""
    if isinstance(described, int):
        return leaves[described]
    ((kind, parts),) = described.items()
    if kind == "none":
        return None
    if kind == "dict":
        return {key: rebuilt(part, leaves) for key, part in parts}
    made = [rebuilt(part, leaves) for part in parts]
    return tuple(made) if kind == "tuple" else made


def number_as_json(value: Any) -> dict[str, str] | None:
    """Return a number as JSON, exactly, whatever it is; None for another leaf."""
    name = type(value).__name__
    return {"number": name, "value": repr(value)} if _NUMBERS.get(name) is type(value) else None


def number_of(said: dict[str, str]) -> Any:
    """Return the number that `number_as_json` has written."""
    if said["number"] == "bool":
        return said["value"] == "True"
    return _NUMBERS[said["number"]](said["value"])


def check_alike(name: str, like: Any, said: dict[str, Any]) -> None:
    """Make sure that a leaf was saved of the same dtype and shape.

    Raises:
        CheckpointProblem: It was not.
    """
    wanted = "a number" if number_as_json(like) else _type(str(DType.from_numpy(like.dtype)), like.shape)
    saved = "a number" if "number" in said else _type(said["dtype"], said["shape"])
    if wanted != saved:
        raise CheckpointProblem(f"{name} is {saved} there, and {wanted} in like", UNLIKE)


def _type(dtype: str, shape: Sequence[int]) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


def check_names(like: Sequence[str], saved: Sequence[str]) -> None:
    """Make sure that leaves have the same names.

    Raises:
        CheckpointProblem: They have others.
    """
    for have, lack, where in ((like, saved, "like"), (saved, like, "the checkpoint")):
        others = [name for name in have if name not in set(lack)]
        if others:
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            raise CheckpointProblem(f"only {where} has {others[0]}{more}", UNLIKE)
