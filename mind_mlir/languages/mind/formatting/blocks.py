"""Formatting rules of a file, its items, and what has blocks: functions, branches, loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from mind_mlir.languages.mind.formatting.documents import (
    BLANK,
    FLUSH,
    HARD,
    SPACE,
    Group,
    Indented,
    concat,
)
from mind_mlir.languages.mind.formatting.rules import document, exported, expression, listed, row
from mind_mlir.languages.mind.syntax import nodes

if TYPE_CHECKING:
    from mind_mlir.languages.mind.formatting.documents import Document
    from mind_mlir.languages.mind.formatting.words import Words

#: Lines of a block or of a file, and whether an empty one stands before each.
Lines: TypeAlias = "list[tuple[bool, Document]]"


def joined(lines: Iterable[tuple[bool, Document]]) -> Document:
    """Return lines one below the other, the first without an empty one before it."""
    parts: list[Document] = []
    for blank, line in lines:
        if parts:
            parts.append(BLANK if blank else HARD)
        parts.append(line)
    return concat(parts)


@document.register(nodes.Block)
def _(node: nodes.Block, words: Words) -> Document:
    return block(node, words)


def block(node: nodes.Block, words: Words, *, inline: bool = False) -> Document:
    """Return a block: with a line a statement, or ``inline``, on the line of the group around it."""
    within, words.in_head = words.in_head, False
    open_ = words.take("{")
    lines: Lines = []
    for statement in node.statements:
        lines += words.lines()
        last = statement is node.statements[-1] and node.value is None
        lines.append((words.blank, _statement(statement, words, last=last)))
    if node.value is not None:
        lines += words.lines()
        lines.append((words.blank, expression(node.value, words)))
    behind = words.behind()
    if lines:
        lines[-1] = (lines[-1][0], concat((lines[-1][1], behind)))
    else:
        open_ = concat((open_, behind))
    lines += words.own_lines()
    rest = words.asides(own=not lines)
    close = words.take("}")
    words.in_head = within
    edge = SPACE if inline and len(lines) == 1 else HARD
    if not lines and rest == "":
        return concat((open_, close) if open_ == "{" else (open_, Indented(FLUSH), HARD, close))
    return concat((open_, Indented(concat((edge, joined(lines), rest, FLUSH))), edge, close))


@document.register(nodes.If)
def _(node: nodes.If, words: Words) -> Document:
    return branches(node, words, inline=True)


def branches(node: nodes.If, words: Words, *, inline: bool = False) -> Document:
    """Return an ``if``; where it is a value and ``inline``, on one line if it is short."""
    inline = (
        inline
        and isinstance(node.otherwise, nodes.Block)
        and _is_simple(node.then)
        and _is_simple(node.otherwise)
    )
    parts = [_head(words, "if", node.condition), block(node.then, words, inline=inline)]
    otherwise = node.otherwise
    while otherwise is not None:
        parts += (words.own(), " ", words.take("else"), " ")
        if isinstance(otherwise, nodes.Block):
            parts.append(block(otherwise, words, inline=inline))
            break
        parts += (_head(words, "if", otherwise.condition), block(otherwise.then, words))
        otherwise = otherwise.otherwise
    return Group(concat(parts))


def _is_simple(node: nodes.Block | nodes.If | None) -> bool:
    """Return whether a branch is nothing but a value, one without branches."""
    if not isinstance(node, nodes.Block):
        return False
    value = node.value
    if isinstance(value, nodes.Closure):
        value = value.body
    return value is not None and not node.statements and not isinstance(value, nodes.If | nodes.Block)


def _head(words: Words, keyword: str, condition: nodes.Expression) -> Document:
    parts: list[Document] = [words.take(keyword), " "]
    within, words.in_head = words.in_head, True
    parts.append(expression(condition, words))
    words.in_head = within
    parts += (SPACE, words.own()) if isinstance(condition, nodes.Binary) else (" ",)
    return Group(concat(parts))


def _statement(node: nodes.Statement, words: Words, *, last: bool) -> Document:
    if isinstance(node, nodes.Evaluate) and isinstance(node.value, nodes.If | nodes.Block):
        value = branches(node.value, words) if isinstance(node.value, nodes.If) else block(node.value, words)
        return concat((value, ";" if last else ""))
    return document(node, words)


@document.register(nodes.While)
def _(node: nodes.While, words: Words) -> Document:
    return concat((_head(words, "while", node.condition), block(node.body, words)))


@document.register(nodes.For)
def _(node: nodes.For, words: Words) -> Document:
    head = row(words, "for ", node.variable, " ")
    return concat((head, _head(words, "in", node.iterable), block(node.body, words)))


# Items


@document.register(nodes.Function)
def _(node: nodes.Function, words: Words) -> Document:
    name = row(words, exported(node), "fn ", node.name)
    parameters = listed(words, "()", node.parameters).lines()
    result = row(words, " -> ", node.result) if node.result is not None else ""
    return concat((Group(concat((name, parameters, result))), " ", block(node.body, words)))


@document.register(nodes.Struct)
def _(node: nodes.Struct, words: Words) -> Document:
    head = row(words, exported(node), "struct ", node.name, " ")
    return concat((head, listed(words, "{}", node.fields).spread(SPACE)))


def _imports(group: Sequence[nodes.Import], words: Words) -> Document:
    """Return the import of a name, or of several of one module that were written as one."""
    *path, last = group[0].path
    parts: list[Document] = [words.take("import"), " "]
    for name in path:
        parts += (document(name, words), words.take("::"))
    if len(group) == 1:
        parts += (words.drop("{"), document(last, words))
        parts += (words.drop("::"), words.drop("{"), words.drop("}"))  # of m::{a}, and m::{}
    else:
        names = [each.path[-1] for each in group]
        parts.append(listed(words, "{}", names).spread())
    return concat((*parts, words.take(";")))


def _grouped(items: Iterable[nodes.Item]) -> Iterator[list[nodes.Item]]:
    """Yield the items, those together that come of one import."""
    group: list[nodes.Item] = []
    for item in items:
        if group and not (isinstance(item, nodes.Import) and item.span == group[0].span != nodes.NOWHERE):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


@document.register(nodes.SourceFile)
def _(node: nodes.SourceFile, words: Words) -> Document:
    lines: Lines = []
    before: nodes.Item | None = None
    for group in _grouped(node.items):
        item = group[0]
        first = len(lines)
        lines += words.lines()
        imports = [each for each in group if isinstance(each, nodes.Import)]
        lines.append((words.blank, _imports(imports, words) if imports else document(item, words)))
        if before is not None and _apart(before, item) and not any(blank for blank, _ in lines[first:]):
            lines[first] = True, lines[first][1]
        before = item
    return joined([*lines, *words.lines()])


def _apart(before: nodes.Item, item: nodes.Item) -> bool:
    """Return whether two items have an empty line between them in any case."""
    return type(before) is not type(item) or isinstance(item, nodes.Function)
