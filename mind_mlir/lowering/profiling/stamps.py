"""Time stamps in compiled code: around each nest, and around what a thread computes of a shared loop.

They are calls of one small function, which appends a record to memory of the process: which stamp it is, the
processor's clock, and the thread. What is between two stamps is the code that runs without them, too.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import field
from typing import TYPE_CHECKING

from mind_mlir.lowering.buffers.merging import is_parallel
from mind_mlir.lowering.emission.decision import Decision
from mind_mlir.lowering.profiling.rows import Computes, StampedRow
from mind_mlir.lowering.profiling.tags import Tags, tags_of, untagged
from mind_mlir.mlir.bindings import arith, func, ir
from mind_mlir.mlir.locations import label_of, place_of
from mind_mlir.mlir.memory import METADATA, VIEWS
from mind_mlir.mlir.values import define, name_of
from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target import AARCH64, X86_64

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mind_mlir.lowering.emission.decision import Computed, Decisions, Opcodes
    from mind_mlir.mlir.bindings import Block, Module, Operation
    from mind_mlir.target import Target

_SYMBOL = "mind_stamp"
#: What reads the clock and the thread's own address: assembly, and where each result is.
_MACHINES = {
    X86_64: {
        "clock": "rdtsc; shlq $$32, %rdx; orq %rdx, %rax",
        "clock_in": "={rax},~{rdx},~{flags}",
        "thread": "movq %fs:0, $0",
        "thread_in": "=r",
    },
    AARCH64: {
        "clock": "mrs $0, cntvct_el0",
        "clock_in": "=r",
        "thread": "mrs $0, tpidr_el0",
        "thread_in": "=r",
    },
}
#: Words of a record: twice the number of its stamp, one more at its end; the clock; the thread.
RECORD_WORDS = 3
#: The words before the records: how many there are, and how many fit.
HEADER_WORDS = 2
#: The kind of what a thread computes of a loop that threads share.
CHUNK = "chunk"
#: What takes no time by itself, and stands between the parts of a nest.
_VIEWS = (*VIEWS, METADATA, "memref.alloc", "memref.alloca", "memref.get_global", "memref.view")
_ENDS = (".return", ".yield", ".condition")
#: Control flow of the program where no nest has made it, which its location says then.
_CONTROL = ("scf.for", "scf.if", "scf.while", "scf.index_switch", "scf.execute_region")


@dataclass(slots=True)
class Stamps:
    """The stamps of one module.

    Attributes:
        address: Where records are written.
        whole: Whether loops of the program are stamped as wholes, since what is inside takes little time.
        rows: What each stamp is for, by its number.
        pieces: In how many places of the code each stamp stands.
    """

    address: int
    whole: bool = False
    rows: list[StampedRow] = field(default_factory=list)
    pieces: Counter[int] = field(default_factory=Counter)
    _tags: Tags = field(default_factory=Tags)
    _nests: dict[int, list[tuple[frozenset[int], StampedRow]]] = field(default_factory=dict)
    _known: dict[frozenset[int], StampedRow | None] = field(default_factory=dict)
    _numbers: dict[StampedRow, int] = field(default_factory=dict)

    def tag(self, module: Module) -> None:
        """Tag the operations of ``module``, which is going to be scheduled."""
        with module.context:
            self._tags.tag(module)

    def decided(self, decisions: Decisions, opcodes: Opcodes) -> None:
        """Take down the nests that were decided on."""
        nests = [entry.what for entry in decisions.in_order() if isinstance(entry.what, Decision)]
        for number, nest in enumerate(nests, start=1):
            tags = frozenset(tag for each in nest.computes for tag in tags_of(each.location))
            computes = tuple(dict.fromkeys(_computes(each, opcodes) for each in nest.computes))
            row = StampedRow((number,), nest.kind, nest.extents, computes, self._tags.work(tags))
            for tag in tags:
                self._nests.setdefault(tag, []).append((tags, row))

    def insert(self, module: Module) -> None:
        """Put stamps into a bufferized ``module``."""
        with module.context, ir.Location.unknown():
            for function in module.body.operations:
                if not isinstance(function, func.FuncOp) or not function.regions[0].blocks:
                    continue
                block = function.regions[0].blocks[0]
                self._block(block)
                if "sym_visibility" not in function.attributes:
                    self._around(
                        block, StampedRow((), "function", (), (Computes(name_of(function), "", None),))
                    )
            with ir.InsertionPoint.at_block_begin(module.body):
                func.FuncOp(_SYMBOL, ([ir.IntegerType.get_signless(64)], []), visibility="private")

    def define(self, module: Module, target: Target) -> None:
        """Define what stamps call, now that ``module`` is in the LLVM dialect."""
        words = {"header": HEADER_WORDS, "record": RECORD_WORDS}
        text = _DEFINITION.format(address=self.address, **words, **_MACHINES[target.machine])
        with module.context, ir.Location.unknown():
            for op in list(module.body.operations):
                if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == _SYMBOL:
                    define(op, text)

    def _block(self, block: Block) -> None:
        """Stamp a block: operations one after the other that belong to one row are one piece."""
        run: list[Operation] = []
        current: StampedRow | None = None
        for view in list(block.operations):
            op = view.operation
            if _is_free(op):
                continue
            row = self._row(op)
            if row is None and not op.regions:
                continue
            if current is not None and row != current:
                self._piece(run, current)
                run = []
            current = row
            if row is not None:
                run.append(op)
                continue
            for region in op.regions:
                for inner in region.blocks:
                    self._block(inner)
        if current is not None:
            self._piece(run, current)

    def _piece(self, run: list[Operation], row: StampedRow) -> None:
        """Stamp operations one after the other, and what threads compute of those that they share."""
        number = self._enter(row)
        self.pieces[number] += 1
        with ir.InsertionPoint(run[0]):
            _stamp(2 * number)
        with ir.InsertionPoint.after(run[-1]):
            _stamp(2 * number + 1)
        for op in run:
            if is_parallel(op) and not op.results:
                self._around(op.regions[0].blocks[0], StampedRow(row.numbers, CHUNK, (), ()))

    def _around(self, block: Block, row: StampedRow) -> None:
        """Stamp all that is in a block."""
        number = self._enter(row)
        with ir.InsertionPoint.at_block_begin(block):
            _stamp(2 * number)
        with ir.InsertionPoint(block.operations[len(block.operations) - 1]):
            _stamp(2 * number + 1)

    def _row(self, op: Operation) -> StampedRow | None:
        """Return the row that ``op`` belongs to; None for control flow, and for what takes no time."""
        own = tags_of(op.location)
        if op.name in _CONTROL and not own:
            found = _tags_inside(op)
            return self._nest(found) if found and self.whole else None
        found = own | _tags_inside(op) if own else own
        row = self._nest(found) if found else None
        if row is None and op.name in ("memref.copy", "func.call"):
            name = "" if op.name == "memref.copy" else str(op.attributes["callee"]).removeprefix("@")
            return StampedRow((), op.name.partition(".")[2], (), (Computes(name, "", place_of(op.location)),))
        return row

    def _nest(self, tags: frozenset[int]) -> StampedRow | None:
        """Return the row of the nests that compute the operations of ``tags``, several as one."""
        if tags not in self._known:
            found: dict[int, StampedRow] = {}
            for tag in tags:
                fitting = [(len(of - tags), -len(of), row) for of, row in self._nests.get(tag, ())]
                if fitting:
                    row = min(fitting, key=lambda each: each[:2])[2]
                    found[row.numbers[0]] = row
            rows = [found[number] for number in sorted(found)]
            self._known[tags] = self._joined(rows) if rows else None
        return self._known[tags]

    def _joined(self, rows: Sequence[StampedRow]) -> StampedRow:
        """Return rows that are one loop as one."""
        if len(rows) == 1:
            return rows[0]
        numbers = tuple(number for row in rows for number in row.numbers)
        nests = (nest for nests in self._nests.values() for nest in nests)
        tags = frozenset(tag for of, row in nests if row.numbers[0] in numbers for tag in of)
        kinds = " + ".join(dict.fromkeys(row.kind for row in rows))
        computes = tuple(dict.fromkeys(each for row in rows for each in row.computes))
        return StampedRow(numbers, kinds, rows[0].extents, computes, self._tags.work(tags))

    def _enter(self, row: StampedRow) -> int:
        if row not in self._numbers:
            self._numbers[row] = len(self.rows)
            self.rows.append(row)
        return self._numbers[row]


def _is_free(op: Operation) -> bool:
    """Return whether ``op`` takes no time to speak of, and may stand between the parts of a nest."""
    name = op.name
    return name.startswith(("arith.", "ub.")) or name in _VIEWS or name.endswith(_ENDS)


def _tags_inside(op: Operation) -> frozenset[int]:
    """Return the tags of all operations in the regions of ``op``."""
    found: frozenset[int] = frozenset()
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                inner = view.operation
                if not _is_free(inner):
                    found |= tags_of(inner.location) | _tags_inside(inner)
    return found


def _stamp(number: int) -> None:
    i64 = ir.IntegerType.get_signless(64)
    value = arith.ConstantOp(i64, ir.IntegerAttr.get(i64, number)).result
    func.CallOp([], ir.FlatSymbolRefAttr.get(_SYMBOL), [value])


def _computes(each: Computed, opcodes: Opcodes) -> Computes:
    location = untagged(each.location)
    label, place = label_of(location) or "", place_of(location)
    return Computes(label, opcodes.get((label, place), each.operation), place)


_DEFINITION = """
llvm.func internal @mind_stamp(%stamp: i64) attributes {{no_inline}} {{
  %one = llvm.mlir.constant(1 : i64) : i64
  %address = llvm.mlir.constant({address} : i64) : i64
  %memory = llvm.inttoptr %address : i64 to !llvm.ptr
  %most_at = llvm.getelementptr %memory[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %records = llvm.getelementptr %memory[{header}] : (!llvm.ptr) -> !llvm.ptr, i64
  %number = llvm.atomicrmw add %memory, %one monotonic : !llvm.ptr, i64
  %most = llvm.load %most_at : !llvm.ptr -> i64
  %fits = llvm.icmp "slt" %number, %most : i64
  llvm.cond_br %fits, ^note, ^end
^note:
  %thread = llvm.inline_asm has_side_effects "{thread}", "{thread_in}" : () -> i64
  %clock = llvm.inline_asm has_side_effects "{clock}", "{clock_in}" : () -> i64
  %at = llvm.getelementptr %records[%number] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<{record} x i64>
  %clock_at = llvm.getelementptr %at[1] : (!llvm.ptr) -> !llvm.ptr, i64
  %thread_at = llvm.getelementptr %at[2] : (!llvm.ptr) -> !llvm.ptr, i64
  llvm.store %stamp, %at : i64, !llvm.ptr
  llvm.store %clock, %clock_at : i64, !llvm.ptr
  llvm.store %thread, %thread_at : i64, !llvm.ptr
  llvm.br ^end
^end:
  llvm.return
}}
"""
