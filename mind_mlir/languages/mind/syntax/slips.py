"""Tables of spellings from other languages, with what to write instead."""

from __future__ import annotations

#: How tightly operators bind; those of one level go from left to right.
LEVELS = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), 3),
    "+": 4,
    "-": 4,
    "*": 5,
    "/": 5,
}
COMPARISON = 3
_PRODUCT = 5

#: Operators of other languages -> how tightly they bind there, and what to write.
OPERATORS = {
    "%": (_PRODUCT, "write remainder(a, b), of import tensor::remainder;"),
    "**": (_PRODUCT, "write pow(a, b), of import math::pow;"),
    "^": (_PRODUCT, "write pow(a, b), of import math::pow;"),
    "&": (2, "write '&&' for truth values"),
    "|": (1, "write '||' for truth values"),
    "..": (1, "write range(a, b), and a:b between brackets"),
    "..=": (1, "write range(a, b + 1), and a:b + 1 between brackets"),
}
#: Words that are operators elsewhere.
OPERATOR_WORDS = {"and": "&&", "or": "||"}
#: Assignments of other languages, and the operators in them.
UPDATES = {"+=": "+", "-=": "-", "*=": "*", "/=": "/"}
#: Words of other languages at the beginning of a statement or an item -> what is read in their place.
WORDS = {
    "var": "let",
    "const": "let",
    "val": "let",
    "def": "fn",
    "func": "fn",
    "function": "fn",
    "fun": "fn",
    "pub": "export",
    "public": "export",
    "use": "import",
    "class": "struct",
    "record": "struct",
}
#: Words of other languages that begin a statement which cannot be read -> what to write.
STATEMENTS = {
    "from": "write import math::sqrt;",
    "loop": "write while c { ... }",
    "match": "write if a == b { ... } else { ... }",
    "switch": "write if a == b { ... } else { ... }",
    "break": "make what ends the loop its condition: while c { ... }",
    "continue": "put what follows into an if",
    "pass": "leave it out: a block may be empty",
    "del": "leave it out: values need no end",
    "assert": "leave it out: there are no assertions",
    "elif": "write else if",
}
#: Words that no expression begins with -> what to write.
NO_EXPRESSIONS = {
    ".": "a number has a digit before its point: 0.5",
    "=>": "write if c { a } else { b }",
    ":=": "write let x = value;",
    "=": "compare with '=='; a variable is given a value in a statement of its own",
    "->": "a closure does not say what it returns: |x| x + 1.0",
    "fn": "functions without a name are closures: |x| x + 1.0",
    "else": "else stands directly behind the block of an if",
}
