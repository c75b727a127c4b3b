"""Programs from texts and files, and back: which format is which."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from mind_mlir.diagnostics import Diagnostic, SourceText, UnsupportedError
from mind_mlir.diagnostics.display import display_path
from mind_mlir.support import argument_checks
from mind_mlir.support.frozen import FrozenDict

if TYPE_CHECKING:
    from mind_mlir.languages.ptir.program import Program

Format: TypeAlias = Literal["json", "display", "compact"]
FORMATS: tuple[Format, ...] = ("json", "display", "compact")
#: What the names of files end with; ``.ptir`` holds either of the other texts.
JSON_SUFFIX, TEXT_SUFFIX = ".ptir.json", ".ptir"


def parse(text: str | SourceText, format: Format | None = None, name: str = "<string>") -> Program:  # noqa: A002 -- the word of the command line
    """Return the program that a text holds.

    Args:
        text: The text, or a source that already carries its name.
        format: Its format; None to tell by its first characters.
        name: What diagnostics call the text.

    Raises:
        ParseError: The text is not well-formed; all findings are in it.
        TypeError: ``text`` or ``name`` is no string.
        ValueError: There is no such format.
    """
    source = (
        text if isinstance(text, SourceText) else SourceText(argument_checks.text(name, "name"), _text(text))
    )
    chosen = detect(source.text) if format is None else _format(format)
    if chosen == "json":
        from mind_mlir.languages.ptir.json_reader import read_json  # noqa: PLC0415 -- loads the records only when used

        return read_json(source)
    if chosen == "display":
        from mind_mlir.languages.ptir.display_reader import read_display  # noqa: PLC0415 -- see above

        return read_display(source)
    from mind_mlir.languages.ptir.compact_reader import read_compact  # noqa: PLC0415 -- see above

    return read_compact(source)


def load(path: str | os.PathLike[str]) -> Program:
    """Return the program in the file at ``path``; ``-`` is standard input.

    A name that ends in ``.ptir.json`` says that it is JSON; any other leaves that to the text.

    Raises:
        ParseError: The file cannot be read (E1106), is not UTF-8 (E1001) or not well-formed.
        TypeError: ``path`` is no path.
    """
    from mind_mlir.languages.source import read_source  # noqa: PLC0415 -- see above

    place = argument_checks.path(path, "path")
    return parse(read_source(place), "json" if os.fspath(place).endswith(JSON_SUFFIX) else None)


def detect(text: str) -> Format:
    """Return the format of a text: JSON begins with a brace, the display text with ``program``."""
    head = text[:4096].lstrip("\ufeff \t\r\n")
    if head[:1] in ("{", "["):
        return "json"
    return "display" if head.startswith("program") else "compact"


def pieces(program: Program, format: Format) -> Iterator[str]:  # noqa: A002 -- see above
    """Return the text of a program in pieces, none of which holds more than a part of a large literal."""
    chosen = _format(format)
    if chosen == "json":
        from mind_mlir.languages.ptir.json_writer import json_pieces  # noqa: PLC0415 -- see above

        return json_pieces(program)
    if chosen == "display":
        from mind_mlir.languages.ptir.display_writer import display_pieces  # noqa: PLC0415 -- see above

        return display_pieces(program)
    from mind_mlir.languages.ptir.compact_writer import compact_pieces  # noqa: PLC0415 -- see above

    return compact_pieces(program)


def dumps(program: Program, format: Format = "json") -> str:  # noqa: A002 -- see above
    """Return the text of a program, which reads back as the same program.

    Raises:
        ValueError: There is no such format, or the contract no such operation.
    """
    return "".join(pieces(program, format))


def save(program: Program, path: str | os.PathLike[str], format: Format | None = None) -> None:  # noqa: A002 -- see above
    """Write the text of a program to a file, which is there as a whole or not at all.

    Args:
        program: The program.
        path: Where to; a file that is there is replaced.
        format: The format; None for JSON where the name ends in ``.json``, else the compact text.

    Raises:
        UnsupportedError: The file cannot be written (E7101).
        ValueError: As for `dumps`.
    """
    target = Path(argument_checks.path(path, "path"))
    chosen: Format = _format(format) if format else "json" if target.name.endswith(".json") else "compact"
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(4)}.tmp")
    try:
        try:
            with temporary.open("x", encoding="utf-8", newline="\n") as file:
                file.writelines(pieces(program, chosen))
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        name, reason = display_path(target), error.strerror or str(error)
        message = f"cannot write '{name}': {reason}"
        facts = FrozenDict({"path": name, "reason": reason})
        raise UnsupportedError(Diagnostic("E7101", message, context=facts)) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        argument_checks.reject("text", "a string (load reads files and bytes)", value)
    return value


def _format(value: object) -> Format:
    return cast("Format", argument_checks.choice(argument_checks.text(value, "format"), FORMATS, "format"))
