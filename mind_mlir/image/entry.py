"""`Entry`: what a function of compiled code is called by, takes, returns and checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from mind_mlir.diagnostics.checks import Check, DivisorCheck, IndexCheck, PositionCheck
from mind_mlir.image.errors import CodeError
from mind_mlir.ir.interface import Output, Parameter
from mind_mlir.ir.mesh import MeshError, mesh_of
from mind_mlir.ir.types import MAX_RANK, DType, TensorType
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.image.image import Image

T = TypeVar("T")

_CHECKS: Mapping[str, type[Check]] = {
    "index": IndexCheck,
    "position": PositionCheck,
    "divisor": DivisorCheck,
}
_KINDS = {check: kind for kind, check in _CHECKS.items()}
_DTYPES = {str(dtype): dtype for dtype in DType}
#: No extent, and no number of a check, is larger.
_MOST = 1 << 62


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that compiled code shows to callers; `mind_mlir.target.abi` says how it is called.

    Attributes:
        name: What the program calls it.
        symbol: What the image calls it.
        parameters: Its inputs, in order.
        outputs: Its results, in order.
        checks: The run-time checks whose outcomes it returns in its status, in order.
        scratch_bytes: The size of the arena that each running call needs.
        mesh: The mesh whose ranks run it; empty where it does nothing with others.
    """

    name: str
    symbol: str
    parameters: tuple[Parameter, ...]
    outputs: tuple[Output, ...]
    checks: tuple[Check, ...]
    scratch_bytes: int
    mesh: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the entry as what JSON has: objects, arrays, strings and numbers."""
        return {
            "name": self.name,
            "symbol": self.symbol,
            "parameters": [{"name": each.name, **_type(each.type)} for each in self.parameters],
            "outputs": [{"name": each.label, **_type(each.type)} for each in self.outputs],
            "checks": [_check(each) for each in self.checks],
            "scratch_bytes": self.scratch_bytes,
        } | ({"mesh": self.mesh} if self.mesh else {})

    @classmethod
    def from_json(cls, data: object) -> Entry:
        """Return what `to_json` made ``data`` of.

        Raises:
            CodeError: It made something else.
        """
        parameters = tuple(
            Parameter(item(each, "name", str), _read_type(each)) for each in items(data, "parameters")
        )
        if len({parameter.name for parameter in parameters}) != len(parameters):
            raise CodeError("two inputs of a function have one name")
        return cls(
            item(data, "name", str),
            item(data, "symbol", str),
            parameters,
            tuple(Output(item(each, "name", str), _read_type(each)) for each in items(data, "outputs")),
            tuple(_read_check(each) for each in items(data, "checks")),
            count(data, "scratch_bytes"),
            _read_mesh(data),
        )


def check_entries(entries: Sequence[Entry], image: Image) -> None:
    """Raise a `CodeError` where a function that callers see is none of an image, or another has its name."""
    if len({entry.name for entry in entries}) != len(entries):
        raise CodeError("two functions have one name")
    functions = {symbol.name: symbol.offset for symbol in image.symbols}
    for entry in entries:
        if not 0 <= functions.get(entry.symbol, image.text) < image.text:
            raise CodeError(f"it has no function {entry.symbol}")


def item(data: object, name: str, kind: type[T]) -> T:
    """Return member ``name`` of an object of JSON; a `CodeError` where there is none of type ``kind``."""
    value = data.get(name) if isinstance(data, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise CodeError(f"{name} must be of type {kind.__name__}")
    return value


def items(data: object, name: str) -> list[Any]:
    """Return an array of JSON, as `item` does."""
    return item(data, name, list)


def count(data: object, name: str) -> int:
    """Return a number of JSON that counts something, as `item` does."""
    value = item(data, name, int)
    if not 0 <= value < _MOST:
        raise CodeError(f"{name} must count something")
    return value


def _type(type_: TensorType) -> dict[str, Any]:
    return {"dtype": str(type_.dtype), "shape": list(type_.extents)}


def _read_mesh(data: object) -> str:
    """Return the mesh of a function, which few have."""
    if not isinstance(data, dict) or "mesh" not in data:
        return ""
    try:
        return str(mesh_of(item(data, "mesh", str)))
    except MeshError as error:
        raise CodeError(f"the mesh of a function is none: {error}") from None


def _read_type(data: object) -> TensorType:
    dtype = _DTYPES.get(item(data, "dtype", str))
    shape = items(data, "shape")
    if dtype is None or len(shape) > MAX_RANK or not all(_is_count(extent) for extent in shape):
        raise CodeError("a type must have a dtype and a shape")
    type_ = TensorType(dtype, tuple(shape))
    if not type_.is_addressable:
        raise CodeError("an array takes more memory than there are addresses")
    return type_


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _MOST


def _check(check: Check) -> dict[str, Any]:
    own = {each.name: getattr(check, each.name) for each in fields(check)}
    return {"kind": _KINDS[type(check)]} | {
        name: list(value) if isinstance(value, tuple) else value for name, value in own.items()
    }


def _read_check(data: object) -> Check:
    kind = _CHECKS.get(item(data, "kind", str))
    if kind is None:
        raise CodeError("there is no check of that kind")
    readers: Mapping[str, Callable[[], Any]] = {
        "opcode": lambda: item(data, "opcode", str),
        "label": lambda: item(data, "label", str),
        "place": lambda: _read_place(data),
        "axis": lambda: count(data, "axis"),
        "shape": lambda: _read_shape(items(data, "shape")),
        "window": lambda: count(data, "window"),
    }
    found = {each.name: readers[each.name]() for each in fields(kind)}
    if "axis" in found and found["axis"] >= len(found["shape"]):
        raise CodeError("a check must be of an axis that there is")
    return kind(**found)


def _read_shape(shape: Sequence[object]) -> tuple[int, ...]:
    extents = tuple(each for each in shape if isinstance(each, int) and _is_count(each))
    if len(extents) != len(shape):
        raise CodeError("a shape must have extents")
    return extents


def _read_place(data: object) -> tuple[str, int, int] | None:
    place = data.get("place") if isinstance(data, dict) else None
    if place is None:
        return None
    if isinstance(place, list) and [type(each) for each in place] == [str, int, int]:
        return place[0], place[1], place[2]
    raise CodeError("a place must be a file, a line and a column")
