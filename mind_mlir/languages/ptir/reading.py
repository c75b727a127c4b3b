"""Numbers, names and types from the data of JSON; `spelling` is the other way round.

What is wrong is noted with the path to it, and what takes its place is of the right class, so that reading
goes on and one look finds everything. The other texts are read into the same data first, so that the same
rules hold for all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from mind_mlir.ir.types import Dim, DType, SymbolicDim, TensorType, TupleType, ValueType
from mind_mlir.languages.ptir.literals import ByteList
from mind_mlir.languages.ptir.schema import DTYPES
from mind_mlir.support.frozen import FrozenDict
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean

#: Keys and indices that lead from the whole of some data to a part of it.
Path: TypeAlias = tuple[str | int, ...]

#: No tuple type nests deeper, and no hints do.
MAX_NESTING = 64
_LIMIT = 2**63
_BAD_TYPE = TensorType(DType.F32)
_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
#: Characters of a string that a message shows.
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Problem:
    """An error in the part that ``path`` leads to, located at the part's key where ``at_key`` is set."""

    path: Path
    code: str
    message: str
    help: str | None = None
    context: Mapping[str, Any] = field(default_factory=FrozenDict)
    at_key: bool = False
    #: Where it is in the text, where the path does not tell.
    span: tuple[int, int] | None = None


