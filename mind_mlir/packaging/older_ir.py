"""The text of LLVM's IR in the words of an older LLVM, which does not know the newer ones.

LLVM 24 writes floats as the shortest number that is nearest to them alone, or as bits, ``f0x...``, and
infinities and NaNs by name. LLVM 22 refuses numbers that are not exactly a float of their type; it writes
bits as those of a double, but for types of 16 bits. So all floats are written as bits here.
"""

from __future__ import annotations

import math
import re
import struct
from fractions import Fraction

from mind_mlir.ir.dtypes import DType, FloatFormat

#: What a text consists of as far as it matters here: what is never changed (comments, strings, names), the
#: types that say what a literal is of, and literals.
_WORD = re.compile(
    r"""(?P<kept>;[^\n]*|"[^"]*"|[@%$!\#][-\w.$]+)
    |(?<![\w.])(?P<type>half|bfloat|float|double)\b
    |(?<![\w.])f0x(?P<bits>[0-9A-F]+)
    |(?<![\w.])(?P<special>[+-](?:inf|qnan|nan\(0x[0-9A-F]+\)|snan\(0x[0-9A-F]+\)))
    |(?<![\w.])(?P<number>[+-]?\d+\.\d*(?:e[+-]?\d+)?)""",
    re.VERBOSE,
)


_TYPES = {"half": DType.F16, "bfloat": DType.BF16, "float": DType.F32, "double": DType.F64}
_FORMATS = {name: dtype.format for name, dtype in _TYPES.items()}
_PREFIXES = {"half": "0xH", "bfloat": "0xR"}


def in_older_words(text: str) -> str:
    """Return the text of a module of LLVM 24 as LLVM 22 reads it."""
    kind = ""

    def rewritten(match: re.Match[str]) -> str:
        nonlocal kind
        if match["kept"]:
            return match[0]
        if match["type"]:
            kind = match[0]
            return kind
        if match["bits"]:
            bits = int(match["bits"], 16)
        elif match["special"]:
            bits = _special(match["special"], _FORMATS[kind])
        else:
            bits = _number(match["number"], kind)
        return _literal(bits, kind)

    return _WORD.sub(rewritten, text)


def _special(text: str, format_: FloatFormat) -> int:
    """Return the bits of an infinity or a NaN."""
    sign = int(text[0] == "-") << format_.bits - 1
    name, _, payload = text[1:].rstrip(")").partition("(")
    quiet = 0 if name in ("inf", "snan") else 1 << format_.mantissa - 1
    return sign | format_.limit | quiet | int(payload or "0", 16)


def _number(text: str, kind: str) -> int:
    """Return the bits of the float of a type that is nearest to a decimal number."""
    number = float(text)
    if kind == "double":
        return _bits("d", number)
    exact = Fraction(text)
    if Fraction(number) != exact and not _bits("d", number) & 1:
        # Rounded twice to nearest, it might become another number; rounded to odd first, it does not.
        number = math.nextafter(number, math.inf if exact > number else -math.inf)
    if kind == "half":
        return _bits("e", number)
    bits = _bits("f", number)
    if kind == "float":
        return bits
    (single,) = struct.unpack("<f", struct.pack("<f", number))
    if single != number:
        bits = bits - (abs(single) > abs(number)) | 1
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def _literal(bits: int, kind: str) -> str:
    """Return a literal of a type from its bits."""
    if kind in _PREFIXES:
        return f"{_PREFIXES[kind]}{bits:04X}"
    if kind == "float":
        bits = _widened(bits)
    return f"0x{bits:016X}"


def _widened(bits: int) -> int:
    """Return the bits of a float of 32 bits as a double."""
    if bits & 0x7F800000 == 0x7F800000:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    (number,) = struct.unpack("<f", struct.pack("<I", bits))
    return _bits("d", number)


def _bits(code: str, number: float) -> int:
    return int.from_bytes(struct.pack(f"<{code}", number), "little")
