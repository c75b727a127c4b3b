"""`OpDef`: everything about one operation, in one record.

Each stage of the compiler is a small loop over operations that applies one of the record's rules:

    verifier      type_rule(TypeContext) -> TensorType
    interpreter   evaluate(EvalContext) -> numpy array            the oracle, written from the documents
    autodiff      derivative(VjpContext) -> cotangent per operand
    lowering      lower(LoweringContext) -> MLIR value            linalg on tensors
    conversion    stablehlo(StablehloContext) -> values           StableHLO

The rules are given a context rather than loose arguments, so that a rule takes what it needs and a new need
does not change every rule. Nothing here imports MLIR.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from mind_mlir.ir.types import DType, DTypeKind
from mind_mlir.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from mind_mlir.ir.attributes import AttributeValue
    from mind_mlir.ops.attribute_kinds import AttrKind
    from mind_mlir.ops.contract import Contract
    from mind_mlir.ops.rules import (
        DerivativeRule,
        DimsRule,
        EmitRule,
        EvalRule,
        ExpandRule,
        FlowRule,
        LinalgRule,
        MagnitudeRule,
        NormalizeRule,
        OpenRule,
        StablehloRule,
        TermsRule,
        TypeRule,
    )

DTypeSet: TypeAlias = tuple[DType, ...]

INTEGERS: DTypeSet = (DType.SI32, DType.SI64)
FLOATS: DTypeSet = (DType.F32, DType.F64)
NUMERIC: DTypeSet = INTEGERS + FLOATS
BOOL: DTypeSet = (DType.I1,)
ANY: DTypeSet = BOOL + NUMERIC

# The sets above are what Core v1 has of each class; a profile with fewer or more dtypes takes what both have.
_BY_KIND = {kind: tuple(dtype for dtype in DType if dtype.kind is kind) for kind in DTypeKind}
ALL_SIGNED: DTypeSet = _BY_KIND[DTypeKind.SIGNED]
ALL_UNSIGNED: DTypeSet = _BY_KIND[DTypeKind.UNSIGNED]
ALL_INTEGERS: DTypeSet = ALL_SIGNED + ALL_UNSIGNED
ALL_FLOATS: DTypeSet = _BY_KIND[DTypeKind.FLOAT]
COMPLEX: DTypeSet = _BY_KIND[DTypeKind.COMPLEX]
ALL_REAL: DTypeSet = ALL_INTEGERS + ALL_FLOATS
ALL_NUMERIC: DTypeSet = ALL_REAL + COMPLEX
EVERY: DTypeSet = BOOL + ALL_NUMERIC
#: What has an order: false is less than true.
ORDERED: DTypeSet = BOOL + ALL_REAL
#: What operations take that only move elements.
MOVABLE: DTypeSet = EVERY

#: Why some dtypes are none for an operation, in many records.
NO_NUMBERS = (BOOL, "truth values are no numbers")
NO_FLOATS = (ALL_INTEGERS, "the result is no integer: cast to a float first")
NO_ORDER = (COMPLEX, "complex numbers have no order")


def mnemonic_of(opcode: str) -> str:
    """Return the name in the `mind` dialect of an operation that has no other."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", opcode).lower()


class Domain(Enum):
    """The operand values that are meaningful, for generated test programs."""

    ANY = "any"
    POSITIVE = "positive"  # log, reciprocal away from zero
    NONZERO = "nonzero"  # divisors
    INDEX = "index"  # indices into axis 0 of the first operand
    POSITION = "position"  # as indices, of the axis that attribute `axis` names or else 0; never from the end
    WINDOW = "window"  # where windows begin in the first operand, as ScatterAdd has them


class Movement(Enum):
    """The elements of the operand that the result holds, of operations that only move elements."""

    RESHAPE = "reshape"  # all, in the same order
    PERMUTATION = "permutation"  # all, in another order
    BROADCAST = "broadcast"  # all, again and again, as a view may show them
    REPETITION = "repetition"  # all, again and again, as no view shows them
    SELECTION = "selection"  # some, as a view may show them


