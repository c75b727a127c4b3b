"""Concatenations and paddings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.ir.attributes import TensorLiteral
from mind_mlir.ir.types import DType
from mind_mlir.passes.simplify.pattern import Pattern, beneath, same_type
from mind_mlir.passes.simplify.shapes import positions_of, sliced

if TYPE_CHECKING:
    from mind_mlir.ir.module import CoreOperation, ValueId
    from mind_mlir.passes.simplify.rewrite import Rewrite
    from mind_mlir.passes.simplify.shapes import Positions


def _axis(at: Rewrite) -> int:
    axis: Any = at.attributes["axis"]
    return int(axis)


def _concat_of_one(at: Rewrite) -> ValueId | None:
    axis = _axis(at)
    kept = [value for value in at.operands if at.shape_of(value)[axis]]
    if len(kept) == 1:
        return kept[0]
    return at.again(kept) if len(kept) < len(at.operands) else None


def _concat_of_concat(at: Rewrite) -> ValueId | None:
    parts: list[ValueId] = []
    for value in at.operands:
        inner = at.maker(value, "Concat")
        if inner is not None and inner.attributes["axis"] == _axis(at) and at.is_read_once(value):
            parts += inner.operands
        else:
            parts.append(value)
    return at.again(parts) if len(parts) > len(at.operands) else None


def _concat_of_slices(at: Rewrite) -> ValueId | None:
    axis = _axis(at)
    parts: list[_Part] = []
    for value in at.operands:
        part = _part(at, value)
        last = parts[-1] if parts else part
        if not parts or last.root != part.root or not _adjoin(last.positions, part.positions, axis):
            parts.append(part)
            continue
        whole = range(last.positions[axis].start, part.positions[axis].stop)
        parts[-1] = _Part(part.root, [*part.positions[:axis], whole, *part.positions[axis + 1 :]], None)
    if len(parts) == len(at.operands):
        return None
    values = [sliced(at, root, taken) if value is None else value for root, taken, value in parts]
    return values[0] if len(values) == 1 else at.again(values)


class _Part(NamedTuple):
    """A part of a join: positions of a value, and the value that has them, if there is one."""

    root: ValueId
    positions: Positions
    value: ValueId | None


def _part(at: Rewrite, value: ValueId) -> _Part:
    inner = at.maker(value, "Slice")
    if inner is None:
        return _Part(value, [range(extent) for extent in at.shape_of(value)], value)
    (root,) = inner.operands
    return _Part(root, positions_of(inner, at.shape_of(root)), value)


def _adjoin(before: Positions, after: Positions, axis: int) -> bool:
    """Return whether ``after`` goes on along ``axis``, element by element, where ``before`` ends."""
    if before[axis].step != 1 or after[axis].step != 1 or before[axis].stop != after[axis].start:
        return False
    return before[:axis] == after[:axis] and before[axis + 1 :] == after[axis + 1 :]


@beneath("Pad")
def _pad_of_pad(at: Rewrite, inner: CoreOperation) -> ValueId | None:
    gaps: Any = at.attributes["interior"]
    if any(gaps) or not at.is_read_once(at.operands[0]):
        return None
    if inner.attributes["pad_value"] != at.attributes["pad_value"]:
        return None
    return at.emit(
        "Pad",
        inner.operands,
        at.type,
        low=_sums(inner.attributes["low"], at.attributes["low"]),
        high=_sums(inner.attributes["high"], at.attributes["high"]),
        interior=inner.attributes["interior"],
        pad_value=at.attributes["pad_value"],
    )


#: What says of a padding where it pads.
_PLACES = ("low", "high", "interior")


def _choice_of_pads(at: Rewrite) -> ValueId | None:
    condition, *choices = at.operands
    mask = at.maker(condition, "Pad")
    inside = None if mask is None else at.truth(mask.operands[0])
    if (
        mask is None
        or inside is None
        or TensorLiteral.of(not inside, DType.I1) != mask.attributes["pad_value"]
    ):
        return None
    value, around = choices if inside else reversed(choices)
    pad, number = at.maker(value, "Pad"), at.number(around)
    if (
        pad is None
        or number is None
        or any(pad.attributes[each] != mask.attributes[each] for each in _PLACES)
    ):
        return None
    places = {each: pad.attributes[each] for each in _PLACES}
    return at.emit("Pad", pad.operands, at.type, **places, pad_value=TensorLiteral.of(number, at.type.dtype))


def _sums(left: Any, right: Any) -> tuple[int, ...]:
    return tuple([one + other for one, other in zip(left, right, strict=True)])


PATTERNS = (
    Pattern(
        "concat(x, empty)",
        "x",
        "what has no elements adds none",
        ("Concat",),
        _concat_of_one,
    ),
    Pattern(
        "concat(concat(x, y), z)",
        "concat(x, y, z)",
        "along the same axis; nothing else reads the inner one, so that nothing is copied twice",
        ("Concat",),
        _concat_of_concat,
        "along another axis, or where somebody else reads the inner one",
    ),
    Pattern(
        "concat(slice(x), slice(x))",
        "slice(x)",
        "one goes on where the other ends, with steps of 1, and elsewhere they agree",
        ("Concat",),
        _concat_of_slices,
        "a gap between them, another order, or other elements of another axis",
    ),
    Pattern(
        "select(pad(true) with false, pad(x), v), select(pad(false) with true, v, pad(x))",
        "pad(x) with v",
        "of the same places; v is a constant, the same everywhere",
        ("Select",),
        _choice_of_pads,
        "other places; what pads the truth values is one of them",
    ),
    Pattern("pad(x) of nothing", "x", "no element is added", ("Pad",), same_type),
    Pattern(
        "pad(pad(x))",
        "pad(x)",
        "with the same value bit for bit, the outer one not between elements; nothing else reads the inner "
        "one",
        ("Pad",),
        _pad_of_pad,
        "0.0 and -0.0; padding between elements, some of which are padding",
    ),
)
