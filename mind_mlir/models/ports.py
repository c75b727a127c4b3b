"""`Port`: an input or output of a model; checks of a call's arguments, and the extents that they bind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mind_mlir.arguments.tensors import viewed
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.ir.types import DType, TensorType
from mind_mlir.runtime.staged_values import StagedValue
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

#: Numbers of Python take the dtype of the input that they are given for.
_NUMBERS = (bool, int, float, complex)


class Extent(NamedTuple):
    """An extent that a model leaves open: by name, or without one."""

    name: str


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a model, or of a graph in it.

    Attributes:
        name: Its name.
        kind: Whether it is a ``tensor``, a ``sequence`` or an ``optional``; "" where the model does not say.
        dtype: The elements' dtype; None where the model does not say.
        shape: The extents; None where the model does not say.
    """

    name: str
    kind: str = ""
    dtype: np.dtype[Any] | None = None
    shape: tuple[int | Extent, ...] | None = None


def placed(name: str, ports: Sequence[Port], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the arguments of a call in the order of the inputs.

    Raises:
        ArgumentError: E6101, one is missing; E6102, one is too many, or has a name that no input has.
    """
    names = [port.name for port in ports]
    if len(args) > len(names):
        raise _refused("E6102", f"{name} takes {len(names)} arguments, and is given {len(args)}", names)
    given = dict(zip(names, args, strict=False))
    for key, value in kwargs.items():
        if key not in names:
            raise _refused("E6102", f"{name} has no input '{key}'{did_you_mean(key, names)}", names)
        if key in given:
            raise _refused("E6102", f"input '{key}' of {name} is given twice", names)
        given[key] = value
    missing = [port.name for port in ports if port.name not in given and port.kind != "optional"]
    if missing:
        listed = ", ".join(f"'{each}'" for each in missing)
        raise _refused("E6101", f"{name} is given no {listed}", names)
    return [given.get(each) for each in names]


def checked(ports: Sequence[Port], values: Sequence[Any], bindings: Mapping[str, int]) -> list[Any]:
    """Return arguments as arrays that fit the inputs; one extent has one number in a call.

    Raises:
        ArgumentError: E6103, E6104, E6105: another dtype, another shape, or no array; E6107, two extents of
            one name are different.
    """
    extents = dict(bindings)
    return [_value(port, value, extents) for port, value in zip(ports, values, strict=True)]


def _value(port: Port, value: Any, extents: dict[str, int]) -> Any:
    if value is None and port.kind == "optional":
        return None
    if port.kind == "sequence" or (port.kind == "optional" and isinstance(value, list | tuple)):
        if not isinstance(value, list | tuple):
            message = f"input '{port.name}' is a sequence, and is given no list"
            raise _refused("E6105", message, help="pass a list of arrays")
        return [_array(port, each, dict(extents)) for each in value]  # elements differ in shape
    return _array(port, value, extents)


def _array(port: Port, value: Any, extents: dict[str, int]) -> Any:
    if isinstance(value, StagedValue | TensorType):
        dtype = (value.type if isinstance(value, StagedValue) else value).dtype.numpy
        shape = (value.type if isinstance(value, StagedValue) else value).shape
    else:
        if isinstance(value, _NUMBERS) and port.dtype is not None:
            value = np.array(value, port.dtype)
        found, reason = viewed(value)
        if found is None:
            message = f"input '{port.name}' is given no array: {reason}"
            raise _refused("E6105", message, help="pass an array of numpy, or what makes one")
        if found.dtype.hasobject and port.dtype != found.dtype:
            message = f"input '{port.name}' is given no array of numbers"
            raise _refused("E6105", message, help="pass an array of numpy, or what makes one")
        value, dtype, shape = found, found.dtype, found.shape
    if port.dtype is not None and dtype != port.dtype:
        message = f"input '{port.name}' is of {port.dtype}, and is given {dtype}"
        raise _refused("E6103", message, help=f"convert it: {port.name}.astype('{port.dtype}')")
    if port.shape is not None:
        _check_shape(port, tuple(shape), extents)
    return value


def _check_shape(port: Port, shape: tuple[Any, ...], extents: dict[str, int]) -> None:
    wanted = port.shape or ()
    fixed = zip(wanted, shape, strict=False)
    if len(shape) != len(wanted) or any(isinstance(each, int) and each != found for each, found in fixed):
        shown = f"[{', '.join(str(_shown(each)) for each in wanted)}]"
        message = f"input '{port.name}' has shape {shown}, and is given {list(shape)}"
        raise _refused("E6104", message, help="pass an array of that shape; names stand for any extent")
    for extent, found in zip(wanted, shape, strict=True):
        if not isinstance(extent, int) and extent.name and extents.setdefault(extent.name, found) != found:
            raise _refused(
                "E6107",
                f"extent {extent.name} is {extents[extent.name]}, and input '{port.name}' has {found} for it",
                help="one name has one extent in a call, the one that bindings gives it first",
            )


def _shown(extent: Any) -> Any:
    return extent if isinstance(extent, int) else extent.name or "?"


def _refused(code: str, message: str, names: Sequence[str] = (), help: str | None = None) -> ArgumentError:
    hint = f"the inputs are: {', '.join(names) or 'none'}" if names else help
    return ArgumentError(Diagnostic(code, message, help=hint))


def example_types(ports: Sequence[Port], bindings: Mapping[str, int]) -> list[TensorType] | str:
    """Return the types of inputs whose extents are all known, or the name of the first thing that is open."""
    found = []
    for port in ports:
        if port.kind != "tensor" or port.shape is None or port.dtype is None:
            return f"input '{port.name}'"
        dtype = DType.from_numpy(port.dtype)
        if dtype is None:
            return f"input '{port.name}'"
        shape = []
        for extent in port.shape:
            known = extent if isinstance(extent, int) else bindings.get(extent.name)
            if known is None:
                return f"extent {_shown(extent)} of input '{port.name}'"
            shape.append(known)
        found.append(TensorType(dtype, tuple(shape)))
    return found


def checked_bindings(bindings: object, ports: Sequence[Port]) -> dict[str, int]:
    """Return the extents that a caller gives by name (TypeError, ValueError: they are none)."""
    if bindings is None:
        return {}
    given = argument_checks.mapping(bindings, "bindings", "a mapping from names of extents to integers")
    open_ = {
        extent.name
        for port in ports
        for extent in port.shape or ()
        if not isinstance(extent, int) and extent.name
    }
    found = {}
    for name, extent in given.items():
        if name not in open_:
            known = ", ".join(sorted(open_)) or "none"
            raise ValueError(f"bindings names {name!r}, which is no open extent of the model ({known})")
        found[name] = argument_checks.integer(extent, f"the extent of {name}")
        if found[name] < 0:
            raise ValueError(f"the extent of {name} must not be negative, but is {extent}")
    return found
