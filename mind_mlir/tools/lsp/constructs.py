"""What the words of the surface language mean, for those who point at one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mind_mlir.ir.types import DType
from mind_mlir.languages.mind.elaboration.builtins import modules
from mind_mlir.languages.mind.elaboration.types import DTYPES

#: By keyword: how it is written, and what it does.
CONSTRUCTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "fn": (
            "fn name(x: T, y: U) -> V { ... }",
            "A function. Its value is the last expression of its block, which no semicolon follows.",
        ),
        "let": (
            "let name: T = value;",
            "Declares a variable; the type may be left out. A tuple is taken apart by `let (a, b) = t;`. At "
            "the top of a file it declares a constant, which is a literal.",
        ),
        "return": ("return value;", "Leaves the function with a value."),
        "if": (
            "if condition { a } else { b }",
            "Takes one of two ways, and is worth the value of the block that is taken.",
        ),
        "else": ("if condition { a } else { b }", "The way that is taken where the condition does not hold."),
        "while": ("while condition { ... }", "Repeats a block while a condition holds."),
        "for": (
            "for i in range(start, end, step) { ... }",
            "Repeats a block for each number of a range; `range(end)` begins with 0. The step is known when "
            "the program is compiled.",
        ),
        "in": ("for i in range(n) { ... }", "Stands between the variable of a loop and its range."),
        "import": (
            "import module::name;",
            "Takes a name from one of the modules `tensor`, `math` and `diff`. Built-in functions can be "
            "called without it.",
        ),
        "export": (
            "export fn name(x: T) -> U { ... }",
            "Lets a function be called from outside: a module of the program has those that are exported.",
        ),
        "struct": (
            "struct Name { field: T, other: U }",
            "A type with named fields. `Name { field: a, other: b }` makes a value of it.",
        ),
        "type": ("type Name = T;", "Gives a type another name."),
        "true": ("true", "A truth value, of type `bool`."),
        "false": ("false", "A truth value, of type `bool`."),
    }
)

_TYPES = {
    "unit": "What a function returns that returns nothing; also `()`.",
    "Tensor": "`Tensor<f32, [2, n]>`: the type of its elements, and its shape. A dimension with a name "
    "stands for any extent, the same wherever the function says it.",
}


def type_text(name: str) -> str:
    """Return what a type of the language is."""
    if name in _TYPES:
        return _TYPES[name]
    dtype = DTYPES[name]
    if dtype is DType.I1:
        return "Truth values; alone, the tensor of rank 0 that holds one."
    kind = "Floating-point numbers" if dtype.is_float else "Integers"
    bits = 8 * dtype.numpy.itemsize
    return f"{kind} of {bits} bits; alone, the tensor of rank 0 that holds one."


def module_text(name: str) -> str:
    """Return what a module of the language holds."""
    return f"A module: {', '.join(f'`{each}`' for each in sorted(modules()[name]))}."
