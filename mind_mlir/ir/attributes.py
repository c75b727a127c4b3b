"""Attribute values: what stands between the braces of an operation.

    AttributeValue ::= bool | int | float | str | DType | TensorLiteral | Padding | (AttributeValue, ...)

All are immutable and compare by value, so that operations do; literals compare by their bytes, which keeps
NaNs equal to themselves and tells -0.0 from 0.0. What Python passes in another form that plainly means the
same (a list, a numpy integer, ``Padding("Same")``) takes the form above on its way in.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from mind_mlir.diagnostics import Diagnostic, VerificationError
from mind_mlir.ir.elements import ElementProblem, convert_array, convert_numbers
from mind_mlir.ir.nested import MAX_DEPTH, as_array, flattened, is_masked
from mind_mlir.ir.types import MAX_RANK, DType, DTypeKind, TensorType, dtype_of
from mind_mlir.support import argument_checks
from mind_mlir.support.float_mode import fixed
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator


Array: TypeAlias = npt.NDArray[Any]


#: Of a byte, what says which integer of 4 bits it holds.
_LOWER_HALF = bytes(byte & 15 for byte in range(256))
#: Of so many bytes, a literal is a buffer of its own in pickles, which are sent without copies.
_LARGE = 1 << 16
#: Elements that the `repr` of a literal shows.
_SHOWN_ELEMENTS = 8


@dataclass(frozen=True, slots=True, repr=False)
class TensorLiteral:
    """Constant data of a dtype and shape, row by row; literals compare by their bytes.

    A module may have millions of them: bytes take half the memory of a numpy array of one element.
    """

    type: TensorType
    data: bytes

    def __post_init__(self) -> None:
        argument_checks.expect(self.type, TensorType, "type", "a TensorType")
        argument_checks.expect(self.data, bytes, "data", "bytes (see TensorLiteral.of)")
        shape = self.type.shape
        known = len(shape) <= MAX_RANK and all(isinstance(extent, int) and extent >= 0 for extent in shape)
        if not known or not self.type.is_addressable:
            raise ValueError(f"type must be one that an array can have, not {self.type}")
        size = self.type.element_count * self.type.dtype.itemsize
        if len(self.data) != size:
            raise ValueError(f"data must be the {size} bytes of a {self.type}, not {len(self.data)}")
        if self.type.dtype.bits == 4:
            object.__setattr__(self, "data", self.data.translate(_LOWER_HALF))

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        is_buffer = protocol >= 5 and len(self.data) >= _LARGE
        return _unpickled, (self.type, PickleBuffer(self.data) if is_buffer else self.data)

    @classmethod
    def from_array(cls, array: Array) -> TensorLiteral:
        """Copy an array, whose elements are of a `DType`."""
        expected = "a numpy array of a DType's elements (see TensorLiteral.of)"
        argument_checks.expect(array, np.ndarray, "array", expected)
        dtype = DType.from_numpy(array.dtype)
        if dtype is None:
            argument_checks.reject("array", expected, array)
        return cls(_type(dtype, array.shape), array.tobytes())

    @property
    def array(self) -> Array:
        """Return the data as a read-only C-contiguous numpy array."""
        return np.ndarray(self.type.extents, self.type.dtype.numpy, self.data)

    @classmethod
    def of(cls, data: npt.ArrayLike, dtype: DType) -> TensorLiteral:
        """Copy ``data`` into a literal of ``dtype``; its shape is the data's.

        Args:
            data: A number, nested lists of numbers, or an array of numbers.
            dtype: A `DType`, its name or its numpy type.

        Raises:
            VerificationError: E1104, ``dtype`` is none; E3010, the lists are ragged; E4005, an element is no
                number or ``dtype`` does not hold it: nothing is truncated or becomes infinite unseen.
        """
        target = dtype_of(dtype)
        if target is None:
            message = f"a literal needs a DType, such as DType.F32, not {argument_checks.describe(dtype)}"
            raise VerificationError(Diagnostic("E1104", message))
        try:
            array = _converted(data, target)
        except ElementProblem as problem:
            facts = {"declared": target.core_name, "issue": "shape" if problem.code == "E3010" else "value"}
            raise VerificationError(
                Diagnostic(problem.code, problem.message, None, (), problem.help, context=FrozenDict(facts))
            ) from None
        return cls.from_array(array)

    def __str__(self) -> str:
        from mind_mlir.languages.core.printer import format_literal  # noqa: PLC0415 -- the printer stands above the data

        return format_literal(self)

    def __repr__(self) -> str:
        few = self.array.size <= _SHOWN_ELEMENTS
        return f"<TensorLiteral {self.type}{f' {self}' if few else ''}>"


@lru_cache(maxsize=1024)
def _unpickled(type_: TensorType, data: Any) -> TensorLiteral:
    return TensorLiteral(type_, bytes(data))


def _type(dtype: DType, shape: tuple[int, ...]) -> TensorType:
    return TensorType(dtype, shape)


class PaddingMode(Enum):
    """The way in which Conv2d chooses its padding."""

    VALID = "Valid"
    SAME = "Same"
    CUSTOM = "Custom"

    def __str__(self) -> str:
        return self.value


_MODES = tuple(mode.value for mode in PaddingMode)


@dataclass(frozen=True, slots=True)
class Padding:
    """Conv2d padding; ``pairs`` is ``((top, bottom), (left, right))``, given for Custom only.

    Raises:
        TypeError: ``mode`` is no `PaddingMode` nor its name, or ``pairs`` no sequence of pairs of integers.
        ValueError: ``mode`` is a word that names no mode.
    """

    mode: PaddingMode
    pairs: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.mode, PaddingMode):
            word = argument_checks.choice(
                argument_checks.text(self.mode, "mode").capitalize(), _MODES, "mode"
            )
            object.__setattr__(self, "mode", PaddingMode(word))
        expected = "a sequence of pairs of integers"
        pairs = tuple(
            tuple(
                argument_checks.integer(extent, "each extent of pairs")
                for extent in argument_checks.items(p, "pairs", expected)
            )
            for p in argument_checks.items(self.pairs, "pairs", expected)
        )
        object.__setattr__(self, "pairs", pairs)

    def __str__(self) -> str:
        if self.mode is not PaddingMode.CUSTOM:
            return str(self.mode.value)
        return f"Custom([{', '.join(str(list(pair)) for pair in self.pairs)}])"


AttributeValue: TypeAlias = (
    bool | int | float | str | DType | TensorLiteral | Padding | tuple["AttributeValue", ...]
)


#: Integers below need no closer look.
_PLAIN = 2**63


def frozen(value: object, depth: int = 0) -> AttributeValue | None:
    """Return an attribute value in the form that operations hold, or None where it is none.

    Lists become tuples, numbers and strings of other classes those of Python.

    Raises:
        ValueError: An integer has more digits than any of the IR.
    """
    if type(value) is tuple and _are_plain(value):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu":
        return tuple(value.tolist())
    if not isinstance(value, (tuple, list, range)):
        return _frozen_atom(value)
    if depth == MAX_DEPTH:
        return None
    items: list[AttributeValue] = []
    for item in value:
        held = frozen(item, depth + 1)
        if held is None:  # at once: a list that holds itself has no end, but a first path that is too deep
            return None
        items.append(held)
    return tuple(items)


def _frozen_atom(value: object) -> AttributeValue | None:
    if isinstance(value, (DType, TensorLiteral)):
        return value
    if isinstance(value, Padding):
        return _plain_padding(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return argument_checks.text(value, "an attribute")
    if isinstance(value, (float, np.floating)):
        return float(value)
    return None if argument_checks.whole(value) is None else argument_checks.integer(value, "an attribute")


def _plain_padding(padding: Padding) -> Padding | None:
    """Return a padding that has been checked, or None: one of a derived class need not have been."""
    mode, pairs = getattr(padding, "mode", None), getattr(padding, "pairs", None)
    try:
        return Padding(cast("Any", mode), cast("Any", pairs))
    except (TypeError, ValueError):
        return None


def _are_plain(values: tuple[Any, ...]) -> bool:
    """Return whether all are small integers: most attributes are such, and every new operation asks."""
    return set(map(type, values)) <= {int} and (
        not values or (min(values) > -_PLAIN and max(values) < _PLAIN)
    )


@fixed()
def _converted(data: object, dtype: DType) -> Array:
    if is_masked(data):
        raise ElementProblem(0, "E4005", "elements of the array are masked", "fill them: array.filled(0)")
    array = None if isinstance(data, np.generic) else as_array(data)
    if array is not None and array.dtype.kind in "biufcV" and array.dtype.names is None:
        return convert_array(array, dtype).reshape(array.shape)
    shape, elements = flattened(data if array is None else array)
    return convert_numbers(elements, dtype).reshape(shape)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attributes(Mapping[str, "AttributeValue"]):
    """The attributes of one operation by name, immutable; operations of one kind share the names.

    A dictionary takes three times the memory, and a module may have millions of operations.
    """

    names: tuple[str, ...]
    contents: tuple[AttributeValue, ...]

    @classmethod
    def of(cls, attributes: Mapping[str, AttributeValue]) -> Attributes:
        """Build it from any mapping, sorted by name."""
        if isinstance(attributes, Attributes):
            return attributes
        if not attributes:
            return _NO_ATTRIBUTES
        names = shared_names(tuple(sorted(attributes)))
        return cls(names, tuple([attributes[name] for name in names]))

    def __getitem__(self, name: str) -> AttributeValue:
        for index, known in enumerate(self.names):
            if known == name:
                return self.contents[index]
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Attributes):
            return self.names == other.names and self.contents == other.contents
        return dict(self) == other

    def __hash__(self) -> int:
        return hash((self.names, self.contents))

    def __repr__(self) -> str:
        return repr(dict(self))


_NO_ATTRIBUTES = Attributes((), ())


@lru_cache(maxsize=1024)
def shared_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the one copy of ``names`` that is kept of them."""
    return names


def complex_parts(literal: TensorLiteral) -> tuple[TensorLiteral, ...]:
    """Return the real and the imaginary parts of a complex literal; nothing of another."""
    if literal.type.dtype.kind is not DTypeKind.COMPLEX:
        return ()
    array = literal.array
    # Copies are contiguous, and of rank 0 where the literal is.
    return tuple(TensorLiteral.from_array(part.copy()) for part in (array.real, array.imag))


def complex_literal(real: TensorLiteral, imaginary: TensorLiteral) -> TensorLiteral:
    """Return the complex literal of these parts, bit for bit.

    Raises:
        ValueError: The parts are not f32, or f64, of one shape.
    """
    first, second = real.array, imaginary.array
    if real.type != imaginary.type or real.type.dtype.numpy not in (np.float32, np.float64):
        raise ValueError(f"{real.type} and {imaginary.type} are no parts of complex numbers")
    parts = np.stack([first, second], axis=-1)
    return TensorLiteral.from_array(parts.view(f"c{2 * parts.itemsize}")[..., 0])
