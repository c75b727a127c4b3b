"""Tokens of one statement to its syntax, by recursive descent.

The reference encoding, the grammar form and the function form share this grammar. The lexer (lexer.py)
makes the tokens: a bracketed list and a tensor type are one token each.

    statement   ::= definition | alias | outputs | head | label | branch | cond_branch | exit | closing
    definition  ::= VALUE ("," values?)? "=" WORD SYMBOL? call? braces? ":" types OPEN?
    alias       ::= VALUE "=" VALUE
    outputs     ::= WORD ":" values?
    head        ::= VISIBILITY? FUNC SYMBOL "(" parameters? ")" ("->" types)? OPEN
    label       ::= LABEL ("(" parameters? ")")? ":"
    branch      ::= BR target
    cond_branch ::= COND_BR VALUE "," target "," target
    target      ::= LABEL ("(" values? ")")?
    exit        ::= EXIT values?
    closing     ::= CLOSE
    values      ::= VALUE ("," VALUE)* ","?
    types       ::= TYPE | "(" (TYPE ("," TYPE)* ","?)? ")"
    parameters  ::= parameter ("," parameter)* ","?
    parameter   ::= VALUE braces? ":" TYPE
    call        ::= "(" (argument ("," argument)* ","?)? ")"
    argument    ::= VALUE | value | attribute
    braces      ::= "{" (attribute ("," attribute)* ","?)? "}"
    attribute   ::= (WORD | STRING) ("=" | ":") value
    value       ::= WORD | NUMBER | STRING | LIST | WORD "(" LIST ","? ")"
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from mind_mlir.languages.core.syntax import (
    MAX_ATTRIBUTES,
    NO_RESULTS,
    Arguments,
    Attribute,
    BranchSyntax,
    Closing,
    Definition,
    Exit,
    Head,
    Label,
    Outputs,
    PaddingSyntax,
    Parameters,
    TargetSyntax,
    ValueAlias,
    no_offsets,
)
from mind_mlir.languages.text.cursor import Cursor, Token

if TYPE_CHECKING:
    from mind_mlir.languages.core.syntax import Offsets, RawValue, Syntax

#: The kind of the token that stands behind the last one.
END = "$END"
_END = Token(END, "", 0, 0)
_NAMES = ("WORD", "STRING")
_VALUES = ("WORD", "NUMBER", "STRING", "LIST")


class Unexpected(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends the reading of a statement at a token that may not stand there.

    Attributes:
        token: The token; of kind `END` where the statement is over.
        wanted: The kinds of those that may.
    """

    def __init__(self, token: Token, wanted: frozenset[str]) -> None:
        super().__init__()
        self.token = token
        self.wanted = wanted


