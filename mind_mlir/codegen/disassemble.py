"""Machine code as text, for `--emit=asm`.

The bindings can write an object file but not assembly; the object is disassembled with the packages capstone
and pyelftools, the optional extra ``asm``. Labels stand for addresses, so that equal code is equal text.
"""

from __future__ import annotations

import io
import platform
from bisect import bisect_right
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from mind_mlir.codegen.tile_instructions import tile_instruction
from mind_mlir.diagnostics import Diagnostic, UnsupportedError
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_EXECUTABLE = 0x4  # SHF_EXECINSTR
_IMMEDIATE = 2  # CS_OP_IMM
_JUMP, _CALL = 1, 2  # CS_GRP_JUMP, CS_GRP_CALL
_LONGEST = 15


class _Known(NamedTuple):
    """An instruction that capstone does not know."""

    address: int
    mnemonic: str
    size: int
    op_str: str = ""
    id: int = 0


@dataclass(frozen=True, slots=True)
class AssemblyLine:
    """A line of assembly.

    Attributes:
        text: The line.
        section: The number of the section that it is of.
        address: Where in it the line is.
        size: The bytes of its instruction; 0 of a label.
        function: The function that holds it; empty where none does.
    """

    text: str
    section: int
    address: int
    size: int
    function: str


def disassemble(data: bytes) -> str:
    """Return the code of ELF object file ``data`` as assembly, with the symbols that relocations refer to.

    Raises:
        UnsupportedError: As `assembly_lines`.
    """
    return "\n".join([*(line.text for line in assembly_lines(data)), ""])


def assembly_lines(data: bytes) -> list[AssemblyLine]:
    """Return the code of ELF object file ``data`` line by line.

    Raises:
        UnsupportedError: E7003, the extra ``asm`` is not installed, or ``data`` is not an ELF file.
    """
    capstone = _optional("capstone")
    elf_file = _optional("elftools.elf.elffile").ELFFile
    if not data.startswith(b"\x7fELF"):
        raise _unsupported(f"object files of {platform.system()} cannot be disassembled", None)
    elf = elf_file(io.BytesIO(data))
    machine = elf.get_machine_arch()
    modes = {
        "x64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
        "AArch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
    }
    if machine not in modes:
        raise _unsupported(f"code for {machine} cannot be disassembled", None)
    decoder = capstone.Cs(*modes[machine])
    decoder.detail = True
    lines: list[AssemblyLine] = []
    for index, section in enumerate(elf.iter_sections()):
        if section["sh_flags"] & _EXECUTABLE and section.data_size:
            instructions = _instructions(decoder, section.data())
            functions = _functions(elf, index)
            labels = {start: name for name, start, _ in functions}
            _add_targets(instructions, labels)
            for each, text in _lines(instructions, labels, _relocations(elf, index)):
                size = 0 if text.endswith(":") and not text.startswith(" ") else each.size
                lines.append(AssemblyLine(text, index, each.address, size, _holder(functions, each.address)))
    return lines


def _instructions(decoder: Any, code: bytes) -> list[Any]:
    """Return all instructions of a section; what is none that is known, byte by byte."""
    found: list[Any] = []
    place = 0
    while place < len(code):
        decoder.skipdata = False
        found += decoder.disasm(code[place:], place)
        place = found[-1].address + found[-1].size if found else place
        if place == len(code):
            break
        tile = tile_instruction(code[place : place + _LONGEST])
        if tile is None:
            decoder.skipdata = True
            found += decoder.disasm(code[place : place + 1], place)
            place += 1
        else:
            found.append(_Known(place, *tile))
            place += tile.size
    return found


def _optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = "capstone" if name == "capstone" else "pyelftools"
        raise _unsupported(
            f"printing assembly needs the package {package}", "run: pip install 'mind-mlir[asm]'"
        ) from None


def _unsupported(message: str, advice: str | None) -> UnsupportedError:
    return UnsupportedError(Diagnostic("E7003", message, help=advice))


def _functions(elf: Any, section: int) -> list[tuple[str, int, int]]:
    """Return the functions in section number ``section`` in order: names, and where they start and end."""
    symbols = elf.get_section_by_name(".symtab").iter_symbols()
    found = [
        (symbol.name, symbol["st_value"], symbol["st_value"] + symbol["st_size"])
        for symbol in symbols
        if symbol["st_shndx"] == section and symbol["st_info"]["type"] == "STT_FUNC"
    ]
    return sorted(found, key=itemgetter(1))


def _holder(functions: Sequence[tuple[str, int, int]], address: int) -> str:
    """Return the function that holds an address; none holds what fills up the space between them."""
    at = bisect_right(functions, address, key=itemgetter(1)) - 1
    return functions[at][0] if at >= 0 and address < functions[at][2] else ""


def _add_targets(instructions: list[Any], labels: dict[int, str]) -> None:
    """Give each branch target inside of a function a label, numbered by address."""
    found = map(_target, instructions)
    targets = {address for address in found if address is not None and address not in labels}
    for number, address in enumerate(sorted(targets)):
        labels[address] = f".L{number}"


def _target(instruction: Any) -> int | None:
    """Return the address that ``instruction`` jumps to, if it names one; data has no instruction id."""
    if not instruction.id or not (instruction.group(_JUMP) or instruction.group(_CALL)):
        return None
    last = instruction.operands[-1] if instruction.operands else None
    return int(last.imm) if last is not None and last.type == _IMMEDIATE else None


def _relocations(elf: Any, section: int) -> dict[int, str]:
    """Return what the linker puts where in section number ``section``: symbol names by address."""
    found: dict[int, str] = {}
    for table in elf.iter_sections():
        if table["sh_type"] not in ("SHT_RELA", "SHT_REL") or table["sh_info"] != section:
            continue
        symbols = elf.get_section(table["sh_link"])
        for relocation in table.iter_relocations():
            symbol = symbols.get_symbol(relocation["r_info_sym"])
            name = symbol.name or elf.get_section(symbol["st_shndx"]).name
            addend = relocation.entry.get("r_addend", 0)
            found[relocation["r_offset"]] = f"{name}{addend:+#x}" if addend else name
    return found


def _lines(
    instructions: list[Any], labels: dict[int, str], relocations: dict[int, str]
) -> Iterator[tuple[Any, str]]:
    """Yield lines of assembly, each with its instruction; of a label, that which it stands before."""
    for instruction in instructions:
        start, end = instruction.address, instruction.address + instruction.size
        if start in labels:
            yield instruction, f"{labels[start]}:"
        text = instruction.op_str
        target = _target(instruction)
        if target is not None and target in labels:
            text = " ".join([*text.split(" ")[:-1], labels[target]])  # the address is the last operand
        notes = [relocations[at] for at in range(start, end) if at in relocations]
        note = f"  ; {', '.join(notes)}" if notes else ""
        yield instruction, f"    {instruction.mnemonic} {text}".rstrip() + note
