"""Kernels: what LLVM is told of the buffers that they are given."""

from __future__ import annotations

import re

import pytest

from mind_mlir.lowering.to_llvm import to_llvm
from mind_mlir.mlir.bindings import ir, new_context


def lowered(offsets: tuple[int, int]) -> str:
    """Lower a nest that uses one temporary after the other, at these places of the arena, and another."""
    move = """
          scf.for %i{n} = %c0 to %c64 step %c1 {{
            %x{n} = memref.load {source}[%i{n}] : memref<64xf32>
            memref.store %x{n}, {target}[%i{n}] : memref<64xf32>
          }}"""
    pairs = (("%a", "%t"), ("%t", "%o"), ("%o", "%u"), ("%u", "%o"))
    moves = [move.format(n=n, source=source, target=target) for n, (source, target) in enumerate(pairs)]
    text = f"""
      func.func @main(%a: memref<64xf32>, %o: memref<64xf32>, %arena: memref<512xi8>) {{
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %c64 = arith.constant 64 : index
        %first = arith.constant {offsets[0]} : index
        %second = arith.constant {offsets[1]} : index
        %t = memref.view %arena[%first][] : memref<512xi8> to memref<64xf32>
        %u = memref.view %arena[%second][] : memref<512xi8> to memref<64xf32>
        scf.for %k = %c0 to %c64 step %c1 {{{"".join(moves)}
        }}
        {move.format(n=9, source="%o", target="%a")}
        return
      }}"""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        to_llvm(module, verify=True)
        return str(module)


@pytest.mark.parametrize(("offsets", "apart"), [((0, 256), True), ((0, 0), False), ((0, 192), False)])
def test_temporaries_that_share_memory_are_not_said_to_be_apart(
    offsets: tuple[int, int], apart: bool
) -> None:
    """They are live at different times, but a nest may use both."""
    signatures = re.findall(r"llvm\.func internal @main_kernel_\d+\((.*?)\) attributes", lowered(offsets))
    (signature,) = [found for found in signatures if found.count("!llvm.ptr") == 4]
    assert ("llvm.noalias" in signature) == apart
