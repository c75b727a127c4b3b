"""Relocations of AArch64, of the small code model and of data.

Most instructions hold a part of an address: the page of 4096 bytes, as a distance from their own, or the
place within it. What they hold is put beside what they are.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mind_mlir.image.errors import LinkingError
from mind_mlir.image.image import store_64
from mind_mlir.image.relocations import Machine, Needs, RelocationRule, Terms, store_32

if TYPE_CHECKING:
    from mind_mlir.image.image import Bytes, Numbers

_PAGE = 1 << 12


def _distance(terms: Terms) -> Numbers:
    return terms.symbol + terms.addend - terms.place


def _pages(terms: Terms) -> Numbers:
    return (terms.symbol + terms.addend) // _PAGE - terms.place // _PAGE


def _slot_pages(terms: Terms) -> Numbers:
    return (terms.slot + terms.addend) // _PAGE - terms.place // _PAGE


def _in_page(terms: Terms) -> Numbers:
    return (terms.symbol + terms.addend) % _PAGE


def _slot_in_page(terms: Terms) -> Numbers:
    return (terms.slot + terms.addend) % _PAGE


def _insert(memory: Bytes, places: Numbers, values: Numbers, *, at: int, bits: int) -> None:
    """Write ``bits`` bits of numbers to the instructions at places, from bit ``at`` on."""
    words = memory[places[:, None] + np.arange(4)].reshape(-1).view("<u4").astype(np.int64)
    mask = (1 << bits) - 1
    words = words & ~(mask << at) | (values & mask) << at
    memory[places[:, None] + np.arange(4)] = words.astype("<u4").view(np.uint8).reshape(-1, 4)


def _check(values: Numbers, bits: int) -> None:
    if len(values) and (int(values.max()) >= 1 << bits - 1 or int(values.min()) < -(1 << bits - 1)):
        raise LinkingError("the parts of the code lie too far apart")


def _store_branch(memory: Bytes, places: Numbers, values: Numbers, *, at: int, bits: int) -> None:
    """Write how many instructions further a branch goes."""
    if np.any(values % 4):
        raise LinkingError("a branch leads into the middle of an instruction")
    _check(values // 4, bits)
    _insert(memory, places, values // 4, at=at, bits=bits)


def _store_pages(memory: Bytes, places: Numbers, values: Numbers) -> None:
    """Write a distance of 21 bits to ADR and ADRP, which have its last two bits apart."""
    _check(values, 21)
    _insert(memory, places, values, at=29, bits=2)
    _insert(memory, places, values >> 2, at=5, bits=19)


def _store_scaled(memory: Bytes, places: Numbers, values: Numbers, *, shift: int) -> None:
    """Write the place within a page, as a number of elements of ``1 << shift`` bytes."""
    if np.any(values & ((1 << shift) - 1)):
        raise LinkingError("data does not lie at a multiple of its size")
    _insert(memory, places, values >> shift, at=10, bits=12)


def _within(shift: int) -> RelocationRule:
    return RelocationRule(_in_page, partial(_store_scaled, shift=shift), Needs.SYMBOL, 4)


def _branch(at: int, bits: int) -> RelocationRule:
    return RelocationRule(_distance, partial(_store_branch, at=at, bits=bits), Needs.CODE, 4)


def _jump(place: int, slot: int) -> bytes:
    """Return ``adrp x16, slot; ldr x16, [x16, slot]; br x16``."""
    pages = slot // _PAGE - place // _PAGE
    adrp = 0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    load = 0xF9400210 | (slot % _PAGE) // 8 << 10
    return struct.pack("<3I", adrp, load, 0xD61F0200)


AARCH64 = Machine(
    name="aarch64",
    number=183,
    rules={
        257: RelocationRule(lambda t: t.symbol + t.addend, store_64, Needs.ADDRESS, 8),  # ABS64
        260: RelocationRule(_distance, store_64, Needs.CODE, 8),  # PREL64
        261: RelocationRule(_distance, store_32, Needs.CODE, 4),  # PREL32
        274: RelocationRule(_distance, _store_pages, Needs.SYMBOL, 4),  # ADR_PREL_LO21
        275: RelocationRule(_pages, _store_pages, Needs.SYMBOL, 4),  # ADR_PREL_PG_HI21
        277: _within(0),  # ADD_ABS_LO12_NC
        278: _within(0),  # LDST8_ABS_LO12_NC
        279: _branch(5, 14),  # TSTBR14
        280: _branch(5, 19),  # CONDBR19
        282: _branch(0, 26),  # JUMP26
        283: _branch(0, 26),  # CALL26
        284: _within(1),  # LDST16_ABS_LO12_NC
        285: _within(2),  # LDST32_ABS_LO12_NC
        286: _within(3),  # LDST64_ABS_LO12_NC
        299: _within(4),  # LDST128_ABS_LO12_NC
        311: RelocationRule(_slot_pages, _store_pages, Needs.SLOT, 4),  # ADR_GOT_PAGE
        312: RelocationRule(
            _slot_in_page, partial(_store_scaled, shift=3), Needs.SLOT, 4
        ),  # LD64_GOT_LO12_NC
    },
    jump=_jump,
    jump_bytes=16,
)
