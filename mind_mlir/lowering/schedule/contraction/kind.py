"""The kind of schedules of products: how one is chosen, and when a product is computed as sums along rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.emission.emitter import zero
from mind_mlir.lowering.kernels.summands import can_be_split
from mind_mlir.lowering.schedule.contraction.case import ProductCase
from mind_mlir.lowering.schedule.contraction.choice import (
    choose_schedule,
    is_by_rows,
    is_narrow,
    is_of_tiny_ones,
)
from mind_mlir.lowering.schedule.contraction.constant_factors import constant_of, elements_of, is_exact
from mind_mlir.lowering.schedule.contraction.geometry import geometry, memory_strides
from mind_mlir.lowering.schedule.contraction.kernel_choice import kernels_of
from mind_mlir.lowering.schedule.contraction.marked import Product
from mind_mlir.lowering.schedule.contraction.match import Contraction, Operand, match_contraction
from mind_mlir.lowering.schedule.contraction.words import words_for
from mind_mlir.lowering.schedule.fusion.groups.group import vector_dims
from mind_mlir.lowering.schedule.kind import Kind, Refusal, Site, merged
from mind_mlir.lowering.schedule.linalg_view.values import filling_constant, hoistable_loops
from mind_mlir.lowering.schedule.movement.transposition import (
    emit_in_order,
    emit_transposed,
    match_transposition,
    through_transposes,
)
from mind_mlir.mlir.values import definition
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from mind_mlir.lowering.schedule.linalg_view.view import View
    from mind_mlir.mlir.bindings import Operation, Value
    from mind_mlir.target import Target


@dataclass(frozen=True)
class ProductNest:
    """A sum of products.

    Attributes:
        original: The operation.
        view: It with as few loops as it can have, reading through transpositions.
        contraction: What ``view`` is; None where it is a product no longer.
        constants: Constants that only products read.
    """

    original: View
    view: View
    contraction: Contraction | None
    constants: Container[Value]

    @property
    def reads(self) -> Sequence[Value]:
        """What it reads."""
        return self.original.operands

    @property
    def computes(self) -> Sequence[Operation]:
        """The transpositions that it reads through, and the operation."""
        owners = [definition(value) for value in self.original.inputs]
        transposes = [owner for owner in owners if owner is not None and owner.name == "linalg.transpose"]
        return [*transposes, self.original.op]

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents of its loops."""
        return self.view.extents


@dataclass(frozen=True)
class RowSums:
    """The schedule of a product that is a group of its own, with sums along rows.

    Attributes:
        dims: The loops that can run in vectors.
    """

    dims: tuple[int, ...]

    def choices(self) -> None:
        """Say nothing: the group says what is chosen for it."""


def _match(site: Site) -> ProductNest | Refusal | None:
    """Return the operation as a product if it is one, of any extents but zero."""
    view = site.view
    contraction = None if view is None else match_contraction(view)
    if view is None or contraction is None or 0 in view.extents:
        return None
    constants = site.scope.constants
    in_loops = is_of_tiny_ones(contraction) or is_by_rows(contraction, constants)
    if in_loops and site.groups.would_take(view, vector_dims(view)):
        # Else its large factor would be written, and read again, all of it.
        return Refusal("sums along rows, in the nest that computes what it reads")
    return ProductNest(view, view, contraction, constants)


def _prepare(nest: ProductNest, site: Site) -> ProductNest:
    """Return the product with as few loops as it can have, and reading through transpositions."""
    original = site.loops
    view = merged(through_transposes(original))
    contraction = match_contraction(view)
    if contraction is None and not vector_dims(view):  # else sums, as of rows and columns that are vectors
        view = _materialized(original, site)
        contraction = match_contraction(view)
    if contraction is not None and _has_few_columns(contraction, site):
        view = with_last(view, contraction.right, 0, site)
        contraction = match_contraction(view)
    return ProductNest(original, view, contraction, nest.constants)


def _choose(nest: ProductNest, target: Target) -> Product | RowSums | Refusal:
    """Return how the product is tiled, or along which loops its sums run in vectors."""
    contraction, dims = nest.contraction, vector_dims(nest.view)
    if contraction is None or is_by_rows(contraction, nest.constants):
        return RowSums(dims) if dims else Refusal("no factor is contiguous along a loop")
    by_rows = contraction.right.contiguous(contraction.k) and is_narrow(contraction, target)
    if dims and (by_rows or is_of_tiny_ones(contraction)):
        return RowSums(dims)
    return _scheduled(contraction, target, nest.constants)


def _emit(nest: ProductNest, schedule: Product | RowSums, site: Site) -> Sequence[Value] | None:
    """Emit the marked operation, or the group."""
    if isinstance(schedule, RowSums):
        site.groups.add_alone(nest.view, schedule.dims)
        return None
    site.scope.kernels.update(dict.fromkeys(kernels_of(schedule)))
    return [schedule.mark()]


#: Contractions, which become marked operations.
PRODUCT: Kind[ProductNest, Product | RowSums] = Kind("product", _match, _choose, _emit, _prepare)


def _has_few_columns(contraction: Contraction, site: Site) -> bool:
    """Return whether the right factor of a product has few columns, but several, which had better be rows."""
    plain = [index.dim for index in contraction.right.access] == [contraction.k, contraction.n]
    several = contraction.extent(contraction.n) > 1
    return plain and several and is_narrow(contraction, site.scope.target)


def with_last(view: View, right: Operand, place: int, site: Site) -> View:
    """Emit the right factor with a dimension and its last one exchanged; return the product reading that."""
    number = next(at for at, access in enumerate(view.accesses) if access is right.access)
    order = list(range(len(right.access)))
    order[place], order[-1] = order[-1], place
    access = tuple(right.access[at] for at in order)
    shape = tuple(view.shapes[number][at] for at in order)
    return view.reading({number: (emit_in_order(right.value, order, site), access, shape)})


def _materialized(view: View, site: Site) -> View:
    """Emit the transposes that ``view`` reads from after all; return it reading their results."""
    for operand in view.inputs:
        op = definition(operand)
        source = None if op is None else site.scope.views.of(op.operation)
        if source is not None and match_transposition(source) is not None:
            operand.replace_all_uses_with(emit_transposed(source, site))
    return view.current()


def _scheduled(contraction: Contraction, target: Target, constants: Container[Value | None]) -> Product:
    """Return how ``contraction``, of one iteration or more in each loop, is computed.

    Those of ``constants``, which products alone read, can be packed when the program is compiled.
    """
    loops = geometry(contraction, memory_strides(contraction))
    start = filling_constant(contraction.view.inits[0])
    left, right = (
        constant_of(factor.value) in constants and is_exact(factor)
        for factor in (contraction.left, contraction.right)
    )
    hoist_depth = hoistable_loops(contraction.view.op, contraction.right.value)
    words = words_for(contraction, loops, target, once=(left, right or hoist_depth > 0))
    if words is not None and words.summands > 1:
        factors = (contraction.left, left), (contraction.right, right)
        if not all(can_be_split(elements_of(each.value)) for each, is_constant in factors if is_constant):
            words = None
    case = ProductCase(
        loops=loops,
        bits=contraction.element.width,
        target=target,
        hoist_depth=hoist_depth,
        words=words,
        converts=bool(contraction.left.casts),
        constant_left=left,
        constant_right=right,
        starts_at_zero=start is not None and start == zero(contraction.element),
        is_symmetric=start is not None and contraction.is_symmetric,
    )
    return Product(contraction, loops, choose_schedule(case))
