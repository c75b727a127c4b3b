"""The arguments of a function of a program: tuples taken apart, symbolic dimensions bound by them.

A value of tuple type is given as a tuple (or list) of Python, nested as its type is, and given back as one.
A symbolic dimension is what the arguments say where it stands; where several do, they agree.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from mind_mlir.arguments.tensors import by_name, viewed
from mind_mlir.diagnostics import ArgumentError, Diagnostic
from mind_mlir.ir.types import SymbolicDim, TensorType, format_shape
from mind_mlir.languages.ptir.symbols import parameter_symbols
from mind_mlir.languages.ptir.values import leaf_paths, leaves, nested
from mind_mlir.support import argument_checks
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.types import TupleType, ValueType
    from mind_mlir.languages.ptir.program import Function
    from mind_mlir.languages.ptir.to_module import ProgramSignature


@dataclass(frozen=True, slots=True)
class _Place:
    """The position of a symbolic dimension: an axis of a tensor."""

    leaf: int
    axis: int
    symbol: int


class ProgramArguments:
    """Takes the arguments of calls of one function.

    Attributes:
        signature: What the function takes and returns.
        symbols: The symbolic dimensions that its arguments bind.
    """

    def __init__(self, function: Function, signature: ProgramSignature) -> None:
        self.signature = signature
        self.symbols = parameter_symbols(function)
        self._types = [leaf for type_ in signature.parameters for leaf in leaves(type_)]
        self._labels = [
            f"{name}{path}"
            for name, type_ in zip(signature.names, signature.parameters, strict=True)
            for path in leaf_paths(type_)
        ]
        self._flat = all(isinstance(type_, TensorType) for type_ in signature.parameters)
        self._plain_results = all(isinstance(type_, TensorType) for type_ in signature.results)
        number = {name: index for index, name in enumerate(self.symbols)}
        self._places = [
            _Place(leaf, axis, number[extent.name])
            for leaf, type_ in enumerate(self._types)
            for axis, extent in enumerate(type_.shape)
            if isinstance(extent, SymbolicDim)
        ]
        self._ranks = [type_.rank for type_ in self._types]

    def take(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[int, ...], Sequence[object]]:
        """Return the extents of the symbols, in their order, and what is given for each tensor.

        What is given is looked at only for its shape, and only where a symbol stands: the rest is for whoever
        knows the types, with numbers in the place of the symbols.

        Raises:
            ArgumentError: E6101 missing, E6102 unexpected or given twice, E6105 not a tuple of so many, or
                no array; E6104 of another rank; E6107, two arguments say different things of a symbol.
        """
        if self._flat and not kwargs and len(args) == len(self._types):
            extents = self._quickly(args)
            if extents is not None:
                return extents, args
        return self._with_care(args, kwargs)

    def results(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """Return the results of a call, with tuples where the function has them."""
        if self._plain_results:
            return tuple(tensors)
        rest = iter(tensors)
        return tuple([nested(type_, rest) for type_ in self.signature.results])

    def flat_results(self, out: object) -> object:
        """Return arrays for the results, given as `results` gives them, one after another."""
        if self._plain_results or out is None:
            return out
        findings: list[Diagnostic] = []
        given = out if isinstance(out, (tuple, list)) else (out,)
        count = len(self.signature.results)
        if len(given) != count:
            message = f"out is {len(given)} values, but there are {count} results"
            raise ArgumentError(Diagnostic("E6105", message, help="give one for each result"))
        flat: list[object] = []
        for index, (value, type_) in enumerate(zip(given, self.signature.results, strict=True)):
            self._flatten(f"out[{index}]", value, type_, flat, findings)
        if findings:
            raise ArgumentError(findings)
        return tuple(flat)

    def _quickly(self, args: Sequence[Any]) -> tuple[int, ...] | None:
        """Return the extents of the symbols where all is as it should be, else None."""
        found: list[int] = [-1] * len(self.symbols)
        for place in self._places:
            value = args[place.leaf]
            if type(value) is not np.ndarray or value.ndim != self._ranks[place.leaf]:
                return None
            extent = value.shape[place.axis]
            if found[place.symbol] not in (-1, extent):
                return None
            found[place.symbol] = extent
        return tuple(found)

    def _with_care(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[tuple[int, ...], Sequence[object]]:
        findings: list[Diagnostic] = []
        names = self.signature.names
        given = by_name(names, args, kwargs, findings)
        flat: list[object] = []
        for name, type_ in zip(names, self.signature.parameters, strict=True):
            if name not in given:
                message, help_ = f"argument '{name}' is missing", f"pass {name}=<array>"
                findings.append(_about("E6101", message, name, type_, help_))
            else:
                self._flatten(name, given[name], type_, flat, findings)
        if findings:
            raise ArgumentError(findings)
        extents = self._extents(flat, findings)
        if findings:
            raise ArgumentError(findings)
        return extents, flat

    def _flatten(
        self, label: str, value: object, type_: ValueType, flat: list[object], findings: list[Diagnostic]
    ) -> None:
        if isinstance(type_, TensorType):
            flat.append(value)
        elif not isinstance(value, (tuple, list)) or len(value) != len(type_.elements):
            findings.append(_no_tuple(label, value, type_))
        else:
            for index, (part, element) in enumerate(zip(value, type_.elements, strict=True)):
                self._flatten(f"{label}[{index}]", part, element, flat, findings)

    def _extents(self, flat: Sequence[object], findings: list[Diagnostic]) -> tuple[int, ...]:
        """Return what the tensors say of the symbols; what is wrong goes to ``findings``."""
        shapes: dict[int, tuple[int, ...]] = {}
        for leaf in dict.fromkeys(place.leaf for place in self._places):
            array, reason = viewed(flat[leaf])
            label, type_ = self._labels[leaf], self._types[leaf]
            if array is None:
                message = f"argument '{label}' is not an array: {reason}"
                findings.append(_about("E6105", message, label, type_, None))
            elif array.dtype.hasobject or array.dtype.kind in "USmM":
                passed = argument_checks.describe(flat[leaf])
                message = f"argument '{label}' is not an array of numbers, but {passed}"
                findings.append(_about("E6105", message, label, type_, "pass a numpy array"))
            elif array.ndim != type_.rank:
                findings.append(wrong_rank(label, array.shape, type_))
            else:
                shapes[leaf] = array.shape
        first: dict[int, _Place] = {}
        for place in self._places:
            if place.leaf not in shapes:
                continue
            other = first.setdefault(place.symbol, place)
            if shapes[other.leaf][other.axis] != shapes[place.leaf][place.axis]:
                findings.append(self._disagreement(other, place, shapes))
        known = (first.get(number) for number in range(len(self.symbols)))
        return tuple(-1 if place is None else shapes[place.leaf][place.axis] for place in known)

    def _disagreement(
        self, first: _Place, second: _Place, shapes: Mapping[int, tuple[int, ...]]
    ) -> Diagnostic:
        name = self.symbols[first.symbol]
        said = [
            f"{shapes[place.leaf][place.axis]} by dimension {place.axis} of argument "
            f"'{self._labels[place.leaf]}'"
            for place in (first, second)
        ]
        types = {place.leaf: None for place in (first, second)}
        return Diagnostic(
            "E6107",
            f"?{name} is {said[0]}, but {said[1]}",
            notes=tuple(f"argument '{self._labels[leaf]}' is {self._types[leaf]}" for leaf in types),
            help=f"?{name} is one extent in a call: pass arrays that agree",
            context=MappingProxyType(
                {
                    "symbol": name,
                    "places": tuple((self._labels[place.leaf], place.axis) for place in (first, second)),
                    "extents": tuple(shapes[place.leaf][place.axis] for place in (first, second)),
                }
            ),
        )


def wrong_rank(label: str, shape: tuple[int, ...], type_: TensorType) -> Diagnostic:
    """Return the finding about an array of another rank than its type, which has symbols (E6104)."""
    message = f"argument '{label}' has shape {format_shape(shape)}, expected {format_shape(type_.shape)}"
    return _about("E6104", message, label, type_, "pass an array of that rank; calls do not broadcast")


def _no_tuple(label: str, value: object, type_: TupleType) -> Diagnostic:
    found = f"of {len(value)}" if isinstance(value, (tuple, list)) else argument_checks.describe(value)
    message = f"argument '{label}' must be a tuple of {len(type_.elements)}, not {found}"
    return _about("E6105", message, label, type_, "nest tuples as the type does")


def _about(code: str, message: str, label: str, type_: ValueType, help_: str | None) -> Diagnostic:
    context = MappingProxyType({"input": label, "expected": str(type_)})
    return Diagnostic(code, message, None, (f"input '{label}' is {type_}",), help_, context=context)
