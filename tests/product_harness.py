"""Products of matrices as programs on tensors, of numbers of all types that kernels have instructions for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias

import guarded
import ml_dtypes
import numpy as np
import pytest
from schedule_harness import compiled, function, scheduled, tensor_type

if TYPE_CHECKING:
    from mind_mlir.target import Target

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
NUMPY: dict[str, Any] = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f32": np.float32,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
}
#: Whether each factor is stored transposed.
LAYOUTS = ("nn", "nt", "tn", "tt")
LAID_OUT = pytest.mark.parametrize("layout", LAYOUTS)
_CASTS = {"bf16": "extf", "f16": "extf", "i8": "extsi", "u8": "extui", "i16": "extsi"}

planned = functools.cache(scheduled)
#: What is compiled differently, for a test, is of a shape of its own.
_made = functools.cache(compiled)


def product(m: int, n: int, k: int, types: tuple[str, str], layout: str = "nn", batch: int = 0) -> str:
    """Return a product into f32 or i32; ``layout`` tells for each factor whether it is stored transposed."""
    is_float = types[0] not in ("i8", "u8", "i16")
    elements, wide = [each.replace("u", "i") for each in types], "f32" if is_float else "i32"
    outer, dims = ((batch,), "b, ") if batch else ((), "")
    extents = {"m": m, "n": n, "k": k}
    orders = ["km" if layout[0] == "t" else "mk", "nk" if layout[1] == "t" else "kn", "mn"]
    left, right, out = (
        tensor_type((*outer, *(extents[dim] for dim in order)), element)
        for order, element in zip(orders, (*elements, wide), strict=True)
    )
    maps = ", ".join(f"affine_map<({dims}m, n, k) -> ({dims}{', '.join(order)})>" for order in orders)
    kinds = ", ".join(['"parallel"'] * (2 + len(outer)) + ['"reduction"'])
    casts = "\n".join(
        f"%w{value} = arith.{_CASTS[type_]} %{value} : {element} to {wide}"
        for value, type_, element in zip("xy", types, elements, strict=True)
        if type_ in _CASTS
    )
    x, y = (
        f"%w{value}" if type_ in _CASTS else f"%{value}" for value, type_ in zip("xy", types, strict=True)
    )
    suffix = "f" if is_float else "i"
    body = f"""
    %zero = arith.constant {"0.0" if is_float else 0} : {wide}
    %empty = tensor.empty() : {out}
    %fill = linalg.fill ins(%zero : {wide}) outs(%empty : {out}) -> {out}
    %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%a0, %a1 : {left}, {right}) outs(%fill : {out}) {{
      ^bb0(%x: {elements[0]}, %y: {elements[1]}, %sum: {wide}):
        {casts}
        %p = arith.mul{suffix} {x}, {y} : {wide}
        %s = arith.add{suffix} %sum, %p : {wide}
        linalg.yield %s : {wide}
    }} -> {out}"""
    return function([left, right], [out], body, ["%r"])


def multiplied(left: Array, right: Array, layout: str, target: Target, strategy: str = "") -> Array:
    """Return what compiled code, between guard pages, makes of the two factors, by a strategy."""
    stored = laid_out((left, right), layout)
    (*batch, m, k), n = left.shape, right.shape[-1]
    text = product(m, n, k, (_type(left), _type(right)), layout, *batch)
    assert not strategy or f'strategy = "{strategy}"' in planned(text, target)
    is_integer = left.dtype.kind in "iu"
    out: Array = np.full((*batch, m, n), 7, np.int32 if is_integer else np.float32)
    guarded.call(_made(text, target), stored, [out])
    return out


def constant_product(left: Array, right: Array, side: int, layout: str) -> str:
    """Return a product of floats of which one factor is a constant of the program."""
    given, type_ = laid_out((left, right), layout)[side], _type(left)
    bits = given.reshape(-1).view(f"u{given.itemsize}")
    elements = ", ".join(f"0x{each:0{2 * given.itemsize}X}" for each in bits)
    flat, shaped = tensor_type((given.size,), type_), tensor_type(given.shape, type_)
    rows, columns = given.shape
    constant = f"""
    %flat = arith.constant dense<[{elements}]> : {flat}
    %given = tensor.expand_shape %flat [[0, 1]] output_shape [{rows}, {columns}] : {flat} into {shaped}"""
    text = product(left.shape[0], right.shape[1], left.shape[1], (type_, type_), layout)
    head, body = text.split("{\n", 1)
    return f"{head}{{{constant}\n{body.replace(f'%a{side}', '%given')}"


def with_constant(left: Array, right: Array, side: int, layout: str, target: Target) -> Array:
    """Return what compiled code makes of such a product."""
    text = constant_product(left, right, side, layout)
    assert f"given{'' if side else '_left'} = true" in planned(text, target)
    out: Array = np.full((left.shape[0], right.shape[1]), 7, np.float32)
    guarded.call(_made(text, target), laid_out((left, right), layout), [out])
    return out


def _type(array: Array) -> str:
    return next(name for name, each in NUMPY.items() if each == array.dtype)


def laid_out(factors: tuple[Array, Array], layout: str) -> list[Array]:
    """Return ``factors`` as they are stored."""
    return [
        np.ascontiguousarray(x.swapaxes(-1, -2) if t == "t" else x)
        for x, t in zip(factors, layout, strict=True)
    ]


def integers(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Return random integers, all there are."""
    bounds = np.iinfo(NUMPY[dtype])
    found = np.random.default_rng(seed).integers(bounds.min, bounds.max + 1, shape)
    return found.astype(NUMPY[dtype])


def floats(shape: tuple[int, ...], seed: int, dtype: str = "bf16") -> Array:
    """Return normal random numbers."""
    found: Array = np.random.default_rng(seed).standard_normal(shape).astype(NUMPY[dtype])
    return found


def exact(left: Array, right: Array) -> tuple[Array, Array]:
    """Return the product of floats in f64, and the sums of its terms' magnitudes."""
    one, other = (factor.astype(np.float64) for factor in (left, right))
    return one @ other, np.abs(one) @ np.abs(other)


def check_batches(element: str, target: Target) -> None:
    """Multiply batches of whole numbers, of which sums are exact."""
    shapes = (3, 35, 67), (3, 67, 21)
    made = [np.random.default_rng(seed).integers(-100, 100, shape) for seed, shape in enumerate(shapes)]
    left, right = (each.astype(NUMPY[element]) for each in made)
    np.testing.assert_array_equal(multiplied(left, right, "nn", target), made[0] @ made[1])
