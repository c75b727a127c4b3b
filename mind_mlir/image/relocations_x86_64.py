"""Relocations of x86-64, of all code models."""

from __future__ import annotations

import struct

from mind_mlir.image.image import store_64
from mind_mlir.image.relocations import Machine, Needs, RelocationRule, store_32

_NEAR = RelocationRule(lambda t: t.symbol + t.addend - t.place, store_32, Needs.CODE, 4)
_SLOT = RelocationRule(lambda t: t.slot + t.addend - t.place, store_32, Needs.SLOT, 4)


def _jump(place: int, slot: int) -> bytes:
    """Return ``jmp *[rip + offset]``."""
    return b"\xff\x25" + struct.pack("<i", slot - place - 6)


X86_64 = Machine(
    name="x86_64",
    number=62,
    rules={
        1: RelocationRule(lambda t: t.symbol + t.addend, store_64, Needs.ADDRESS, 8),  # 64
        2: _NEAR,  # PC32
        4: _NEAR,  # PLT32
        9: _SLOT,  # GOTPCREL
        41: _SLOT,  # GOTPCRELX
        42: _SLOT,  # REX_GOTPCRELX
        24: RelocationRule(lambda t: t.symbol + t.addend - t.place, store_64, Needs.CODE, 8),  # PC64
        25: RelocationRule(lambda t: t.symbol + t.addend - t.table, store_64, Needs.CODE, 8),  # GOTOFF64
        26: RelocationRule(lambda t: t.table + t.addend - t.place, store_32, Needs.NOTHING, 4),  # GOTPC32
        27: RelocationRule(lambda t: t.slot + t.addend - t.table, store_64, Needs.SLOT, 8),  # GOT64
        28: RelocationRule(lambda t: t.slot + t.addend - t.place, store_64, Needs.SLOT, 8),  # GOTPCREL64
        29: RelocationRule(lambda t: t.table + t.addend - t.place, store_64, Needs.NOTHING, 8),  # GOTPC64
        31: RelocationRule(lambda t: t.symbol + t.addend - t.table, store_64, Needs.CODE, 8),  # PLTOFF64
    },
    jump=_jump,
    jump_bytes=8,
)