class TooManyArguments(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends the reading of a statement that has more attributes than any operation."""


class CoreStatementReader(Cursor):
    """Reads one statement, a token ahead; its methods are named after the rules of the grammar."""

    __slots__ = ("_tokens", "_wanted")

    def __init__(self, tokens: Iterable[Token]) -> None:
        """Begin with the first of ``tokens``."""
        self._tokens = iter(tokens)
        #: The kinds that have been looked for at this token.
        self._wanted: list[str] = []
        self.token = next(self._tokens, _END)
        self.word = self.token.kind

    def advance(self) -> Token:
        """Go behind the next token, and return it."""
        token = self.token
        self.token = next(self._tokens, _END)
        self.word = self.token.kind
        self._wanted.clear()
        return token

    def accept(self, *words: str) -> Token | None:
        """Take the next token if it is of one of these kinds, which are noted as wanted."""
        if self.word in words:
            return self.advance()
        self._wanted += words
        return None

    def expected(self, what: str, help_: str | None = None) -> Unexpected:
        """Return what ends the reading of the statement; what was wanted is worded later."""
        return Unexpected(self.token, frozenset(self._wanted))

    def _take(self, *words: str) -> Token:
        """Take the next token, which must be of one of these kinds."""
        return self.accept(*words) or self.fail()

    def statement(self) -> Syntax:
        """Return the syntax of the statement, which is read to its end.

        Raises:
            Unexpected: A token may not stand where it does.
            TooManyArguments: No operation has so many attributes.
        """
        rule = _STATEMENTS.get(self.word)
        if rule is None:
            self._wanted += _STATEMENTS
            self.fail()
        syntax = rule(self)
        if self.word != END:
            self._wanted.append(END)
            self.fail()
        return syntax

    def _value_statement(self) -> Definition | ValueAlias:
        result, others = self._take("VALUE"), NO_RESULTS
        several = self.accept(",") is not None
        if several:
            others = self._values() or NO_RESULTS
        self._take("=")
        opcode = self.accept("WORD")
        if opcode is not None:
            return self._definition(result, others, opcode)
        if several:
            self.fail()
        return ValueAlias(result, self._take("VALUE"))

    def _definition(self, result: Token, others: Offsets, opcode: Token) -> Definition:
        callee = self.accept("SYMBOL")
        arguments = Arguments()
        if self.accept("(") is not None:
            for _ in self.separated(")"):
                self._argument(arguments)
        named = self._braces()
        if named is not None:
            arguments.others += [(len(arguments.values) // 2, attribute) for _, attribute in named.others]
        self._take(":")
        types = self._types()
        opens = self.accept("OPEN") is not None
        return Definition(result, others, opcode, callee, arguments, types, opens)

    def _outputs(self) -> Outputs:
        keyword = self._take("WORD")
        self._take(":")
        return Outputs(keyword, self._values())

    def _head(self) -> Head:
        visibility = self.accept("VISIBILITY")
        self._take("FUNC")
        name = self._take("SYMBOL")
        self._take("(")
        parameters = self._parameters()
        types = self._types() if self.accept("->") is not None else no_offsets()
        self._take("OPEN")
        return Head(visibility, name, parameters, types)

    def _label(self) -> Label:
        name = self._take("LABEL")
        parameters = self._parameters() if self.accept("(") is not None else Parameters(no_offsets(), {})
        self._take(":")
        return Label(name, parameters)

    def _branch(self) -> BranchSyntax:
        self._take("BR")
        return BranchSyntax(None, (self._target(),))

    def _cond_branch(self) -> BranchSyntax:
        self._take("COND_BR")
        condition = self._take("VALUE")
        self._take(",")
        target = self._target()
        self._take(",")
        return BranchSyntax(condition, (target, self._target()))

    def _exit(self) -> Exit:
        return Exit(self._take("EXIT"), self._values())

    def _closing(self) -> Closing:
        return Closing(self._take("CLOSE"))

    def _target(self) -> TargetSyntax:
        name = self._take("LABEL")
        if self.accept("(") is None:
            return TargetSyntax(name, no_offsets())
        values = self._values()
        self._take(")")
        return TargetSyntax(name, values)

    def _values(self) -> Offsets:
        """Read values with commas between them, if there are any, and perhaps a comma behind."""
        values = no_offsets()
        while (token := self.accept("VALUE")) is not None:
            values.extend(token.span)
            if self.accept(",") is None:
                break
        return values

    def _types(self) -> Offsets:
        token = self.accept("TYPE")
        if token is not None:
            return array("q", token.span)
        self._take("(")
        types = no_offsets()
        for _ in self.separated(")"):
            types.extend(self._take("TYPE").span)
        return types

    def _parameters(self) -> Parameters:
        """Read parameters to their closing parenthesis."""
        parameters = Parameters(no_offsets(), {})
        for index, _ in enumerate(self.separated(")")):
            value, attributes = self._take("VALUE"), self._braces()
            self._take(":")
            if attributes is not None:
                parameters.attributes[index] = attributes
            parameters.offsets.extend((*value.span, *self._take("TYPE").span))
        return parameters

    def _argument(self, arguments: Arguments) -> None:
        """Read an operand or an attribute."""
        token = self.accept("VALUE")
        if token is not None:
            arguments.values.extend(token.span)
            return
        name = self.accept(*_NAMES)
        if name is None:
            self._add(arguments, None, self._value())
        elif self.accept("=", ":") is not None:
            self._add(arguments, name, self._value())
        else:
            self._add(arguments, None, self._word_value(name))

    def _add(self, arguments: Arguments, name: Token | None, value: RawValue) -> None:
        if len(arguments.others) == MAX_ATTRIBUTES:
            raise TooManyArguments
        arguments.others.append((len(arguments.values) // 2, Attribute(name, value)))

    def _braces(self) -> Arguments | None:
        """Read attributes in braces; without any, there is nothing."""
        if self.accept("{") is None:
            return None
        attributes: Arguments | None = None
        for _ in self.separated("}"):
            name = self._take(*_NAMES)
            self._take("=", ":")
            attributes = attributes or Arguments()
            self._add(attributes, name, self._value())
        return attributes

    def _value(self) -> RawValue:
        return self._word_value(self._take(*_VALUES))

    def _word_value(self, token: Token) -> RawValue:
        """Return a value that begins with ``token``: that alone, or a word and pairs in parentheses."""
        if token.kind != "WORD" or self.accept("(") is None:
            return token
        pairs = self._take("LIST")
        self.accept(",")
        self._take(")")
        return PaddingSyntax(token, pairs)


#: What reads a statement, by the kind of its first token.
_STATEMENTS: Mapping[str, Callable[[CoreStatementReader], Syntax]] = {
    "VALUE": CoreStatementReader._value_statement,
    "WORD": CoreStatementReader._outputs,
    "VISIBILITY": CoreStatementReader._head,
    "FUNC": CoreStatementReader._head,
    "LABEL": CoreStatementReader._label,
    "BR": CoreStatementReader._branch,
    "COND_BR": CoreStatementReader._cond_branch,
    "EXIT": CoreStatementReader._exit,
    "CLOSE": CoreStatementReader._closing,
}