class Rounding(Enum):
    """The agreement of compiled code with the numpy rule on floats; integers always agree exactly."""

    EXACT = "exact"  # bit for bit: correctly rounded, or only moves data
    APPROXIMATE = "approximate"  # to a relative error of the value
    ACCUMULATING = "accumulating"  # relative to the sum of the terms' magnitudes: `accumulation`


@dataclass(frozen=True, slots=True)
class OperandDef:
    """One operand: its name, the dtypes it may have, and the code reported for another.

    A variadic operand, which can only be the last one, stands for any number of operands.
    """

    name: str
    dtypes: DTypeSet = NUMERIC
    dtype_code: str = "E2005"
    domain: Domain = Domain.ANY
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class RegionDef:
    """One region: its name, which is the label of its block in text, and one line about it."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True)
class AttributeDef:
    """One attribute.

    Attributes:
        name: Parameter name of core-ir.md.
        kind: What values it takes.
        doc: One line for the reference.
        default: Its value when it is left out; None where it must be given.
        choices: The keywords of an `AttrKind.ENUM`.
        code: Reported when the value is not of its kind.
        of_result: What the grammar form leaves to the declared type of the result: ``dtype`` or ``shape``.
    """

    name: str
    kind: AttrKind
    doc: str
    default: AttributeValue | None = None
    choices: tuple[str, ...] = ()
    code: str = "E1103"
    of_result: Literal["dtype", "shape"] | None = None

    def accepts(self, value: AttributeValue) -> bool:
        """Return whether ``value`` is of the kind, and one of the choices where there are some."""
        return self.kind.accepts(value) and (not self.choices or value in self.choices)


@dataclass(frozen=True, slots=True)
class Alias:
    """Another name of an operation, in the texts and builders of one profile.

    Attributes:
        profile: The profile that knows it.
        name: For example ``tensor.sum_all``.
        attributes: What the name stands for besides the operation: attributes that may not be given with it.
    """

    profile: str
    name: str
    attributes: Mapping[str, AttributeValue] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Example:
    """A valid use, for the reference, the generated tests and the program generator.

    Attributes:
        operands: Operand types in Core spelling, with ``T`` for any dtype that the operation allows
            there, for example ``"T[3, 4]"`` or ``"i64[5]"``.
        attributes: The attributes, as the IR holds them.
        note: What the example shows, when that is not plain.
    """

    operands: tuple[str, ...]
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class ExampleModule:
    """A module in function form that uses an operation whose uses are no matter of operand types alone.

    Attributes:
        text: The module, as it is written; its function `main` has arguments of rank 0 to 2.
        note: What it shows, when that is not plain.
    """

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class NotDifferentiable:
    """Stands where a derivative rule would: why there is none (autodiff reports E5001)."""

    reason: str
    #: True for operations whose result carries no gradient at all (constants, comparisons): autodiff then
    #: stops there silently, because nothing is lost.
    constant: bool = False


@dataclass(frozen=True, slots=True)
class NotInStablehlo:
    """Stands where a StableHLO rule would: why StableHLO cannot say what the operation does."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpDef:
    """All facts about one operation; a record is equal to itself alone.

    Attributes:
        opcode: Spelling in Core IR text, and in memory.
        mnemonic: Name in the `mind` dialect; by default the opcode in lower case, with underscores.
        summary: One line, ``Computes ...``.
        description: Semantics in Markdown: shapes, dtypes, values, errors.
        spec: The section that defines it.
        operands: Operand schema, in order.
        attributes: Attribute schema; the order is that of the trailing arguments in the grammar form.
        regions: The regions, in order; a region's name is the label of its block.
        results: The names of the results of an operation of the `mind` dialect; nearly all have one.
        type_rule: Result type from operand types and attributes, or one for each of several results; reports
            constraint violations.
        evaluate: The numpy rule; returns a tuple where there are several results.
        derivative: The vector-Jacobian product, or why there is none.
        derivative_is_extension: Whether the documents leave the derivative out of Core v1, so that autodiff
            uses it (rather than report E5001) only where the caller switches extensions on.
        flow: For operations with regions, what their operands and what the regions yield become; of others,
            all operands flow into all results.
        open_axes: What it is where extents of its operands are known only when the program is called; without
            one, movements and operations on elements have the rule of their class, and others none.
        dims: How dimensions of operands and results belong together, so that ranks can each compute a part;
            without one, movements and operations on elements have the rule of their class, and others none.
        lower: The linalg rule; None for what is no operation of the `mind` dialect.
        stablehlo: What says the same in StableHLO, or why nothing does; None for what never gets there:
            inputs, and what `expand` takes apart.
        stablehlo_name: The operation of StableHLO or CHLO that does the same with the same operands, with its
            dialect: what is imported as this one.
        not_in_stablehlo: Dtypes for which its rule has no answer, and why.
        emit: What is emitted in the place of an operation of the `mind` dialect, where there is none.
        expand: What appends the operations that take its place in structured form, before differentiation
            and lowering, where there are such; its derivative and what is emitted are theirs.
        upstream: The operation of MLIR's own dialects that is emitted instead, where there is one.
        choices: What we chose where the documents leave the choice to the implementation.
        normalize: Complete attributes in normal form, from them and the type of the first result: what means
            the same is then equal (axes count from the front and ascend).
        movement: How elements of the operand become those of the result, where that is all it does.
        copies: Whether it copies elements, which is work, in a way that `movement` does not tell of.
        keeps_zeros: Where it makes zeros of an operand that is zero: ``always``, as it chooses or compares
            elements, or changes their sign or dtype; ``scaled``, where another operand is finite and not 0.
        contracts: Whether it is a product that sums: a contraction.
        runs_others: Whether it runs code that is not among the operations of its function.
        collective: Whether the ranks of a mesh do it together: its result is none of its own operands alone.
        depends_on_width: Whether it is another function in wider floats, rather than the same one rounded
            less: what looks at bits, counts in steps, or draws other numbers.
        same_dtype: Whether all operands must share one dtype (E2004).
        commutative: Whether the canonicaliser may order the operands.
        rounding: How closely compiled code agrees with ``evaluate``; only exact operations are folded.
        on_truths: Of operations on numbers, the one that does the same with truth values, as numpy has it.
        keeps_integers: Whether integers, which it does not take, are what it would give.
        in_numpy: What `mind_mlir.numpy` calls it, where that is more than its mnemonic or another name: none
            where functions by hand do what it does. What is no function of arrays has, as one text, what
            stands for it in Python.
        scalar_op: The operation of MLIR that computes an element of it, where `vector_operations` is what
            that one takes.
        vector_operations: Of what computes each element from one of each operand, how many vector operations
            that takes for floats, about, slow ones counted as often as they are slower; of others 0.
        terms: For operations that accumulate, how many terms an element of the result is the sum of, from the
            shapes of the operands and the complete attributes (see `ops.accumulation`).
        magnitude: What the error of each element of such a result is relative to, where that is not the numpy
            rule's result for the magnitudes of the operands.
        extension: Whether it stands outside Core v1 (named as PTIR names it).
        aliases: Its other names, by profile.
        never: Dtypes that the contract excludes, or that make no sense, and why.
        refused: Dtypes that the contract leaves open and that are a diagnostic, why, and what to do instead.
        contract: How PTIR programs write it; None for what the contract does not have.
        in_contract: Where the contract does not have it, what appends operations that it has and that say the
            same; None where there are none.
        examples: Valid uses, including the edge cases.
        programs: Valid uses of an operation with regions or of other functions, in the place of examples.
    """

    opcode: str
    mnemonic: str = ""
    summary: str
    description: str
    spec: str
    operands: tuple[OperandDef, ...]
    attributes: tuple[AttributeDef, ...] = ()
    regions: tuple[RegionDef, ...] = ()
    results: tuple[str, ...] = ("result",)
    type_rule: TypeRule
    evaluate: EvalRule
    derivative: DerivativeRule | NotDifferentiable
    derivative_is_extension: bool = False
    flow: FlowRule | None = None
    open_axes: OpenRule | None = None
    dims: DimsRule | None = None
    lower: LinalgRule | None
    stablehlo: StablehloRule | NotInStablehlo | None = None
    stablehlo_name: str | None = None
    not_in_stablehlo: tuple[tuple[DTypeSet, str], ...] = ()
    emit: EmitRule | None = None
    expand: ExpandRule | None = None
    upstream: str | None = None
    choices: tuple[str, ...] = ()
    normalize: NormalizeRule | None = None
    movement: Movement | None = None
    copies: bool = False
    keeps_zeros: Literal["always", "scaled"] | None = None
    contracts: bool = False
    runs_others: bool = False
    collective: bool = False
    depends_on_width: bool = False
    same_dtype: bool = True
    commutative: bool = False
    rounding: Rounding = Rounding.EXACT
    on_truths: str | None = None
    keeps_integers: bool = False
    in_numpy: tuple[str, ...] | str | None = None
    scalar_op: str | None = None
    vector_operations: int = 0
    terms: TermsRule | None = None
    magnitude: MagnitudeRule | None = None
    extension: bool = False
    aliases: tuple[Alias, ...] = ()
    never: tuple[tuple[DTypeSet, str], ...] = ()
    refused: tuple[tuple[DTypeSet, str], ...] = ()
    contract: Contract | None = None
    in_contract: ExpandRule | None = None
    examples: tuple[Example, ...] = ()
    programs: tuple[ExampleModule, ...] = ()

    def __post_init__(self) -> None:
        if not self.mnemonic:
            object.__setattr__(self, "mnemonic", mnemonic_of(self.opcode))

    def attribute(self, name: str) -> AttributeDef | None:
        """Return the schema of attribute ``name``, or None."""
        return next((a for a in self.attributes if a.name == name), None)

    def operand(self, index: int) -> OperandDef:
        """Return the schema of operand ``index``, which exists."""
        return self.operands[min(index, len(self.operands) - 1)]

    def why_not(self, dtype: DType) -> str | None:
        """Return why data of ``dtype`` is none for it, where the record says so."""
        return next((reason for dtypes, reason in self.never + self.refused if dtype in dtypes), None)

    @property
    def is_variadic(self) -> bool:
        """Return whether it takes any number of operands from its last one on."""
        return bool(self.operands) and self.operands[-1].variadic

    @property
    def is_view(self) -> bool:
        """Return whether strides alone may say what it does, so that nothing need move."""
        return self.movement not in (None, Movement.REPETITION)

    @property
    def keeps_all(self) -> bool:
        """Return whether its result is each element of the operand, once."""
        return self.movement in (Movement.RESHAPE, Movement.PERMUTATION)

    @property
    def is_constant(self) -> bool:
        """Return whether it stands for the literal that is its attribute `value`."""
        return not self.operands and self.attribute("value") is not None

    @property
    def is_static(self) -> bool:
        """Return whether its attributes alone say what its elements are."""
        return not self.operands and self.in_dialect and not self.collective

    @property
    def spreads(self) -> bool:
        """Return whether nests of loops make its elements of next to nothing where these are read."""
        is_repeated = self.movement in (Movement.BROADCAST, Movement.REPETITION)
        return is_repeated or (self.is_static and not self.is_constant)

    @property
    def in_dialect(self) -> bool:
        """Return whether there is an operation of the `mind` dialect for it."""
        return self.lower is not None
