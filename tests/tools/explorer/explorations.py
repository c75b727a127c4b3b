"""Explorations for tests: a small one that is written out, and made ones of any size."""

from __future__ import annotations

from mind_mlir.tools.explorer.exploration import ArenaBuffer, Exploration, Pane, SourceOperation, TimelineSpan

#: What ends a page's script, starts an image that runs one, and ends a comment, in a program's text.
HOSTILE = '// </script><script>alert(1)</script><img src=x onerror="alert(2)"> <!-- -->  @@data@@ \\u003c'


def small(title: str = "small.ir", *, hostile: bool = False) -> Exploration:
    """Return a product with a bias, of which the optimiser has fused two operations."""
    operations = (
        SourceOperation("Input", "%0", "tensor<f32[2, 3]>", title, 1),
        SourceOperation("Input", "%1", "tensor<f32[3, 4]>", title, 2),
        SourceOperation("MatMul", "%2", "tensor<f32[2, 4]>", title, 3, (0, 1)),
        SourceOperation("Relu", "%3", "tensor<f32[2, 4]>", title, 4, (2,)),
    )
    source = (
        '%0 = Input {name="x"} : tensor<f32[2, 3]>',
        '%1 = Input {name="w"} : tensor<f32[3, 4]>',
        "%2 = MatMul(%0, %1) : tensor<f32[2, 4]>",
        "%3 = Relu(%2) : tensor<f32[2, 4]>",
        HOSTILE if hostile else "# the end",
    )
    code = ("main:", *(f"    vfmadd231ps zmm{number}, zmm1, zmm2" for number in range(8)), "    ret")
    return Exploration(
        title,
        "AVX-512",
        operations,
        (
            Pane("source", "Source", "core", source, ((0,), (1,), (2,), (3,), ()), "What you wrote."),
            Pane(
                "mind",
                "The mind dialect",
                "mlir",
                source[2:4],
                ((2,), (3,)),
                "One operation each.",
                (),
                0.002,
            ),
            Pane("asm", "Assembly", "asm", code, ((), *[(2, 3)] * 8, ()), "Code.", ("x * 1 = x",), 0.25),
        ),
        ((ArenaBuffer("%2", 0, 64, 1, 2, (2,)), ArenaBuffer("%3", 64, 64, 2, 3, (3,))), 128),
        (TimelineSpan(0, 0.0, 5.0, "MatMul", (2,)), TimelineSpan(1, 1.0, 5.5, "Relu", (3,))),
        (8, 10),
    )


def chain(count: int, lines: int) -> Exploration:
    """Return a chain of ``count`` operations whose last stage has ``lines`` lines."""
    operations = tuple(
        SourceOperation(
            ("Add", "Mul", "Exp")[number % 3], f"%{number}", "f32[8]", "chain.ir", number + 1, _read(number)
        )
        for number in range(count)
    )
    source = tuple(
        f"%{each} = {operations[each].opcode}(%{max(0, each - 1)}) : f32[8]" for each in range(count)
    )
    code = tuple(
        f"    %{line} = llvm.fadd %{line // 2}, %{line // 3} {{alignment = 4 : i64}} : vector<16xf32>"
        for line in range(lines)
    )
    marks = tuple((line * count // lines,) if line % 9 else () for line in range(lines))
    return Exploration(
        "chain.ir",
        "AVX2",
        operations,
        (
            Pane("source", "Source", "core", source, tuple((each,) for each in range(count))),
            Pane("llvm", "The LLVM dialect", "mlir", code, marks, seconds=1.5),
        ),
    )


def _read(number: int) -> tuple[int, ...]:
    """Return what an operation of a chain reads: the one before, and now and then one from long before."""
    return (number - 1, *((number - 12,) if number % 10 == 0 and number > 12 else ())) if number else ()
