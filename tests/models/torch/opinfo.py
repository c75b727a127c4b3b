"""torch's own samples of its operators (OpInfo), each as a graph of ours, against eager torch.

    python tests/models/torch/opinfo.py --dtypes float32 int64 --samples 4 softmax conv

counts what is right, wrong, refused (no rule, with the operator), and what torch itself cannot trace. Graphs
are run by the interpreter, or with --compile by machine code. It is no test of pytest: torch is not installed
where these run, and all samples take long.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db

import mind_mlir
from mind_mlir.diagnostics import UnsupportedError
from mind_mlir.ir.types import DType
from mind_mlir.models.torch.compiled import CompiledGraph
from mind_mlir.models.torch.decompositions import decompositions
from mind_mlir.models.torch.graph import Ref
from mind_mlir.models.torch.reading import read_graph
from mind_mlir.models.torch.running import is_random
from mind_mlir.models.torch.tensors import as_array, writer_of
from mind_mlir.support.options import CompileOptions

#: Relative and absolute errors that torch and we may be apart by.
TOLERANCES = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (3e-5, 3e-5),
    torch.bfloat16: (4e-2, 4e-2),
    torch.float16: (4e-3, 4e-3),
    torch.complex128: (1e-9, 1e-9),
    torch.complex64: (3e-5, 3e-5),
}
#: Indices of equal elements are in no given order.
UNSTABLE = ("sort", "argsort", "topk")
OF_ANY = ("kthvalue", "median", "nanmedian", "mode")
#: Results that are whatever lies in memory.
UNDEFINED = ("empty", "resize_", "new_empty", "empty_strided")


@dataclass
class Sample:
    """A sample as a function of its tensors."""

    op: Any
    leaves: list[Any]
    spec: Any
    places: list[int]
    finish: Any

    @classmethod
    def of(cls, op: Any, sample: Any) -> Sample:
        leaves, spec = torch.utils._pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        places = [place for place, each in enumerate(leaves) if isinstance(each, torch.Tensor)]
        return cls(op, leaves, spec, places, sample.output_process_fn_grad)

    @property
    def tensors(self) -> list[Any]:
        return [self.leaves[place].detach() for place in self.places]

    def __call__(self, *tensors: Any) -> list[Any]:
        given = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            given[place] = tensor.clone()
        first, args, kwargs = torch.utils._pytree.tree_unflatten(given, self.spec)
        found = torch.utils._pytree.tree_leaves(self.finish(self.op.op(first, *args, **kwargs)))
        return [each for each in found if isinstance(each, torch.Tensor)]


def outcome(op: Any, given: Any, *, compiles: bool) -> tuple[str, str]:
    """Return what becomes of a sample, and why."""
    sample = Sample.of(op, given)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = sample(*sample.tensors)
        except Exception:
            return "skipped", "eager fails"
        if not expected:
            return "skipped", "no tensors"
        try:
            table = decompositions()
            module = make_fx(torch.func.functionalize(sample), decomposition_table=table)(*sample.tensors)
            # What operators are made of may change arrays in place, too.
            module = make_fx(torch.func.functionalize(module))(*sample.tensors)
        except Exception as error:
            return "untraced", type(error).__name__
        graph, held = read_graph(module)
        try:
            found = run(graph, [*sample.tensors, *held], compiles=compiles)
        except UnsupportedError as error:
            return "refused", "; ".join(map(refusal, error.diagnostics))
        except mind_mlir.ExecutionError as error:
            return "failed", str(error).splitlines()[0]
        except Exception as error:
            return "crashed", f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        exact = not is_random(graph) and not op.name.startswith(UNDEFINED)
        if op.name in UNSTABLE and not sample.leaves[0].is_meta:
            found, expected = (ranked(op, sample, results) for results in (found, expected))
        if op.name in OF_ANY:
            found, expected = found[:1], expected[:1]
        problem = difference(found, expected, exact=exact)
        if problem and as_near(sample, found, expected):
            problem = ""
    return ("wrong", problem) if problem else ("right", "")


def ranked(op: Any, sample: Sample, results: list[Any]) -> list[Any]:
    """Return results with elements in the place of indices, which may be in any order among equal ones."""
    x, index = sample.leaves[0], results[-1]
    if not x.ndim:
        return results
    dim = [each for each in sample.leaves[1:] if type(each) is int]
    axis = (dim[-1] if dim and op.name != "topk" else dim[1] if len(dim) > 1 else -1) % x.ndim
    if index.ndim != x.ndim or (index.numel() and int(index.max()) >= x.shape[axis]):
        return results
    return [*results[:-1], x.gather(axis, index)]


def as_near(sample: Sample, found: list[Any], expected: list[Any]) -> bool:
    """Return whether narrow floats are as near to what f64 gives as eager torch's are."""
    narrow = (torch.bfloat16, torch.float16)
    if not all(each.dtype in narrow for each in expected):
        return False
    exact = sample(*[each.double() if each.is_floating_point() else each for each in sample.tensors])
    for mine, theirs, truth in zip(found, expected, exact, strict=True):
        if not truth.numel():
            return False
        ours, eager = ((each.double() - truth).abs().max().item() for each in (mine, theirs))
        last_place = torch.finfo(theirs.dtype).eps / 2 * truth.abs().max().item()
        if not ours <= 1.5 * eager + last_place + 0.01:
            return False
    return True


