"""E23xx: functions of Python that are traced. E5103 and E5104: their gradients."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import in_python

_HEAD = "import numpy, mind_mlir\n"
_X = "x = numpy.ones(3, numpy.float32)\n"
_JIT = _HEAD + _X + "@mind_mlir.jit\n"

ENTRIES = (
    in_python(
        "E2301: truth value of a traced array",
        "A Python function that mind_mlir.jit is given runs once, on stand-ins whose numbers are not known: "
        "if, while, and, or, not and assert of one cannot choose. cond and while_loop are branches and "
        "loops of the program; where chooses element by element, and & | ~ combine truth values.",
        bad=_JIT + "def f(x):\n    return x if x[0] > 0 else -x\nf(x)\n",
        good=_JIT + "def f(x):\n    return abs(x)\nf(x)\n",
    ),
    in_python(
        "E2302: the numbers of a traced array",
        "int(), float(), a Python index, range() or numpy itself ask for numbers that are known only "
        "when the program runs. Arrays of the program index arrays, convert with astype and go to the "
        "functions of mind_mlir.numpy; a number that decides on the program is a static argument.",
        bad=_JIT + "def f(x):\n    return x * float(x[0])\nf(x)\n",
        good=_JIT + "def f(x):\n    return x * x[0]\nf(x)\n",
    ),
    in_python(
        "E2303: traced array outside of its function",
        "A stand-in is kept, in a global or an attribute, beyond the call that it belongs to, or beyond the "
        "loop's or branch's function whose value it is, and used there. What is needed later is returned.",
        bad=_HEAD
        + _X
        + "kept = []\n@mind_mlir.jit\ndef f(x):\n    kept.append(x)\n    return x\nf(x)\nkept[0] + 1\n",
        good=_JIT + "def f(x):\n    return x\nf(x) + 1\n",
    ),
    in_python(
        "E2304: result that is no array",
        "A function that is traced returns arrays, numbers, and containers of these. Nothing at all, "
        "text or a function is no result of a program.",
        bad=_JIT + "def f(x):\n    x + 1\nf(x)\n",
        good=_JIT + "def f(x):\n    return x + 1\nf(x)\n",
    ),
    in_python(
        "E2305: argument or operand that is no array",
        "Arguments are arrays of numbers, numbers, and containers of these; so are operands. Another "
        "value, which decides on the program, is named in static_argnames.",
        bad=_JIT + "def f(x, mode):\n    return x if mode == 'same' else -x\nf(x, 'same')\n",
        good=_HEAD
        + _X
        + "@mind_mlir.jit(static_argnames='mode')\n"
        + "def f(x, mode):\n    return x if mode == 'same' else -x\nf(x, 'same')\n",
    ),
    in_python(
        "E2306: index that is none",
        "Traced arrays are indexed by integers within bounds, slices whose bounds are plain numbers, "
        "None, an ellipsis, integer arrays and truth values that are known. Shapes are known before the "
        "program runs, so that truth values which it computes choose no elements to read. Arrays are "
        "never written to: x.at[i].set(y) is another one, and x.at[x > 0].set(y), too.",
        bad=_JIT + "def f(x):\n    return x[x > 0].sum()\nf(x)\n",
        good=_JIT + "def f(x):\n    return (x * (x > 0)).sum()\nf(x)\n",
    ),
    in_python(
        "E2307: function of numpy that is not known for traced arrays",
        "numpy computes with numbers; on a traced array, its functions stand for those of "
        "mind_mlir.numpy, which has one for each operation of the compiler.",
        bad=_JIT + "def f(x):\n    return numpy.unwrap(x)\nf(x)\n",
        good=_JIT + "def f(x):\n    return numpy.add(x, x)\nf(x)\n",
    ),
    in_python(
        "E5103: gradient of a function whose result is not one float",
        "grad and value_and_grad are of functions that return one floating-point scalar. For other "
        "results, vjp takes their cotangents.",
        context=("found",),
        bad=_HEAD + _X + "mind_mlir.grad(lambda x: x * x)(x)\n",
        good=_HEAD + _X + "mind_mlir.grad(lambda x: (x * x).sum())(x)\n",
    ),
    in_python(
        "E5104: cotangent that is not like the result",
        "The function that vjp returns takes one array for each of the result, of its dtype and shape, "
        "in the same containers.",
        bad=_HEAD + _X + "y, back = mind_mlir.vjp(lambda x: x * x, x)\nback(x[:2])\n",
        good=_HEAD + _X + "y, back = mind_mlir.vjp(lambda x: x * x, x)\nback(x)\n",
    ),
)
