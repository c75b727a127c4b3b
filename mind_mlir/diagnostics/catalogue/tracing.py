"""E23xx: functions of Python that are traced. E5103 and E5104: their gradients."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import Entry

_HEAD = "import numpy, mind_mlir\n"
_X = "x = numpy.ones(3, numpy.float32)\n"
_JIT = _HEAD + _X + "@mind_mlir.jit\n"

ENTRIES = (
    Entry(
        code="E2301",
        title="truth value of a traced array",
        explanation=(
            "A Python function that mind_mlir.jit is given runs once, on stand-ins whose numbers are not "
            "known: if, while, and, or, not and assert of one cannot choose. cond and while_loop are "
            "branches and loops of the program; where chooses element by element, and & | ~ combine truth "
            "values."
        ),
        language="python",
        bad=_JIT + "def f(x):\n    return x if x[0] > 0 else -x\nf(x)\n",
        good=_JIT + "def f(x):\n    return abs(x)\nf(x)\n",
    ),
    Entry(
        code="E2302",
        title="the numbers of a traced array",
        explanation=(
            "int(), float(), a Python index, range() or numpy itself ask for numbers that are known only "
            "when the program runs. Arrays of the program index arrays, convert with astype and go to the "
            "functions of mind_mlir.numpy; a number that decides on the program is a static argument."
        ),
        language="python",
        bad=_JIT + "def f(x):\n    return x * float(x[0])\nf(x)\n",
        good=_JIT + "def f(x):\n    return x * x[0]\nf(x)\n",
    ),
    Entry(
        code="E2303",
        title="traced array outside of its function",
        explanation=(
            "A stand-in is kept, in a global or an attribute, beyond the call that it belongs to, or beyond "
            "the loop's or branch's function whose value it is, and used there. What is needed later is "
            "returned."
        ),
        language="python",
        bad=_HEAD
        + _X
        + "kept = []\n@mind_mlir.jit\ndef f(x):\n    kept.append(x)\n    return x\nf(x)\nkept[0] + 1\n",
        good=_JIT + "def f(x):\n    return x\nf(x) + 1\n",
    ),
    Entry(
        code="E2304",
        title="result that is no array",
        explanation=(
            "A function that is traced returns arrays, numbers, and containers of these. Nothing at all, "
            "text or a function is no result of a program."
        ),
        language="python",
        bad=_JIT + "def f(x):\n    x + 1\nf(x)\n",
        good=_JIT + "def f(x):\n    return x + 1\nf(x)\n",
    ),
    Entry(
        code="E2305",
        title="argument or operand that is no array",
        explanation=(
            "Arguments are arrays of numbers, numbers, and containers of these; so are operands. Another "
            "value, which decides on the program, is named in static_argnames."
        ),
        language="python",
        bad=_JIT + "def f(x, mode):\n    return x if mode == 'same' else -x\nf(x, 'same')\n",
        good=_HEAD
        + _X
        + "@mind_mlir.jit(static_argnames='mode')\n"
        + "def f(x, mode):\n    return x if mode == 'same' else -x\nf(x, 'same')\n",
    ),
    Entry(
        code="E2306",
        title="index that is none",
        explanation=(
            "Traced arrays are indexed by integers within bounds, slices whose bounds are plain numbers, "
            "None, an ellipsis, integer arrays and truth values that are known. Shapes are known before the "
            "program runs, so that truth values which it computes choose no elements to read. Arrays are "
            "never written to: x.at[i].set(y) is another one, and x.at[x > 0].set(y), too."
        ),
        language="python",
        bad=_JIT + "def f(x):\n    return x[x > 0].sum()\nf(x)\n",
        good=_JIT + "def f(x):\n    return (x * (x > 0)).sum()\nf(x)\n",
    ),
    Entry(
        code="E2307",
        title="function of numpy that is not known for traced arrays",
        explanation=(
            "numpy computes with numbers; on a traced array, its functions stand for those of "
            "mind_mlir.numpy, which has one for each operation of the compiler."
        ),
        language="python",
        bad=_JIT + "def f(x):\n    return numpy.unwrap(x)\nf(x)\n",
        good=_JIT + "def f(x):\n    return numpy.add(x, x)\nf(x)\n",
    ),
    Entry(
        code="E5103",
        title="gradient of a function whose result is not one float",
        explanation=(
            "grad and value_and_grad are of functions that return one floating-point scalar. For other "
            "results, vjp takes their cotangents."
        ),
        context=("found",),
        language="python",
        bad=_HEAD + _X + "mind_mlir.grad(lambda x: x * x)(x)\n",
        good=_HEAD + _X + "mind_mlir.grad(lambda x: (x * x).sum())(x)\n",
    ),
    Entry(
        code="E5104",
        title="cotangent that is not like the result",
        explanation=(
            "The function that vjp returns takes one array for each of the result, of its dtype and shape, "
            "in the same containers."
        ),
        language="python",
        bad=_HEAD + _X + "y, back = mind_mlir.vjp(lambda x: x * x, x)\nback(x[:2])\n",
        good=_HEAD + _X + "y, back = mind_mlir.vjp(lambda x: x * x, x)\nback(x)\n",
    ),
)
