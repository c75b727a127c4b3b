"""Tells changes of a program from changes of what only a type checker or a reader of its code sees."""

from __future__ import annotations

import ast


def meaning_of(source: str) -> str | None:
    """Return what of a file has a meaning when it runs: all but annotations; None if it is no program."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    return ast.dump(_WithoutAnnotations().visit(tree))


class _WithoutAnnotations(ast.NodeTransformer):
    """Drops what is never evaluated, since annotations are not, and what only mypy reads."""

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        # Whether a parameter may be given by position, by name or both is mypy's to check.
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        node.defaults += [default for default in node.kw_defaults if default is not None]
        node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST:
        return ast.Pass() if "TYPE_CHECKING" in ast.unparse(node.test) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        called = ast.unparse(node.func)
        if called == "cast":
            return self.generic_visit(ast.Expr(node.args[1]))
        if called in ("dataclass", "dataclasses.dataclass"):
            # Both forbid what the code does not do; slots also save memory.
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in ("slots", "frozen")]
        if called == "zip":
            node.keywords = []  # that the lengths are equal is asserted, not decided
        return self.generic_visit(node)
