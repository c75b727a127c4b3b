"""The names in functions of a `.mind` text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mind_mlir.languages.mind.elaboration.resolve import shown
from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.tools.lsp.surface_fields import FieldIndexer
from mind_mlir.tools.lsp.text_index import IndexedName

if TYPE_CHECKING:
    from mind_mlir.tools.lsp.surface_scopes import SurfaceScopes


def spelled(type_: nodes.Type | None) -> str:
    """Return a type as it is written."""
    return "" if type_ is None else shown(type_)


class BodyIndexer:
    """Takes in the names of functions, statements and expressions."""

    def __init__(self, text: str, scopes: SurfaceScopes) -> None:
        self._text = text
        self._scopes = scopes
        self._fields = FieldIndexer(scopes)
        self._functions: dict[nodes.Function, IndexedName] = {}
        self._closures: dict[nodes.Closure, dict[str, IndexedName]] = {}
        self._readers: dict[type, Callable[[Any], object]] = {
            nodes.Name: lambda node: self._scopes.use(node.text, node.span),
            nodes.List: self._items,
            nodes.Tuple: self._items,
            nodes.StructLiteral: self._literal,
            nodes.Unary: lambda node: self.expression(node.operand),
            nodes.Binary: self._binary,
            nodes.Call: self._call,
            nodes.Slice: self._slice,
            nodes.Index: self._index,
            nodes.Field: self._field,
            nodes.Closure: self._closure,
            nodes.Block: self._block,
            nodes.If: self._if,
            nodes.Let: self._let,
            nodes.Assign: self._assign,
            nodes.Evaluate: lambda node: self.expression(node.value),
            nodes.Return: lambda node: self.expression(node.value),
            nodes.While: self._while,
            nodes.For: self._for,
            nodes.Function: self._nested,
        }

    def function(self, node: nodes.Function, parent: IndexedName | None = None) -> IndexedName:
        """Return what a function declares: its own name, and those of its parameters."""
        signature = " ".join(self._text[slice(*node.head)].split())
        found = IndexedName(node.name.text, "function", node.name.span, node.span, parent, signature)
        found.parameters = {each.name.text: _parameter(each) for each in node.parameters}
        found.syntax, found.type = node.result, spelled(node.result)
        self._functions[node] = found
        return found

    def body_of(self, node: nodes.Function) -> None:
        """Take in what a function, which has been declared, mentions."""
        self._enter(node.span, node.parameters, self._functions[node].parameters)
        self._scopes.types(node.result)
        self.expression(node.body)
        self._scopes.leave()

    def expression(self, node: Any) -> None:
        """Take in the names in an expression or a statement, if there is one."""
        reader = self._readers.get(type(node))
        if reader is not None:
            reader(node)

    def _enter(
        self, span: nodes.Span, parameters: list[nodes.Parameter], names: Mapping[str, IndexedName]
    ) -> None:
        self._scopes.enter(span)
        for each in parameters:
            self._scopes.declare(names[each.name.text], each.name.span[0])
            if each.type is None:
                self._scopes.index.untyped.append(each.name.span)
            self._scopes.types(each.type)

    # Expressions

    def _items(self, node: nodes.List | nodes.Tuple) -> None:
        for item in node.items:
            self.expression(item)

    def _binary(self, node: nodes.Binary) -> None:
        rights: list[nodes.Expression] = []
        left: nodes.Expression = node
        while isinstance(left, nodes.Binary):  # a chain may be longer than Python's stack is deep
            rights.append(left.right)
            left = left.left
        self.expression(left)
        for right in reversed(rights):
            self.expression(right)

    def _call(self, node: nodes.Call) -> None:
        self.expression(node.callee)
        callee = self._scopes.find(node.callee.text) if isinstance(node.callee, nodes.Name) else None
        for argument in node.arguments:
            if callee is not None and argument.name is not None:
                self._named(callee, argument.name)
            self.expression(argument.value)

    def _named(self, callee: IndexedName, name: nodes.Ident) -> None:
        found = callee.parameters.get(name.text)
        if found is None:
            found = self._scopes.operations.attribute(callee, name.text)
        if found is not None:
            self._scopes.index.use(found, name.span)

    def _slice(self, node: nodes.Slice) -> None:
        for each in (node.start, node.end, node.step):
            self.expression(each)

    def _index(self, node: nodes.Index) -> None:
        self.expression(node.value)
        for item in node.items:
            self.expression(item)

    def _field(self, node: nodes.Field) -> None:
        self.expression(node.value)
        self._fields.use(node)

    def _literal(self, node: nodes.StructLiteral) -> None:
        struct = self._scopes.use(node.name.text, node.name.span)
        for each in node.fields:
            known = struct.parameters.get(each.name.text) if struct else None
            if known is not None:
                self._scopes.index.use(known, each.name.span, "short" if each.short else "read")
            if each.short:
                self._scopes.use(each.name.text, each.name.span, "short" if known else "read")
            else:
                self.expression(each.value)

    def _closure(self, node: nodes.Closure) -> None:
        self._closures[node] = {each.name.text: _parameter(each) for each in node.parameters}
        self._enter(node.span, node.parameters, self._closures[node])
        self.expression(node.body)
        self._scopes.leave()

    def _block(self, node: nodes.Block) -> None:
        self._scopes.enter(node.span)
        for each in node.statements:
            self.expression(each)
        self.expression(node.value)
        self._scopes.leave()

    def _if(self, node: nodes.If) -> None:
        self.expression(node.condition)
        self.expression(node.then)
        self.expression(node.otherwise)

    # Statements

    def _let(self, node: nodes.Let) -> None:
        self.expression(node.value)
        self._scopes.types(node.type)
        type_ = node.type or self._fields.type_of(node.value)
        self._pattern(node.pattern, node, type_)

    def _pattern(self, pattern: nodes.Pattern, node: nodes.Let, type_: nodes.Type | None) -> None:
        if isinstance(pattern, nodes.TuplePattern):
            types = type_.items if isinstance(type_, nodes.TupleType) else []
            for place, item in enumerate(pattern.items):
                self._pattern(item, node, types[place] if place < len(types) else None)
            return
        found = IndexedName(pattern.text, "variable", pattern.span, signature=f"let {pattern.text}")
        found.syntax = type_
        if node.type is not None and isinstance(node.pattern, nodes.Ident):
            found.type = spelled(type_)
            found.signature += f": {found.type}"
        elif pattern.text != "_" and not isinstance(node.value, nodes.StructLiteral):
            self._scopes.index.untyped.append(pattern.span)
        if isinstance(node.value, nodes.Closure):
            found.parameters = self._closures[node.value]
        self._scopes.declare(found, node.span[1])

    def _assign(self, node: nodes.Assign) -> None:
        self.expression(node.value)
        self._scopes.use(node.target.text, node.target.span, "write")

    def _while(self, node: nodes.While) -> None:
        self.expression(node.condition)
        self.expression(node.body)

    def _for(self, node: nodes.For) -> None:
        iterable = node.iterable
        if isinstance(iterable, nodes.Call) and isinstance(iterable.callee, nodes.Name):
            self._scopes.index.use(self._scopes.language("operation", "range"), iterable.callee.span)
            for argument in iterable.arguments:
                self.expression(argument.value)
        else:
            self.expression(iterable)
        self._scopes.enter(node.span)
        name = node.variable
        found = IndexedName(name.text, "variable", name.span, signature=f"for {name.text}")
        self._scopes.declare(found, node.body.span[0])
        self.expression(node.body)
        self._scopes.leave()

    def _nested(self, node: nodes.Function) -> None:
        self._scopes.declare(self.function(node), node.span[0])
        self.body_of(node)


def _parameter(node: nodes.Parameter) -> IndexedName:
    type_ = spelled(node.type)
    signature = f"{node.name.text}: {type_}" if type_ else node.name.text
    return IndexedName(
        node.name.text, "parameter", node.name.span, signature=signature, type=type_, syntax=node.type
    )
