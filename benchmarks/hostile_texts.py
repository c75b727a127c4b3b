"""Texts that strain a reader: for each kind of token and mistake, as much of it as asked for."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_SMALL = "tensor<i1>"
_INPUT = f'%0=Input("x"):{_SMALL}\n'
_HEAD = "func@f(){\n"
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"


def _repeat(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    """Return what fills a text of about a size with one unit, between two others."""

    def fill(size: int) -> str:
        room = size - len(before.encode()) - len(after.encode())
        return before + unit * (room // len(unit.encode())) + after

    return fill


def _until(size: int, pieces: Iterable[str]) -> str:
    found, length = [], 0
    for piece in pieces:
        found.append(piece)
        length += len(piece)
        if length >= size:
            break
    return "".join(found)


def _numbered(line: str, before: str = "") -> Callable[[int], str]:
    """Return lines with ``{0}``, a number that each has for itself, and ``{1}``, the one before it."""
    return lambda size: before + _until(size, (line.format(i + 1, i) for i in itertools.count()))


def _named(line: str, before: str = "") -> Callable[[int], str]:
    """Return lines with ``{0}``, a name of four letters that each has for itself."""
    names = map("".join, itertools.product(_LETTERS, repeat=4))
    return lambda size: before + _until(size, (line.format(name) for name in names))


def _literal(dtype: str, unit: str, last: str = "") -> Callable[[int], str]:
    before, after = f"%0=ConstTensor{{dtype={dtype},shape=[1],value=[", f"{last or unit[:-1]}]}}:{_SMALL}\n"
    return _repeat(unit, before, after)


#: Name -> what makes a text of about so many bytes (of UTF-8).
KINDS: Mapping[str, Callable[[int], str]] = {
    # One token that fills the text.
    "comment": _repeat("#"),
    "name of a value": _repeat("a", "%", f"=Input('x'):{_SMALL}\n"),
    "name of an operation": _repeat("a", "%0=", f":{_SMALL}\n"),
    "dotted name": _repeat("a.", "%0=", f"a:{_SMALL}\n"),
    "number of a value": _repeat("1", "%", f"=Input('x'):{_SMALL}\n"),
    "number": _repeat("1", "%0=ConstI64(", "):tensor<i64>\n"),
    "number with points": _repeat("1.", "%0=ConstI64(", "):tensor<i64>\n"),
    "number with exponents": _repeat("1e+", "%0=ConstI64(", "1):tensor<i64>\n"),
    "number with underscores": _repeat("1_", "%0=ConstI64(", "1):tensor<i64>\n"),
    "string": _repeat("a", '%0=Input("', f'"):{_SMALL}\n'),
    "string of escapes": _repeat("\\n", '%0=Input("', f'"):{_SMALL}\n'),
    "string of code points": _repeat("\\u{1F600}", '%0=Input("', f'"):{_SMALL}\n'),
    "string of bad escapes": _repeat("\\q", '%0=Input("', f'"):{_SMALL}\n'),
    "string of controls": _repeat("\x01", '%0=Input("', f'"):{_SMALL}\n'),
    "open string": _repeat("a", '%0=Input("'),
    "type": _repeat("1,", "%0=Input(x):tensor<f32[", "1]>\n"),
    "open type": _repeat("1,", "%0=Input(x):tensor<f32["),
    # Lists.
    "literal of i64": _literal("i64", "1,"),
    "literal of long numbers": _literal("i64", "1234567,"),
    "literal of f32": _literal("f32", ".5,"),
    "literal of f64": _literal("f64", "1.5,"),
    "literal of i1": _literal("i1", "0,"),
    "literal of hexadecimals": _literal("i64", "0x1,"),
    "literal with an error at its end": _literal("i64", "1,", "x"),
    "literal out of range": _literal("i32", "9999999999,"),
    "literal of comments": _literal("i64", "1,#\n"),
    "literal of lists": _literal("i64", "[1],"),
    "ragged literal": _literal("i64", "[1],", "1"),
    "literal of empty lists": _literal("i64", "[],"),
    "literal of spaces": _literal("i64", " ", "1"),
    "axes": _repeat("0,", _INPUT + "%1=Sum(%0,[", f"0]):{_SMALL}\n"),
    "words in a list": _repeat("ab,", _INPUT + "%1=Sum(%0,[", f"0]):{_SMALL}\n"),
    "strings in a list": _repeat('"",', _INPUT + "%1=Sum(%0,[", f"0]):{_SMALL}\n"),
    "lists in a list": _repeat("[],", _INPUT + "%1=Sum(%0,[", f"0]):{_SMALL}\n"),
    "ranges": _repeat("0:1,", _INPUT + "%1=Slice(%0,[", f"0:1]):{_SMALL}\n"),
    "operands": _repeat("%0,", _INPUT + "%1=Add(", f"%0):{_SMALL}\n"),
    "operands on lines": _repeat("%0\n,", _INPUT + "%1=Add(", f"%0):{_SMALL}\n"),
    "operands without commas": _repeat("%0 ", _INPUT + "%1=Add(", f"%0):{_SMALL}\n"),
    "arguments": _repeat("0,", _INPUT + "%1=Neg(%0,", f"0):{_SMALL}\n"),
    "attributes": _repeat("a=0,", _INPUT + "%1=Neg(%0){", f"a=0}}:{_SMALL}\n"),
    "outputs": _repeat("%0,", _INPUT + "outputs:", "%0\n"),
    "undefined outputs": _repeat("%7,", _INPUT + "outputs:", "%7\n"),
    # Statements.
    "operations": _repeat(f"%0=Neg(%0):{_SMALL}\n"),
    "numbered operations": _numbered(f"%{{0}}=Neg(%{{1}}):{_SMALL}\n", _INPUT),
    "named operations": _named(f"%{{0}}=Neg(%0):{_SMALL}\n", _INPUT),
    "inputs": _named(f'%0=Input("{{0}}"):{_SMALL}\n'),
    "constants": _numbered("%{0}=ConstI64({1}):tensor<i64>\n"),
    "types": _numbered('%0=Input("x"):tensor<i1[{0}]>\n'),
    "reductions": _repeat(f"%1=Sum(%0,[0]):{_SMALL}\n", _INPUT),
    "aliases": _numbered("%{0}=%0\n", _INPUT),
    "named aliases": _named("%{0}=%0\n", _INPUT),
    "aliases of nothing": _repeat("%1=%2\n"),
    "undefined operands": _named(f"%0=Neg(%{{0}}):{_SMALL}\n"),
    # Function form.
    "functions": _repeat("func@f(){^a:return}\n"),
    "named functions": _named(f"func@{{0}}(%x:{_SMALL}){{{{^a:return%x}}}}\n"),
    "blocks": _repeat(f"^b(%x:{_SMALL}):\nbr ^b(%x)\n", _HEAD + "^a:\nreturn\n", "}"),
    "empty blocks": _repeat("^b:\nbr ^b\n", _HEAD, "}"),
    "labels": _named("^{0}:\nbr ^{0}\n", _HEAD),
    "labels alone": _repeat("^b:\n", _HEAD, "}"),
    "operations of a function": _numbered(f"%{{0}}=Neg(%{{1}}):{_SMALL}\n", _HEAD + "^a:\n"),
    "named operations of a function": _named(f"%{{0}}=Neg(%0):{_SMALL}\n", _HEAD + "^a:\n"),
    "aliases of a function": _numbered("%{0}=%0\n", _HEAD + "^a:\n"),
    "circular aliases": _numbered("%{1}=%{0}\n", _HEAD + "^a:\n"),
    "calls": _repeat(f"%1=call@f(%0):{_SMALL}\n", _HEAD + "^a:\n", "return\n}"),
    "results": _repeat("%0,", _HEAD + "^a:\n", f"%0=F:{_SMALL}\nreturn\n}}"),
    "result types": _repeat(f"{_SMALL},", _HEAD + "^a:\n%0=F:(", ")\nreturn\n}"),
    "parameters": _repeat(f"%0:{_SMALL},", "func@f(", "){^a:\nreturn\n}"),
    "named parameters": _named(f"%{{0}}:{_SMALL},", "func@f("),
    "parameters of a block": _repeat(f"%0:{_SMALL},", _HEAD + "^a:\nbr ^b\n^b(", "):\nreturn\n}"),
    "arguments of a branch": _repeat("%0,", _HEAD + "^a:\nbr ^b(", ")\n}"),
    "returned values": _repeat("%0,", _HEAD + "^a:\nreturn ", "\n}"),
    "terminators": _repeat("return\n", _HEAD + "^a:\n", "}"),
    "types of a function": _repeat(f"{_SMALL},", "func@f()->(", "){^a:\nreturn\n}"),
    "regions": _repeat(f"%0=F:{_SMALL}{{\n^a:yield\n}}\n", _HEAD + "^a:\n", "return\n}"),
    "nested regions": _repeat(f"%0=F:{_SMALL}{{^a:\n", _HEAD + "^a:\n"),
    "opening braces": _repeat("{\n", _HEAD),
    "closing braces": _repeat("}", _HEAD),
    "open functions": _repeat("func@f(){\n"),
    "heads alone": _repeat("func\n"),
    "open regions": _repeat(f"%0=F(:{_SMALL}{{\n", _HEAD + "^a:\n"),
    "carets": _repeat("^", _HEAD),
    "at signs": _repeat("@", _HEAD),
    "name of a function": _repeat("a", "func@", "(){^a:\nreturn}"),
    "string for a label": _repeat("\\n", _HEAD + '^"', '":\nreturn}'),
    "values": _repeat("%0,", _HEAD),
    "values alone": _repeat("%0 ", _HEAD),
    "spaces in a function": _repeat(" ", _HEAD + "%0"),
    # Characters.
    "line feeds": _repeat("\n"),
    "carriage returns": _repeat("\r"),
    "line feeds in a list": _repeat("\n", "%0=Sum(["),
    "spaces": _repeat(" "),
    "percent signs": _repeat("%"),
    "open brackets": _repeat("["),
    "open parentheses": _repeat("("),
    "brackets": _repeat("()"),
    "commas": _repeat(","),
    "digits and spaces": _repeat("1 "),
    "quotes": _repeat('"'),
    "broken quotes": _repeat('"\n'),
    "garbage": _repeat("$a"),
    "NUL": _repeat("\0"),
    "invalid lines": _repeat("a\n"),
    "unclosed lists": _repeat("%0=[\n"),
    "unknown operations": _repeat(f"%0=A:{_SMALL}\n"),
    "emoji": _repeat("\U0001f600"),
    "emoji in a string": _repeat("\U0001f600", '%0=Input("', f'"):{_SMALL}\n'),
    "emoji in comments": _repeat("#\U0001f600\n"),
    "ASCII after an emoji": _repeat("a", "#\U0001f600"),
    "lines after an emoji": _repeat(f"%0=Neg(%0):{_SMALL}\n", "#\U0001f600\n"),
    "letters beyond ASCII": _repeat("é", "%0=", f":{_SMALL}\n"),
}

#: The same for sources that are no text: bytes.
BYTES: Mapping[str, Callable[[int], bytes]] = {
    "ill-formed UTF-8": lambda size: b"\xff" * size,
    "ill-formed at its end": lambda size: b"a" * size + b"\xff",
    "emoji, then ill-formed": lambda size: "\U0001f600".encode() * (size // 4) + b"\xff",
}


def sources() -> dict[str, Callable[[int], bytes]]:
    """Return everything above as makers of bytes, by name."""
    return {**{name: _encoded(make) for name, make in KINDS.items()}, **BYTES}


def _encoded(make: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda size: make(size).encode()
