"""The passes of the optimiser, in the order in which they run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.passes.canonical.liveness import drop_dead_code
from mind_mlir.passes.layers import share_layers
from mind_mlir.passes.layouts import move_transposes
from mind_mlir.passes.optimize.common import merge_common
from mind_mlir.passes.optimize.constants import prepare
from mind_mlir.passes.optimize.hoisting import hoist
from mind_mlir.passes.optimize.scales import fold_scales
from mind_mlir.passes.optimize.taps import cut_taps
from mind_mlir.passes.overlap import overlap
from mind_mlir.passes.planes import compute_planes
from mind_mlir.passes.recompute import recompute
from mind_mlir.passes.record import Pass
from mind_mlir.passes.simplify import shorten_chains, simplify_algebra, simplify_dots
from mind_mlir.passes.stacks import compute_parts

if TYPE_CHECKING:
    from mind_mlir.ir.module import Module
    from mind_mlir.passes.record import EvaluatingPass, FunctionPass, ModulePass
    from mind_mlir.target import Target

#: Passes over a function, which repeat until none of them finds anything to do.
PASSES: tuple[FunctionPass, ...] = (
    Pass(
        "algebra",
        "writes what is computed more simply, where that gives the same numbers: `x * 1` as `x`",
        simplify_algebra,
        "each identity is listed with why it holds, for NaN, infinities, signed zeros and integers, in "
        "[identities.md](identities.md)",
    ),
    Pass(
        "chains",
        "moves, repeats, cuts and joins elements in fewer steps: `transpose(transpose(x))` as one, or as `x`",
        shorten_chains,
        "elements are moved, or computed by the same operation before they are repeated; each form is listed "
        "in [identities.md](identities.md)",
    ),
    Pass(
        "dots",
        "lets products read what transposes read, and multiplies integers where nothing is added up",
        simplify_dots,
        "the same terms are added up in the same order; each form is listed in "
        "[identities.md](identities.md)",
    ),
    Pass(
        "cse",
        "computes once what is computed several times; what is in a region may be taken from around it",
        merge_common,
        "operations are pure, so that equal ones on equal operands have equal bits; random numbers are a "
        "function of seed and stream, and a run-time check of the second fails where that of the first does",
    ),
    Pass(
        "planes",
        "computes what has a last axis of 2 to 5 elements, as coordinates or colours, one place of it after "
        "the other, where it is reduced",
        compute_planes,
        "elements are computed by the same operations; sums may be in another order, within their bound",
    ),
    Pass(
        "stacks",
        "computes with the parts of what is joined along an axis, as the coordinates of a state are, where "
        "elementwise operations and slices of single parts alone read it",
        compute_parts,
        "elements are computed by the same operations, and joined behind these",
    ),
    Pass(
        "layouts",
        "transposes behind what is computed rather than before: between convolutions, which have an order of "
        "axes, and where fewer elements are transposed then: `sum(transpose(x), axis=1)` is `sum(x, axis=0)`",
        move_transposes,
        "elements are moved, and computed by the same operations; sums that then run along other axes may be "
        "in another order, within their bound",
    ),
    Pass(
        "hoist",
        "does before a loop what each iteration would do again, and before a branch what both sides do",
        hoist,
        "what moves cannot fail, and computes of the same operands; before a loop of which nobody knows "
        "whether it runs it is some microseconds of work, and it takes no more memory than is there or 64 KB",
    ),
    Pass(
        "dce",
        "drops operations, results, and what loops carry, that no result of the function needs",
        drop_dead_code,
        "operations have no effect but their results, and what prints stays; a run-time check of what "
        "nothing needs is not made, as the canonicaliser does not make it",
    ),
)


def _share_layers(module: Module, _: Target) -> Module:
    return share_layers(module)


#: Passes over a module, once, after the others.
MODULE_PASSES: tuple[ModulePass, ...] = (
    Pass(
        "rematerialise",
        "computes elementwise values again behind a contraction where memory would take longer",
        recompute,
        "a copy of an operation has the bits of the value that it takes the place of",
    ),
    Pass(
        "layers",
        "makes what a function repeats a function of its own, which is compiled once; not products with "
        "large constants, which are laid out",
        _share_layers,
        "a call computes what the operations in its place did",
    ),
    Pass(
        "overlap",
        "starts sums over ranks as soon as their operands are known and waits for them where they are read, "
        "small ones together",
        overlap,
        "the same elements are added in the same tree, whatever else is in a message, and all ranks run the "
        "same program, which starts them in one order",
    ),
)

#: The passes before that which runs code, for programs with parameters that are declared constant.
CONSTANT_PASSES: tuple[FunctionPass, ...] = (
    Pass(
        "taps",
        "cuts what only ever meets padding from filters that are parameters declared constant",
        cut_taps,
        "a finite number times zero adds nothing, and filters with infinities or NaN are left; sums of fewer "
        "terms may be in another order, within their bound",
    ),
    Pass(
        "scales",
        "multiplies filters of convolutions by what multiplies each feature behind them, as norms of batches "
        "do, where both are made of parameters that are declared constant",
        fold_scales,
        "an element of the filter is rounded once more, and the sum is not scaled: a result is off by at "
        "most one unit roundoff more, of the sum of its terms' magnitudes times the scale, and what is added "
        "by one of its own; unless products of filter and scale overflow, or are subnormal",
    ),
)

#: The pass that runs code, before the others.
PREPARE: EvaluatingPass = Pass(
    "prepare",
    "evaluates what is made of parameters that are declared constant alone when a program is compiled",
    prepare,
    "compiled code of the same operations evaluates it: where these would have been part of a larger nest or "
    "product, sums may be in another order, within their bound; nothing that may fail is evaluated",
)

#: All of them, in order.
ALL_PASSES: tuple[FunctionPass | ModulePass | EvaluatingPass, ...] = (
    *CONSTANT_PASSES,
    PREPARE,
    *PASSES,
    *MODULE_PASSES,
)


def listing() -> str:
    """Return the passes as a table of Markdown: each by name, what it does, and why results stay the same."""
    rows = [f"| `{each.name}` | {each.summary} | {each.safe} |" for each in ALL_PASSES]
    return "\n".join(["| pass | what it does | why it is safe |", "|---|---|---|", *rows])
