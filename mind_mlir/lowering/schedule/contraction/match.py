"""Recognises contractions: sums of products, from matrix products of any layout to convolutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mind_mlir.lowering.schedule.linalg_view.values import MultiplyAdd, match_multiply_add
from mind_mlir.mlir.bindings import Operation, OpOperand, Type, Value, ir
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.lowering.schedule.linalg_view.view import Access, View, Views


_COMPUTED = {"i8", "i16", "i32", "i64", "f32", "f64"}
#: The element types of factors that kernels read.
STORED = {*_COMPUTED, "f16", "bf16"}


@dataclass(frozen=True)
class Operand:
    """One factor: a tensor, how it is indexed, and the conversions of its elements to accumulators."""

    value: Value
    access: Access
    casts: tuple[Operation, ...]

    @property
    def element(self) -> Type:
        """The element type as stored."""
        return ir.ShapedType(self.value.type).element_type

    def contiguous(self, dim: int) -> bool:
        """Return whether steps along ``dim`` are steps to the next element and nothing else."""
        uses = [index.uses(dim) for index in self.access]
        return sum(uses) == 1 and self.access[-1].dim == dim

    def uses(self, dim: int) -> bool:
        """Return whether the operand is indexed by ``dim``."""
        return any(index.uses(dim) for index in self.access)


@dataclass(frozen=True)
class Contraction:
    """``out[..., n] += sum over k of left[..., m, k] * right[..., k, n]``, by the roles of the dimensions.

    Attributes:
        view: the operation.
        left: the factor that is read element by element and broadcast.
        right: the factor that is read in vectors along ``n``.
        m: a dimension of ``left`` and the result; None when there is none.
        n: the contiguous dimension of the result, which ``left`` lacks.
        k: the reduction dimension that is blocked.
        rows: all other parallel dimensions that the right factor lacks.
        batch: those that it has.
        inner: all other reduction dimensions.
        floating: whether the arithmetic is that of floats.
    """

    view: View
    left: Operand
    right: Operand
    m: int | None
    n: int
    k: int
    rows: tuple[int, ...]
    batch: tuple[int, ...]
    inner: tuple[int, ...]
    floating: bool

    @property
    def element(self) -> Type:
        """The type of accumulators and result elements."""
        return ir.ShapedType(self.view.inits[0].type).element_type

    @property
    def out(self) -> Access:
        """The access to the result: its indices."""
        return self.view.accesses[2]

    @property
    def is_symmetric(self) -> bool:
        """Whether the right factor is the left one transposed: sums are the same across the diagonal."""
        left, right, m = self.left, self.right, self.m
        if left.value != right.value or m is None or self.rows or self.extent(m) != self.extent(self.n):
            return False
        if [(op.name, op.results[0].type) for op in left.casts] != [
            (op.name, op.results[0].type) for op in right.casts
        ]:
            return False
        turned = {m: self.n, self.n: m}
        pairs = zip(left.access, right.access, strict=True)
        return all(
            one.constant == other.constant
            and sorted((turned.get(dim, dim), factor) for dim, factor in one.terms) == sorted(other.terms)
            for one, other in pairs
        )

    def extent(self, dim: int | None) -> int:
        """Return the extent of ``dim``, 1 for an absent one."""
        return 1 if dim is None else self.view.extents[dim]


#: What the names of products end with.
_PRODUCTS = ("matmul", "matvec", "vecmat", "dot")


def may_be_product(op: Operation) -> bool:
    """Return whether ``op`` may be a product; most are not, which takes less time to see than a view."""
    name = op.name
    if not name.startswith("linalg.") or len(op.operands) != 3:
        return False
    return name.endswith(_PRODUCTS) or (
        name == "linalg.generic" and "reduction" in str(op.attributes["iterator_types"])
    )


def match_contraction(view: View) -> Contraction | None:
    """Return ``view`` as a contraction with vectors along the last dimension of its result, if it is one."""
    if len(view.operands) != 3 or view.results != 1 or not view.reductions or not view.accesses[2]:
        return None
    product = match_multiply_add(view.body)
    n = view.accesses[2][-1].dim
    if product is None or n is None:
        return None
    factors = [
        Operand(view.operands[i], view.accesses[i], product.casts[i])
        for i in range(2)
        if isinstance(view.operands[i].type, ir.RankedTensorType | ir.MemRefType)
    ]
    if len(factors) != 2 or factors[0].uses(n) == factors[1].uses(n):
        return None
    right, left = factors if factors[0].uses(n) else (factors[1], factors[0])
    return _with_roles(view, product, left, right, n)


def is_factor(views: Views, use: OpOperand) -> bool:
    """Return whether ``use`` is that of a factor by a product, which reads through transpositions."""
    view = views.of(use.owner.operation)
    return view is not None and use.operand_number < len(view.inputs) and match_contraction(view) is not None


def _with_roles(
    view: View, product: MultiplyAdd, left: Operand, right: Operand, n: int
) -> Contraction | None:
    innermost = right if not right.contiguous(n) else left
    k = next((dim for dim in view.reductions if innermost.contiguous(dim)), None)
    if k is None:
        k = view.reductions[-1]
    parallel = [dim for dim in range(len(view.extents)) if dim not in view.reductions and dim != n]
    rows = [dim for dim in parallel if not right.uses(dim)]
    m = max(rows, key=lambda dim: (min(view.extents[dim], 16), dim), default=None)
    contraction = Contraction(
        view=view,
        left=left,
        right=right,
        m=m,
        n=n,
        k=k,
        rows=tuple(dim for dim in rows if dim != m),
        batch=tuple(dim for dim in parallel if dim not in rows),
        inner=tuple(dim for dim in view.reductions if dim != k),
        floating=product.floating,
    )
    is_packable = right.contiguous(k) and any(index.dim == n for index in right.access)
    fits = right.contiguous(n) or is_packable
    return contraction if fits and _has_kernel(contraction) else None


def _has_kernel(contraction: Contraction) -> bool:
    """Return whether kernels compute with the types of ``contraction``."""
    casts = [*contraction.left.casts, *contraction.right.casts]
    computed = {str(contraction.element), *(str(op.results[0].type) for op in casts)}
    stored = {str(operand.element) for operand in (contraction.left, contraction.right)}
    return computed <= _COMPUTED and stored <= STORED
