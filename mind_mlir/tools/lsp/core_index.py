"""The names of a Core IR text: values, functions and blocks, from its tokens, statement by statement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from mind_mlir.languages.core.lexer import CoreLexer
from mind_mlir.languages.core.tokens import FUNCTION_LINE, HEAD
from mind_mlir.languages.text.report import Report
from mind_mlir.tools.lsp.comments import comment_above
from mind_mlir.tools.lsp.operation_names import OperationNames
from mind_mlir.tools.lsp.text_index import IndexedName, NameKind, Runnable, TextIndex

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText
    from mind_mlir.languages.text.cursor import Token
    from mind_mlir.languages.text.report import Span

#: What begins statements that define nothing.
_FLOW = frozenset(("BR", "COND_BR", "EXIT", "WORD"))


def core_index(source: SourceText) -> TextIndex:
    """Return the names of a Core IR text."""
    report = Report(source)
    functions = FUNCTION_LINE.search(source.text) is not None
    lexer = CoreLexer(report, functions=functions)
    indexer = _CoreIndexer(source.text, functions=functions)
    for statement in lexer.statements():
        indexer.read(list(statement))
        lexer.in_body = functions and indexer.is_inside
    return indexer.finish()


class _CoreIndexer:
    """Takes in statements; what is used before its declaration is resolved at the end of its function."""

    def __init__(self, text: str, *, functions: bool) -> None:
        self._text = text
        self._functions = functions
        self._index = TextIndex()
        self._operations = OperationNames()
        self._function: IndexedName | None = None
        self._start = 0
        self._callees: dict[str, IndexedName] = {}
        self._values: dict[str, IndexedName] = {}
        #: The labels of the bodies that are open, and the block that each stands in.
        self._blocks: list[tuple[dict[str, IndexedName], IndexedName | None]] = []
        self._block: IndexedName | None = None
        self._pending: list[tuple[dict[str, IndexedName], Token]] = []
        self._called: list[Token] = []

    @property
    def is_inside(self) -> bool:
        """Return whether a function is open."""
        return bool(self._blocks)

    def finish(self) -> TextIndex:
        """Return all that has been found."""
        self._end_function(len(self._text))
        for token in self._called:
            if token.text in self._callees:
                self._index.use(self._callees[token.text], token.span)
        if not self._functions and self._index.names:
            self._index.runnable.append(Runnable(None, self._index.names[0].declared or (0, 0)))
        return self._index.finish()

    def read(self, tokens: Sequence[Token]) -> None:
        """Take in a statement."""
        kind = tokens[0].kind
        if kind in HEAD:
            self._head(tokens)
        elif kind == "CLOSE":
            if self._blocks:
                _, self._block = self._blocks.pop()
            if not self._blocks:
                self._end_function(tokens[0].end)
        elif kind == "LABEL":
            self._label(tokens)
        elif kind == "VALUE":
            self._definition(tokens)
        elif kind in _FLOW:
            self._use(tokens)

    def _head(self, tokens: Sequence[Token]) -> None:
        self._end_function(tokens[0].start)
        symbol = next((token for token in tokens if token.kind == "SYMBOL"), None)
        self._start, self._blocks = tokens[0].start, [({}, None)]
        if symbol is None:
            return
        signature = " ".join(self._text[tokens[0].start : tokens[-1].end].rstrip("{ \n").split())
        comment = comment_above(self._text, tokens[0].start)
        found = IndexedName(
            symbol.text, "function", symbol.span, symbol.span, None, signature, comment=comment
        )
        self._function = self._callees.setdefault(symbol.text, found)
        self._index.declare(found, (0, len(self._text)))
        if tokens[0].text != "internal":
            self._index.runnable.append(Runnable(symbol.text.removeprefix("@").strip('"'), symbol.span))
        found.parameters = self._parameters(tokens, found, "parameter")

    def _label(self, tokens: Sequence[Token]) -> None:
        token = tokens[0]
        kind: NameKind = "region" if len(self._blocks) > 1 else "block"  # which the operation names
        found = IndexedName(token.text, kind, token.span, token.span, self._function, token.text)
        if self._blocks:
            self._blocks[-1][0].setdefault(token.text, found)
        self._index.declare(found, (self._start, len(self._text)))
        self._block = found
        parameters = self._parameters(tokens, found, "parameter")
        listed = ", ".join(each.signature for each in parameters.values())
        found.signature += f"({listed})" if listed else ""

    def _parameters(
        self, tokens: Sequence[Token], parent: IndexedName, kind: NameKind
    ) -> dict[str, IndexedName]:
        """Declare the values in the head of a function or a block, each with the type behind it."""
        found: dict[str, IndexedName] = {}
        waiting: Token | None = None
        for token in tokens:
            if token.kind == "VALUE":
                waiting = token
            elif token.kind == "TYPE" and waiting is not None:
                found[waiting.text] = self._declare(waiting, token.text, kind, parent)
                waiting = None
        return found

    def _declare(
        self, token: Token, type_: str, kind: NameKind, parent: IndexedName | None, whole: Span | None = None
    ) -> IndexedName:
        signature = f"{token.text}: {type_}" if type_ else token.text
        found = IndexedName(token.text, kind, token.span, whole, parent, signature, type_)
        self._index.declare(found, (self._start, len(self._text)))
        return self._values.setdefault(token.text, found)

    def _definition(self, tokens: Sequence[Token]) -> None:
        split = next((place for place, token in enumerate(tokens) if token.kind == "="), None)
        if split is None:
            self._use(tokens)
            return
        results = [token for token in tokens[:split] if token.kind == "VALUE"]
        types = [token.text for token in tokens if token.kind == "TYPE"]
        parent, whole = self._block or self._function, (tokens[0].start, tokens[-1].end)
        for place, token in enumerate(results):
            type_ = types[place] if place < len(types) else ""
            self._declare(token, type_, "value", parent, whole)
        rest = tokens[split + 1 :]
        if rest and rest[0].kind == "WORD":
            operation = self._operations.core(rest[0].text)
            if operation is not None:
                self._index.use(operation, rest[0].span)
                self._attributes(operation, rest[1:])
        self._use(rest)
        if tokens[-1].kind == "OPEN":
            self._blocks.append(({}, self._block))

    def _attributes(self, operation: IndexedName, tokens: Sequence[Token]) -> None:
        for token, following in pairwise(tokens):
            if token.kind == "WORD" and following.kind in ("=", ":"):
                attribute = self._operations.attribute(operation, token.text)
                if attribute is not None:
                    self._index.use(attribute, token.span)

    def _use(self, tokens: Sequence[Token]) -> None:
        blocks = self._blocks[-1][0] if self._blocks else {}
        for token in tokens:
            if token.kind == "VALUE":
                self._pending.append((self._values, token))
            elif token.kind == "LABEL":
                self._pending.append((blocks, token))
            elif token.kind == "SYMBOL":
                self._called.append(token)

    def _end_function(self, end: int) -> None:
        for names, token in self._pending:
            if token.text in names:
                self._index.use(names[token.text], token.span)
        if self._function is not None and self._function.declared is not None:
            self._function.whole = (self._start, end)
        self._pending, self._values, self._blocks = [], {}, []
        self._function = self._block = None
