"""What quantisation did to a model: its layers with their errors, as data and as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mind_mlir.ir.attributes import Array
    from mind_mlir.ir.module import Module


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedLayer:
    """A product whose weights became numbers of few bits.

    Errors are relative: the root of the sum of squared differences over that of squares.

    Attributes:
        product: What the program calls its result.
        weight: The name of the weight.
        shape: Results and summed elements of a row, ``(N, K)``.
        bytes: Bytes of the weight before and after.
        weight_error: Of the weight.
        output_error: Of the result, for the same activations, with example inputs; else None.
    """

    product: str
    weight: str
    shape: tuple[int, int]
    bytes: tuple[int, int]
    weight_error: float
    output_error: float | None


@dataclass(frozen=True, slots=True, eq=False)
class LeftLayer:
    """A product of a weight that stayed as it is.

    Attributes:
        product: What the program calls its result.
        weight: The name of the weight.
        reason: Why it stayed.
    """

    product: str
    weight: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class QuantizedModel:
    """A model with weights of few bits; ``print`` shows the table of its layers.

    Attributes:
        module: The program.
        weights: Its arguments that take the place of the weights that were given, by name.
        format: The format of the weights.
        layers: The products that changed.
        left: The products of weights that did not.
        output_errors: Of each result of the program, with example inputs.
    """

    module: Module
    weights: Mapping[str, Array]
    format: str
    layers: tuple[QuantizedLayer, ...]
    left: tuple[LeftLayer, ...]
    output_errors: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"<QuantizedModel {self.format}: {len(self.layers)} layers, {len(self.left)} left>"

    def __str__(self) -> str:
        rows = [("product", "weight", "shape", "bytes", "weight error", "output error")]
        rows += [
            (
                layer.product,
                layer.weight,
                " x ".join(map(str, layer.shape)),
                " -> ".join(f"{count:,}" for count in layer.bytes),
                f"{layer.weight_error:.2e}",
                "" if layer.output_error is None else f"{layer.output_error:.2e}",
            )
            for layer in self.layers
        ]
        lines = [f"weights of format {self.format}", *_table(rows)]
        lines += [f"left as it is: {each.product}, of {each.weight}: {each.reason}" for each in self.left]
        if self.output_errors:
            lines.append("results: " + ", ".join(f"{error:.2e}" for error in self.output_errors))
        return "\n".join(lines)


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