@dataclass(slots=True)
class ValueConverter:
    """Makes numbers, names and types, and notes what is wrong with them.

    Attributes:
        problems: What was wrong so far.
        opcode: The operation whose fields are being read; their problems are E1103 then, else E1108.
    """

    problems: list[Problem] = field(default_factory=list)
    opcode: str | None = None

    def report(
        self,
        path: Path,
        message: str,
        help_text: str | None = None,
        *,
        code: str | None = None,
        at_key: bool = False,
        span: tuple[int, int] | None = None,
        **context: Any,
    ) -> None:
        """Note a problem."""
        if code is None:
            code = "E1103" if self.opcode else "E1108"
        if self.opcode:
            context["operation"] = self.opcode
        self.problems.append(Problem(path, code, message, help_text, FrozenDict(context), at_key, span))

    def expected(self, path: Path, what: str, data: object, help_text: str | None = None) -> None:
        """Note that something else stands where ``what`` belongs."""
        self.report(path, f"expected {what}, found {describe(data)}", help_text)

    # Plain values.

    def integer(self, data: object, path: Path, low: int = -_LIMIT, high: int = _LIMIT - 1) -> int:
        """Return an integer in a range."""
        if type(data) is not int:
            self.expected(path, "an integer", data)
            return max(low, 0)
        if not low <= data <= high:
            shown = describe(data)
            self.report(
                path, f"expected an integer from {low} to {high}, found {shown}", code="E1005", text=shown
            )
            return max(low, 0)
        return data

    def identifier(self, data: object, path: Path) -> int:
        """Return the number of a value or a region."""
        return self.integer(data, path, 0)

    def text(self, data: object, path: Path, what: str = "a string") -> str:
        """Return a string."""
        if type(data) is not str:
            self.expected(path, what, data)
            return ""
        return data

    def boolean(self, data: object, path: Path) -> bool:
        """Return a truth value."""
        if type(data) is not bool:
            self.expected(path, "true or false", data)
        return data is True

    def number(self, data: object, path: Path) -> float:
        """Return a float; words stand for what JSON has no numbers for."""
        if type(data) is str and data in _WORDS:
            return _WORDS[data]
        if type(data) is float:
            return data
        if type(data) is int:
            try:
                return float(data)
            except OverflowError:
                self.report(
                    path, f"{describe(data)} is beyond every float", code="E1005", text=describe(data)
                )
                return 0.0
        self.expected(path, "a number", data, 'what is not finite is written "inf", "-inf" or "nan"')
        return 0.0

    def items(self, data: object, path: Path, what: str = "a list") -> list[Any]:
        """Return a list."""
        if type(data) is not list:
            self.expected(path, what, data)
            return []
        return data

    def members(
        self,
        data: object,
        path: Path,
        required: Sequence[str],
        optional: Sequence[str] = (),
        what: str = "an object",
    ) -> dict[str, Any] | None:
        """Return an object that has the required members and no others but the optional ones, or None."""
        if type(data) is not dict:
            self.expected(path, what, data)
            return None
        known = (*required, *optional)
        for key in data:
            if key not in known:
                self.report(
                    (*path, key),
                    f"unknown field '{clip(key)}'{did_you_mean(key, known)}",
                    f"the fields are {', '.join(known)}" if known else "there are no fields",
                    at_key=True,
                )
        missing = [key for key in required if key not in data]
        for key in missing:
            self.report(path, f"field '{key}' is missing", f"the fields are {', '.join(known)}")
        return None if missing else data

    def one_of(self, data: object, path: Path, kinds: Sequence[str], what: str) -> tuple[str, Any] | None:
        """Return the only member of an object that says by its key what it is, or None."""
        if type(data) is not dict or len(data) != 1:
            self.expected(path, f"{what}, an object with one of {', '.join(kinds)}", data)
            return None
        ((key, value),) = data.items()
        if key not in kinds:
            self.report(
                (*path, key),
                f"'{clip(key)}' is no kind of {what}{did_you_mean(key, kinds)}",
                f"the kinds are {', '.join(kinds)}",
                at_key=True,
            )
            return None
        return key, value

    def json(self, data: object, path: Path, depth: int = 0) -> Any:
        """Return any data as it is; long lists of numbers are lists again."""
        if isinstance(data, ByteList):
            return self._long_list(data, path)
        if depth == MAX_NESTING and isinstance(data, (dict, list)):
            self.report(path, f"hints nest more than {MAX_NESTING} levels deep")
            return None
        if type(data) is dict:
            return {key: self.json(item, (*path, key), depth + 1) for key, item in data.items()}
        if type(data) is list:
            return [self.json(item, (*path, index), depth + 1) for index, item in enumerate(data)]
        return data

    def _long_list(self, data: ByteList, path: Path) -> Any:
        try:
            return json.loads(f"[{data.text[data.start : data.end]}]")
        except ValueError:
            span = data.start, data.end
            self.report(path, "syntax error: expected a list of numbers", code="E1101", span=span)
            return []

    # Types.

    def dtype(self, data: object, path: Path) -> DType:
        """Return the dtype of a name."""
        if type(data) is str and data not in DTYPES:
            self.report(
                path,
                f"unknown dtype '{clip(data)}'{did_you_mean(data, DTYPES)}",
                f"the dtypes are {', '.join(DTYPES)}",
                code="E1104",
                name=data,
            )
            return DType.F32
        if type(data) is not str:
            self.expected(path, "the name of a dtype", data)
            return DType.F32
        return DTYPES[data]

    def dim(self, data: object, path: Path) -> Dim:
        """Return an extent, known or symbolic."""
        found = self.one_of(data, path, ("Static", "Dynamic"), "extent")
        if found is None:
            return 0
        kind, value = found
        if kind == "Static":
            return self.integer(value, (*path, kind), 0)
        name = self.text(value, (*path, kind))
        if name == "" and value == "":
            self.report((*path, kind), "a symbolic extent needs a name")
        return SymbolicDim(name)

    def shape(self, data: object, path: Path) -> tuple[Dim, ...]:
        """Return a shape."""
        found = self.members(data, path, ("dims",), what="a shape, an object with dims")
        if found is None:
            return ()
        dims = self.items(found["dims"], (*path, "dims"), "a list of extents")
        return tuple([self.dim(extent, (*path, "dims", index)) for index, extent in enumerate(dims)])

    def tensor_type(self, data: object, path: Path) -> TensorType:
        """Return the type that a dtype and a shape make."""
        found = self.members(data, path, ("dtype", "shape"), what="an object with dtype and shape")
        if found is None:
            return _BAD_TYPE
        dtype = self.dtype(found["dtype"], (*path, "dtype"))
        return TensorType(dtype, self.shape(found["shape"], (*path, "shape")))

    def value_type(self, data: object, path: Path, depth: int = 0) -> ValueType:
        """Return the type of a value."""
        found = self.one_of(data, path, ("Tensor", "Tuple"), "type")
        if found is None:
            return _BAD_TYPE
        kind, value = found
        if kind == "Tensor":
            return self.tensor_type(value, (*path, kind))
        if depth == MAX_NESTING:
            self.report(path, f"tuple types nest more than {MAX_NESTING} levels deep")
            return _BAD_TYPE
        elements = self.items(value, (*path, kind), "a list of types")
        return TupleType(
            tuple([self.value_type(e, (*path, kind, index), depth + 1) for index, e in enumerate(elements)])
        )


def clip(text: str) -> str:
    """Return a name from a text as a message shows it."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def describe(data: object) -> str:
    """Return what some data is, in a few words."""
    if data is None:
        return "null"
    if type(data) is bool:
        return str(data).lower()
    if type(data) is str:
        return f"the string '{clip(data)}'"
    if type(data) is int:
        return (
            f"the number {data}" if -(10**_SHOWN) < data < 10**_SHOWN else "a number of more than 40 digits"
        )
    if type(data) is float:
        return f"the number {data!r}"
    if type(data) is dict:
        return "an object" if data else "an empty object"
    return "a list" if data != [] else "an empty list"


def path_text(path: Path) -> str:
    """Return a path as messages show it: ``$.functions[0].body[3]``."""
    parts = [
        f"[{part}]"
        if type(part) is int
        else f".{part}"
        if _is_plain(str(part))
        else f"[{json.dumps(clip(str(part)))}]"
        for part in path
    ]
    return "$" + "".join(parts)


def _is_plain(key: str) -> bool:
    return key.isascii() and key.isidentifier() and len(key) <= _SHOWN
