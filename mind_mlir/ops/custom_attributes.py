"""Attributes of custom calls: as the contract has them, and as one string in canonical JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics.tracebacks import public
from mind_mlir.ops.contract import MAP_KINDS, Tagged
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.suggestions import did_you_mean

if TYPE_CHECKING:
    from mind_mlir.ops.custom_targets import CustomAttribute, CustomTarget


class AttributesError(Exception):
    """The attributes of a call are wrong.

    Attributes:
        message: One sentence.
        help: What the person can do about it.
    """

    def __init__(self, message: str, help_: str) -> None:
        super().__init__(message)
        self.message = message
        self.help = help_


_FORM = 'write them as {"name":{"kind":"I64","value":3}}'


def to_text(attributes: Mapping[str, Tagged]) -> str:
    """Return attributes as canonical JSON: names in order, no spaces."""
    data = {name: {"kind": each.kind, "value": each.value} for name, each in attributes.items()}
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def of_text(text: str) -> Mapping[str, Tagged]:
    """Return what `to_text` wrote.

    Raises:
        AttributesError: It is no JSON, or has no attributes as the contract has them.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise AttributesError("the attributes of a custom call must be JSON", _FORM) from None
    if not isinstance(data, dict):
        raise AttributesError("the attributes of a custom call must be an object of JSON", _FORM)
    return FrozenDict({name: _tagged(name, item) for name, item in data.items()})


def _tagged(name: str, item: object) -> Tagged:
    if not isinstance(item, dict) or item.keys() != {"kind", "value"}:
        raise AttributesError(f"attribute '{name}' must have a kind and a value, and no more", _FORM)
    kind, value = item["kind"], item["value"]
    if not isinstance(kind, str) or kind not in MAP_KINDS:
        raise AttributesError(
            f"attribute '{name}' has no kind of the contract", f"the kinds are {', '.join(MAP_KINDS)}"
        )
    if kind.endswith("Array") and isinstance(value, list):
        value = tuple(value)
    converted = _converted(kind, value)
    if converted is None:
        raise AttributesError(f"attribute '{name}' is not of its kind, {kind}", _FORM)
    return Tagged(kind, converted)


def _converted(kind: str, value: object) -> Any:
    """Return a value of ``kind`` that is meant by ``value``, or None."""
    class_ = MAP_KINDS[kind]
    if kind.endswith("Array"):
        if not isinstance(value, tuple):
            return None
        found = tuple(_element(class_, each) for each in value)
        return None if None in found else found
    return _element(class_, value)


def _element(class_: type, value: object) -> Any:
    if class_ is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if class_ is int and isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**63 else None
    return value if isinstance(value, class_) and class_ not in (int, float) else None


def of_target(target: CustomTarget, given: Mapping[str, Tagged]) -> Mapping[str, Any]:
    """Return the attributes of a call of ``target`` as plain values, complete.

    Raises:
        AttributesError: One is missing, unknown, of another kind, or none of its choices.
    """
    for name in given:
        if name not in target.attributes:
            raise AttributesError(
                f"{target.name} has no attribute '{name}'{did_you_mean(name, list(target.attributes))}",
                f"it takes {', '.join(target.attributes) or 'no attributes'}",
            )
    return FrozenDict({name: _value(target, name, each, given) for name, each in target.attributes.items()})


def _value(target: CustomTarget, name: str, definition: CustomAttribute, given: Mapping[str, Tagged]) -> Any:
    explained = f"{name}: {definition.doc}" if definition.doc else f"it is of kind {definition.kind}"
    if name not in given:
        if definition.default is None:
            raise AttributesError(
                f"{target.name} needs attribute '{name}', of kind {definition.kind}", explained
            )
        return definition.default
    found = given[name]
    value = _converted(definition.kind, found.value) if found.kind == definition.kind else None
    if value is None:
        raise AttributesError(
            f"attribute '{name}' of {target.name} must be of kind {definition.kind}, found {found.kind}",
            explained,
        )
    if definition.choices and value not in definition.choices:
        listing = ", ".join(map(repr, definition.choices))
        raise AttributesError(f"attribute '{name}' of {target.name} must be one of {listing}", explained)
    return value


@public
def custom_attributes(values: Mapping[str, Any]) -> str:
    """Return ``attrs`` of a custom call for plain values of Python, as `Builder.emit` takes it.

    A bool, int, float or string has that kind; a tuple or list is an array of what its first element is.

    Raises:
        TypeError: It is no mapping from strings.
        ValueError: A value has no kind, or an array is empty or of several kinds.
    """
    given = argument_checks.mapping(values, "values", "a mapping from names to values")
    named = {argument_checks.text(name, "each name in values"): value for name, value in given.items()}
    return to_text({name: _plain(name, value) for name, value in named.items()})


_KINDS = {bool: "Bool", int: "I64", float: "F64", str: "String"}


def _plain(name: str, value: Any) -> Tagged:
    is_array = isinstance(value, (tuple, list))
    first = (value[0] if value else None) if is_array else value
    kind = _KINDS.get(type(first), "") + ("Array" if is_array else "")
    converted = _converted(kind, tuple(value) if is_array else value) if kind in MAP_KINDS else None
    if converted is None:
        raise ValueError(
            f"attribute {name!r} must be a bool, integer, float or string, or an array of one of these"
        )
    return Tagged(kind, converted)
