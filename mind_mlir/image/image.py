"""`Image`: machine code that has been linked and waits to be loaded, wherever that may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from mind_mlir.image.errors import CodeError
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from mind_mlir.image.lines import LineTableRow

    Places: TypeAlias = npt.NDArray[np.uint32]
    Bytes: TypeAlias = npt.NDArray[np.uint8]
    Numbers: TypeAlias = npt.NDArray[np.int64]

#: The bytes of a word, which holds an address.
WORD = 8
#: The largest pages of memory that each machine may have: what is protected in its own way begins on one.
PAGES = {"x86_64": 1 << 12, "aarch64": 1 << 16}
#: No image is larger: the distance between any two places in it then fits an instruction.
MOST_BYTES = (1 << 31) - 1
#: No image has more bytes than this that nothing fills: what code writes to, and what lies between its parts.
MOST_ZEROS = 1 << 24


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or a piece of data of an image.

    Attributes:
        name: What the object that it comes from calls it.
        offset: Where it begins in the image.
        size: Its bytes.
    """

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Import:
    """A symbol that an image needs from elsewhere.

    Attributes:
        symbol: Its name.
        places: Where the words are to which its address is added.
    """

    symbol: str
    places: Places


@dataclass(frozen=True, slots=True, eq=False)
class Image:
    """Machine code and its data, in one piece that may lie at any page of memory.

    Code comes first, then data that is only read, then data that is written to; each begins on a page.

    Attributes:
        machine: The machine that runs it, one of `PAGES`.
        memory: The bytes, up to where all are zero.
        text: How many bytes the code takes, whole pages.
        constants: How many the data behind it takes that is only read, whole pages.
        size: How many bytes there are in all.
        rebased: The places of words that hold offsets in the image: its address is added to them.
        imports: What is needed from elsewhere, each symbol once.
        symbols: The functions, and data that objects show, in the order of their offsets.
        lines: Where in the program instructions come from, in order, where the objects said so; it is for
            profilers in this process, and not kept with the image.
    """

    machine: str
    memory: bytes | memoryview
    text: int
    constants: int
    size: int
    rebased: Places
    imports: tuple[Import, ...]
    symbols: tuple[Symbol, ...]
    lines: tuple[LineTableRow, ...] = ()

    def __post_init__(self) -> None:
        """Check that everything lies within.

        Raises:
            CodeError: It does not.
        """
        page = PAGES.get(self.machine)
        if page is None:
            raise CodeError(f"there is no machine {self.machine!r}")
        if not 0 <= self.text <= self.text + self.constants <= self.size <= MOST_BYTES:
            raise CodeError("the parts of an image do not fit into it")
        if self.size - len(self.memory) > MOST_ZEROS:
            raise CodeError("an image is mostly empty")
        if self.text % page or self.constants % page or len(self.memory) > self.size:
            raise CodeError("the parts of an image are not whole pages")
        for places in (self.rebased, *(each.places for each in self.imports)):
            if len(places) and int(places.max()) > len(self.memory) - WORD:
                raise CodeError("an address lies outside of its image")
        for symbol in self.symbols:
            if not 0 <= symbol.offset <= symbol.offset + symbol.size <= self.size:
                raise CodeError("a function lies outside of its image")

    @property
    def writable(self) -> int:
        """Return where the part begins that is written to."""
        return self.text + self.constants

    def offset_of(self, symbol: str) -> int:
        """Return where a symbol begins.

        Raises:
            KeyError: There is none of that name.
        """
        for each in self.symbols:
            if each.name == symbol:
                return each.offset
        raise KeyError(symbol)


def as_places(places: object) -> Places:
    """Return places as an array.

    Raises:
        CodeError: They are no numbers of 32 bits.
    """
    try:
        return np.asarray(places, np.uint32).reshape(-1)
    except (OverflowError, TypeError, ValueError) as error:
        raise CodeError(f"places must be numbers of 32 bits: {error}") from None


# Words of 64 bits in memory, wherever they lie


def store_64(memory: Bytes, places: Numbers, values: Numbers) -> None:
    """Write numbers of 64 bits; places need not be aligned."""
    memory[places[:, None] + np.arange(8)] = values.astype("<i8").view(np.uint8).reshape(-1, 8)


def load_64(memory: Bytes, places: npt.NDArray[np.int64] | npt.NDArray[np.uint32]) -> Numbers:
    """Return the numbers of 64 bits at places, which need not be aligned."""
    rows = memory[places.astype(np.int64)[:, None] + np.arange(8)]
    return np.ascontiguousarray(rows).view("<i8").reshape(-1)
