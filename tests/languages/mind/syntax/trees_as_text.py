"""Syntax trees in one line, for tests: ``(+ a (* b c))``."""

from __future__ import annotations

from mind_mlir.languages.mind.syntax import nodes


def shown(node: object) -> str:  # noqa: C901 -- one line for each kind of node
    """Return a node and all below it in a line; what cannot be read is ``!``."""
    match node:
        case None:
            return "_"
        case list():
            return " ".join(shown(each) for each in node)
        case nodes.Ident(text) | nodes.Name(text) | nodes.Number(_, text) | nodes.String(_, text):
            return text
        case nodes.Bool(value):
            return str(value).lower()
        case nodes.Invalid():
            return "!"
        case nodes.Unary(operator, operand):
            return f"({operator} {shown(operand)})"
        case nodes.Binary(operator, left, right):
            return f"({operator} {shown(left)} {shown(right)})"
        case nodes.List(items):
            return f"[{shown(items)}]"
        case nodes.Tuple(items) | nodes.TupleType(items) | nodes.TuplePattern(items):
            return f"(tuple {shown(items)})"
        case nodes.Argument(value, name) | nodes.FieldValue(name, value):
            return f"{name.text}={shown(value)}" if name else shown(value)
        case nodes.Call(callee, arguments):
            return f"(call {shown(callee)} {shown(arguments)})"
        case nodes.Slice(start, end, step):
            return f"{shown(start)}:{shown(end)}:{shown(step)}"
        case nodes.Index(value, items):
            return f"(index {shown(value)} {shown(items)})"
        case nodes.Field(value, name):
            return f"{shown(value)}.{name.text}"
        case nodes.StructLiteral(name, fields):
            return f"({name.text} {shown(fields)})"
        case nodes.Parameter(name, type_) | nodes.FieldType(name, type_):
            return f"{name.text}:{shown(type_)}" if type_ else name.text
        case nodes.Closure(parameters, body):
            return f"(|{shown(parameters)}| {shown(body)})"
        case nodes.Block(statements, value):
            return f"{{{shown(statements)}; {shown(value)}}}"
        case nodes.If(condition, then, otherwise):
            return f"(if {shown(condition)} {shown(then)} {shown(otherwise)})"
        case nodes.NamedType(name):
            return name.text
        case nodes.Tensor(dtype, dimensions):
            return f"{dtype.text}[{shown(dimensions)}]"
        case nodes.Let(pattern, type_, value):
            return f"(let {shown(pattern)} {shown(type_)} {shown(value)})"
        case nodes.Assign(target, value):
            return f"(= {target.text} {shown(value)})"
        case nodes.Evaluate(value):
            return f"(do {shown(value)})"
        case nodes.Return(value):
            return f"(return {shown(value)})"
        case nodes.While(condition, body):
            return f"(while {shown(condition)} {shown(body)})"
        case nodes.For(variable, iterable, body):
            return f"(for {variable.text} {shown(iterable)} {shown(body)})"
        case nodes.Import(path):
            return f"(import {'::'.join(each.text for each in path)})"
        case nodes.Struct(name, fields, exported):
            return f"({'export ' * exported}struct {name.text} {shown(fields)})"
        case nodes.Alias(name, type_, exported):
            return f"({'export ' * exported}type {name.text} {shown(type_)})"
        case nodes.Function(name, parameters, result, body, exported):
            head = f"{'export ' * exported}fn {name.text}"
            return f"({head} [{shown(parameters)}] {shown(result)} {shown(body)})"
        case nodes.SourceFile(items):
            return shown(items)
    raise TypeError(node)
