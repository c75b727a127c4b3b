"""The places of an operation's parts in the source."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.diagnostics.source import Spans, pack_offsets, unpack_offsets
from mind_mlir.ir.attributes import shared_names
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from mind_mlir.diagnostics import Location, SourceText

_Span: TypeAlias = tuple[int, int]
#: A value, as far as that tells where it ends.
_VALUE = re.compile(r"%[^\s=,]+")


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """The places of an operation's parts in the source, as exact as the frontend knows them.

    A module may have millions of operations, and few of their places are ever asked for: it keeps offsets,
    packed as `pack_offsets` does, and makes locations from them.

    Attributes:
        source: The text.
        packed: The start of the statement, then the starts and ends of the type (which ends the statement),
            of the opcode, of each operand and of each attribute; or only where the statement starts and ends.
        attribute_names: The attributes whose places are known, in that order.
        several: Of an operation with several results, the starts and ends of these and then of their types,
            which the type above spans; empty where there is one.
    """

    source: SourceText
    packed: bytes
    attribute_names: tuple[str, ...] = ()
    several: bytes = b""

    @classmethod
    def of(
        cls,
        source: SourceText,
        start: int,
        result_type: _Span,
        opcode: _Span,
        operands: Iterable[int],
        attributes: Mapping[str, _Span],
        several: Collection[int] = (),
    ) -> SourceInfo:
        """Build it from the offsets, start and end, of the parts of a statement that begins at ``start``."""
        offsets = chain((start,), result_type, opcode, operands, *attributes.values())
        packed = pack_offsets(source, offsets)
        more = pack_offsets(source, several) if several else b""
        return cls(source, packed, shared_names(tuple(attributes)), more)

    @classmethod
    def at(cls, statement: Location) -> SourceInfo:
        """Build it where nothing is known but the place of the statement."""
        return cls(statement.source, pack_offsets(statement.source, statement.offsets))

    @property
    def statement(self) -> Location:
        """Return where the whole operation stands."""
        offsets = self._offsets
        return self.source.locate(offsets[0], offsets[2] if len(offsets) > 2 else offsets[1])

    @property
    def result_type(self) -> Location | None:
        """Return where its type stands, of several the first one."""
        if self.several:
            return self.result_types[0]
        offsets = self._offsets
        return self.source.locate(*offsets[1:3]) if len(offsets) > 2 else None

    @property
    def results(self) -> Sequence[Location]:
        """Return where its results are named; they are not known where only the statement is."""
        if self.several:
            return Spans(self.source, self.several[: len(self.several) // 2])
        offsets = self._offsets
        found = _VALUE.match(self.source.text, offsets[0]) if len(offsets) > 2 else None
        return [self.source.locate(*found.span())] if found else []

    @property
    def result_types(self) -> Sequence[Location]:
        """Return where the types of its results stand."""
        if self.several:
            return Spans(self.source, self.several[len(self.several) // 2 :])
        type_ = self.result_type
        return [type_] if type_ else []

    @property
    def opcode(self) -> Location | None:
        """Return where its opcode stands."""
        offsets = self._offsets
        return self.source.locate(*offsets[3:5]) if len(offsets) > 2 else None

    @property
    def operands(self) -> Sequence[Location]:
        """Return where its operands stand."""
        offsets = self._offsets[5:]
        return Spans(self.source, bytes(offsets[: len(offsets) - 2 * len(self.attribute_names)]))

    @property
    def attributes(self) -> Mapping[str, Location]:
        """Return where its attributes stand, by name."""
        offsets = self._offsets
        spans = Spans(self.source, bytes(offsets[len(offsets) - 2 * len(self.attribute_names) :]))
        return dict(zip(self.attribute_names, spans, strict=True))

    @property
    def _offsets(self) -> memoryview[int]:
        return unpack_offsets(self.source, self.packed)
