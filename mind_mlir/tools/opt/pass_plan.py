"""Plan the steps of a pipeline of `mind-opt`, all checked before any module is read.

Where nobody looks at the passes one by one, neighbouring passes of MLIR's are one step; for dumps and timings
each pass is a step of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from mind_mlir.diagnostics.display import well_formed
from mind_mlir.mlir.bindings import PassManager
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.support.suggestions import did_you_mean
from mind_mlir.tools.opt.mlir_names import known_passes
from mind_mlir.tools.opt.pass_pipeline import (
    MODULE_ANCHORS,
    Element,
    Pipeline,
    PipelineError,
    PipelinePass,
    merge_neighbours,
    parse_pipeline,
)
from mind_mlir.tools.opt.stage_passes import PASSES_BY_NAME

_RESTRICTED = re.compile(r"restricted to '(?P<anchor>[^']*)'")
_NO_OPTION = re.compile(r"no such option (?P<option>\S+)")


class UnknownPassError(PipelineError):
    """No pass is registered under a name."""

    def __init__(self, name: str, options: Sequence[str] = ()) -> None:
        meant = did_you_mean(name, (*known_passes(), *options), "'")
        super().__init__(f"'{_shortened(name)}' does not refer to a registered pass or pass pipeline{meant}")


@dataclass(frozen=True, slots=True)
class OurStep:
    """One of our passes, on the whole module."""

    name: str

    @property
    def label(self) -> str:
        """Return what stands in dumps."""
        return self.name


@dataclass(frozen=True, slots=True)
class MLIRStep:
    """Passes of MLIR's.

    Attributes:
        pipeline: What to run, anchor included.
        label: The pass with all of its options, or all of the passes.
        name: The name of the pass, where it is only one.
    """

    pipeline: str
    label: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class NestedSteps:
    """Steps that run on each operation ``anchor`` directly inside of another operation."""

    anchor: str
    steps: tuple[Step, ...]


Step: TypeAlias = OurStep | MLIRStep | NestedSteps


def plan_pipeline(text: str, *, each: bool) -> tuple[Step, ...]:
    """Return the steps of a textual pipeline; a context must be current.

    Args:
        text: The pipeline, anchor included.
        each: Whether every pass is a step of its own.

    Raises:
        PipelineError: It is malformed, or names a pass or an option that nobody knows.
    """
    _check_encoding(text)
    return _plan(parse_pipeline(text), each=each)


def plan_passes(
    passes: Iterable[PipelinePass], *, each: bool, options: Sequence[str] = ()
) -> tuple[Step, ...]:
    """Return the steps of passes given one by one; a context must be current.

    A pass for functions, or another kind of operation, is nested in a pipeline for these, as in mlir-opt.

    Args:
        passes: The passes in order.
        each: Whether every pass is a step of its own.
        options: What else a name could have been meant for.

    Raises:
        PipelineError: There is no such pass, or it has no such option.
    """
    elements: list[Element] = []
    for one in passes:
        _check_encoding(f"{one.name}{one.options}")
        try:
            anchor = None if one.name in PASSES_BY_NAME else _restriction(one)
        except UnknownPassError:
            raise UnknownPassError(one.name, options) from None
        elements.append(one if anchor is None else Pipeline(anchor, (one,)))
    return _plan(Pipeline(MODULE_ANCHORS[0], tuple(elements)), each=each)


def check_pass_name(name: str) -> None:
    """Raise a `PipelineError` where no pass of that name is registered; a context must be current."""
    _check_encoding(name)
    if name not in PASSES_BY_NAME:
        _restriction(PipelinePass(name))


def _check_encoding(text: str) -> None:
    if well_formed(text) != text:  # MLIR takes nothing else
        raise PipelineError(f"'{well_formed(text)}' holds bytes that are not UTF-8")


def pipeline_text(steps: Iterable[Step]) -> str:
    """Return ``steps``, each a pass, as a textual pipeline on several lines, as mlir-opt prints it."""
    body = ",\n".join(_text(step, "  ") for step in steps)
    return f"builtin.module(\n{body}\n)\n" if body else "builtin.module()\n"


def _text(step: Step, indent: str) -> str:
    if not isinstance(step, NestedSteps):
        return f"{indent}{step.label}"
    inner = ",\n".join(_text(each, f"{indent}  ") for each in step.steps)
    return f"{indent}{step.anchor}(\n{inner}\n{indent})"


def _plan(pipeline: Pipeline, *, each: bool) -> tuple[Step, ...]:
    if pipeline.anchor not in MODULE_ANCHORS:
        _check(pipeline)
        raise PipelineError(
            f"a module is no '{pipeline.anchor}': write 'builtin.module({_shortened(str(pipeline))})'"
        )
    steps: list[Step] = []
    pending: list[Element] = []
    for element in merge_neighbours(pipeline.elements):
        if not isinstance(element, PipelinePass) or element.name not in PASSES_BY_NAME:
            _check_element(element, pipeline.anchor)
            pending.append(element)
            continue
        if element.options.strip("{} \t\n"):
            raise PipelineError(f"pass '{element.name}' takes no options, found '{element.options}'")
        steps += _mlir_steps(pipeline.anchor, pending, each=each)
        pending = []
        steps.append(OurStep(element.name))
    return (*steps, *_mlir_steps(pipeline.anchor, pending, each=each))


def _mlir_steps(anchor: str, elements: Sequence[Element], *, each: bool) -> list[Step]:
    if not elements:
        return []
    whole = f"{Pipeline(anchor, tuple(elements))}"
    if not each:
        return [MLIRStep(whole, whole)]
    steps: list[Step] = []
    for element in _expanded(anchor, elements):
        if isinstance(element, PipelinePass):
            steps.append(MLIRStep(f"{Pipeline(anchor, (element,))}", str(element), element.name))
        elif element.anchor == "any":  # which operations this means only MLIR knows
            steps.append(MLIRStep(f"{Pipeline(anchor, (element,))}", str(element), "any"))
        else:
            steps.append(
                NestedSteps(element.anchor, tuple(_mlir_steps(element.anchor, element.elements, each=True)))
            )
    return steps


def _expanded(anchor: str, elements: Sequence[Element]) -> list[Element]:
    """Return ``elements`` as MLIR prints them: passes with all options, named pipelines taken apart."""
    expanded: list[Element] = []
    for element in elements:
        if isinstance(element, Pipeline):
            expanded.append(element)
            continue
        try:
            printed = parse_pipeline(str(PassManager.parse(f"{anchor}({element})")))
            PassManager.parse(str(printed))
        except (PipelineError, ValueError):  # not everything that MLIR prints is something that it reads
            expanded.append(element)
        else:
            expanded += printed.elements
    return merge_neighbours(expanded)


def _check(pipeline: Pipeline) -> None:
    for element in pipeline.elements:
        _check_element(element, pipeline.anchor)


def _check_element(element: Element, anchor: str) -> None:
    if isinstance(element, Pipeline):
        _check(element)
        return
    if element.name in PASSES_BY_NAME:
        raise PipelineError(
            f"pass '{element.name}' runs on a whole builtin.module, found it in '{anchor}(...)'"
        )
    restricted = _restriction(element, anchor)
    if restricted is not None:
        raise PipelineError(
            f"pass '{element.name}' runs on a '{restricted}', found it in '{anchor}(...)': "
            f"write '{restricted}({element})'"
        )


def _restriction(element: PipelinePass, anchor: str = MODULE_ANCHORS[0]) -> str | None:
    """Return the one kind of operation that a pass runs on, where that is another than ``anchor``.

    Raises:
        PipelineError: MLIR knows no such pass, or it does not take these options.
    """
    try:
        PassManager.parse(f"{anchor}({element})")
    except ValueError as error:
        message = str(error)
    else:
        return None
    restricted = _RESTRICTED.search(message)
    if restricted is not None:
        return restricted["anchor"]
    if "does not refer to a registered pass" in message:
        raise UnknownPassError(element.name)
    raise PipelineError(_wrong_options(element, message))


def _wrong_options(element: PipelinePass, message: str) -> str:
    missing = _NO_OPTION.search(message)
    if missing is None:
        return f"pass '{element.name}' cannot be given the options '{_shortened(element.options)}'"
    text = f"pass '{element.name}' has no option '{_shortened(missing['option'])}'"
    options = _options(element.name)
    if not options:
        return text
    meant = did_you_mean(missing["option"], options, "'")
    return f"{text}{meant or ';'} among its options are: {', '.join(options)}"


def _options(name: str) -> list[str]:
    """Return the options of a pass that MLIR prints: all but the lists that are empty."""
    for anchor in (MODULE_ANCHORS[0], _restriction(PipelinePass(name))):
        try:
            printed = str(PassManager.parse(f"{anchor}({name})"))
        except ValueError:
            continue
        return re.findall(r"(?:(?<=[{ ]))([\w-]+)=", printed)
    return []


def _shortened(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
