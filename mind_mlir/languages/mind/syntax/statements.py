"""Reads statements and blocks (surface.md, "Programs")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import BEGINNINGS, Fault
from mind_mlir.languages.mind.syntax.expressions import ExpressionReader
from mind_mlir.languages.mind.syntax.slips import STATEMENTS, UPDATES, WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

_ASSIGNMENTS = frozenset(("=", ":=", *UPDATES))
_ENDS = frozenset((";", "}", "end"))
_SEMICOLON = "end the statement with ';'"


class StatementReader(ExpressionReader):
    """Reads statements and blocks."""

    def function(self) -> nodes.Statement:
        """Read a function; the reader of items does."""
        raise NotImplementedError

    def block(self) -> nodes.Block:
        """Read a block; what is wrong with a statement of it costs no other.

        Raises:
            Fault: There is none.
        """
        start = self.token.start
        if self.word != "{":
            self.lacking.append(start)
            raise self.expected("'{'")
        self.advance()
        outer, self.structs = self.structs, True
        statements: list[nodes.Statement] = []
        value: nodes.Expression | None = None
        self.deeper()
        while self.word not in ("}", "end"):
            if value is not None:
                statements.append(self._unended(value))
            value = self._statement(statements)
        self.depth -= 1
        self.structs = outer
        self.advance()
        return nodes.Block(statements, value, (start, self.last_end))

    def unopened(self) -> nodes.Block:
        """Read a function's block whose first brace is missing, to where the next item begins."""
        start = self.token.start
        statements: list[nodes.Statement] = []
        value: nodes.Expression | None = None
        while self.word not in ("}", "end") and not self.at_margin():
            if value is not None:
                statements.append(self._unended(value))
            value = self._statement(statements)
        self.take("}")
        return nodes.Block(statements, value, (start, max(start, self.last_end)))

    def _unended(self, value: nodes.Expression) -> nodes.Statement:
        """Return the statement that ``value`` is, whose semicolon is missing."""
        if not isinstance(value, (nodes.If, nodes.Block, nodes.Invalid)):
            self._unended_line()
        return nodes.Evaluate(value, value.span)

    def _statement(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        """Read a statement, or an expression that may be the value of its block, which is returned."""
        if self.take(";"):
            return None
        depth, first = self.depth, self.token
        try:
            return self._read(statements)
        except Fault:
            self.depth, self.structs = depth, True
            if self.token is first and self.word not in _ENDS:
                self.advance()
            self.skip_statement(first)
            return nodes.Invalid((first.start, max(first.start, self.last_end)))

    def _read(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        word = self.word
        if word == "name":
            word = self.foreign_word()
        if word in BEGINNINGS:
            statements.append(self._keyword(word))
            return None
        if word == "else":
            if statements and isinstance(statements[-1], nodes.Evaluate) and not self._lone_else(statements):
                raise Fault
            raise self.fault("'else' without an if", "write it directly behind the block of an if")
        if word == "name" and self.ahead() in ("+", "-") and self.ahead(2) == self.ahead():
            self._counting()
        if word == "name" and self.ahead() in _ASSIGNMENTS:
            statements.append(self._assign())
            return None
        return self._value(statements)

    def _counting(self) -> None:
        """Refuse ``x++;``.

        Raises:
            Fault: That is what stands here.
        """
        sign, second, third = self.ahead(), self.tokens[self.place + 2], self.ahead(3)
        if third in _ENDS and self.tokens[self.place + 1].end == second.start:
            name = self.token.text
            self.advance()
            span = (self.token.start, second.end)
            self.report(f"there is no '{sign}{sign}'", span, f"write {name} = {name} {sign} 1;")
            raise Fault

    def _lone_else(self, statements: list[nodes.Statement]) -> bool:
        """Return whether no ``if`` that has been reported stands before an ``else``."""
        last = statements[-1]
        return not (isinstance(last, nodes.Evaluate) and isinstance(last.value, nodes.Invalid))

    def _keyword(self, word: str) -> nodes.Statement:
        readers: dict[str, Callable[[], nodes.Statement]] = {
            "let": self.let,
            "return": self._return,
            "while": self._while,
            "for": self._for,
            "fn": self.function,
        }
        if word not in readers:
            raise self.fault(f"'{word}' stands at the top of a file", "move it out of the function")
        return readers[word]()

    def foreign_word(self) -> str:
        """Report a word of another language that begins a statement there; return what is read instead.

        Raises:
            Fault: There is nothing of the kind.
        """
        token = self.token
        following = self.ahead()
        same_line = not self.begins_line(1)
        if token.text in WORDS and same_line and following in ("name", "keyword", "(", "fn", "struct", "let"):
            found = WORDS[token.text]
            self.report(f"there is no '{token.text}'", (token.start, token.end), f"write {found}")
            return found
        if token.text in STATEMENTS and (following in _ENDS or following == "{" or following == "name"):
            raise self.fault(f"there is no '{token.text}'", STATEMENTS[token.text])
        return "name"

    def _value(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        if self.word in ("if", "{"):
            found: nodes.Expression = self.branch() if self.word == "if" else self.block()
            if self.word not in (".", "(", "[") or self.begins_line():
                if not self.take(";") and self.word == "}":
                    return found
                statements.append(nodes.Evaluate(found, found.span))
                return None
            found = self.followed(found)
        else:
            found = self.expression()
        if self.take(";"):
            statements.append(nodes.Evaluate(found, (found.span[0], self.last_end)))
            return None
        if self.may_begin():
            return found
        if self.word == "=":
            help_ = "elements of a tensor and fields of a struct never change: make a new one"
            raise self.fault("only a variable can be given a value", help_)
        raise self._no_end(found)

    def _unended_line(self) -> None:
        if not self.silent():
            self.report("a semicolon is missing", (self.last_end, self.last_end + 1), _SEMICOLON)

    def _no_end(self, found: nodes.Expression | None = None) -> Fault:
        """Report what stands where a statement should end, and return what ends the reading of it."""
        help_ = _SEMICOLON
        if self.word == ":" and isinstance(found, nodes.Name):
            help_ = f"write let {found.text}: T = value;"
        if self.word in (")", "]"):
            help_ = f"'{self.word}' closes nothing: leave it out"
        return self.expected("';' or an operator", help_)

    def may_begin(self) -> bool:
        """Return whether a statement may begin, or the block end, although no semicolon came."""
        return self.word in BEGINNINGS or self.word in ("}", "end") or self.begins_line()

    def end(self, start: int) -> nodes.Span:
        """Read the semicolon that ends a statement, and return the statement's span.

        Raises:
            Fault: The statement goes on in a way that cannot be read.
        """
        if not self.take(";"):
            if not self.may_begin():
                raise self._no_end()
            self._unended_line()
        return (start, self.last_end)

    # Statements that begin with a word, and assignments

    def let(self) -> nodes.Let:
        """Read a ``let``; where its value is wrong, its names are declared nevertheless.

        Raises:
            Fault: There is no name.
        """
        first = self.advance()
        if self.token.text == "mut" and self.ahead() in ("name", "("):
            self.report("there is no 'mut'", (self.token.start, self.token.end), "every variable may change")
            self.advance()
        depth = self.depth
        pattern = self.pattern()
        type_: nodes.Type | None = None
        try:
            type_ = self._let_type()
            if self.word in (":=", "=="):
                self.report(
                    f"expected '=', found '{self.word}'", (self.token.start, self.token.end), "write '='"
                )
                self.advance()
            elif not self.take("="):
                raise self.expected("'=' behind the name", "write let x = value;, or let x: T = value;")
            value = self.expression()
            return nodes.Let(pattern, type_, value, self.end(first.start))
        except Fault:
            self.depth, self.structs = depth, True
            self.skip_statement(first)
            end = self.last_end
            return nodes.Let(pattern, type_, nodes.Invalid((end, end)), (first.start, end))

    def _let_type(self) -> nodes.Type | None:
        if not self.take(":"):
            return None
        start, depth = self.token.start, self.depth
        try:
            return self.type()
        except Fault:
            self.depth = depth
            while self.word not in ("=", ";", "}", "end") and not self.begins_line():
                self.advance()
            if self.word != "=":
                raise
            return nodes.Invalid((start, max(start, self.last_end)))

    def _assign(self) -> nodes.Statement:
        first = self.token
        name = self.name("a variable")
        token = self.advance()
        span = (token.start, token.end)
        if token.text == ":=":
            self.report("there is no ':='", span, f"write let {name.text} = value;")
        elif token.text in UPDATES:
            help_ = f"write {name.text} = {name.text} {UPDATES[token.text]} value;"
            self.report(f"there is no '{token.text}'", span, help_)
        depth = self.depth
        try:
            value = self.expression()
            whole = self.end(first.start)
        except Fault:
            self.depth, self.structs = depth, True
            self.skip_statement(first)
            value, whole = nodes.Invalid((self.last_end, self.last_end)), (first.start, self.last_end)
        if token.text == ":=":
            return nodes.Let(name, None, value, whole)
        if token.text != "=":
            value = nodes.Invalid(value.span)
        return nodes.Assign(name, value, whole)

    def _return(self) -> nodes.Return:
        start = self.advance().start
        value = None if self.word in _ENDS else self.expression()
        return nodes.Return(value, self.end(start))

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
