"""Fields in a `.mind` text: of which struct they are, as far as types that are written tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.surface_scopes import SurfaceScopes
    from mind_mlir.tools.lsp.text_index import IndexedName

#: Types that one type is another name of, in a row.
_MOST_ALIASES = 20


class FieldIndexer:
    """Takes in the fields that expressions name."""

    def __init__(self, scopes: SurfaceScopes) -> None:
        self._scopes = scopes

    def use(self, node: nodes.Field) -> None:
        """Take in a field, whose value has been read."""
        struct = self.struct_of(self.type_of(node.value))
        name = node.name.text
        found = struct.parameters.get(name) if struct else None
        if struct is None and not name.isdigit():
            self._scopes.index.unclear.add(name)
            having = [each for each in self._scopes.top.values() if each.kind == "struct"]
            fields = [each.parameters[name] for each in having if name in each.parameters]
            found = fields[0] if len(fields) == 1 else None
        if found is not None:
            self._scopes.index.use(found, node.name.span)

    def struct_of(self, type_: nodes.Type | None) -> IndexedName | None:
        """Return the struct that a type is, or None where it is none."""
        for _ in range(_MOST_ALIASES):
            if not isinstance(type_, nodes.NamedType):
                return None
            found = self._scopes.top.get(type_.name.text)
            if found is None or found.kind == "struct":
                return found
            type_ = found.syntax
        return None

    def type_of(self, node: nodes.Expression) -> nodes.Type | None:
        """Return the type of an expression where what is written tells."""
        if isinstance(node, nodes.Name):
            found = self._scopes.find(node.text)
            return found.syntax if found and found.kind in ("parameter", "variable", "constant") else None
        if isinstance(node, nodes.StructLiteral):
            return nodes.NamedType(node.name, node.name.span)
        if isinstance(node, nodes.Call) and isinstance(node.callee, nodes.Name):
            found = self._scopes.find(node.callee.text)
            return found.syntax if found and found.kind == "function" else None
        if not isinstance(node, nodes.Field):
            return None
        value = self.type_of(node.value)
        if isinstance(value, nodes.TupleType) and node.name.text.isdigit():
            place = int(node.name.text)
            return value.items[place] if place < len(value.items) else None
        struct = self.struct_of(value)
        found = struct.parameters.get(node.name.text) if struct else None
        return found.syntax if found else None
