"""Tokens of one statement to its syntax, by recursive descent.

The reference encoding, the grammar form and the function form share this grammar. The lexer (core_lexer.py)
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
from typing import TYPE_CHECKING, NoReturn

from mind_mlir.languages.core.syntax import (
    NO_RESULTS,
    Alias,
    Arguments,
    Attribute,
    BranchSyntax,
    Closing,
    Definition,
    Exit,
    Head,
    Label,
    Offsets,
    Outputs,
    PaddingSyntax,
    Parameters,
    Positional,
    TargetSyntax,
    Types,
)
from mind_mlir.languages.core.tokens import Token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mind_mlir.languages.core.syntax import Integers, RawValue, Syntax

#: The type of the token that stands behind the last one.
END = "$END"
_END = Token(END, "", 0, 0)


class Unexpected(Exception):  # noqa: N818 -- a control-flow signal that never reaches a user
    """Ends the reading of a statement at a token that may not stand there.

    Attributes:
        token: The token; of type `END` where the statement is over.
        wanted: The types of those that may.
    """

    def __init__(self, token: Token, wanted: frozenset[str]) -> None:
        super().__init__()
        self.token = token
        self.wanted = wanted


class StatementReader:
    """Reads one statement, a token ahead; its methods are named after the rules of the grammar."""

    __slots__ = ("_kind", "_token", "_tokens", "_wanted")

    def __init__(self, tokens: Iterable[Token]) -> None:
        """Begin with the first of ``tokens``."""
        self._tokens = iter(tokens)
        #: The types that have been looked for at this token.
        self._wanted: list[str] = []
        self._advance()

    def statement(self) -> Syntax:
        """Return the syntax of the statement, which is read to its end.

        Raises:
            Unexpected: A token may not stand where it does.
            TooManyArguments: No operation has so many attributes.
        """
        rule = _STATEMENTS.get(self._kind)
        if rule is None:
            self._wanted += _STATEMENTS
            self._fail()
        syntax = rule(self)
        if not self._at(END):
            self._fail()
        return syntax

    def value_statement(self) -> Definition | Alias:
        """Read a definition or an alias, which both begin with a value."""
        result, others = self._take("VALUE"), NO_RESULTS
        several = self._accept("_COMMA") is not None
        if several:
            others = self._values() or NO_RESULTS
        self._take("_EQUAL")
        opcode = self._accept("WORD")
        if opcode is not None:
            return self._definition(result, others, opcode)
        if several:
            self._fail()
        return Alias(result, self._take("VALUE"))

    def _definition(self, result: Token, others: Offsets, opcode: Token) -> Definition:
        callee = self._accept("SYMBOL")
        arguments = Arguments()
        if self._accept("_LPAR") is not None:
            self._arguments(arguments)
        named = self._braces()
        if named is not None:
            arguments.others += [(len(arguments.values) // 2, attribute) for _, attribute in named.others]
        self._take("_COLON")
        types = self._types()
        opens = self._accept("OPEN") is not None
        return Definition(result, others, opcode, callee, arguments, types, opens)

    def outputs(self) -> Outputs:
        """Read the outputs line."""
        keyword = self._take("WORD")
        self._take("_COLON")
        return Outputs(keyword, self._values())

    def head(self) -> Head:
        """Read the head of a function."""
        visibility = self._accept("VISIBILITY")
        self._take("FUNC")
        name = self._take("SYMBOL")
        self._take("_LPAR")
        parameters = self._parameters()
        types = self._types() if self._accept("_ARROW") is not None else Types()
        self._take("OPEN")
        return Head(visibility, name, parameters, types)

    def label(self) -> Label:
        """Read the label of a block."""
        name = self._take("LABEL")
        parameters = self._parameters() if self._accept("_LPAR") is not None else Parameters()
        self._take("_COLON")
        return Label(name, parameters)

    def branch(self) -> BranchSyntax:
        """Read a branch."""
        return BranchSyntax(self._take("BR"), None, (self._target(),))

    def cond_branch(self) -> BranchSyntax:
        """Read a conditional branch."""
        keyword, condition = self._take("COND_BR"), self._take("VALUE")
        self._take("_COMMA")
        target = self._target()
        self._take("_COMMA")
        return BranchSyntax(keyword, condition, (target, self._target()))

    def exit(self) -> Exit:
        """Read what ends a function or a region."""
        return Exit(self._take("EXIT"), self._values())

    def closing(self) -> Closing:
        """Read a brace that closes a body."""
        return Closing(self._take("CLOSE"))

    def _target(self) -> TargetSyntax:
        name = self._take("LABEL")
        if self._accept("_LPAR") is None:
            return TargetSyntax(name, Offsets())
        values = self._values()
        self._take("_RPAR")
        return TargetSyntax(name, values)

    def _values(self) -> Offsets:
        """Read values with commas between them, if there are any, and perhaps a comma behind."""
        values = Offsets()
        while (token := self._accept("VALUE")) is not None:
            values.extend((token.start_pos, token.end_pos))
            if self._accept("_COMMA") is None:
                break
        return values

    def _types(self) -> Integers:
        token = self._accept("TYPE")
        if token is not None:
            return array("q", (token.start_pos, token.end_pos))
        self._take("_LPAR")
        types = Types()
        while self._accept("_RPAR") is None:
            token = self._take("TYPE")
            types.extend((token.start_pos, token.end_pos))
            if self._accept("_COMMA") is None:
                self._take("_RPAR")
                break
        return types

    def _parameters(self) -> Parameters:
        """Read parameters to their closing parenthesis."""
        parameters = Parameters()
        while self._accept("_RPAR") is None:
            value, attributes = self._take("VALUE"), self._braces()
            self._take("_COLON")
            type_ = self._take("TYPE")
            if attributes is not None:
                parameters.attributes[len(parameters.offsets) // 4] = attributes
            parameters.offsets.extend((value.start_pos, value.end_pos, type_.start_pos, type_.end_pos))
            if self._accept("_COMMA") is None:
                self._take("_RPAR")
                break
        return parameters

    def _arguments(self, arguments: Arguments) -> None:
        """Read operands and attributes to their closing parenthesis."""
        while self._accept("_RPAR") is None:
            arguments.append(self._argument())
            if self._accept("_COMMA") is None:
                self._take("_RPAR")
                break

    def _argument(self) -> Token | Positional | Attribute:
        token = self._accept("VALUE")
        if token is not None:
            return token
        name = self._accept("WORD", "STRING")
        if name is None:
            return Positional(self._value())
        if self._accept("_EQUAL", "_COLON") is not None:
            return Attribute(name, self._value())
        return Positional(self._word_value(name))

    def _braces(self) -> Arguments | None:
        """Read attributes in braces; without any, there is nothing."""
        if self._accept("_LBRACE") is None:
            return None
        attributes: Arguments | None = None
        while self._accept("_RBRACE") is None:
            name = self._take("WORD", "STRING")
            self._take("_EQUAL", "_COLON")
            attributes = attributes or Arguments()
            attributes.append(Attribute(name, self._value()))
            if self._accept("_COMMA") is None:
                self._take("_RBRACE")
                break
        return attributes

    def _value(self) -> RawValue:
        return self._word_value(self._take("WORD", "NUMBER", "STRING", "LIST"))

    def _word_value(self, token: Token) -> RawValue:
        """Return a value that begins with ``token``: that alone, or a word and pairs in parentheses."""
        if token.type != "WORD" or self._accept("_LPAR") is None:
            return token
        pairs = self._take("LIST")
        self._accept("_COMMA")
        self._take("_RPAR")
        return PaddingSyntax(token, pairs)

    def _advance(self) -> None:
        self._token = next(self._tokens, _END)
        self._kind = self._token.type
        self._wanted.clear()

    def _at(self, kind: str) -> bool:
        """Return whether a token of ``kind`` comes next."""
        if self._kind == kind:
            return True
        self._wanted.append(kind)
        return False

    def _accept(self, *kinds: str) -> Token | None:
        """Take the next token where it is of one of these types."""
        if self._kind not in kinds:
            self._wanted += kinds
            return None
        token = self._token
        self._advance()
        return token

    def _take(self, *kinds: str) -> Token:
        """Take the next token, which must be of one of these types."""
        token = self._accept(*kinds)
        if token is None:
            self._fail()
        return token

    def _fail(self) -> NoReturn:
        raise Unexpected(self._token, frozenset(self._wanted))


#: What reads a statement, by the type of its first token.
_STATEMENTS: Mapping[str, Callable[[StatementReader], Syntax]] = {
    "VALUE": StatementReader.value_statement,
    "WORD": StatementReader.outputs,
    "VISIBILITY": StatementReader.head,
    "FUNC": StatementReader.head,
    "LABEL": StatementReader.label,
    "BR": StatementReader.branch,
    "COND_BR": StatementReader.cond_branch,
    "EXIT": StatementReader.exit,
    "CLOSE": StatementReader.closing,
}
