"""The names of a `.mind` text: a walk over its syntax tree, which may lack what is not well-formed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.builtins import builtins, modules
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.reading import read
from mind_mlir.tools.lsp.comments import comment_above
from mind_mlir.tools.lsp.surface_bodies import BodyIndexer, spelled
from mind_mlir.tools.lsp.surface_dimensions import shared_dimensions
from mind_mlir.tools.lsp.surface_scopes import SurfaceScopes
from mind_mlir.tools.lsp.text_index import IndexedName, NameKind, Runnable, TextIndex

if TYPE_CHECKING:
    from mind_mlir.diagnostics import SourceText


def surface_index(source: SourceText) -> TextIndex:
    """Return the names of a `.mind` text."""
    reading = read(source)
    tree, keywords = reading.program, [token.start for token in reading.tokens if token.kind == "keyword"]
    index = TextIndex(keywords=frozenset(keywords))
    scopes = SurfaceScopes(index, len(source.text))
    indexer = _FileIndexer(source.text, scopes)
    for item in tree.items:
        indexer.declare(item)
    scopes.dimensions = shared_dimensions(tree, scopes)
    for item in tree.items:
        indexer.fill(item)
    return index.finish()


class _FileIndexer:
    """Takes in the items of a file: first what they declare, then what they mention."""

    def __init__(self, text: str, scopes: SurfaceScopes) -> None:
        self._text = text
        self._scopes = scopes
        self._index = scopes.index
        self._bodies = BodyIndexer(text, scopes)

    def declare(self, item: nodes.Item) -> None:
        if isinstance(item, nodes.Import):
            return
        if isinstance(item, nodes.Function):
            function = self._bodies.function(item)
            function.comment = comment_above(self._text, item.span[0])
            self._scopes.at_top(function)
            self._index.runnable.append(Runnable(item.name.text, item.name.span))
        elif isinstance(item, nodes.Struct):
            self._struct(item)
        elif isinstance(item, nodes.Alias):
            signature = f"type {item.name.text} = {spelled(item.type)}"
            self._scopes.at_top(self._named("type", item.name, item.span, signature, item.type))
        elif isinstance(item.pattern, nodes.Ident):
            signature = f"let {item.pattern.text}" + (f": {spelled(item.type)}" if item.type else "")
            self._scopes.at_top(self._named("constant", item.pattern, item.span, signature, item.type))

    def _named(
        self, kind: NameKind, name: nodes.Ident, span: nodes.Span, signature: str, type_: nodes.Type | None
    ) -> IndexedName:
        comment, text = comment_above(self._text, span[0]), spelled(type_)
        return IndexedName(name.text, kind, name.span, span, None, signature, text, comment, syntax=type_)

    def _struct(self, item: nodes.Struct) -> None:
        found = self._named("struct", item.name, item.span, f"struct {item.name.text}", None)
        fields: dict[str, IndexedName] = {}
        for each in item.fields:
            name, type_ = each.name, spelled(each.type)
            whole, signature = (name.span[0], each.type.span[1]), f"{name.text}: {type_}"
            fields[name.text] = IndexedName(
                name.text, "field", name.span, whole, found, signature, type_, syntax=each.type
            )
        found.parameters = fields
        listed = ", ".join(each.signature for each in fields.values())
        found.signature += f" {{ {listed} }}" if listed else " { }"
        self._scopes.at_top(found)
        for each_field in fields.values():
            self._index.declare(each_field)

    def fill(self, item: nodes.Item) -> None:
        """Take in what an item mentions."""
        scopes = self._scopes
        if isinstance(item, nodes.Import):
            self._import(item)
            return
        if isinstance(item, nodes.Let):
            scopes.types(item.type)
            self._bodies.expression(item.value)
            return
        scopes.owner, scopes.whole = item.name.text, item.span
        if isinstance(item, nodes.Function):
            self._bodies.body_of(item)
        elif isinstance(item, nodes.Struct):
            for each in item.fields:
                scopes.types(each.type)
        else:
            scopes.types(item.type)
        scopes.owner = ""

    def _import(self, item: nodes.Import) -> None:
        module, *names = item.path
        if module.text in modules():
            self._index.use(self._scopes.language("module", module.text), module.span)
        for name in names:
            if name.text in builtins():
                self._index.use(self._scopes.operation(name.text), name.span)
