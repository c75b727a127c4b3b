"""The rules of relocations, as data: one for each kind of each machine.

Addresses count from the start of the image. A rule computes a number for each relocation of its kind from the
address of the symbol, the addend, the place that is written to, and the slot that holds the symbol's address
where there is one; then it stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.image.errors import LinkingError
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.image.image import Bytes, Numbers


class Needs(Enum):
    """The fact about a symbol that the linker has to know for a relocation."""

    #: Where the symbol is: it has to be in the image.
    SYMBOL = "symbol"
    #: Where the symbol is, or a piece of code that jumps there.
    CODE = "code"
    #: Where a slot with the address of the symbol is.
    SLOT = "slot"
    #: The address of the symbol itself, which is known when the image is loaded.
    ADDRESS = "address"
    #: Nothing of the symbol.
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of which the numbers of some relocations are made; an element a relocation.

    Attributes:
        symbol: Where the symbol, or what stands for it, is.
        addend: What is added to that.
        place: Where the relocation writes.
        slot: Where the slot of the symbol is, for those that need it.
        table: Where the table of all slots begins.
    """

    symbol: Numbers
    addend: Numbers
    place: Numbers
    slot: Numbers
    table: int


@dataclass(frozen=True, slots=True)
class RelocationRule:
    """The rule by which relocations of one kind are applied.

    Attributes:
        value: Returns the numbers.
        store: Writes numbers to places.
        needs: What `value` uses of the symbol.
        size: How many bytes from the place on are written, or looked at.
    """

    value: Callable[[Terms], Numbers]
    store: Callable[[Bytes, Numbers, Numbers], None]
    needs: Needs
    size: int


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts about a machine that linking needs.

    Attributes:
        name: What `Image.machine` calls it.
        number: What ELF calls it.
        rules: The rule of each kind of relocation.
        jump: Returns code that jumps to what a slot holds, of the place where it is and of that slot.
        jump_bytes: How long that code is.
    """

    name: str
    number: int
    rules: Mapping[int, RelocationRule]
    jump: Callable[[int, int], bytes]
    jump_bytes: int


def store_32(memory: Bytes, places: Numbers, values: Numbers) -> None:
    """Write signed numbers of 32 bits.

    Raises:
        LinkingError: One does not fit.
    """
    if len(values) and (int(values.max()) >= 1 << 31 or int(values.min()) < -(1 << 31)):
        raise LinkingError("the parts of the code lie too far apart")
    memory[places[:, None] + np.arange(4)] = values.astype("<i4").view(np.uint8).reshape(-1, 4)
