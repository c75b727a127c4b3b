"""Layers that a program repeats, as functions: which are, and that they compute the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
import mind_mlir.numpy as mnp
from mind_mlir.passes.forms import structured_form
from mind_mlir.passes.layers import share_layers

if TYPE_CHECKING:
    from mind_mlir import Module
    from mind_mlir.ir.attributes import Array

SIZE = 8
MATRIX = f"tensor<f32[{SIZE}, {SIZE}]>"
ROW = f"tensor<f32[{SIZE}]>"


class Text:
    """A program of layers, of 18 steps and 7 views each, in the making."""

    def __init__(self, layers: int) -> None:
        self.lines = [f'%w{layer} = Input {{name="w{layer}"}} : {MATRIX}' for layer in range(layers)]
        self.lines += [
            f'%x = Input {{name="x"}} : {MATRIX}',
            f'%i = Input {{name="i"}} : tensor<i32[{SIZE}]>',
        ]
        self.count = 0

    def add(self, operation: str, type_: str = MATRIX) -> str:
        self.count += 1
        self.lines.append(f"%v{self.count} = {operation} : {type_}")
        return f"%v{self.count}"

    def layer(self, x: str, w: str, scale: str = "0.5") -> tuple[str, str]:
        """Append a layer; returns what it hands on, and its product."""
        turned = self.add(f"Transpose ({w}) {{permutation=[1, 0]}}")
        product = self.add(f"MatMul ({x}, {turned})")
        factor = self.add(f"ConstF32 {{value={scale}}}", "tensor<f32[]>")
        y = self.add(f"Mul ({product}, {factor})")
        for _ in range(5):
            mean = self.add(f"Mean ({y}) {{axes=[1], keepdims=true}}", f"tensor<f32[{SIZE}, 1]>")
            y = self.add(f"Sub ({y}, {self.add(f'BroadcastTo ({mean}) {{result_shape=[{SIZE}, {SIZE}]}}')})")
            y = self.add(f"Add ({y}, {x})")
        return y, product

    def module(self, *outputs: str) -> Module:
        module: Module = mind_mlir.parse("\n".join([*self.lines, f"outputs: {', '.join(outputs)}", ""]))
        return module


def program(scales: list[str]) -> Module:
    """Layers with the same weights at the first and the third place, and results of all kinds."""
    text = Text(len(scales))
    x, found = "%x", []
    for number, scale in enumerate(scales):
        x, product = text.layer(x, f"%w{0 if number == 2 else number}", scale)
        found.append(text.add(f"Transpose ({product}) {{permutation=[1, 0]}}"))
        if number == 1:
            found.append(product)
    return text.module(x, *found, found[0])


def shared(module: Module) -> Module:
    return share_layers(structured_form(module))


def calls(module: Module) -> list[int]:
    """Return how often each of the layers' functions is called."""
    main, *layers = module.functions
    callees = [op.attributes["callee"] for op in main.entry.operations if op.opcode == "Call"]
    return [callees.count(layer.name) for layer in layers]


def values(module: Module) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    arrays = {name: rng.uniform(-1, 1, (SIZE, SIZE)).astype(np.float32) for name in module.inputs_by_name}
    return arrays | {"i": np.arange(SIZE, dtype=np.int32)}


def test_layers_are_functions_that_compute_the_same() -> None:
    module = program(["0.5"] * 6)
    made = shared(module)
    assert calls(made) == [6]
    assert str(made) == str(shared(module))
    given = values(module)
    found = mind_mlir.compile(module)(**given)
    expected = mind_mlir.compile(module, disabled_passes=["layers"])(**given)
    for new, old in zip(found, expected, strict=True):
        np.testing.assert_array_equal(new, old)


def test_only_equal_layers_are_shared() -> None:
    assert calls(shared(program(["0.5", "0.5", "0.5", "-0.0", "-0.0", "-0.0", "0.0", "0.0", "0.0"]))) == [
        3,
        3,
        3,
    ]
    assert shared(program(["0.5", "0.5"])).functions[1:] == ()
    assert shared(program(["0.1", "0.2", "0.3"])).functions[1:] == ()


def test_repeated_code_without_a_product_stays() -> None:
    text = Text(5)
    x = "%x"
    for number in range(5):
        x, _ = text.layer(x, f"%w{number}")
    for _ in range(100):
        x = text.add(f"Add ({x}, %x)")
    assert calls(shared(text.module(x))) == [5]


def test_what_a_run_time_check_names_is_not_shared() -> None:
    text = Text(4)
    x = "%x"
    for number in range(4):
        x, _ = text.layer(x, f"%w{number}")
        x = text.add(f"Gather ({x}, %i) {{axis=0}}")
    assert shared(text.module(x)).functions[1:] == ()


def test_a_chain_of_small_products_is_cut_into_layers() -> None:
    text = Text(1)
    x = "%x"
    for _ in range(100):
        x = text.add(f"MatMul ({x}, %w0)")
    made = shared(text.module(x))
    assert calls(made) == [6]
    given = values(text.module(x))
    given["w0"] = np.eye(SIZE, dtype=np.float32)
    np.testing.assert_array_equal(mind_mlir.compile(text.module(x))(**given)[0], given["x"])


def test_products_with_large_constants_are_in_no_layer() -> None:
    """They are laid out when the program is compiled, as they would not be as arguments of a function."""

    def layered(x: Any, weights: list[Any]) -> Any:
        for weight in weights:
            for _ in range(6):
                x = mnp.tanh(x - x.mean(axis=1, keepdims=True)) + 0.5
            x = x @ weight
        return x

    random = np.random.default_rng(2)
    x = random.standard_normal((4, 64)).astype(np.float32)
    weights = [random.standard_normal((64, 64)).astype(np.float32) / 8 for _ in range(4)]
    module = mind_mlir.jit(layered).lower(x, weights).module
    given = mind_mlir.compile(module)
    names = [each.name for each in given.parameters[1:]]
    constant = mind_mlir.compile(module, constants=dict(zip(names, weights, strict=True)))
    assert "@main_layer_0" in given.as_text("optimized")
    assert "@main_layer_0" not in constant.as_text("optimized")
    np.testing.assert_allclose(constant(x)[0], given(x, *weights)[0], rtol=1e-5, atol=1e-5)