def refusal(finding: Any) -> str:
    return f"{finding.context['operation']}: {finding.context['reason']}"


def difference(found: list[Any], expected: list[Any], *, exact: bool) -> str:
    """Return what is wrong with results; nothing for none of it."""
    for mine, theirs in zip(found, expected, strict=True):
        if mine.dtype != theirs.dtype or mine.shape != theirs.shape:
            return f"{mine.dtype}{list(mine.shape)} for {theirs.dtype}{list(theirs.shape)}"
        rtol, atol = TOLERANCES.get(theirs.dtype, (0, 0))
        try:
            if exact:
                torch.testing.assert_close(
                    mine, theirs, rtol=rtol, atol=atol, equal_nan=True, check_stride=False
                )
        except AssertionError as error:
            return " ".join(str(error).split())[:160]
    return ""


def run(graph: Any, values: list[Any], *, compiles: bool) -> list[Any]:
    compiled = CompiledGraph(graph, CompileOptions(cache=False))
    if compiles:
        return compiled(values)
    program = compiled.module_for(values)
    names = {each.name: place for place, each in enumerate(graph.inputs)}
    if program is None:
        return [values[names[each.name]] for each in graph.outputs]
    arrays = {each.name: as_array(values[place], each.name) for place, each in enumerate(graph.inputs)}
    more = {"seed": np.array(7, np.uint64)} if is_random(graph) else {}
    results = iter(mind_mlir.interpret(program, {**arrays, **more}))
    found = []
    for each in graph.outputs:
        if isinstance(each, Ref) and each.name in names:
            found.append(values[names[each.name]])
            continue
        array = np.require(next(results), requirements="C")
        made = DType.from_numpy(array.dtype)
        assert made is not None
        found.append(writer_of(made)(array))
    return found


def counted(op: Any, name: str, given: argparse.Namespace, reasons: dict[str, Counter[str]]) -> Counter[str]:
    """Return how many samples of an operator and a dtype are what, and note why."""
    full = full_name(op)
    torch.manual_seed(0)
    try:
        samples = list(op.sample_inputs("cpu", getattr(torch, name), requires_grad=False))
    except Exception as error:  # a sample that this build of torch cannot make
        reasons["no samples"][f"{full}: {error}"[:100]] += 1
        return Counter()
    counts: Counter[str] = Counter()
    for sample in samples[:: max(1, len(samples) // given.samples)][: given.samples]:
        kind, reason = outcome(op, sample, compiles=given.compile)
        counts[kind] += 1
        if kind not in ("right", "skipped"):
            reasons[kind][reason if kind == "refused" else f"{full} {name}: {reason}"] += 1
    return counts


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="parts of the names of operators; all unless given")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64", "bfloat16", "int64", "bool"])
    parser.add_argument("--samples", type=int, default=1_000, help="how many of each operator and dtype")
    parser.add_argument("--compile", action="store_true", help="run machine code, not the interpreter")
    given = parser.parse_args()
    totals: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for op in op_db:
        if given.names and not any(name in full_name(op) for name in given.names):
            continue
        for name in given.dtypes:
            if getattr(torch, name) in op.dtypes:
                counts = counted(op, name, given, reasons)
                totals += counts
                if counts["wrong"] or counts["crashed"]:
                    print(full_name(op), name, dict(counts), flush=True)
    for kind, found in reasons.items():
        print(f"\n{kind}:")
        for reason, count in found.most_common():
            print(f"  {count:4}  {reason}")
    print("\n", dict(totals))
    return 1 if totals["wrong"] or totals["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
