"""Reads statements and blocks (surface.md, "Programs")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.syntax import nodes
from mind_mlir.languages.mind.syntax.cursor import BEGINNINGS, Fault, MindCursor
from mind_mlir.languages.mind.syntax.expressions import ExpressionReader
from mind_mlir.languages.mind.syntax.slips import STATEMENTS, UPDATES, WORDS

if TYPE_CHECKING:
    from mind_mlir.languages.mind.syntax.lists import ListReader
    from mind_mlir.languages.mind.syntax.types import TypeReader

_ASSIGNMENTS = frozenset(("=", ":=", *UPDATES))
_ENDS = frozenset((";", "}", "end"))
_SEMICOLON = "end the statement with ';'"


class StatementReader:
    """Reads statements and blocks."""

    def __init__(
        self,
        cursor: MindCursor,
        lists: ListReader,
        types: TypeReader,
        function: Callable[[], nodes.Statement],
    ) -> None:
        """Read with parts of one reader; ``function`` reads the functions in blocks."""
        self.cursor = cursor
        self.expressions = ExpressionReader(cursor, lists, types, self.block)
        self._operands = self.expressions.operands
        self._types = types
        self._function = function

    def block(self) -> nodes.Block:
        """Read a block; what is wrong with a statement of it costs no other.

        Raises:
            Fault: There is none.
        """
        cursor = self.cursor
        start = cursor.token.start
        if cursor.word != "{":
            cursor.lacking.append(start)
            raise cursor.expected("'{'")
        cursor.advance()
        outer, cursor.structs = cursor.structs, True
        statements: list[nodes.Statement] = []
        value: nodes.Expression | None = None
        cursor.deeper()
        while cursor.word not in ("}", "end"):
            if value is not None:
                statements.append(self._unended(value))
            value = self._statement(statements)
        cursor.depth -= 1
        cursor.structs = outer
        cursor.advance()
        return nodes.Block(statements, value, (start, cursor.last_end))

    def unopened(self) -> nodes.Block:
        """Read a function's block whose first brace is missing, to where the next item begins."""
        cursor = self.cursor
        start = cursor.token.start
        statements: list[nodes.Statement] = []
        value: nodes.Expression | None = None
        while cursor.word not in ("}", "end") and not cursor.at_margin():
            if value is not None:
                statements.append(self._unended(value))
            value = self._statement(statements)
        cursor.accept("}")
        return nodes.Block(statements, value, (start, max(start, cursor.last_end)))

    def _unended(self, value: nodes.Expression) -> nodes.Statement:
        """Return the statement that ``value`` is, whose semicolon is missing."""
        if not isinstance(value, (nodes.If, nodes.Block, nodes.Invalid)):
            self._unended_line()
        return nodes.Evaluate(value, value.span)

    def _statement(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        """Read a statement, or an expression that may be the value of its block, which is returned."""
        cursor = self.cursor
        if cursor.accept(";"):
            return None
        depth, first = cursor.depth, cursor.token
        try:
            return self._read(statements)
        except Fault:
            cursor.depth, cursor.structs = depth, True
            if cursor.token is first and cursor.word not in _ENDS:
                cursor.advance()
            cursor.skip_statement(first)
            return nodes.Invalid((first.start, max(first.start, cursor.last_end)))

    def _read(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        cursor = self.cursor
        word = cursor.word
        if word == "name":
            word = self.foreign_word()
        if word in BEGINNINGS:
            statements.append(self._keyword(word))
            return None
        if word == "else":
            if statements and isinstance(statements[-1], nodes.Evaluate) and not self._lone_else(statements):
                raise Fault
            raise cursor.fault("'else' without an if", "write it directly behind the block of an if")
        if word == "name" and cursor.ahead() in ("+", "-") and cursor.ahead(2) == cursor.ahead():
            self._counting()
        if word == "name" and cursor.ahead() in _ASSIGNMENTS:
            statements.append(self._assign())
            return None
        return self._value(statements)

    def _counting(self) -> None:
        """Refuse ``x++;``.

        Raises:
            Fault: That is what stands here.
        """
        cursor = self.cursor
        sign, second, third = cursor.ahead(), cursor.tokens[cursor.place + 2], cursor.ahead(3)
        if third in _ENDS and cursor.tokens[cursor.place + 1].end == second.start:
            name = cursor.token.text
            cursor.advance()
            span = (cursor.token.start, second.end)
            cursor.report(f"there is no '{sign}{sign}'", span, f"write {name} = {name} {sign} 1;")
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
            "fn": self._function,
        }
        if word not in readers:
            raise self.cursor.fault(f"'{word}' stands at the top of a file", "move it out of the function")
        return readers[word]()

    def foreign_word(self) -> str:
        """Report a word of another language that begins a statement there; return what is read instead.

        Raises:
            Fault: There is nothing of the kind.
        """
        cursor = self.cursor
        token = cursor.token
        following = cursor.ahead()
        same_line = not cursor.begins_line(1)
        if token.text in WORDS and same_line and following in ("name", "keyword", "(", "fn", "struct", "let"):
            found = WORDS[token.text]
            cursor.report(f"there is no '{token.text}'", token.span, f"write {found}")
            return found
        if token.text in STATEMENTS and (following in _ENDS or following == "{" or following == "name"):
            raise cursor.fault(f"there is no '{token.text}'", STATEMENTS[token.text])
        return "name"

    def _value(self, statements: list[nodes.Statement]) -> nodes.Expression | None:
        cursor = self.cursor
        if cursor.word in ("if", "{"):
            found: nodes.Expression = self._operands.branch() if cursor.word == "if" else self.block()
            if cursor.word not in (".", "(", "[") or cursor.begins_line():
                if not cursor.accept(";") and cursor.word == "}":
                    return found
                statements.append(nodes.Evaluate(found, found.span))
                return None
            found = self.expressions.followed(found)
        else:
            found = self.expressions.expression()
        if cursor.accept(";"):
            statements.append(nodes.Evaluate(found, (found.span[0], cursor.last_end)))
            return None
        if self.may_begin():
            return found
        if cursor.word == "=":
            help_ = "elements of a tensor and fields of a struct never change: make a new one"
            raise cursor.fault("only a variable can be given a value", help_)
        raise self._no_end(found)

    def _unended_line(self) -> None:
        cursor = self.cursor
        if not cursor.silent():
            cursor.report("a semicolon is missing", (cursor.last_end, cursor.last_end + 1), _SEMICOLON)

    def _no_end(self, found: nodes.Expression | None = None) -> Fault:
        """Report what stands where a statement should end, and return what ends the reading of it."""
        cursor = self.cursor
        help_ = _SEMICOLON
        if cursor.word == ":" and isinstance(found, nodes.Name):
            help_ = f"write let {found.text}: T = value;"
        if cursor.word in (")", "]"):
            help_ = f"'{cursor.word}' closes nothing: leave it out"
        return cursor.expected("';' or an operator", help_)

    def may_begin(self) -> bool:
        """Return whether a statement may begin, or the block end, although no semicolon came."""
        cursor = self.cursor
        return cursor.word in BEGINNINGS or cursor.word in ("}", "end") or cursor.begins_line()

    def end(self, start: int) -> nodes.Span:
        """Read the semicolon that ends a statement, and return the statement's span.

        Raises:
            Fault: The statement goes on in a way that cannot be read.
        """
        cursor = self.cursor
        if not cursor.accept(";"):
            if not self.may_begin():
                raise self._no_end()
            self._unended_line()
        return (start, cursor.last_end)

    # Statements that begin with a word, and assignments

    def let(self) -> nodes.Let:
        """Read a ``let``; where its value is wrong, its names are declared nevertheless.

        Raises:
            Fault: There is no name.
        """
        cursor = self.cursor
        first = cursor.advance()
        if cursor.token.text == "mut" and cursor.ahead() in ("name", "("):
            cursor.report("there is no 'mut'", cursor.token.span, "every variable may change")
            cursor.advance()
        depth = cursor.depth
        pattern = self._types.pattern()
        type_: nodes.Type | None = None
        try:
            type_ = self._let_type()
            if cursor.word in (":=", "=="):
                cursor.report(f"expected '=', found '{cursor.word}'", cursor.token.span, "write '='")
                cursor.advance()
            elif not cursor.accept("="):
                raise cursor.expected("'=' behind the name", "write let x = value;, or let x: T = value;")
            value = self.expressions.expression()
            return nodes.Let(pattern, type_, value, self.end(first.start))
        except Fault:
            cursor.depth, cursor.structs = depth, True
            cursor.skip_statement(first)
            end = cursor.last_end
            return nodes.Let(pattern, type_, nodes.Invalid((end, end)), (first.start, end))

    def _let_type(self) -> nodes.Type | None:
        cursor = self.cursor
        if not cursor.accept(":"):
            return None
        start, depth = cursor.token.start, cursor.depth
        try:
            return self._types.type()
        except Fault:
            cursor.depth = depth
            while cursor.word not in ("=", ";", "}", "end") and not cursor.begins_line():
                cursor.advance()
            if cursor.word != "=":
                raise
            return nodes.Invalid((start, max(start, cursor.last_end)))

    def _assign(self) -> nodes.Statement:
        cursor = self.cursor
        first = cursor.token
        name = cursor.name("a variable")
        token = cursor.advance()
        span = token.span
        if token.text == ":=":
            cursor.report("there is no ':='", span, f"write let {name.text} = value;")
        elif token.text in UPDATES:
            help_ = f"write {name.text} = {name.text} {UPDATES[token.text]} value;"
            cursor.report(f"there is no '{token.text}'", span, help_)
        value, whole = cursor.attempt(
            lambda: (self.expressions.expression(), self.end(first.start)),
            lambda: cursor.skip_statement(first),
        ) or (nodes.Invalid((cursor.last_end, cursor.last_end)), (first.start, cursor.last_end))
        if token.text == ":=":
            return nodes.Let(name, None, value, whole)
        if token.text != "=":
            value = nodes.Invalid(value.span)
        return nodes.Assign(name, value, whole)

    def _return(self) -> nodes.Return:
        cursor = self.cursor
        start = cursor.advance().start
        value = None if cursor.word in _ENDS else self.expressions.expression()
        return nodes.Return(value, self.end(start))

    def _while(self) -> nodes.While:
        cursor = self.cursor
        start = cursor.advance().start
        condition = self._operands.condition("while")
        body = self.block()
        cursor.accept(";")
        return nodes.While(condition, body, (start, cursor.last_end))

    def _for(self) -> nodes.For:
        cursor = self.cursor
        start = cursor.advance().start
        variable = cursor.name("the variable of the loop")
        if not cursor.accept("in"):
            cursor.fail("'in' behind the variable", "write for i in range(n) { ... }")
        iterable = self._operands.condition("for")
        body = self.block()
        cursor.accept(";")
        return nodes.For(variable, iterable, body, (start, cursor.last_end))
