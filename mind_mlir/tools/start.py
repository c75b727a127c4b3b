"""Entry points of the tools: nothing but the standard library is loaded until interrupts are settled."""

from __future__ import annotations

from mind_mlir.tools.interruption import leave_on_interrupt


def mind_mlir() -> None:
    """Run `mind-mlir` on the arguments of the process."""
    leave_on_interrupt()
    from mind_mlir.tools.cli.main import main  # noqa: PLC0415 -- see above

    main()


def mind_opt() -> None:
    """Run `mind-opt` on the arguments of the process."""
    leave_on_interrupt()
    from mind_mlir.tools.opt.main import main  # noqa: PLC0415 -- see above

    main()
