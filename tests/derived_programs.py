"""Programs that the grammar of the surface language derives."""

from __future__ import annotations

import random
import re
from functools import cache
from typing import TypeAlias

from mind_mlir.languages.mind.elaboration.reference import GRAMMAR

#: A word of the grammar, or (kind, parts): "choice" and "row" of rules, "option", "repeat".
Rule: TypeAlias = "str | tuple[str, list[Rule]]"

_BRACKETS = {"[": ("]", "option"), "{": ("}", "repeat"), "(": (")", "group")}
#: What ends a sentence that is deep.
_SHORT = {
    "expression": "x",
    "primary": "x",
    "literal": "x",
    "type": "f32",
    "pattern": "x",
    "item": "let x = 1 ;",
}
_WORDS = {
    "name": ["a", "b1", "_c", "größe", "Tensor2"],
    "number": ["0", "1_000", "0xff", "2.5", "1.", "1e-3"],
    "integer": ["0", "3"],
    "string": ['"s"', '"a\\n\\""'],
}


@cache
def grammar() -> dict[str, Rule]:
    rules: dict[str, Rule] = {}
    for name, text in re.findall(r"^(\w+) += (.*) ;$", GRAMMAR, re.MULTILINE):
        words = re.findall(r'"[^"]*"|\w+|[][{}()|]', text)
        rules[name] = _choice(words)
        assert not words
    return rules


def _choice(words: list[str]) -> Rule:
    rows: list[Rule] = [("row", [])]
    while words and words[0] not in "]})":
        word = words.pop(0)
        if word == "|":
            rows.append(("row", []))
            continue
        part: Rule = word
        if word in _BRACKETS:
            closing, kind = _BRACKETS[word]
            part = (kind, [_choice(words)])
            assert words.pop(0) == closing
        rows[-1][1].append(part)  # type: ignore[union-attr]  # a row
    return ("choice", rows)


class Derivation:
    """A random sentence of the grammar, which gets no deeper where it is deep."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 -- the same sentences in every run
        self.depth = 0
        self.conditions = 0

    def words(self, rule: Rule) -> list[str]:
        if isinstance(rule, str):
            return self._word(rule)
        kind, parts = rule
        if kind == "choice":
            return self.words(self.draw.choice(parts))
        if kind == "row":
            return [word for part in parts for word in self.words(part)]
        likely = self.draw.random() < 3 / (4 + self.depth)
        count = self.draw.choice((1, 2)) if kind == "repeat" else 1
        return (
            [word for _ in range(count) for word in self.words(parts[0])] if kind == "group" or likely else []
        )

    def _word(self, rule: str) -> list[str]:
        if rule.startswith('"'):
            return [rule[1:-1]]
        if rule in _WORDS:
            return [self.draw.choice(_WORDS[rule])]
        if rule in _SHORT and (self.depth > 30 or (rule == "literal" and self.conditions)):
            return [_SHORT[rule]]
        self.depth += 1
        self.conditions += rule == "condition"
        found = self.words(grammar()[rule])
        while rule == "plain" and found[0] in ("if", "{"):
            found = self.words(grammar()[rule])
        self.conditions -= rule == "condition"
        self.depth -= 1
        return found
