"""The page of the grammar and the functions: `python -m mind_mlir.languages.mind.elaboration.reference`.

Words and functions are those of the code; tests derive programs from the grammar, and the reader takes them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mind_mlir.languages.mind.elaboration.builtins import (
    CONSTANTS,
    DERIVATIVES,
    PRINT_NAME,
    builtins,
    default,
    modules,
)
from mind_mlir.languages.mind.elaboration.types import DTYPES
from mind_mlir.languages.mind.syntax.tokens import KEYWORDS

if TYPE_CHECKING:
    from mind_mlir.languages.mind.elaboration.values import Builtin
    from mind_mlir.ops.opdef import AttributeDef, OpDef

#: What the reader takes, in EBNF: ``[ ]`` is optional, ``{ }`` any number of times, ``( )`` groups.
GRAMMAR = """\
program    = { item } ;
item       = import | [ "export" ] function | [ "export" ] struct | [ "export" ] alias | let ;
import     = "import" name [ "::" ( name | "{" [ name { "," name } [ "," ] ] "}" ) ] ";" ;
struct     = "struct" name "{" [ parameter { "," parameter } [ "," ] ] "}" ;
alias      = "type" name "=" type ";" ;
function   = "fn" name "(" [ parameter { "," parameter } [ "," ] ] ")" [ "->" type ] block ;
parameter  = name ":" type ;

type       = name | "Tensor" "<" name "," "[" [ dimension { "," dimension } ] "]" ">" | tuple_type ;
tuple_type = "(" ")" | "(" type "," [ type { "," type } [ "," ] ] ")" ;
dimension  = name | integer ;

block      = "{" { statement } [ plain | if ] "}" ;
statement  = let | assign | return | while | for | function | if | plain ";" ;
plain      = expression ;
let        = "let" pattern [ ":" type ] "=" expression ";" ;
assign     = name "=" expression ";" ;
return     = "return" [ expression ] ";" ;
while      = "while" condition block ;
for        = "for" name "in" condition block ;
pattern    = name | "(" pattern "," [ pattern { "," pattern } [ "," ] ] ")" ;

expression = or | closure ;
closure    = "|" [ closed { "," closed } [ "," ] ] "|" expression ;
closed     = name [ ":" type ] ;
or         = and { "||" and } ;
and        = comparison { "&&" comparison } ;
comparison = sum [ ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum ] ;
sum        = product { ( "+" | "-" ) product } ;
product    = unary { ( "*" | "/" ) unary } ;
unary      = { "-" | "!" } postfix ;
postfix    = primary { call | index | "." name | "." integer } ;
call       = "(" [ argument { "," argument } [ "," ] ] ")" ;
argument   = [ name "=" ] expression ;
index      = "[" part { "," part } [ "," ] "]" ;
part       = expression | [ expression ] ":" [ expression ] [ ":" [ expression ] ] ;
primary    = name | number | string | "true" | "false" | list | tuple | literal | if | block ;
list       = "[" [ expression { "," expression } [ "," ] ] "]" ;
tuple      = "(" ")" | "(" expression ")" | "(" expression "," [ expression { "," expression } [ "," ] ] ")" ;
literal    = name "{" [ value { "," value } [ "," ] ] "}" ;
value      = name [ ":" expression ] ;
if         = "if" condition block [ "else" ( block | if ) ] ;
condition  = expression ;
"""

_INTRODUCTION = """\
# Grammar and functions of the language

Made of the code by `make docs`; [the tour](language.md) explains what is here. Tests derive programs from
this grammar, and the reader takes them.

"""

_WORDS = """\
A name begins with a letter or `_`, and goes on with letters, digits and `_`, all of them as Unicode has
them. An integer is decimal, `0x`, `0b` or `0o`; a number may be one, or have a point, an exponent or
both: `1.5`, `1.`, `1e-3`. `_` may stand between digits. A string stands between `"`, and has the escapes
`\\n`, `\\r`, `\\t`, `\\\\` and `\\"`. Comments are `// to the end of the line` and `/* enclosed */`; they
do not nest. In a condition, a `literal` stands in parentheses or brackets only. A `plain` expression does
not begin with `if` or `{`: a statement that does ends with its last block.
"""

_ABOUT_FUNCTIONS = """\

## Functions

Tensors come first, then what must be known when the program is compiled, by place or by name; with a
value behind `=` it may be left out. Functions with a dagger (†) are no part of Core v1: programs with
them become functions of Core IR. `mind-mlir ops` says all about each operation.

| function | in | what it is |
| --- | --- | --- |
"""

_CONSTANTS = {
    "zeros": ("zeros(shape, dtype=f32)", "A tensor of zeros."),
    "ones": ("ones(shape, dtype=f32)", "A tensor of ones."),
    "full": ("full(shape, value, dtype=f32)", "A tensor of one value, which may be computed."),
    "eye": ("eye(n, m=n, dtype=f32)", "The identity matrix."),
}
_PRINTS = {
    PRINT_NAME: (
        'print("x = {}, y = {y:.3f}", x, y=y)',
        "Prints when the program comes by, as [the page on debugging](debugging.md#prints) says.",
    )
}
_DERIVATIVES = {
    "grad": ("grad(f)", "The gradient of `f` with respect to its first argument, as a function."),
    "value_and_grad": (
        "value_and_grad(f)",
        "The pair of `f` and its gradient, as one function.",
    ),
    "vjp": (
        "vjp(f)",
        "As a function, `f` and what takes a cotangent of its result to those of the arguments.",
    ),
}


def page() -> str:
    """Return the page as Markdown."""
    assert {*_CONSTANTS} == {*CONSTANTS}, "every constant is described"
    assert {*_DERIVATIVES} == {*DERIVATIVES}, "every derivative is described"
    return "".join([_INTRODUCTION, *_grammar(), *_functions()])


def _grammar() -> Iterator[str]:
    yield f"## Grammar\n\n```ebnf\n{GRAMMAR}```\n\n{_WORDS}\n"
    yield f"Keywords: {_listed(sorted(KEYWORDS))}. Types of elements: {_listed(DTYPES)}.\n"


def _functions() -> Iterator[str]:
    yield _ABOUT_FUNCTIONS
    for name, found in sorted(builtins().items()):
        homes = ", ".join(f"`{module}`" for module, names in sorted(modules().items()) if name in names)
        signature, summary = described(name)
        dagger = " †" if found.record is not None and found.record.extension else ""
        yield f"| `{signature}`{dagger} | {homes} | {summary} |\n"


def described(name: str) -> tuple[str, str]:
    """Return how a built-in function is called, and what it is in one line."""
    found = builtins()[name]
    if found.record is None:
        return {**_CONSTANTS, **_DERIVATIVES, **_PRINTS}[name]
    return f"{name}({', '.join(_parameters(found, found.record))})", found.record.summary


def _parameters(builtin: Builtin, record: OpDef) -> Iterator[str]:
    for operand in record.operands:
        yield f"...{operand.name}" if operand.variadic else operand.name
    for attribute in record.attributes:
        if attribute.name not in builtin.preset:
            yield attribute.name + _default(record, attribute)


def _default(record: OpDef, attribute: AttributeDef) -> str:
    if attribute.default is not None:
        found = attribute.default
        return f"={str(found).lower()}" if isinstance(found, bool) else f"={_spelled(found)}"
    chosen = default(record, attribute)
    return "" if chosen is None else f"={chosen.words}"


def _spelled(found: object) -> str:
    return f"[{', '.join(map(_spelled, found))}]" if isinstance(found, tuple) else str(found)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    sys.stdout.write(page())
