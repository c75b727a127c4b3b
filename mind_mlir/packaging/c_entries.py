"""The entry points of a library for C, as text of the LLVM dialect.

Each looks at what it is given, and then calls the entry of the same function (`target/abi.py`), whose outcome
it makes a status of. The status array of a function with checks, and the table of its buffers, lie on the
stack. All of this is code for the least processor of the architecture: only what it calls needs more.

The functions are internal; what C sees are aliases of them, since an engine makes a wrapper of what is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from mind_mlir.packaging.c_interface import (
    MISALIGNED_POINTER,
    NULL_POINTER,
    OK,
    UNKNOWN,
    UNSUPPORTED_PROCESSOR,
    CFunction,
    CLibrary,
    status_messages,
)
from mind_mlir.packaging.processor_check import BASELINE, LOOK, SUPPORTED, check_text, in_words
from mind_mlir.target.abi import ALIGNMENT

_WORD = 8
_PREFIX = "mind.c."


def entries_text(library: CLibrary, *, machine: str, features: Sequence[str]) -> str:
    """Return the functions of ``library``; not that which sets the number of threads, which is the pool's.

    The text declares the entries that it calls.

    Args:
        library: The library.
        machine: ``x86_64`` or ``aarch64``.
        features: What the code needs beyond the least that the architecture promises, as LLVM calls it.

    Raises:
        KeyError: A feature is not known.
    """
    check = check_text(machine, features)
    parts = [f"llvm.mlir.global internal @{_PREFIX}processor(0 : i32) : i32", check] if check else []
    for function in library.functions:
        parts += [
            f'llvm.func @"{_escaped(function.entry.symbol)}"(!llvm.ptr)',
            _entry(function, machine, check),
        ]
    parts.append(_message(library, features, machine))
    kept = [function.entry.symbol for function in library.functions]
    return "\n".join([*parts, _used(kept)]) + "\n"


def alias_text(name: str, function: str, type_: str) -> str:
    """Return a global name for an internal function of an LLVM type, as in ``i32 (ptr)``."""
    return (
        f"llvm.mlir.alias external @{name} : !llvm.func<{type_}> {{\n"
        f"  %address = llvm.mlir.addressof @{function} : !llvm.ptr\n"
        f"  llvm.return %address : !llvm.ptr\n"
        "}"
    )


def _entry(function: CFunction, machine: str, check: str) -> str:
    """Return the entry point of ``function`` and its name for C."""
    count = len(function.buffers)
    given = ["%buffers"] if function.takes_table else [f"%p{number}" for number in range(count)]
    given.append("%scratch")
    own = f"{_PREFIX}{function.name}"
    types = ", ".join(["ptr"] * len(given))
    arguments = ", ".join(f"{name}: !llvm.ptr" for name in given)
    lines = [
        f"llvm.func internal @{own}({arguments}) -> i32 attributes {{{BASELINE[machine]}}} {{",
        *_constants({"ok": OK, "null": NULL_POINTER, "misaligned": MISALIGNED_POINTER}, "i32"),
        *_constants({"one": 1}, "i32"),
        f"  %table = llvm.alloca %one x !llvm.array<{count + 2} x ptr> {{alignment = {_WORD} : i64}} "
        ": (i32) -> !llvm.ptr",
        *_status_array(function),
        *(_processor_lines() if check else ()),
        *(_table_lines(count) if function.takes_table else ()),
        *_pointer_lines(function),
        *_call_lines(function),
        *_judging_lines(function),
        "}",
    ]
    return "\n".join([*lines, alias_text(function.name, own, f"i32 ({types})")])


def _status_array(function: CFunction) -> list[str]:
    count = 2 * len(function.entry.checks)
    if not count:
        return []
    array = f"!llvm.array<{count} x i64>"
    return [f"  %status = llvm.alloca %one x {array} {{alignment = {ALIGNMENT} : i64}} : (i32) -> !llvm.ptr"]


def _processor_lines() -> list[str]:
    """Return what goes on where the processor has what is needed: that is looked at once."""
    return [
        *_constants({"lacking": UNSUPPORTED_PROCESSOR, "supported": SUPPORTED}, "i32"),
        f"  %processor_at = llvm.mlir.addressof @{_PREFIX}processor : !llvm.ptr",
        "  %known = llvm.load %processor_at atomic monotonic {alignment = 4 : i64} : !llvm.ptr -> i32",
        '  %is_known = llvm.icmp "eq" %known, %supported : i32',
        "  llvm.cond_br %is_known, ^run, ^look",
        "^look:",
        f"  %found = llvm.call @{LOOK}() : () -> i32",
        "  llvm.store %found, %processor_at atomic monotonic {alignment = 4 : i64} : i32, !llvm.ptr",
        '  %is_supported = llvm.icmp "eq" %found, %supported : i32',
        "  llvm.cond_br %is_supported, ^run, ^refuse",
        "^refuse:",
        "  llvm.return %lacking : i32",
        "^run:",
    ]


def _table_lines(count: int) -> list[str]:
    """Return what reads the buffers from the table that the caller has, which is looked at itself first."""
    lines = _tested("table", [("%buffers", _WORD)], ["%buffers"])
    for number in range(count):
        lines += [
            f"  %from{number} = llvm.getelementptr %buffers[{number}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr",
            f"  %p{number} = llvm.load %from{number} : !llvm.ptr -> !llvm.ptr",
        ]
    return lines


def _pointer_lines(function: CFunction) -> list[str]:
    """Return what goes on where all pointers are right; that of a buffer without elements may be any."""
    looked_at = [
        (f"%p{number}", buffer.alignment) for number, buffer in enumerate(function.buffers) if buffer.length
    ]
    if function.entry.scratch_bytes:
        looked_at.append(("%scratch", ALIGNMENT))
    return _tested("buffers", looked_at, [pointer for pointer, _ in looked_at]) if looked_at else []


def _tested(what: str, aligned: Sequence[tuple[str, int]], pointers: Sequence[str]) -> list[str]:
    """Return what goes on in a block of its own where no pointer is null and all are aligned."""
    numbers = {pointer: f"%{what}_{pointer[1:]}" for pointer in pointers}
    tests = []
    lines = [*_constants({f"{what}_zero": 0}, "i64")]
    for pointer, number in numbers.items():
        tests.append(f"{number}_is_null")
        lines += [
            f"  {number} = llvm.ptrtoint {pointer} : !llvm.ptr to i64",
            f'  {tests[-1]} = llvm.icmp "eq" {number}, %{what}_zero : i64',
        ]
    lines += _joined(f"%{what}_nulls", tests, "i1")
    lines += [
        f"  llvm.cond_br %{what}_nulls, ^{what}_null, ^{what}_given",
        f"^{what}_null:",
        "  llvm.return %null : i32",
        f"^{what}_given:",
    ]
    lows = []
    for alignment, group in groupby(sorted(aligned, key=lambda each: each[1]), key=lambda each: each[1]):
        if alignment == 1:
            continue
        all_, low = f"%{what}_any_{alignment}", f"%{what}_low_{alignment}"
        lines += _joined(all_, [numbers[pointer] for pointer, _ in group], "i64")
        lines += _constants({f"{what}_mask_{alignment}": alignment - 1}, "i64")
        lines.append(f"  {low} = llvm.and {all_}, %{what}_mask_{alignment} : i64")
        lows.append(low)
    if not lows:
        return lines
    return [
        *lines,
        *_joined(f"%{what}_low", lows, "i64"),
        f'  %{what}_is_low = llvm.icmp "ne" %{what}_low, %{what}_zero : i64',
        f"  llvm.cond_br %{what}_is_low, ^{what}_misaligned, ^{what}_right",
        f"^{what}_misaligned:",
        "  llvm.return %misaligned : i32",
        f"^{what}_right:",
    ]


def _joined(result: str, values: Sequence[str], type_: str) -> list[str]:
    """Return the bitwise or of ``values`` as ``result``."""
    if len(values) == 1:
        return [f"  {result} = llvm.or {values[0]}, {values[0]} : {type_}"]
    lines, last = [], values[0]
    for number, value in enumerate(values[1:], 2):
        name = result if number == len(values) else f"{result}_or_{number}"
        lines.append(f"  {name} = llvm.or {last}, {value} : {type_}")
        last = name
    return lines


def _call_lines(function: CFunction) -> list[str]:
    values = [f"%p{number}" for number in range(len(function.buffers))]
    values += ["%status"] * bool(function.entry.checks) + ["%scratch"]
    lines = []
    for number, value in enumerate(values):
        lines += [
            f"  %to{number} = llvm.getelementptr %table[{number}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr",
            f"  llvm.store {value}, %to{number} : !llvm.ptr, !llvm.ptr",
        ]
    return [*lines, f'  llvm.call @"{_escaped(function.entry.symbol)}"(%table) : (!llvm.ptr) -> ()']


def _judging_lines(function: CFunction) -> list[str]:
    """Return what returns the status: that of the first check that has failed."""
    lines, result = [], "%ok"
    for number, (status, check) in reversed(list(enumerate(function.statuses))):
        low, high = check.allowed
        lines += [
            *_constants({f"low{number}": low, f"high{number}": high}, "i64"),
            *_constants({f"failed{number}": status}, "i32"),
        ]
        for place, end in ((2 * number, "least"), (2 * number + 1, "most")):
            lines += [
                f"  %{end}{number}_at = llvm.getelementptr %status[{place}] : (!llvm.ptr) -> !llvm.ptr, i64",
                f"  %{end}{number} = llvm.load %{end}{number}_at : !llvm.ptr -> i64",
            ]
        lines += [
            f'  %below{number} = llvm.icmp "slt" %least{number}, %low{number} : i64',
            f'  %above{number} = llvm.icmp "sgt" %most{number}, %high{number} : i64',
            f"  %outside{number} = llvm.or %below{number}, %above{number} : i1",
            f"  %result{number} = llvm.select %outside{number}, %failed{number}, {result} : i1, i32",
        ]
        result = f"%result{number}"
    return [*lines, f"  llvm.return {result} : i32"]


def _message(library: CLibrary, features: Sequence[str], machine: str) -> str:
    """Return the function of the messages: these stand one behind the other, so that nothing is relocated."""
    messages = status_messages(library, in_words(machine, features))
    texts = [*messages.values(), UNKNOWN]
    data, places = b"", []
    for text in texts:
        places.append(len(data))
        data += text.encode(errors="replace") + b"\0"
    own = f"{_PREFIX}message"
    cases = [f"    {status}: ^found(%place{number} : i32)" for number, status in enumerate(messages)]
    return "\n".join(
        [
            f'llvm.mlir.global internal constant @{_PREFIX}texts("{_escaped(data)}") '
            f": !llvm.array<{len(data)} x i8>",
            f"llvm.func internal @{own}(%status: i32) -> !llvm.ptr attributes {{{BASELINE[machine]}}} {{",
            *_constants({f"place{number}": place for number, place in enumerate(places)}, "i32"),
            f"  %texts = llvm.mlir.addressof @{_PREFIX}texts : !llvm.ptr",
            f"  llvm.switch %status : i32, ^found(%place{len(texts) - 1} : i32) [",
            ",\n".join(cases),
            "  ]",
            "^found(%place: i32):",
            "  %text = llvm.getelementptr %texts[%place] : (!llvm.ptr, i32) -> !llvm.ptr, i8",
            "  llvm.return %text : !llvm.ptr",
            "}",
            alias_text(library.message, own, "ptr (i32)"),
        ]
    )


def _used(symbols: Sequence[str]) -> str:
    """Return what keeps functions as they are, however LLVM optimises those that call them."""
    type_ = f"!llvm.array<{len(symbols)} x ptr>"
    lines = [
        "llvm.mlir.global appending @llvm.compiler.used() "
        '{addr_space = 0 : i32, section = "llvm.metadata"} '
        f": {type_} {{",
        f"  %none = llvm.mlir.undef : {type_}",
    ]
    last = "%none"
    for number, symbol in enumerate(symbols):
        lines += [
            f'  %at{number} = llvm.mlir.addressof @"{_escaped(symbol)}" : !llvm.ptr',
            f"  %with{number} = llvm.insertvalue %at{number}, {last}[{number}] : {type_}",
        ]
        last = f"%with{number}"
    return "\n".join([*lines, f"  llvm.return {last} : {type_}", "}"])


def _constants(values: dict[str, int], type_: str) -> Iterator[str]:
    return (f"  %{name} = llvm.mlir.constant({value} : {type_}) : {type_}" for name, value in values.items())


def _escaped(text: str | bytes) -> str:
    """Return a string as MLIR reads it between quotes."""
    data: Iterable[int] = text.encode() if isinstance(text, str) else text
    return "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b'"\\' else f"\\{byte:02X}" for byte in data
    )
