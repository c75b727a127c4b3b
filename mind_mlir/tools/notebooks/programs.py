"""Programs, compiled code and functions as notebooks show them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mind_mlir.diagnostics.display import size_text
from mind_mlir.ir.analysis.call_graph import operations_of
from mind_mlir.support.argument_checks import counted
from mind_mlir.tools.notebooks.fragments import escaped, folded, fragment, heading, marked, table
from mind_mlir.tools.notebooks.graphs import graph
from mind_mlir.tools.notebooks.highlighting import MOST_LINES, highlighted

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.ir.types import TensorType
    from mind_mlir.packaging.loading import Bundle
    from mind_mlir.passes.autodiff import Gradient
    from mind_mlir.runtime.executable import Executable
    from mind_mlir.runtime.function import CompiledFunction
    from mind_mlir.runtime.lowered import Lowered
    from mind_mlir.runtime.staged import StagedFunction
    from mind_mlir.runtime.staged_calls import StagedProgram
    from mind_mlir.runtime.staged_gradient import GradientFunction

#: A text of so many lines is shown at once, a longer one when it is asked for.
_OPEN_LINES = 24
#: The loop nests of larger programs are not made again to be shown.
_MOST_SCHEDULED = 300
_MOST_PROGRAMS = 8


def module(shown: Module) -> str:
    """Return a module: what it takes and returns, its operations as a picture, and its text."""
    return fragment(*_module(shown))


def gradient(shown: Gradient) -> str:
    """Return a gradient module."""
    facts = [f"with respect to {counted(shown.gradients, 'value')}"]
    return fragment(heading("Gradient", facts), *_module(shown.module))


def lowered(shown: Lowered) -> str:
    """Return the program of a function, before it is compiled."""
    return fragment(*_module(shown.module))


def executable(shown: Executable) -> str:
    """Return compiled code: what its functions take and return, what it was made for, and its loop nests."""
    facts = [counted(shown.functions, "function"), *_made_for(shown)]
    parts = [heading("Executable", facts)]
    parts += [_function(each, named=len(shown.functions) > 1) for each in shown.functions.values()]
    parts += [_times(shown), folded("schedule", _schedule(shown)), folded("program", _text(shown.module))]
    return fragment(*parts)


def bundle(shown: Bundle) -> str:
    """Return the functions of a bundle."""
    functions = [_function(each, named=True) for each in shown.functions.values()]
    return fragment(heading("Bundle", [counted(shown.functions, "function")]), *functions)


def compiled_function(shown: CompiledFunction) -> str:
    """Return what a compiled function takes and returns."""
    return fragment(heading("CompiledFunction", [shown.name]), _function(shown, named=False))


def staged(shown: StagedFunction) -> str:
    """Return a function that is compiled for its arguments, and what it has been compiled for so far."""
    return fragment(heading(type(shown).__name__, [f"{shown.name}{shown.__signature__}"]), *_programs(shown))


def gradient_function(shown: GradientFunction[..., Any]) -> str:
    """Return the gradients of a function, and what they have been compiled for so far."""
    returned = "its result, and gradients" if shown.with_value else "gradients"
    names = ", ".join(name for _, name in shown.paths)
    about = f"{returned} of {shown.function.name}{shown.__signature__} with respect to {names}"
    return fragment(heading(type(shown).__name__, [about]), *_programs(shown))


def _module(shown: Module) -> list[str]:
    facts = [shown.profile, counted(shown.functions, "function"), f"{_operations(shown):,} operations"]
    picture = graph(shown.functions[0]) if len(shown.functions) == 1 else ""
    return [heading("Module", facts), folded("graph", picture), _text(shown, title="text")]


def _operations(shown: Module) -> int:
    return sum(1 for function in shown.functions for _ in operations_of(function.blocks))


def _text(shown: Module, title: str = "") -> str:
    text = str(shown)
    html = highlighted(text, "print(module)")
    return folded(title, html, is_open=text.count("\n") < _OPEN_LINES) if title else html


def _function(shown: CompiledFunction, *, named: bool) -> str:
    rows = [_row("takes", each.name, each.type) for each in shown.parameters]
    rows += [
        _row("returns", name, type_) for name, type_ in zip(shown.result_names, shown.results, strict=True)
    ]
    title = f"<div>{marked(shown.name, 'b')}</div>" if named else ""
    scratch = f'<div class="d">scratch memory of a call: {size_text(shown.scratch_bytes)}</div>'
    return title + table(("", "name", "dtype", "shape", "bytes"), rows, numbers=[4]) + scratch


def _row(what: str, name: str, type_: TensorType) -> list[str]:
    size = size_text(type_.element_count * type_.dtype.numpy.itemsize)
    return [
        marked(what, "d"),
        marked(name, "v"),
        marked(type_.dtype.numpy_name, "t"),
        escaped(tuple(type_.extents)),
        size,
    ]


def _made_for(shown: Executable) -> Iterable[str]:
    options = shown.options
    yield f"target: {options.target or 'this machine'}"
    yield f"opt_level {options.opt_level}"
    if options.threads is not None:
        yield f"{options.threads} thread{'s' * (options.threads != 1)}"


def _times(shown: Executable) -> str:
    seconds = sum(shown.timings.values())
    if "codegen" not in shown.timings:
        return f'<div class="d">its code was kept from before, and loaded in {seconds * 1e3:.1f} ms</div>'
    rows = [(escaped(stage), f"{each * 1e3:.1f} ms") for stage, each in shown.timings.items()]
    return folded(f"compiled in {seconds * 1e3:.0f} ms", table(("stage", "time"), rows, numbers=[1]))


def _schedule(shown: Executable) -> str:
    if _operations(shown.module) > _MOST_SCHEDULED:
        return "<div>executable.as_text('schedule') lists its loop nests</div>"
    lines = shown.as_text("schedule").rstrip().split("\n")
    rest = [marked(f"... {len(lines) - MOST_LINES:,} more lines", "c")] if len(lines) > MOST_LINES else []
    return "<pre>" + "\n".join([*map(escaped, lines[:MOST_LINES]), *rest]) + "</pre>"


def _programs(shown: StagedFunction) -> list[str]:
    programs = shown.programs()
    if not programs:
        return ['<div class="d">not compiled yet: a call compiles it for its arguments</div>']
    rows = [_program(each) for each in programs[:_MOST_PROGRAMS]]
    more = len(programs) - len(rows)
    rest = f'<div class="d">and {more} more</div>' if more else ""
    return [table(("compiled for", "returns", "memory of a call", "compiled in"), rows, numbers=[2, 3]), rest]


def _program(shown: StagedProgram) -> list[str]:
    function = shown.executable.default
    assert function is not None, "the program of a function has one"
    taken = ", ".join(f"{each.name}: {each.type}" for each in function.parameters)
    returned = ", ".join(
        f"{name}: {type_}" for name, type_ in zip(function.result_names, function.results, strict=True)
    )
    seconds = sum(shown.executable.timings.values())
    return [
        escaped(taken[:300]),
        escaped(returned[:300]),
        size_text(function.scratch_bytes),
        f"{seconds * 1e3:.0f} ms",
    ]
