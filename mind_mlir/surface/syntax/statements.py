"""Reads statements and blocks (surface.md, "Programs")."""

from __future__ import annotations

from mind_mlir.surface.syntax import nodes
from mind_mlir.surface.syntax.cursor import BEGINNINGS, Fault
from mind_mlir.surface.syntax.expressions import ExpressionReader

#: Assignments of other languages, and the operators in them.
_UPDATES = {"+=": "+", "-=": "-", "*=": "*", "/=": "/"}
#: Words of other languages at the beginning of a statement.
_WORDS = {
    "var": "let",
    "const": "let",
    "def": "fn",
    "func": "fn",
    "function": "fn",
    "pub": "export",
    "elif": "else if",
    "use": "import",
    "class": "struct",
}


class StatementReader(ExpressionReader):
    """Reads statements and blocks."""

    def function(self) -> nodes.Function:
        """Read a function; the reader of items does."""
        raise NotImplementedError

    def block(self) -> nodes.Block:
        """Read a block; what is wrong with a statement of it costs no other."""
        opening = self.expect("{", "")
        outer, self.structs = self.structs, True
        statements: list[nodes.Statement] = []
        value: nodes.Expression | None = None
        try:
            with self.nested():
                while not self.at("}"):
                    if self.token.kind == "end" or self.at_margin():
                        self.report(
                            "this '{' is not closed", opening.start, opening.end, "add '}' behind the block"
                        )
                        return nodes.Block(statements, value, (opening.start, self.last_end))
                    if value is not None:
                        statements.append(self._unended(value))
                        value = None
                    value = self._statement(statements)
        finally:
            self.structs = outer
        self.advance()
        return nodes.Block(statements, value, (opening.start, self.last_end))

    def _unended(self, value: nodes.Expression) -> nodes.Statement:
        """Return the statement that ``value`` is, whose semicolon is missing."""
        if not isinstance(value, (nodes.If, nodes.Block, nodes.Invalid)) and not self.behind_bad:
            end = value.span[1]
            self.report("a semicolon is missing", max(end - 1, 0), end, "end the statement with ';'")
        return nodes.Evaluate(value, value.span)

    def _statement(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        """Read a statement, or an expression that may be the value of its block, which is returned."""
        if self.take(";"):
            return None
        depth, place = self.depth, self.token
        try:
            return self._read(statements)
        except Fault:
            self.depth = depth
            self.structs = True
            if self.token is place and self.token.text not in ("}", ";"):
                self.advance()
            self.skip_statement()
            return nodes.Invalid((place.start, place.end))

    def _read(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        token = self.token
        if token.kind == "keyword":
            if token.text == "let":
                statements.append(self.let())
                return None
            if token.text == "return":
                statements.append(self._return())
                return None
            if token.text in ("while", "for"):
                statements.append(self._while() if token.text == "while" else self._for())
                return None
            if token.text == "fn":
                statements.append(self.function())
                return None
            if token.text in ("import", "struct", "export", "type"):
                raise self.fault(f"'{token.text}' stands at the top of a file", "move it out of the function")
            if token.text == "else":
                raise self.fault("'else' without an if", "write it directly behind the block of an if")
        if token.kind == "name":
            self._foreign_word()
            following = self.peek()
            if following.kind == "symbol" and following.text in ("=", ":=", *_UPDATES):
                statements.append(self._assign())
                return None
        return self._value(statements)

    def _value(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        start = self.token
        if start.text in ("if", "{") and start.kind != "name":
            found: nodes.Expression = self.branch() if start.text == "if" else self.block()
            if not (
                self.token.kind == "symbol" and self.token.text in (".", "(", "[") and not self.begins_line()
            ):
                ended = self.take(";")
                if ended or not self.at("}"):
                    statements.append(nodes.Evaluate(found, found.span))
                    return None
                return found
            found = self._followed(found)
        else:
            found = self.expression()
        if self.take(";"):
            statements.append(nodes.Evaluate(found, (found.span[0], self.last_end)))
            return None
        if self._may_begin():
            return found
        if self.at("="):
            raise self.fault(
                "only a variable can be given a value",
                "a tensor's elements and a struct's fields never change",
            )
        raise self.fault(f"expected ';' or an operator, found {self.shown()}", "end the statement with ';'")

    def _may_begin(self) -> bool:
        """Return whether a statement may begin, or the block end, although no semicolon came."""
        token = self.token
        keyword = token.kind == "keyword" and token.text in BEGINNINGS
        return keyword or self.at("}") or token.kind == "end" or self.begins_line()

    def _foreign_word(self) -> None:
        """Report a word of another language that begins a statement there."""
        token, following = self.token, self.peek()
        if token.text in _WORDS and following.kind in ("name", "keyword") and not self.begins_line(following):
            raise self.fault(f"'{token.text}' is no word of the language", f"write {_WORDS[token.text]}")

    def _end(self, start: int) -> nodes.Span:
        """Read the semicolon that ends a statement, and return the statement's span."""
        if not self.take(";"):
            end = self.last_end
            if self.token.kind != "bad" and not self.behind_bad:
                if not self._may_begin():
                    raise self.fault(
                        f"expected ';' or an operator, found {self.shown()}", "end the statement with ';'"
                    )
                self.report("a semicolon is missing", end - 1, end, "end the statement with ';'")
        return (start, self.last_end)

    def let(self) -> nodes.Let:
        """Read a ``let``; where its value is wrong, its names are declared nevertheless."""
        start = self.advance().start
        if self.token.text == "mut" and self.peek().kind == "name":
            token = self.advance()
            self.report("'mut' is no word of the language", token.start, token.end, "leave it out")
        depth = self.depth
        pattern = self.pattern()
        type_: nodes.Type | None = None
        try:
            type_ = self.type() if self.take(":") else None
            if not self.take("="):
                raise self.fault(
                    f"expected '=' behind the name, found {self.shown()}",
                    "write let x = value;, or let x: T = value;",
                )
            value = self.expression()
            return nodes.Let(pattern, type_, value, self._end(start))
        except Fault:
            self.depth = depth
            self.structs = True
            self.skip_statement()
            end = self.last_end
            return nodes.Let(pattern, type_, nodes.Invalid((end, end)), (start, end))

    def _assign(self) -> nodes.Statement:
        start = self.token.start
        name = self.name("a variable")
        token = self.advance()
        value = self.expression()
        if token.text in _UPDATES:
            self.report(
                f"there is no '{token.text}'",
                *(token.start, token.end),
                f"write {name.text} = {name.text} {_UPDATES[token.text]} ...;",
            )
            value = nodes.Invalid(value.span)
        elif token.text == ":=":
            self.report("there is no ':='", token.start, token.end, f"write let {name.text} = ...;")
            return nodes.Let(name, None, value, self._end(start))
        return nodes.Assign(name, value, self._end(start))

    def _return(self) -> nodes.Return:
        start = self.advance().start
        ends = self.at(";") or self.at("}") or self.token.kind == "end"
        value = None if ends else self.expression()
        return nodes.Return(value, self._end(start))

    def _while(self) -> nodes.While:
        start = self.advance().start
        condition = self.condition("while")
        body = self.block()
        self.take(";")
        return nodes.While(condition, body, (start, self.last_end))

    def _for(self) -> nodes.For:
        start = self.advance().start
        variable = self.name("the variable of the loop")
        self.expect("in", "behind the variable", "write for i in range(n) { ... }")
        iterable = self.condition("for")
        body = self.block()
        self.take(";")
        return nodes.For(variable, iterable, body, (start, self.last_end))
