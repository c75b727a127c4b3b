"""The C header of a library: what its functions take, in words and in types."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from mind_mlir.ir.types import DType
from mind_mlir.packaging.c_interface import (
    FIRST_CHECK,
    MISALIGNED_POINTER,
    NULL_POINTER,
    OK,
    STATUS_MACROS,
    UNSUPPORTED_PROCESSOR,
    CFunction,
    CLibrary,
    CParameter,
    check_message,
)
from mind_mlir.packaging.processor_check import in_words
from mind_mlir.target.abi import ALIGNMENT

_WIDTH = 96
_STATUSES = (
    (OK, "the outputs are written"),
    (NULL_POINTER, "a pointer is null"),
    (MISALIGNED_POINTER, "a pointer is not aligned as it has to be"),
    (UNSUPPORTED_PROCESSOR, "this processor lacks instructions that the code needs"),
    (FIRST_CHECK, "this or more: a check has failed, and the outputs hold anything"),
)
_MEMORY = (
    "Arrays are dense and in row-major order: the last index runs fastest. All memory is the caller's: "
    "functions allocate nothing, keep no pointer, and write nothing but the outputs and the scratch memory. "
    "An output overlaps neither another buffer nor the scratch memory. A pointer to an array of no elements "
    "may be null."
)
_CALLS = (
    "Any number of threads may call any functions at the same time, if each call has outputs and scratch "
    "memory of its own. The same arguments give the same bits in each call."
)
_THREADS = (
    "{name}: sets how many threads loops of this library may use from now on, those of callers included: 1 "
    "to 1024; a number below 1 stands for as many as there are cores that the process may run on, which is "
    "how it starts. Threads are started by the first loop that needs them, and sleep soon after the last. "
    "Any thread may call this at any time. A child of fork starts threads of its own."
)


def header_text(
    library: CLibrary, *, file: str, machine: str, features: Sequence[str], version: str, source: str = ""
) -> str:
    """Return the header of a library, which C99 and C++ read, as a pure function of all arguments."""
    guard = f"{library.macro}_H"
    needs = f" with {in_words(machine, features)}" if features else ""
    parts = [
        _comment(_introduction(library, file, f"{machine}{needs}", version, source)),
        [f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>"],
        _statuses(library),
        ["#ifdef __cplusplus", 'extern "C" {', "#endif"],
        *(_function(function) for function in library.functions),
        _message(library),
        *([] if library.set_threads is None else [_threads(library.set_threads)]),
        ["#ifdef __cplusplus", "}", "#endif"],
        [f"#endif /* {guard} */"],
    ]
    return "\n".join("\n".join([*part, ""]) for part in parts)


def _introduction(library: CLibrary, file: str, processor: str, version: str, source: str) -> list[str]:
    of = f" of {_plain(source)}" if source else ""
    threads = (
        "A call runs on the thread of its caller alone."
        if library.set_threads is None
        else f"Large loops are shared by threads of the library (see {library.set_threads}): no bit changes."
    )
    return [
        f"{file} - the functions{of} as a library for C, written by mind-mlir {version}.",
        "",
        *_wrapped(f"The code is for Linux on {processor}. It needs the C library and libm (-lm)."),
        "",
        *_wrapped(_MEMORY),
        "",
        *_wrapped(f"{_CALLS} {threads}"),
        "",
        *_elements(library),
        "Example:",
        "",
        *(f"    {line}".rstrip() for line in example_lines(library, file)),
    ]


def _elements(library: CLibrary) -> list[str]:
    """Return what is to be known of the elements of some buffers."""
    used = {buffer.type.dtype for function in library.functions for buffer in function.buffers}
    noted = [f"{_dtype_name(dtype)}: {dtype.c_note}" for dtype in DType if dtype in used and dtype.c_note]
    notes = [line for note in noted for line in _wrapped(note, "  ")]
    return ["Elements that C has no type of its own for:", *notes, ""] if notes else []


def _statuses(library: CLibrary) -> list[str]:
    """Return the macros of the statuses and of the alignment of scratch memory."""
    rows = [row for row in _STATUSES if row[0] < FIRST_CHECK or any(True for _ in library.statuses)]
    names = {status: f"{library.macro}_{STATUS_MACROS[status]}" for status, _ in rows}
    width = max(map(len, names.values()))
    lines = ["/* What functions return. */"]
    lines += [f"#define {names[status]:<{width}} {status:<2} /* {meaning} */" for status, meaning in rows]
    return [
        *lines,
        "",
        "/* The address of scratch memory is a multiple of this. */",
        f"#define {library.macro}_SCRATCH_ALIGNMENT {ALIGNMENT}",
    ]


def _function(function: CFunction) -> list[str]:
    entry = function.entry
    size = f"#define {function.macro}_SCRATCH_BYTES {entry.scratch_bytes}"
    lines = [f"{function.name}: the function '{_plain(entry.name)}' of the program.", ""]
    lines += _listing(function)
    statuses = [
        line
        for status, check in function.statuses
        for line in _wrapped(f"{status}: {_plain(check_message(check))}", "  ", "      ")
    ]
    lines += ["", "Returns 0, or one of the statuses above" + (", or:" if statuses else "."), *statuses]
    return [size, "", *_comment(lines), *_prototype(function)]


def _listing(function: CFunction) -> list[str]:
    """Return a line for each buffer, or more, and one for the scratch memory."""
    lines: list[str] = []
    buffers = function.buffers
    if function.takes_table:
        lines += _wrapped("buffers holds the addresses of all inputs and outputs, in this order:")
    names = [
        f"buffers[{number}]" if function.takes_table else buffer.name for number, buffer in enumerate(buffers)
    ]
    width = min(max([len(name) for name in [*names, "scratch"]]), 24)
    lines += [
        line for name, buffer in zip(names, buffers, strict=True) for line in _buffer(name, buffer, width)
    ]
    size = function.entry.scratch_bytes
    note = f"{function.macro}_SCRATCH_BYTES bytes of the caller's, which one call uses at a time"
    lines += _wrapped(
        f"{note}; aligned to {ALIGNMENT} bytes; what it holds is no matter"
        if size
        else "not used, may be null",
        f"  {'scratch':<{width}}  ",
        " " * (width + 4),
    )
    return lines


def _buffer(name: str, buffer: CParameter, width: int) -> list[str]:
    shape = "".join(f"[{extent}]" for extent in buffer.type.extents)
    count = buffer.type.element_count
    elements = "1 element" if count == 1 else f"{count} elements"
    if buffer.type.dtype.is_complex and count:
        elements += f", {buffer.length} {buffer.c_type}s"
    is_known = buffer.label == name or not any(each.isalpha() for each in buffer.label)
    own = "" if is_known else f"; {_plain(buffer.label)} in the program"
    facts = (
        f"{'out' if buffer.written else 'in'}: {_dtype_name(buffer.type.dtype)}{shape}, {elements}, "
        f"aligned to {_bytes(buffer.alignment)}{own}"
    )
    return _wrapped(facts, f"  {name:<{width}}  ", " " * (width + 4))


def _dtype_name(dtype: DType) -> str:
    return "bool" if dtype is DType.I1 else dtype.core_name


def _bytes(count: int) -> str:
    return "1 byte" if count == 1 else f"{count} bytes"


def _prototype(function: CFunction) -> list[str]:
    declared = (
        ["void *const *buffers"]
        if function.takes_table
        else [buffer.declaration for buffer in function.buffers]
    )
    head = f"int {function.name}("
    one = f"{head}{', '.join([*declared, 'void *scratch'])});"
    if len(one) <= _WIDTH:
        return [one]
    return [head, *(f"    {each}," for each in declared), "    void *scratch);"]


def _message(library: CLibrary) -> list[str]:
    text = f"{library.message}: what a status means, as a constant string in English."
    return [*_comment([text]), f"const char *{library.message}(int status);"]


def _threads(name: str) -> list[str]:
    return [*_comment([_THREADS.format(name=name)], wrap=True), f"void {name}(int threads);"]


def _comment(lines: Iterable[str], *, wrap: bool = False) -> list[str]:
    if wrap:
        lines = [short for line in lines for short in _wrapped(line)]
    return ["/*", *(f" * {line}".rstrip() for line in lines), " */"]


def _wrapped(text: str, first: str = "", others: str | None = None) -> list[str]:
    """Return ``text`` as lines, which begin with ``first`` and, if given, with ``others``."""
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first) if others is None else others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _plain(text: str) -> str:
    """Return what a program calls something as a comment may hold it."""
    shown = "".join(each if each.isprintable() else "?" for each in text)
    return shown.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")


#: Longer argument lists are not written in one line.
_EXAMPLE_WIDTH = 84


def example_lines(library: CLibrary, file: str) -> list[str]:
    """Return the lines of a program in C99, which C++ compiles, too."""
    function = library.functions[0]
    taken = {buffer.name for buffer in function.buffers}
    status, memory = _free("status", taken), _free("memory", taken)
    lines = ["#include <stdio.h>", f'#include "{file}"', "", "int main(void)", "{"]
    lines += [
        f"    static {buffer.c_type} {buffer.name}[{max(buffer.length, 1)}];" for buffer in function.buffers
    ]
    if function.entry.scratch_bytes:
        alignment = f"{library.macro}_SCRATCH_ALIGNMENT"
        lines += [
            f"    static char {memory}[{function.macro}_SCRATCH_BYTES + {alignment}];",
            f"    void *scratch = {memory} + {alignment}",
            f"        - (uintptr_t){memory} % {alignment};",
        ]
    else:
        lines.append("    void *scratch = 0;")
    lines += _call(function, status)
    lines += [
        f"    if ({status} != 0) {{",
        f'        fprintf(stderr, "%s\\n", {library.message}({status}));',
        "        return 1;",
        "    }",
    ]
    written = [buffer for buffer in function.buffers if buffer.written and buffer.length]
    if written:
        lines.append(f'    printf("%g\\n", (double){written[0].name}[0]);')
    return [*lines, "    return 0;", "}"]


def _call(function: CFunction, status: str) -> Iterator[str]:
    names = [buffer.name for buffer in function.buffers]
    if function.takes_table:
        table = _free("buffers", set(names))
        yield f"    void *{table}[{len(names)}] = {{"
        yield from (f"        {line}" for line in _rows(names))
        yield "    };"
        yield f"    int {status} = {function.name}({table}, scratch);"
        return
    one = f"    int {status} = {function.name}({', '.join([*names, 'scratch'])});"
    if len(one) <= _EXAMPLE_WIDTH:
        yield one
        return
    yield f"    int {status} = {function.name}("
    yield from (f"        {line}" for line in _rows([*names, "scratch);"]))


def _rows(names: list[str]) -> Iterator[str]:
    """Yield names with commas between them, as many in a line as it has room for."""
    line = ""
    for number, name in enumerate(names):
        word = name if number == len(names) - 1 else f"{name},"
        if line and len(line) + len(word) + 1 > _EXAMPLE_WIDTH - 8:
            yield line
            line = word
        else:
            line = f"{line} {word}".strip()
    yield line


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
