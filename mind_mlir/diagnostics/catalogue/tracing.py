"""E23xx: functions of Python that are traced, their branches and loops. E5103 and E5104: their gradients."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import in_python

_HEAD = "import numpy, mind_mlir\n"
_X = _HEAD + "x = numpy.ones(3, numpy.float32)\n"
_MESHES = _X + "mesh, f = mind_mlir.Mesh('data=2'), lambda x: mind_mlir.all_reduce(x, 'data')\n"
_JIT = _X + "@mind_mlir.jit\n"

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
        bad=_X
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
        good=_X
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
        "E2320: branches that return different things",
        "One of the functions that cond is given runs, which is known when the program does. So both "
        "return arrays of the same dtypes and shapes, in the same containers; a number takes the dtype "
        "of the array in its place.",
        bad=_X + "mind_mlir.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), x)\n",
        good=_X + "mind_mlir.cond(x.sum() > 0, lambda x: x, lambda x: x * 0, x)\n",
    ),
    in_python(
        "E2321: step of a loop that changes what is carried",
        "What a loop carries has the same containers, dtypes and shapes in all steps: the function of "
        "the step returns what it takes. That of scan returns a pair of this and an output. A number "
        "takes the dtype of what follows on it.",
        bad=_X + "mind_mlir.fori_loop(0, 3, lambda i, s: s.astype('f64'), x)\n",
        good=_X + "mind_mlir.fori_loop(0, 3, lambda i, s: s * 2, x)\n",
    ),
    in_python(
        "E2322: condition that is no scalar",
        "What decides on a branch, or on whether a loop goes on, is one truth value, or a number, which "
        "is true where it is not 0.",
        bad=_X + "mind_mlir.while_loop(lambda x: x < 9, lambda x: x * 2, x)\n",
        good=_X + "mind_mlir.while_loop(lambda x: (x < 9).all(), lambda x: x * 2, x)\n",
    ),
    in_python(
        "E2323: arrays without a common length",
        "The arrays that scan takes slices of have a leading axis, of one length, which is how many "
        "steps there are; without arrays, the argument length says it.",
        bad=_X + "mind_mlir.scan(lambda s, v: (s + v[0], v[1]), 0.0, (x, x[:2]))\n",
        good=_X + "mind_mlir.scan(lambda s, v: (s + v[0], v[1]), 0.0, (x[:2], x[:2]))\n",
    ),
    in_python(
        "E2324: branch or loop without arrays",
        "Branches return an array at least, and loops carry one: what functions of a program do besides "
        "happens once, while they are traced.",
        bad=_X + "mind_mlir.fori_loop(0, 3, lambda i, s: print(i), None)\n",
        good=_X + "mind_mlir.fori_loop(0, 3, lambda i, s: s + i, x)\n",
    ),
    in_python(
        "E2325: bound of a loop that is no integer",
        "fori_loop counts through integers: its bounds are integer scalars of one dtype.",
        bad=_X + "mind_mlir.fori_loop(0, x.sum(), lambda i, s: s + i, x)\n",
        good=_X + "mind_mlir.fori_loop(0, x.size, lambda i, s: s + i, x)\n",
    ),
    in_python(
        "E2326: collective outside of shard_map",
        "all_reduce and its like take the ranks of a mesh, and mind_mlir.shard_map says which: it runs a "
        "function once for each of them.",
        bad=_X + "mind_mlir.jit(lambda x: mind_mlir.all_reduce(x, 'data'))(x)\n",
        good=_X + "mesh = mind_mlir.Mesh('data=2')\n"
        "mind_mlir.shard_map(lambda x: mind_mlir.all_reduce(x, 'data'), mesh, '', '')(x)\n",
    ),
    in_python(
        "E2327: shard_map within shard_map",
        "In a function that mind_mlir.shard_map runs, each rank has a part of its own, and none a whole "
        "array to divide once more. A mesh with several axes does what two would.",
        bad=_MESHES
        + "g = mind_mlir.shard_map(f, mesh, '', '')\nmind_mlir.shard_map(lambda x: g(x), mesh, '', '')(x)\n",
        good=_MESHES + "mind_mlir.shard_map(lambda x: f(x), mesh, '', '')(x)\n",
    ),
    in_python(
        "E5103: gradient of a function whose result is not one float",
        "grad and value_and_grad are of functions that return one floating-point scalar. For other "
        "results, vjp takes their cotangents.",
        context=("found",),
        bad=_X + "mind_mlir.grad(lambda x: x * x)(x)\n",
        good=_X + "mind_mlir.grad(lambda x: (x * x).sum())(x)\n",
    ),
    in_python(
        "E5104: cotangent that is not like the result",
        "The function that vjp returns takes one array for each of the result, of its dtype and shape, "
        "in the same containers.",
        bad=_X + "y, back = mind_mlir.vjp(lambda x: x * x, x)\nback(x[:2])\n",
        good=_X + "y, back = mind_mlir.vjp(lambda x: x * x, x)\nback(x)\n",
    ),
)
