"""`Guards`: which extents an exported program holds for, if it was exported for open ones."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from mind_mlir.models.torch.tensors import load_torch


class Guards:
    """What `torch.export` has taken for granted: extents, their ranges, and how they relate."""

    def __init__(self, module: Any, program: Any, leaves: Sequence[Any]) -> None:
        """Read them of a program for arguments with these leaves."""
        self._example = _shapes(leaves)
        self._signature = inspect.signature(module.forward)
        code = [f"({each})" for each in getattr(program, "_guards_code", None) or ()]
        # It is Python that torch writes of extents, as `L['x'].size()[0] % 2 == 0`.
        self._relations = compile(" and ".join(code) or "True", "<guards of torch.export>", "eval")
        inputs = [
            node.meta.get("val")
            for node, spec in zip(program.graph.nodes, program.graph_signature.input_specs, strict=False)
            if spec.kind.name == "USER_INPUT"
        ]
        self._ranges = [_ranges(each, program.range_constraints) for each in inputs]

    def hold(self, leaves: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Return whether the program is that of the arguments, which ``leaves`` are the parts of."""
        for leaf, ranges in zip(leaves, self._ranges, strict=True):
            for extent, (low, high) in zip(getattr(leaf, "shape", ()), ranges, strict=False):
                if extent < low or (high is not None and extent > high):
                    return False
        scope = {"L": self._signature.bind(*args, **kwargs).arguments, "torch": load_torch()}
        try:
            return bool(eval(self._relations, {}, scope))  # noqa: S307 -- torch has written it
        except (NameError, AttributeError, LookupError, TypeError):
            return _shapes(leaves) == self._example  # what cannot be checked is not relied on


def _shapes(leaves: Sequence[Any]) -> list[Any]:
    return [getattr(each, "shape", None) for each in leaves]


def _ranges(value: Any, known: Mapping[Any, Any]) -> list[tuple[int, int | None]]:
    found: list[tuple[int, int | None]] = []
    for extent in getattr(value, "shape", ()):
        if isinstance(extent, int):
            found.append((extent, extent))
            continue
        range_ = known.get(extent.node.expr)
        low, high = (None, None) if range_ is None else (_number(range_.lower), _number(range_.upper))
        found.append((low or 0, high))
    return found


def _number(bound: Any) -> int | None:
    """Return a bound of sympy's as a number; None where it is infinite."""
    return int(bound) if getattr(bound, "is_Integer", False) else None
