"""`Target`: a processor as data."""

from __future__ import annotations

from mind_mlir.support.lazy_dataclass import dataclass
from mind_mlir.target.rates import REFERENCE, Rates

#: The architectures that code is made for.
X86_64, AARCH64 = "x86_64", "aarch64"


@dataclass(frozen=True)
class Target:
    """A processor as the schedules see it.

    Attributes:
        vector_bytes: width of the widest vector register in bytes.
        vector_registers: number of vector registers.
        fma: whether multiply and add fuse into one instruction.
        half: whether f16 and f32 convert into each other in one instruction, subnormal numbers included.
        masks: whether loads and stores take a mask for the cost of plain ones (AVX-512, SVE).
        scales: whether an instruction multiplies floats by powers of two and rounds once (AVX-512).
        bf16_dots: whether an instruction adds products of pairs of bf16 to accumulators of f32 (AVX512_BF16).
        integer_dots: the same for pairs of i16 and for four bytes, with accumulators of i32 (AVX512_VNNI).
        bf16_tiles: whether an instruction multiplies tiles of pairs of bf16, into one of f32 (AMX-BF16).
        integer_tiles: the same for tiles of four bytes each, signed or not, and one of i32 (AMX-INT8).
        bf16x6: whether products of f32 may be six products of bf16 by tiles, and those of f16 four, where
            that is faster.
        emulates_tiles: whether vector code takes the place of these instructions, to the same bits: so tests
            run what machines with them run.
        l1_bytes: first-level data cache of one core, in bytes.
        l2_bytes: second-level cache of one core, in bytes.
        l3_bytes: last-level cache as seen from one core, in bytes.
        cpu: what LLVM calls the least processor that runs the code; empty: the one that compiles it.
        features: what that one has, as LLVM says it; empty with ``cpu``.
        machine: the architecture, ``x86_64`` or ``aarch64``.
        tune: what LLVM calls the processor that the order of instructions is chosen for; empty: ``cpu``.
        rates: how long a core takes for what: stated, or measured where it is the machine at hand.
    """

    vector_bytes: int = 16
    vector_registers: int = 16
    fma: bool = False
    half: bool = False
    masks: bool = False
    scales: bool = False
    bf16_dots: bool = False
    integer_dots: bool = False
    bf16_tiles: bool = False
    integer_tiles: bool = False
    bf16x6: bool = True
    emulates_tiles: bool = False
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20
    cpu: str = ""
    features: tuple[str, ...] = ()
    machine: str = X86_64
    tune: str = ""
    rates: Rates = REFERENCE

    def lanes(self, element_bits: int) -> int:
        """Return how many elements of ``element_bits`` bits fill one vector register (at least one)."""
        return max(1, self.vector_bytes * 8 // element_bits)

    def in_words(self) -> str:
        """Return what is said of the target in listings, two lines."""
        features = [name for name, on in (("fused multiply-add", self.fma), ("masks", self.masks)) if on]
        caches = (self.l1_bytes, self.l2_bytes, self.l3_bytes)
        sizes = ", ".join(f"L{level} {size >> 10} KB" for level, size in enumerate(caches, 1))
        vectors = f"{self.vector_registers} vector registers of {self.vector_bytes} bytes"
        instructions = ", ".join([vectors, *features])
        return f"target: {instructions}; {sizes}\nrates: {self.rates.in_words()}"


_ARM = Target(vector_registers=32, fma=True, half=True, machine=AARCH64)
#: The least that each architecture promises: what is used when nothing can be detected.
BASELINE = {X86_64: Target(), "AMD64": Target(), AARCH64: _ARM, "arm64": _ARM}
