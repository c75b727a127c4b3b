"""Compiles functions on tensors through the scheduling stage and runs them on numpy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import guarded
import numpy as np
from native_code import native_function, put_on_memory

from mind_mlir.lowering.schedule.driver import schedule
from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context
from mind_mlir.target import Target, host_target, named_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.mlir.bindings import Module
    from mind_mlir.runtime.native import NativeFunction

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}


def tensor_type(shape: Sequence[int], dtype: str) -> str:
    """Return the text of a tensor type."""
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{dtype}>"


def function(inputs: Sequence[str], outputs: Sequence[str], body: str, results: Sequence[str]) -> str:
    """Return the text of ``@main`` whose ``body`` computes ``results`` from ``%a0``, ``%a1``..."""
    arguments = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(inputs))
    types = ", ".join(outputs)
    return (
        f"func.func @main({arguments}) -> ({types}) {{\n{body}\n    return {', '.join(results)} : {types}\n}}"
    )


def random(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Return random numbers of a shape: normal floats, integers up to a thousand, booleans."""
    generator = np.random.default_rng(seed)
    if dtype == "i1":
        return generator.integers(0, 2, shape).astype(np.bool_)
    if dtype[0] == "f":
        return np.asarray(generator.standard_normal(shape), DTYPES[dtype])
    return np.asarray(generator.integers(-1000, 1000, shape), DTYPES[dtype])


def element(type_: str) -> str:
    """Return the element type in the text of a tensor type."""
    return type_.removesuffix(">").removeprefix("tensor<").split("x")[-1]


def generic(
    name: str, ins: list[tuple[str, str, str]], out: tuple[str, str], loops: list[str], body: str
) -> str:
    """Return a generic of ``(value, type, map)`` inputs into ``(type, map)``; elements are %x0... and %y."""
    dims = ", ".join(f"d{i}" for i in range(len(loops)))
    maps = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in [*(i[2] for i in ins), out[1]])
    kinds = ", ".join(f'"{kind}"' for kind in loops)
    arguments = [f"%x{i}: {element(t)}" for i, (_, t, _) in enumerate(ins)] + [f"%y: {element(out[0])}"]
    inputs = f"ins({', '.join(i[0] for i in ins)} : {', '.join(i[1] for i in ins)})" if ins else ""
    return f"""
    %{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      {inputs} outs(%{name}_init : {out[0]}) {{
      ^bb0({", ".join(arguments)}):
        {body}
    }} -> {out[0]}"""


def empty(name: str, type_: str) -> str:
    """Return an empty ``%name_init``."""
    return f"\n    %{name}_init = tensor.empty() : {type_}"


def filled(name: str, type_: str, value: str) -> str:
    """Return ``%name_init`` filled with a value."""
    return f"""
    %{name}_value = arith.constant {value} : {element(type_)}
    %{name}_empty = tensor.empty() : {type_}
    %{name}_init = linalg.fill ins(%{name}_value : {element(type_)})
      outs(%{name}_empty : {type_}) -> {type_}"""


def reduce(name: str, source: tuple[str, str], out: str, axes: list[int], combine: str) -> str:
    """Return ``%name``, which reduces a value with a type along axes."""
    return f"""
    %{name} = linalg.reduce ins({source[0]} : {source[1]}) outs(%{name}_init : {out}) dimensions = {axes}
      (%e: {element(out)}, %acc: {element(out)}) {{
        %next = {combine} %acc, %e : {element(out)}
        linalg.yield %next : {element(out)}
      }}"""


def scheduled(text: str, target: Target | None = None) -> str:
    """Return the printed module after the scheduling stage."""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        schedule(module, target or named_target())
        assert module.operation.verify()
        return str(module)


def bufferized(text: str, target: Target | None = None) -> str:
    """Return the printed module after scheduling and bufferization."""
    with new_context(), ir.Location.unknown():
        return str(_bufferize(text, target))


def lowered(text: str, target: Target) -> str:
    """Return the printed module in the LLVM dialect."""
    with new_context(), ir.Location.unknown():
        module = _bufferize(text, target)
        to_llvm(module, target)
        return str(module)


def compiled(text: str, target: Target | None = None) -> NativeFunction:
    """Return ``@main`` of ``text`` as machine code, scheduled for ``target``.

    That is what `named_target` says by default; what is scheduled for another one is code for this machine.
    """
    machine = host_target() if target else named_target()
    with new_context(), ir.Location.unknown():
        module = _bufferize(text, target)
        to_llvm(module, machine)
        return native_function(module, opt_level=0, target=machine)


def run(text: str, inputs: Sequence[Array], outputs: Sequence[Array], target: Target | None = None) -> None:
    """Compile ``@main`` of ``text`` and call it between guard pages."""
    guarded.call(compiled(text, target), inputs, outputs)


def _bufferize(text: str, target: Target | None) -> Module:
    module = ir.Module.parse(text)
    schedule(module, target or named_target())
    put_on_memory(module)
    return module
