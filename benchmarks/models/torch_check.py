"""What becomes of a model of torch: forward, gradients, a step of an optimiser, and times."""

from __future__ import annotations

import copy
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import torch

import mind_mlir
from benchmarks.models.child import has_compiler
from benchmarks.models.judging import absent, compared, stage_of
from benchmarks.models.outcome import FROZEN, RIGHT
from benchmarks.models.weights import enliven, without_chance
from mind_mlir.models.torch.backend import mind_mlir as backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.models.child import Request

#: What is told what became of a stage: a `benchmarks.models.child.Speaker`.
Say = Any


def check(request: Request, say: Callable[..., None]) -> None:
    """Build a model, and say what became of each stage."""
    torch.manual_seed(0)
    torch.set_num_threads(request.threads)
    try:
        family = import_module(f"benchmarks.models.frameworks.{request.entry.family}_family")
        model, args, kwargs = family.build(request.entry, real=request.real)
        enliven(model, args, kwargs)
        model.eval()
        say(parameters=sum(each.numel() for each in model.parameters()))
        with torch.no_grad():
            expected = _arrays(model(*args, **kwargs))
    except Exception as error:
        say(forward=absent(error))
        return
    run = _forward(request, say, (model, args, kwargs), expected)
    if request.narrow:
        _narrow(request, say, (model, args, kwargs))
    if request.gradients and request.entry.trains:
        _training(say, model, args, kwargs)
    if run is not None and request.peers:
        _times(request, say, (model, args, kwargs), run)


def _forward(request: Request, say: Say, call: tuple[Any, Any, Any], expected: list[NDArray[Any]]) -> Any:
    model, args, kwargs = call
    start = time.perf_counter()
    try:
        run = mind_mlir.from_torch(model, *args, kwargs=kwargs, threads=request.threads)
        found = _arrays(run(*args, **kwargs))
    except Exception as error:
        say(forward=stage_of(error))
        return None
    if request.peers:
        say(compile_seconds={"ours": time.perf_counter() - start})
    stage = compared(found, expected, lambda: _exact(model, args, kwargs))
    say(forward=stage)
    return run if stage.state == RIGHT else None


def _narrow(request: Request, say: Say, call: tuple[Any, Any, Any]) -> None:
    """Compare what a model computes in bf16, weights and arguments of it too."""
    model, (args, kwargs) = copy.deepcopy(call[0]).bfloat16(), _cast(call[1:], torch.bfloat16)
    try:
        with torch.no_grad():
            expected = _arrays(model(*args, **kwargs))
    except Exception as error:
        say(bf16=absent(error))
        return
    try:
        run = mind_mlir.from_torch(model, *args, kwargs=kwargs, threads=request.threads)
        found = _arrays(run(*args, **kwargs))
    except Exception as error:
        say(bf16=stage_of(error))
        return
    say(bf16=compared(found, expected, lambda: _exact(model, args, kwargs)))


def _exact(model: Any, args: Any, kwargs: Any) -> list[NDArray[Any]]:
    """Return what a model computes in f64, or in f32 where it has operators that take no f64."""
    with torch.no_grad():
        try:
            return _arrays(copy.deepcopy(model).double()(*_double(args), **_double(kwargs)))
        except RuntimeError:
            wide = _cast((args, kwargs), torch.float32)
            return _arrays(copy.deepcopy(model).float()(*wide[0], **wide[1]))


def _training(say: Say, model: Any, args: Any, kwargs: Any) -> None:
    """Compare gradients, buffers and what one step makes of the weights."""
    model.train()
    without_chance(model)
    ours = copy.deepcopy(model)
    try:
        expected = _step(copy.deepcopy(model), None, args, kwargs)
    except Exception as error:
        say(gradients=absent(error))
        return
    try:
        found = _step(ours, torch.compile(ours, backend=backend), args, kwargs)
    except Exception as error:
        say(gradients=stage_of(error))
        return

    def exact(part: int) -> list[NDArray[Any]]:
        return _step(copy.deepcopy(model).double(), None, _double(args), _double(kwargs))[part]

    say(gradients=compared(found[0], expected[0], lambda: exact(0)))
    say(step=compared(found[1], expected[1], lambda: exact(1)))


def _step(model: Any, compiled: Any, args: Any, kwargs: Any) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Return the loss and all gradients, and weights and buffers after a step."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    results = [
        each
        for each in _tensors((model if compiled is None else compiled)(*args, **kwargs))
        if each.requires_grad
    ]
    draws = torch.Generator().manual_seed(1)
    loss = sum((each * torch.randn(each.shape, generator=draws)).mean() for each in results)
    loss.backward()
    gradients = [loss, *(each.grad for each in model.parameters() if each.grad is not None)]
    optimiser.step()
    return _arrays(gradients), _arrays([*model.parameters(), *model.buffers()])


def _times(request: Request, say: Say, call: tuple[Any, Any, Any], run: Any) -> None:
    from benchmarks.models.timing import by_turns  # noqa: PLC0415 -- only where times are wanted

    model, args, kwargs = call
    model.eval()
    calls = {"ours": run, **({"eager": model} if "eager" in request.peers else {})}
    if "inductor" in request.peers and has_compiler():
        torch._dynamo.reset()
        compiled = torch.compile(model)
        start = time.perf_counter()
        try:
            with torch.no_grad():
                compiled(*args, **kwargs)
            say(compile_seconds={"inductor": time.perf_counter() - start})
            calls["inductor"] = compiled
        except Exception as error:
            print("inductor:", error)
    bound: dict[str, Callable[[], Any]] = {
        name: partial(each, *args, **kwargs) for name, each in calls.items()
    }
    if "onnxruntime" in request.peers:
        try:
            from benchmarks.models.exported import session_of  # noqa: PLC0415 -- it may not be installed

            bound["onnxruntime"], seconds = session_of(model, args, kwargs, request.threads)
            frozen = mind_mlir.from_torch(model, *args, kwargs=kwargs, threads=request.threads, frozen=True)
            bound[FROZEN] = partial(frozen, *args, **kwargs)
            say(compile_seconds={"onnxruntime": seconds})
        except Exception as error:
            print("onnxruntime:", error)
    with torch.no_grad():
        say(**by_turns(bound, request.threads))


def _tensors(results: Any) -> list[Any]:
    """Return the tensors that results hold, those of containers of transformers among them."""
    plain = results.to_tuple() if hasattr(results, "to_tuple") else results
    leaves = torch.utils._pytree.tree_leaves(plain)
    return [each for each in leaves if isinstance(each, torch.Tensor)]


def _arrays(results: Any) -> list[NDArray[Any]]:
    return [_array(each.detach().clone()) for each in _tensors(results)]


def _array(tensor: Any) -> NDArray[Any]:
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
    return np.asarray(tensor.numpy())


def _double(arguments: Any) -> Any:
    return _cast(arguments, torch.float64)


def _cast(arguments: Any, dtype: Any) -> Any:
    def cast(leaf: Any) -> Any:
        return leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    return torch.utils._pytree.tree_map(cast, arguments)
