"""The instructions of AMX as text, which capstone does not know."""

from __future__ import annotations

from typing import NamedTuple

#: Instructions by opcode and prefix, of those with three registers and those with memory.
_PREFIXES = ("", "66", "f3", "f2")
_PRODUCTS = {
    (0x5C, "f3"): "tdpbf16ps",
    (0x5E, "f2"): "tdpbssd",
    (0x5E, "f3"): "tdpbsud",
    (0x5E, "66"): "tdpbusd",
    (0x5E, ""): "tdpbuud",
}
_MOVES = {(0x4B, "f2"): "tileloadd", (0x4B, "66"): "tileloaddt1", (0x4B, "f3"): "tilestored"}
_CONFIGURATIONS = {(0x49, ""): "ldtilecfg", (0x49, "66"): "sttilecfg"}
_REGISTERS = (
    "rax",
    "rcx",
    "rdx",
    "rbx",
    "rsp",
    "rbp",
    "rsi",
    "rdi",
    *(f"r{number}" for number in range(8, 16)),
)


class TileInstruction(NamedTuple):
    """An instruction as text, and how many bytes it takes."""

    text: str
    size: int


def tile_instruction(code: bytes) -> TileInstruction | None:
    """Return the instruction of AMX that ``code`` begins with, if it does.

    Such an instruction is ``c4``, two bytes with the high bits of registers, the opcode map (2), a source
    and the prefix, then the opcode, registers, and where there is an address, what it is made of.
    """
    if len(code) < 5 or code[0] != 0xC4 or code[1] & 0x1F != 2 or code[2] & 0x84:
        return None
    key = code[3], _PREFIXES[code[2] & 3]
    mode, register, low = code[4] >> 6, code[4] >> 3 & 7, code[4] & 7
    if mode == 3:
        return _of_registers(key, register, low, ~code[2] >> 3 & 7)
    name = _MOVES.get(key) or _CONFIGURATIONS.get(key)
    address = _address(code, mode, low)
    if name is None or address is None:
        return None
    if key in _CONFIGURATIONS:
        return TileInstruction(f"{name} zmmword ptr {address.text}", address.size)
    operands = [f"tmm{register}", address.text]
    return TileInstruction(
        f"{name} {', '.join(operands[:: -1 if name == 'tilestored' else 1])}", address.size
    )


def _of_registers(key: tuple[int, str], register: int, low: int, source: int) -> TileInstruction | None:
    if key in _PRODUCTS:
        return TileInstruction(f"{_PRODUCTS[key]} tmm{register}, tmm{low}, tmm{source}", 5)
    if key == (0x49, "f2"):
        return TileInstruction(f"tilezero tmm{register}", 5)
    return TileInstruction("tilerelease", 5) if key == (0x49, "") else None


def _address(code: bytes, mode: int, low: int) -> TileInstruction | None:
    """Return the address that an instruction accesses, and the bytes up to its end."""
    high_index, high_base = (8 * (not code[1] >> bit & 1) for bit in (6, 5))
    end, parts = 5, []
    if low == 4:
        if len(code) < 6:
            return None
        scale, index, low = 1 << (code[5] >> 6), (code[5] >> 3 & 7) + high_index, code[5] & 7
        end = 6
        if index != 4:
            parts.append(f"{_REGISTERS[index]}*{scale}" if scale > 1 else _REGISTERS[index])
    width = {0: 0, 1: 1, 2: 4}[mode]
    if low == 5 and mode == 0:  # of 4 bytes, and no base, or that of the next instruction
        width = 4
        parts[:0] = ["rip"] if end == 5 else []
    else:
        parts.insert(0, _REGISTERS[low + high_base])
    offset = int.from_bytes(code[end : end + width], "little", signed=True)
    text = " + ".join(parts) or "0"
    if offset:
        text += f" {'-' if offset < 0 else '+'} {abs(offset):#x}"
    return TileInstruction(f"[{text}]", end + width)
