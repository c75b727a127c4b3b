"""Instructions of AMX as text, from their bytes as the GNU assembler makes them."""

from __future__ import annotations

import struct

import pytest

from mind_mlir.codegen.tile_instructions import tile_instruction
from mind_mlir.lowering.kernels import tile_operations

KNOWN = {
    "c4e2784905 00010000": "ldtilecfg zmmword ptr [rip + 0x100]",
    "c4e2784904 24": "ldtilecfg zmmword ptr [rsp]",
    "c4e2794980 00f0ffff": "sttilecfg zmmword ptr [rax - 0x1000]",
    "c4e27b49f8": "tilezero tmm7",
    "c4e27849c0": "tilerelease",
    "c4e27b4b0c 17": "tileloadd tmm1, [rdi + rdx]",
    "c4827b4b54 2cc0": "tileloadd tmm2, [r12 + r13 - 0x40]",
    "c4e27b4b6c 4500": "tileloadd tmm5, [rbp + rax*2]",
    "c482794b9c cf45230100": "tileloaddt1 tmm3, [r15 + r9*8 + 0x12345]",
    "c4e27b4b1c 8510000000": "tileloadd tmm3, [rax*4 + 0x10]",
    "c4e27b4b1c 24": "tileloadd tmm3, [rsp]",
    "c4c27a4b74 0d7f": "tilestored [r13 + rcx + 0x7f], tmm6",
    "c4e26a5cc1": "tdpbf16ps tmm0, tmm1, tmm2",
    "c4e2535efe": "tdpbssd tmm7, tmm6, tmm5",
    "c4e2525edc": "tdpbsud tmm3, tmm4, tmm5",
    "c4e2415ec8": "tdpbusd tmm1, tmm0, tmm7",
    "c4e2705ed3": "tdpbuud tmm2, tmm3, tmm1",
}
#: Additions of vectors, and what looks like the others but for its operands: ``andn``, ``vpmulld``.
OTHERS = ["c5f5fec2", "62f1744858c2", "c4e260f2c1", "c4e26940cb", "c4e2", "c4e27b4b0c"]


@pytest.mark.parametrize("code", KNOWN)
def test_instructions_are_read_with_their_operands(code: str) -> None:
    data = bytes.fromhex(code)
    found = tile_instruction(data + bytes(8))
    assert found is not None
    assert (found.text, found.size) == (KNOWN[code], len(data))


@pytest.mark.parametrize("code", OTHERS)
def test_others_are_left_to_whoever_knows_them(code: str) -> None:
    assert tile_instruction(bytes.fromhex(code)) is None


def test_tiles_are_configured_as_the_manual_has_it() -> None:
    """Palette 1 and no row to go on with, bytes of rows in 16 bits each, and how many rows there are."""
    data = struct.pack("<16i", *tile_operations._CONFIGURATION)
    assert struct.unpack("<BB14x8H16x8B8x", data) == (1, 0, *[64] * 8, *[16] * 8)
