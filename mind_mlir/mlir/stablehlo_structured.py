"""StableHLO operations with regions, from reductions and windows to branches and loops; gathers and products.

A region is given as a function from its parameters to what it returns; it may read what is defined around it
where StableHLO lets it (branches and loops).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from mind_mlir.mlir.bindings import ir
from mind_mlir.mlir.stablehlo_builder import HloValue
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mind_mlir.ir.types import TensorType
    from mind_mlir.mlir.bindings import Attribute
    from mind_mlir.mlir.stablehlo_builder import StablehloBuilder

#: From the parameters of a region to what it returns.
Body: TypeAlias = "Callable[..., HloValue | Sequence[HloValue]]"


@dataclass(frozen=True, slots=True)
class StructuredBuilder:
    """Appends them where ``builder`` appends.

    Attributes:
        builder: It appends operations.
    """

    builder: StablehloBuilder

    def _fill(self, region: Any, types: Sequence[TensorType], body: Body) -> None:
        """Make one block of ``region``, whose parameters are of ``types``, and let ``body`` fill it."""
        located = [ir.Location.current] * len(types)
        block = ir.Block.create_at_start(region, [self.builder.mlir_type(type_) for type_ in types], located)
        with ir.InsertionPoint(block):
            pairs = zip(block.arguments, types, strict=True)
            found = body(*(HloValue(argument, type_) for argument, type_ in pairs))
            returned = [found] if isinstance(found, HloValue) else found
            self.builder.operation("return", returned, [])

    def reduce(
        self, values: Sequence[HloValue], starts: Sequence[HloValue], axes: Sequence[int], body: Body
    ) -> list[HloValue]:
        """Append a reduction of several values of one shape.

        Args:
            values: What is reduced.
            starts: What each accumulator starts from, of rank 0.
            axes: The reduced axes, which the results lack.
            body: From the accumulators and as many elements, all of rank 0, to the accumulators.
        """
        kept = tuple(extent for axis, extent in enumerate(values[0].shape) if axis not in axes)
        types = [start.type.with_shape(kept) for start in starts]
        operation = self.builder.operation(
            "reduce", [*values, *starts], types, regions=1, dimensions=self.builder.integers(axes)
        )
        self._fill(operation.regions[0], [each.type for each in (*starts, *starts)], body)
        return self.builder.results(operation, types)

    def joining(
        self, name: str, value: HloValue, type_: TensorType, body: Body, **attributes: Attribute
    ) -> HloValue:
        """Append ``stablehlo.<name>``, which joins elements of several ranks, of rank 0, by ``body``."""
        operation = self.builder.operation(name, [value], [type_], regions=1, **attributes)
        self._fill(operation.regions[0], [value.type.with_shape(())] * 2, body)
        return HloValue(operation.result, type_, operation)

    def reduce_window(
        self,
        value: HloValue,
        start: HloValue,
        type_: TensorType,
        body: Body,
        *,
        dims: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        base_dilation: Sequence[int],
        dilation: Sequence[int],
    ) -> HloValue:
        """Append what ``body`` makes of the elements of each window, from ``start``, as what is padded is."""
        operation = self.builder.operation(
            "reduce_window",
            [value, start],
            [type_],
            regions=1,
            window_dimensions=self.builder.integers(dims),
            window_strides=self.builder.integers(strides),
            base_dilations=self.builder.integers(base_dilation),
            window_dilations=self.builder.integers(dilation),
            padding=self.builder.pairs(padding),
        )
        self._fill(operation.regions[0], [start.type, start.type], body)
        return HloValue(operation.result, type_, operation)

    def sort(self, values: Sequence[HloValue], axis: int, before: Body) -> list[HloValue]:
        """Append values of one shape ordered along ``axis``, stably.

        Args:
            values: What is ordered, all by one order.
            axis: Not negative.
            before: From two elements of the first, two of the second, ... to whether the first ones come
                first, all of rank 0.
        """
        types = [value.type for value in values]
        operation = self.builder.operation(
            "sort",
            values,
            types,
            regions=1,
            dimension=self.builder.integer(axis),
            is_stable=ir.BoolAttr.get(True),
        )
        pairs = [value.type.with_shape(()) for value in values for _ in range(2)]
        self._fill(operation.regions[0], pairs, before)
        return self.builder.results(operation, types)

    def gather(
        self,
        operand: HloValue,
        indices: HloValue,
        type_: TensorType,
        *,
        sizes: Sequence[int],
        start_index_map: Sequence[int],
        index_vector_dim: int,
        offset_dims: Sequence[int] = (),
        collapsed: Sequence[int] = (),
        operand_batching: Sequence[int] = (),
        indices_batching: Sequence[int] = (),
    ) -> HloValue:
        """Append the slices of ``operand`` at ``indices``; those that do not fit are moved until they do."""
        numbers = (
            f"offset_dims = {list(offset_dims)}, collapsed_slice_dims = {list(collapsed)}, "
            f"operand_batching_dims = {list(operand_batching)}, "
            f"start_indices_batching_dims = {list(indices_batching)}, "
            f"start_index_map = {list(start_index_map)}, index_vector_dim = {index_vector_dim}"
        )
        return self.builder.emit(
            "gather",
            [operand, indices],
            type_,
            dimension_numbers=self.builder.attribute(f"#stablehlo.gather<{numbers}>"),
            slice_sizes=self.builder.integers(sizes),
            indices_are_sorted=ir.BoolAttr.get(False),
        )

    def scatter(
        self,
        operand: HloValue,
        indices: HloValue,
        updates: HloValue,
        body: Body,
        *,
        update_window_dims: Sequence[int],
        inserted: Sequence[int],
        scatter_dims: Sequence[int],
        index_vector_dim: int,
        operand_batching: Sequence[int] = (),
        indices_batching: Sequence[int] = (),
    ) -> HloValue:
        """Append ``operand`` with ``updates`` combined into it; windows that do not fit in are left out.

        ``body`` goes from an element of the operand and one of the updates, of rank 0, to the new element.
        """
        numbers = (
            f"update_window_dims = {list(update_window_dims)}, inserted_window_dims = {list(inserted)}, "
            f"input_batching_dims = {list(operand_batching)}, "
            f"scatter_indices_batching_dims = {list(indices_batching)}, "
            f"scatter_dims_to_operand_dims = {list(scatter_dims)}, index_vector_dim = {index_vector_dim}"
        )
        operation = self.builder.operation(
            "scatter",
            [operand, indices, updates],
            [operand.type],
            regions=1,
            scatter_dimension_numbers=self.builder.attribute(f"#stablehlo.scatter<{numbers}>"),
            indices_are_sorted=ir.BoolAttr.get(False),
            unique_indices=ir.BoolAttr.get(False),
        )
        scalar = operand.type.with_shape(())
        self._fill(operation.regions[0], [scalar, scalar], body)
        return HloValue(operation.result, operand.type, operation)

    def dot_general(
        self,
        left: HloValue,
        right: HloValue,
        type_: TensorType,
        batch: tuple[Sequence[int], Sequence[int]],
        contracting: tuple[Sequence[int], Sequence[int]],
    ) -> HloValue:
        """Append a product: axes of a batch first, then the free ones of ``left`` and of ``right``."""
        numbers = (
            f"lhs_batching_dimensions = {list(batch[0])}, rhs_batching_dimensions = {list(batch[1])}, "
            f"lhs_contracting_dimensions = {list(contracting[0])}, "
            f"rhs_contracting_dimensions = {list(contracting[1])}"
        )
        return self.builder.emit(
            "dot_general",
            [left, right],
            type_,
            dot_dimension_numbers=self.builder.attribute(f"#stablehlo.dot<{numbers}>"),
        )

    def branch(
        self, predicate: HloValue, types: Sequence[TensorType], then: Body, other: Body
    ) -> list[HloValue]:
        """Append what ``then`` returns where the predicate, of rank 0, is true, else what ``other`` does."""
        operation = self.builder.operation("if", [predicate], types, regions=2)
        for region, body in zip(operation.regions, (then, other), strict=True):
            self._fill(region, [], body)
        return self.builder.results(operation, types)

    def loop(self, values: Sequence[HloValue], more: Body, body: Body) -> list[HloValue]:
        """Append ``body`` of the values again and again, while ``more`` of them is true."""
        types = [value.type for value in values]
        operation = self.builder.operation("while", values, types, regions=2)
        for region, each in zip(operation.regions, (more, body), strict=True):
            self._fill(region, types, each)
        return self.builder.results(operation, types)
