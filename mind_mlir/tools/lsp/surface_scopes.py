"""Scopes of a `.mind` text: what its names mean, and those of the language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.builtins import builtins
from mind_mlir.languages.mind.elaboration.types import DTYPES
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.tools.lsp.operation_names import OperationNames, operation_named
from mind_mlir.tools.lsp.text_index import IndexedName, NameKind

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax.nodes import Span
    from mind_mlir.tools.lsp.text_index import Role, TextIndex

#: Names of types that the language has.
TYPE_NAMES = (*DTYPES, "unit", "Tensor")


class SurfaceScopes:
    """The scopes around a place, the innermost last, and what stands at the top of the file.

    Attributes:
        index: Takes in what is found.
        top: What the file declares at its top.
        owner: The item that is being read: dimensions of the same name in it are the same.
        whole: Where it stands.
        operations: Knows attributes.
        dimensions: For an item and the name of a dimension in it, which dimension that is.
    """

    def __init__(self, index: TextIndex, length: int) -> None:
        self.index = index
        self.top: dict[str, IndexedName] = {}
        self.owner = ""
        self.whole: Span = (0, length)
        self.dimensions: Mapping[tuple[str, str], object] = {}
        self._length = length
        self._frames: list[tuple[dict[str, IndexedName], int]] = []
        self._met: dict[object, IndexedName] = {}
        self._language: dict[tuple[str, str], IndexedName] = {}
        self.operations = OperationNames()

    def at_top(self, name: IndexedName) -> None:
        """Declare what can be seen from everywhere; of several of one name, the first counts."""
        self.top.setdefault(name.name, name)
        self.index.declare(name, (0, self._length))

    def enter(self, span: Span) -> None:
        """Begin a scope."""
        self._frames.append(({}, span[1]))

    def leave(self) -> None:
        """End the innermost scope."""
        self._frames.pop()

    def declare(self, name: IndexedName, start: int) -> None:
        """Declare a name that is seen from ``start`` to the end of the innermost scope."""
        frame, end = self._frames[-1]
        if name.name == "_" or name.declared is None or name.declared[0] < 0:
            return
        frame[name.name] = name
        self.index.declare(name, (start, end))

    def find(self, text: str) -> IndexedName | None:
        """Return what a name in an expression means, or None."""
        for frame, _ in reversed(self._frames):
            if text in frame:
                return frame[text]
        found = self._dimension(text)
        if found is None:
            found = self.top.get(text)
        return self.operation(text) if found is None and text in builtins() else found

    def use(self, text: str, span: Span, role: Role = "read") -> IndexedName | None:
        """Take in a name in an expression, and return what it means."""
        found = self.find(text)
        if found is not None:
            self.index.use(found, span, role)
        return found

    def operation(self, name: str) -> IndexedName:
        """Return a function that the language has."""
        key = "operation", name
        if key not in self._language:
            self._language[key] = operation_named("mind", name) or IndexedName(name, "operation")
        return self._language[key]

    def language(self, kind: NameKind, name: str) -> IndexedName:
        """Return a name of the language."""
        return self._language.setdefault((kind, name), IndexedName(name, kind))

    def types(self, node: nodes.Type | None) -> None:
        """Take in the names in a type."""
        if isinstance(node, nodes.Tensor):
            self._type_name(node.dtype)
            for each in node.dimensions:
                if isinstance(each, nodes.Ident):
                    self._use_dimension(each)
        elif isinstance(node, nodes.TupleType):
            for item in node.items:
                self.types(item)
        elif isinstance(node, nodes.NamedType):
            self._type_name(node.name)

    def _type_name(self, name: nodes.Ident) -> None:
        found = self.top.get(name.text)
        if found is not None and found.kind in ("struct", "type"):
            self.index.use(found, name.span)
        elif name.text in TYPE_NAMES:
            self.index.use(self.language("dtype", name.text), name.span)

    def _dimension(self, text: str) -> IndexedName | None:
        key = self.dimensions.get((self.owner, text))
        return None if key is None else self._met.get(key)

    def _use_dimension(self, name: nodes.Ident) -> None:
        key = self.dimensions.get((self.owner, name.text), (self.owner, name.text))
        found = self._met.get(key)
        if found is None:
            found = self._met[key] = IndexedName(
                name.text, "dimension", name.span, signature=f"dimension {name.text}", type="i64"
            )
            self.index.declare(found, self.whole)
        else:
            self.index.use(found, name.span)
            self.index.see(found, self.whole)
