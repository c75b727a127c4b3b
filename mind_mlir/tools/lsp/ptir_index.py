"""The names of a PTIR text, in either of its forms: values, functions and regions, from its tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mind_mlir.languages.ptir.text import TextReader
from mind_mlir.tools.lsp.comments import comment_above
from mind_mlir.tools.lsp.operation_names import OperationNames
from mind_mlir.tools.lsp.text_index import IndexedName, NameKind, Runnable, TextIndex

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.languages.text.cursor import Token

#: The type of a value, behind a colon or an arrow.
_TYPE = re.compile(r"\s*+((?:tensor|tuple)\s*+<(?:[^<>\n]++|<(?:[^<>\n]++|<[^<>\n]*+>)*+>)*+>)")
#: The variant of a family: ``ElementwiseUnary(Exp)``.
_VARIANT = re.compile(r"\s*\(\s*(\w+)\s*\)")
#: What the display text calls the parameters of a region.
_ARGUMENT = re.compile(r"%arg(?=[0-9]+\Z)")


def ptir_index(source: SourceText) -> TextIndex:
    """Return the names of a PTIR text: the compact one, or the display text."""
    indexer = _PtirIndexer(source)
    indexer.read()
    return indexer.finish()


class _PtirIndexer:
    """Takes in tokens."""

    def __init__(self, source: SourceText) -> None:
        self._reader = TextReader(source)
        self._text = source.text
        self._index = TextIndex()
        self._operations = OperationNames()
        self._owners: dict[str, IndexedName] = {}
        self._named: list[Token] = []
        self._owner: IndexedName | None = None
        self._operation: IndexedName | None = None
        self._start = 0
        self._values: dict[str, IndexedName] = {}
        self._used: list[Token] = []
        #: How many braces are open, and how many around the function or region.
        self._depth = self._outside = 0
        #: The word before a section, ``params`` or ``results``, and whether a head is being read.
        self._section = ""

    def finish(self) -> TextIndex:
        """Return all that has been found."""
        self._end_owner(len(self._text))
        for token in self._named:
            found = self._owners.get(_key(token))
            if found is not None:
                self._index.use(found, token.span)
        return self._index.finish()

    def read(self) -> None:
        """Take in the text."""
        reader, before = self._reader, ""
        while reader.token.kind != "END":
            token = reader.advance()
            if token.kind in ("SYMBOL", "REGION"):
                self._name(token, before)
            elif token.kind == "VALUE":
                self._value(token)
            elif token.kind == "WORD":
                self._word(token, before)
            elif token.text in ("{", "}"):
                self._brace(token)
            before = token.text

    def _brace(self, token: Token) -> None:
        self._section = ""
        self._depth += 1 if token.text == "{" else -1
        if self._depth == self._outside:
            self._end_owner(token.end)

    def _name(self, token: Token, before: str) -> None:
        if before not in ("func", "region"):
            self._named.append(token)
            return
        kind: NameKind = "function" if before == "func" else "region"
        start = self._text.rfind(before, 0, token.start)
        self._end_owner(start)
        line = self._text[start : self._text.find("\n", token.end)].rstrip(" {\r")
        comment = comment_above(self._text, start)
        found = IndexedName(token.text, kind, token.span, token.span, None, line, comment=comment)
        self._owner, self._start, self._section = found, start, "params"
        self._outside = self._depth
        self._owners.setdefault(_key(token), found)
        self._index.declare(found, (0, len(self._text)))
        if kind == "function":
            name = token.text.removeprefix("@").strip('"')
            self._index.runnable.append(Runnable(name, token.span))

    def _word(self, token: Token, before: str) -> None:
        if self._reader.word == ":" and token.text in ("params", "body", "results"):
            self._section = token.text
        elif before == "=":
            variant = _VARIANT.match(self._text, token.end)
            found = self._operations.contract(token.text, variant[1] if variant else None)
            self._operation = found
            if found is not None:
                self._index.use(found, token.span)
        elif self._reader.word in ("[", ":") and self._operation is not None:
            attribute = self._operations.attribute(self._operation, token.text)
            if attribute is not None:
                self._index.use(attribute, token.span)

    def _value(self, token: Token) -> None:
        if self._reader.word == "=":
            self._declare(token, "value", self._text.find("->", token.end))
        elif self._reader.word == ":" and self._section == "params":
            self._declare(token, "parameter", self._reader.token.start - 1)
        else:
            self._used.append(token)

    def _declare(self, token: Token, kind: NameKind, before_type: int) -> None:
        line = self._text.find("\n", token.end)
        near = before_type >= 0 and (line < 0 or before_type < line)
        found_type = _TYPE.match(self._text, before_type + 2) if near else None
        type_ = found_type[1] if found_type else ""
        signature = f"{token.text}: {type_}" if type_ else token.text
        end = line if line >= 0 else len(self._text)
        whole = (token.start, end) if kind == "value" else None
        found = IndexedName(token.text, kind, token.span, whole, self._owner, signature, type_)
        self._values.setdefault(_key(token), found)
        self._index.declare(found, (self._start, len(self._text)))

    def _end_owner(self, end: int) -> None:
        for token in self._used:
            if _key(token) in self._values:
                self._index.use(self._values[_key(token)], token.span)
        if self._owner is not None:
            self._owner.whole = (self._start, end)
        self._owner, self._values, self._used = None, {}, []


def _key(token: Token) -> str:
    """Return what two spellings of one name have in common."""
    if token.kind == "REGION":
        return f"^{token.text.lstrip('^r')}"
    return _ARGUMENT.sub("%", token.text)
