"""The rules of a profile for operations and types, for the verifier and the builders of functions."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics import Diagnostic, Location
from mind_mlir.ir.types import MAX_RANK, TensorType, ValueType

if TYPE_CHECKING:
    from mind_mlir.ir.profiles import Profile

#: No file and no other language can hold it.
_SURROGATE = re.compile("[\ud800-\udfff]")


def usable(type_: ValueType) -> TensorType | None:
    """Return a declared type that rules can work with, or None."""
    if not isinstance(type_, TensorType) or type_.rank > MAX_RANK:
        return None
    return type_ if all(isinstance(extent, int) and extent >= 0 for extent in type_.shape) else None


def finding(
    code: str,
    message: str,
    location: Location | None = None,
    notes: tuple[str, ...] = (),
    help_: str | None = None,
    **context: Any,
) -> Diagnostic:
    """Return an error with its facts."""
    return Diagnostic(code, message, location, notes, help_, context=MappingProxyType(context))


def refused(opcode: str, profile: Profile, location: Location | None) -> Diagnostic | None:
    """Return E4102 where the profile leaves the operation out on purpose."""
    refusal = profile.refused.get(opcode)
    if refusal is None:
        return None
    message = f"{opcode} is not allowed in profile {profile.name}"
    notes, help_ = (refusal.reason,), refusal.instead
    return finding("E4102", message, location, notes, help_, operation=opcode, profile=profile.name)


def foreign_dtype(
    what: str, type_: TensorType, profile: Profile, location: Location | None, code: str
) -> Diagnostic | None:
    """Return ``code`` where the profile does not have the dtype of ``type_``, which ``what`` has."""
    if type_.dtype in profile.dtypes:
        return None
    allowed, found = ", ".join(dtype.core_name for dtype in profile.dtypes), type_.dtype.core_name
    message = f"{what} has dtype {found}, which profile {profile.name} does not have"
    facts = {"found": found, "allowed": allowed, "issue": "dtype"}
    return finding(code, message, location, (), f"allowed: {allowed}", **facts)


def size(type_: TensorType, location: Location | None) -> Diagnostic | None:
    """Return E4106 or E4104 where no array can have the static ``type_``."""
    if type_.rank > MAX_RANK:
        message = f"a value of rank {type_.rank} has more dimensions than numpy arrays have"
        help_ = f"the rank is at most {MAX_RANK}; merge dimensions with Reshape"
        return finding("E4106", message, location, (), help_, rank=type_.rank)
    if type_.is_addressable:
        return None
    note = f"it has {type_.element_count} elements of {type_.dtype.itemsize} bytes"
    note = note if type_.element_count else f"{note}, but the other extents alone exceed 63 bits"
    message = f"a value of type {type_} does not fit any address space"
    return finding("E4104", message, location, (note,), "reduce the extents", type=str(type_))


def declared_type(
    what: str, type_: ValueType, profile: Profile, location: Location | None, code: str = "E4126"
) -> Diagnostic | None:
    """Return what is wrong with the type of a parameter or of a function's result, called ``what``.

    It is a tensor of known extents (``code``) with a dtype of the profile (``code``) that an array can have
    (E4104, E4106). An argument from outside, of code E4004, has no empty dimensions, unless the profile
    allows them.
    """
    if not isinstance(type_, TensorType):
        message = f"{what} has type {type_}; it must be a tensor"
        help_ = "declare one value for each of its parts"
        return finding(code, message, location, (), help_, type=str(type_), issue="type")
    least = 1 if code == "E4004" and not profile.empty_arguments else 0
    for axis, extent in enumerate(type_.shape):
        if not isinstance(extent, int) or extent < least:
            kind = "positive" if least else "known numbers"
            message = f"{what} has extent {extent} in dimension {axis}; extents must be {kind}"
            help_ = f"extents are {kind}" if isinstance(extent, int) else "write the extent as a number"
            facts = {"type": str(type_), "issue": "shape"}
            return finding(code, message, location, (f"its type is {type_}",), help_, **facts)
    return foreign_dtype(what, type_, profile, location, code) or size(type_, location)


def argument_name_taken(function: str, name: str, location: Location | None, first: str) -> Diagnostic:
    """Return E4004: another argument of ``function`` is called ``name`` already, ``first`` says which."""
    message = f"two arguments of @{function} are called '{name}'"
    notes, help_ = (f"the other one is {first}",), "give every argument a name of its own"
    return finding("E4004", message, location, notes, help_, issue="name", name=name)


def argument_name(what: str, name: str | None, location: Location | None) -> Diagnostic | None:
    """Return E4004 where a parameter of an exported function cannot be called ``name`` by callers."""
    help_ = "give the parameter a name"
    if name is None:
        message = f"{what} has no name, but callers of an exported function name its arguments"
    elif not name:
        message = f"{what} has an empty name"
    elif _SURROGATE.search(name):
        message, help_ = (
            f"{what} has a name with half of a surrogate pair",
            "write a name of whole characters",
        )
    else:
        return None
    return finding("E4004", message, location, (), help_, issue="name")
