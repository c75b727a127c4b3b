"""The kinds of attribute values: one record each, which everything that handles attributes applies.

    verifier     accepts(value)               whether an attribute value is one of the kind
    builder      from_python(value, dtype)    what plainly means one, from Python
    readers      read(written, dtype)         what a text spells, led by the kind
    printer      bare                         whether words of it stand without quotes
    dialect      irdl, encode, decode         how MLIR holds it

Nothing here imports MLIR: `encode` and `decode` are given `mind_mlir.mlir.codec`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

import numpy as np

from mind_mlir.ir.attributes import Padding, PaddingMode, TensorLiteral, complex_literal, complex_parts
from mind_mlir.ir.types import DType, dtype_of
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue


class Written(Protocol):
    """An attribute value in a text, as the reader of that text shows it to a kind.

    Attributes:
        word: The text of a bare or quoted word, else None.
        is_quoted: Whether that has quotes.
        is_numeric: Whether it is a number, a truth value, or a list.
    """

    @property
    def word(self) -> str | None:
        """Return the text of a word."""

    @property
    def is_quoted(self) -> bool:
        """Return whether the word has quotes."""

    @property
    def is_numeric(self) -> bool:
        """Return whether a literal can begin like this."""

    def dtype(self) -> DType:
        """Return the dtype that the word names, or raise a ParseError."""

    def literal(self, dtype: DType) -> TensorLiteral:
        """Return the literal of ``dtype`` that it spells, or raise a ParseError."""


def _nothing_special(written: Written, dtype: DType) -> AttributeValue | None:
    """Read a value that spells itself: by its look."""
    return None


def _as_it_is(value: object, dtype: DType | None) -> AttributeValue | None:
    """Take no more from Python than the values themselves."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttrKind:
    """One kind of attribute value.

    Attributes:
        phrase: What messages call it, after "a".
        accepts: Whether a value of the IR is of the kind; one of ``choices``, for a keyword.
        irdl: The MLIR attributes that may hold it, as IRDL names them.
        encode: From ``codec`` and a value to the MLIR attribute.
        decode: From ``codec`` and an MLIR attribute to the value, or None where it is none of the kind.
        read: From a value as written, and the dtype of literals there, to the value, or None where what it
            means shows by its look alone.
        from_python: From a Python object, and the dtype of literals if known, to the value that it plainly
            means, or None where it is no more than what it is. It may raise a `VerificationError`.
        bare: Whether texts spell a string of the kind without quotes.
    """

    phrase: str
    accepts: Callable[[Any], bool]
    irdl: tuple[str, ...]
    encode: Callable[[Any, Any], Any]
    decode: Callable[[Any, Any], AttributeValue | None]
    read: Callable[[Written, DType], AttributeValue | None] = _nothing_special
    from_python: Callable[[object, DType | None], AttributeValue | None] = _as_it_is
    bare: bool = False

    #: bool: keepdims=true
    BOOL: ClassVar[AttrKind]
    #: int: index_vector_dim=1
    I64: ClassVar[AttrKind]
    #: float: epsilon=1e-05
    F64: ClassVar[AttrKind]
    #: tuple[int, ...]: axes=[0, 1]
    I64_LIST: ClassVar[AttrKind]
    #: str: name="x"
    STRING: ClassVar[AttrKind]
    #: str, one of the choices of the attribute: op=Less
    ENUM: ClassVar[AttrKind]
    #: DType: dtype=f32
    DTYPE: ClassVar[AttrKind]
    #: TensorLiteral: value=[1.0, 2.0], typed by the operation's result type
    LITERAL: ClassVar[AttrKind]
    #: Padding: padding=Same
    PADDING: ClassVar[AttrKind]


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _decoder(
    class_name: str, convert: Callable[[Any], AttributeValue]
) -> Callable[[Any, Any], AttributeValue | None]:
    """Return the decoder of what one class of MLIR attributes holds."""

    def decode(codec: Any, attribute: Any) -> AttributeValue | None:
        return convert(attribute) if isinstance(attribute, getattr(codec.ir, class_name)) else None

    return decode


def _bare_word(written: Written, dtype: DType) -> AttributeValue | None:
    return None if written.is_quoted else written.word


AttrKind.BOOL = AttrKind(
    phrase="bool",
    accepts=lambda value: isinstance(value, bool),
    irdl=("#builtin.integer",),
    encode=lambda codec, value: codec.ir.BoolAttr.get(value),
    decode=_decoder("BoolAttr", lambda attribute: bool(attribute.value)),
)
AttrKind.I64 = AttrKind(
    phrase="single integer",
    accepts=_is_integer,
    irdl=("#builtin.integer",),
    encode=lambda codec, value: codec.ir.IntegerAttr.get(codec.ir.IntegerType.get_signless(64), value),
    decode=_decoder("IntegerAttr", lambda attribute: int(attribute.value)),
)


def _read_number(written: Written, dtype: DType) -> AttributeValue | None:
    literal = written.literal(DType.F64) if written.is_numeric else None
    return float(literal.array.item()) if literal is not None and literal.type.rank == 0 else None


def _number_from_python(value: object, dtype: DType | None) -> AttributeValue | None:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        return None
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return None


