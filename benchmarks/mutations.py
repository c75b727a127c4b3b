"""Texts of the surface language with something wrong: mutations of bytes, of tokens and of structure.

Which mutation has which number depends on the seed and on the texts alone.
"""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Mutate: TypeAlias = "Callable[[random.Random, bytes, Sequence[bytes]], bytes]"

#: What stands where something else stood.
_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|[0-9][0-9a-zA-Z_.]*|\"[^\"\n]*\"|->|::|==|!=|<=|>=|&&|\|\||\S")
_NAME = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
_INTEGER = re.compile(rb"\b[0-9]+\b")
_BRACKETS = ((b"(", b")"), (b"[", b"]"), (b"{", b"}"))
_NUMBERS = (
    b"0",
    b"1",
    b"-1",
    b"2147483648",
    b"1000000007",
    b"9223372036854775807",
    b"9223372036854775808",
    b"170141183460469231731687303715884105728",
    b"0x" + b"f" * 40,
    b"1e400",
    b"1.",
    b"1e-400",
    b"9" * 5000,
)
_WORDS = (
    *b"fn let return if else while for in import export struct type true false".split(),
    *b"i32 i64 f32 f64 bool unit Tensor grad vjp value_and_grad range zeros eye reshape sum".split(),
    *rb"( ) [ ] { } , ; : :: . -> = == ! && || | + - * / < > _ /* */ // \ ? @ # ' ` ~ %".split(),
    b'"',
    "ä".encode(),
    "🌊".encode(),
    "\u202e".encode(),
    b"\0",
    b"\r",
    b"\xff",
    b"\xed\xa0\x80",
)
_DEPTH = 12_000
_LINKS = (b"+x", b".x", b"(x)", b"[0]", b"::x", b" else if x {}", b"*2", b"||x", b";x", b",x")


def mutated(seed: int, number: int, texts: Sequence[bytes]) -> bytes:
    """Return mutation ``number`` of ``texts``: one of them with one to four changes."""
    chance = random.Random(f"{seed} {number}")  # noqa: S311 -- repeatable, not secret
    text = chance.choice(texts)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        text = chance.choice(MUTATIONS)(chance, text, texts)
    return text


def _span(chance: random.Random, text: bytes, longest: int = 60) -> tuple[int, int]:
    start = chance.randint(0, len(text))
    return start, min(len(text), start + chance.randint(1, longest))


def _flip(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    changed = bytearray(text or b" ")
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _delete(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    start, end = _span(chance, text)
    return text[:start] + text[end:]


def _duplicate(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    start, end = _span(chance, text, 200)
    return text[:end] + text[start:end] * chance.choice((1, 1, 2, 50)) + text[end:]


def _cut(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    return text[: chance.randint(0, len(text))]


def _splice(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    at, (start, end) = chance.randint(0, len(text)), _span(chance, other := chance.choice(texts), 300)
    return text[:at] + other[start:end] + text[at:]


def _replace_one(chance: random.Random, text: bytes, pattern: re.Pattern[bytes], by: bytes) -> bytes:
    found = list(pattern.finditer(text))
    if not found:
        return text + by
    start, end = chance.choice(found).span()
    return text[:start] + by + text[end:]


def _token_of(chance: random.Random, text: bytes) -> bytes:
    found: list[bytes] = _TOKEN.findall(text)
    return chance.choice(found or [b";"])


def _swap(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    found = [match.span() for match in _TOKEN.finditer(text)]
    if len(found) < 2:
        return text
    (a, b), (c, d) = sorted(chance.sample(found, 2))
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


def _token(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    return _replace_one(chance, text, _TOKEN, _token_of(chance, chance.choice(texts)))


def _word(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    return _replace_one(chance, text, _TOKEN, chance.choice(_WORDS))


def _insert(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    at = chance.randint(0, len(text))
    return text[:at] + chance.choice(_WORDS) + text[at:]


def _name(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    return _replace_one(chance, text, _NAME, chance.choice(_NAME.findall(text) or [b"x"]))


def _extent(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    return _replace_one(chance, text, _INTEGER, str(chance.randint(0, 9)).encode())


def _number(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    return _replace_one(chance, text, _INTEGER, chance.choice(_NUMBERS))


def _nest(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    del texts
    opening, closing = chance.choice((*_BRACKETS, (b"-", b""), (b"!", b""), (b"1+(", b")"), (b"[[", b"]")))
    depth = chance.choice((1, 2, 40, 300, _DEPTH))
    found = [match.span() for match in _TOKEN.finditer(text)] or [(0, 0)]
    start, end = chance.choice(found)
    return text[:start] + opening * depth + text[start:end] + closing * depth + text[end:]


def _chain(chance: random.Random, text: bytes, texts: Sequence[bytes]) -> bytes:
    """Make one name a long chain: of sums, of fields, of calls, of indices."""
    del texts
    link = chance.choice(_LINKS)
    found = [match.span() for match in _NAME.finditer(text)] or [(0, 0)]
    _, end = chance.choice(found)
    return text[:end] + link * chance.choice((2, 50, 3000)) + text[end:]


MUTATIONS: tuple[Mutate, ...] = (
    _flip,
    _delete,
    _duplicate,
    _cut,
    _splice,
    _swap,
    _token,
    _token,
    _word,
    _insert,
    _name,
    _name,
    _extent,
    _extent,
    _number,
    _nest,
    _chain,
)
