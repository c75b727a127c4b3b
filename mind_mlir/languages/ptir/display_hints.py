"""The hints of a function as the producer's display text shows them.

    fused_hint id=0 kind=ElementwiseDag policy=Preferred {
      inputs: [%0, %1]
      exports: [%3]
      attrs:
        tile = I64(8)
      body:
        %2 = ElementwiseUnary(Exp)(%0) -> tensor<F32 x 4>
    }

Lists that are empty are left out. What is returned is what the JSON of the same program has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mind_mlir.languages.ptir.display_data import read_data
from mind_mlir.languages.ptir.json_writer import instruction_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mind_mlir.languages.ptir.program import Instruction
    from mind_mlir.languages.ptir.text import TextReader
    from mind_mlir.languages.text.cursor import Token

HINT = "fused_hint"


def read_hints(reader: TextReader, body: Callable[[], Iterable[Instruction]]) -> list[Any]:
    """Return the hints that begin here; ``body`` reads the section of that name."""
    found = []
    while reader.accept(HINT):
        number = reader.identifier(*_assigned(reader, "id", "NUMBER", "a number"))
        kind, _ = _assigned(reader, "kind", "WORD", "the kind of the hint")
        policy, _ = _assigned(reader, "policy", "WORD", "a policy")
        reader.expect("{")
        inputs, exports = _values(reader, "inputs"), _values(reader, "exports")
        attrs = _attributes(reader)
        held = [instruction_data(instruction) for instruction in body()]
        reader.expect("}")
        parts = {"inputs": inputs, "exports": exports, "body": held, "attrs": attrs}
        found.append({"id": number, "kind": kind, "policy": policy, **parts})
    return found


def _assigned(reader: TextReader, name: str, kind: str, what: str) -> tuple[str, Token]:
    reader.expect(name)
    reader.expect("=")
    token = reader.kind(kind, what)
    if kind == "NUMBER" and not token.text.isdigit():
        reader.unexpected(token, what)
    return token.text, token


def _values(reader: TextReader, section: str) -> list[int]:
    if not reader.accept(section):
        return []
    reader.expect(":")
    reader.expect("[")
    found: list[int] = []
    for _ in reader.separated("]", trailing=False):
        token = reader.kind("VALUE", "a value, such as %0")
        if not token.text[1:].isdigit():
            reader.unexpected(token, "the number of a value, such as %0")
        found.append(reader.identifier(token.text[1:], token))
    return found


def _attributes(reader: TextReader) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if not reader.accept("attrs"):
        return found
    reader.expect(":")
    while reader.word not in ("body", "}"):
        name = reader.kind("WORD", "the name of an attribute").text
        reader.expect("=")
        found[name] = read_data(reader, (name,), {})
    return found