AttrKind.F64 = AttrKind(
    phrase="number",
    # NaN is none: attributes compare by value.
    accepts=lambda value: isinstance(value, float) and not math.isnan(value),
    irdl=("#builtin.float",),
    encode=lambda codec, value: codec.ir.FloatAttr.get(codec.ir.F64Type.get(), value),
    decode=_decoder("FloatAttr", lambda attribute: float(attribute.value)),
    read=_read_number,
    from_python=_number_from_python,
)
AttrKind.I64_LIST = AttrKind(
    phrase="list of integers",
    accepts=lambda value: isinstance(value, tuple) and all(map(_is_integer, value)),
    irdl=("#builtin.dense_array",),
    encode=lambda codec, value: codec.ir.DenseI64ArrayAttr.get(list(value)),
    decode=_decoder("DenseI64ArrayAttr", tuple),
)
_decode_string = _decoder("StringAttr", lambda attribute: str(attribute.value))
AttrKind.STRING = AttrKind(
    phrase="string",
    accepts=_is_string,
    irdl=("#builtin.string",),
    encode=lambda codec, value: codec.ir.StringAttr.get(value),
    decode=_decode_string,
    read=_bare_word,
)
AttrKind.ENUM = AttrKind(
    phrase="keyword",
    accepts=_is_string,
    irdl=("#builtin.string",),
    encode=lambda codec, value: codec.ir.StringAttr.get(value),
    decode=_decode_string,
    read=_bare_word,
    bare=True,
)


def _decode_dtype(codec: Any, attribute: Any) -> AttributeValue | None:
    if not isinstance(attribute, codec.ir.TypeAttr):
        return None
    return cast("DType | None", codec.from_mlir_element(attribute.value))


AttrKind.DTYPE = AttrKind(
    phrase="dtype",
    accepts=lambda value: isinstance(value, DType),
    irdl=("#builtin.type",),
    encode=lambda codec, value: codec.ir.TypeAttr.get(codec.element_type(value, signed=True)),
    decode=_decode_dtype,
    read=lambda written, dtype: None if written.word is None else written.dtype(),
    from_python=lambda value, _: dtype_of(value),
)


def _literal_from_python(value: object, dtype: DType | None) -> AttributeValue | None:
    if dtype is None or isinstance(value, TensorLiteral):
        return None
    return TensorLiteral.of(cast("Any", value), dtype)


def _encode_literal(codec: Any, value: TensorLiteral) -> Any:
    parts = complex_parts(value)
    if not parts:
        return codec.dense_elements(value, signed=True)
    # The bindings do not read literals of complex numbers.
    return codec.ir.ArrayAttr.get([codec.dense_elements(part, signed=True) for part in parts])


def _decode_literal(codec: Any, attribute: Any) -> AttributeValue | None:
    if isinstance(attribute, codec.ir.ArrayAttr):
        parts = [_decode_literal(codec, part) for part in attribute]
        if len(parts) != 2 or not all(isinstance(part, TensorLiteral) for part in parts):
            return None
        return complex_literal(*cast("list[TensorLiteral]", parts))
    if isinstance(attribute, codec.ir.DenseElementsAttr):
        return cast("TensorLiteral", codec.decode_literal(attribute))
    return cast("TensorLiteral | None", codec.referenced(attribute))


AttrKind.LITERAL = AttrKind(
    phrase="literal",
    accepts=lambda value: isinstance(value, TensorLiteral),
    irdl=("#builtin.dense_typed_elements", "#builtin.array"),
    encode=_encode_literal,
    decode=_decode_literal,
    read=lambda written, dtype: written.literal(dtype) if written.is_numeric else None,
    from_python=_literal_from_python,
)


_PADDING_MODES = {"valid": PaddingMode.VALID, "same": PaddingMode.SAME}


def _read_padding(written: Written, dtype: DType) -> AttributeValue | None:
    if written.word is None:
        return None
    mode = _PADDING_MODES.get(written.word.lower())
    return Padding(mode) if mode else written.word


def _padding_from_python(value: object, dtype: DType | None) -> AttributeValue | None:
    plain: Any = value
    try:
        if isinstance(value, (str, PaddingMode)):
            return Padding(plain)
        if isinstance(value, (list, tuple)):
            return Padding(PaddingMode.CUSTOM, plain)
    except (TypeError, ValueError):
        pass
    return None


def _encode_padding(codec: Any, value: Padding) -> Any:
    if value.mode is PaddingMode.CUSTOM:
        return codec.ir.DenseI64ArrayAttr.get([extent for pair in value.pairs for extent in pair])
    return codec.ir.StringAttr.get(str(value.mode.value))


def _decode_padding(codec: Any, attribute: Any) -> AttributeValue | None:
    if isinstance(attribute, codec.ir.StringAttr):
        return Padding(PaddingMode(attribute.value))
    if isinstance(attribute, codec.ir.DenseI64ArrayAttr) and len(attribute) == 4:
        top, bottom, left, right = attribute
        return Padding(PaddingMode.CUSTOM, ((top, bottom), (left, right)))
    return None


AttrKind.PADDING = AttrKind(
    phrase="padding",
    accepts=lambda value: isinstance(value, Padding),
    irdl=("#builtin.string", "#builtin.dense_array"),
    encode=_encode_padding,
    decode=_decode_padding,
    read=_read_padding,
    from_python=_padding_from_python,
)

#: Every kind by its name in the records.
KINDS: dict[str, AttrKind] = {
    "BOOL": AttrKind.BOOL,
    "I64": AttrKind.I64,
    "F64": AttrKind.F64,
    "I64_LIST": AttrKind.I64_LIST,
    "STRING": AttrKind.STRING,
    "ENUM": AttrKind.ENUM,
    "DTYPE": AttrKind.DTYPE,
    "LITERAL": AttrKind.LITERAL,
    "PADDING": AttrKind.PADDING,
}
