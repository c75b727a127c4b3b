"""E65xx: compiled code as files (objects, shared libraries, headers and bundles), weights, checkpoints."""

from __future__ import annotations

from mind_mlir.diagnostics.catalogue.entry import CatalogueEntry, in_python

_BUNDLE = """\
import tempfile
from pathlib import Path
import mind_mlir
module = mind_mlir.parse('''
%0 = Input {name="x"} : tensor<f32[3]>
%1 = Sum (%0) {axes=[], keepdims=false} : tensor<f32[]>
outputs: %1
''')
with tempfile.TemporaryDirectory() as folder:
    path = mind_mlir.package(module, Path(folder, "sums"), threads=1)
"""
_LOADED = "    mind_mlir.load_bundle(path)\n"
_EIGENVALUES = """\
import tempfile
from pathlib import Path
import numpy as np
import mind_mlir
import mind_mlir.numpy as mnp
attributes = mind_mlir.custom_attributes({"dtype": "f64"})
@mind_mlir.jit
def values(x):
    return mnp.custom_call(x, target="mind.eigh.v1", attrs=attributes)
lowered = values.lower(np.eye(3)[None])
"""

_WEIGHTS = """\
import tempfile
from pathlib import Path
import numpy as np
import mind_mlir
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.npz")
    np.savez(path, w=np.ones((2, 3), np.float32))
"""
_NUMBERS = """\
import tempfile
from pathlib import Path
import ml_dtypes
import numpy as np
import mind_mlir
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "model.npz")
    np.savez(path, w=np.ones(3, {}))
    mind_mlir.load_weights(path)
"""
_CHECKPOINT = """\
import tempfile
from pathlib import Path
import numpy as np
from mind_mlir.distributed import load_checkpoint, save_checkpoint
with tempfile.TemporaryDirectory() as folder:
    save_checkpoint(folder, {"w": np.ones(3)}, step=1)
"""
_LOAD = '    load_checkpoint(folder, {{"w": np.zeros({})}})\n'

ENTRIES = (
    in_python(
        "E6501: a file that is damaged, or no bundle",
        "A bundle is a directory with a manifest, which says what is in each file. Nothing of a bundle "
        "is used where a file is missing, or has another byte than when it was written, or where the "
        "manifest is of another format. Write the bundle again with mind-mlir compile --emit=bundle. "
        "The same goes for a pickled executable: send it again.",
        context=("path", "reason"),
        bad=_BUNDLE + "    (path / 'sums.o').write_bytes(b'')\n" + _LOADED,
        good=_BUNDLE + _LOADED,
    ),
    in_python(
        "E6502: code for another machine or processor",
        "Code is for one kind of machine, and uses instructions that its target has: those of the "
        "machine that it was compiled on, unless --target and --target-cpu said otherwise. It is not run "
        "where the processor lacks some. Compile it for the least processor that is to run it. A pickled "
        "executable is compiled anew where MLIR is there; else the same holds, and the same release is "
        "needed at both ends.",
        context=("path", "needed", "found"),
        bad=_BUNDLE.replace("threads=1", "target='aarch64-linux'") + _LOADED,
        good=_BUNDLE + _LOADED,
    ),
    CatalogueEntry(
        "E6503: a tool that an artefact needs is missing, or fails",
        "A shared library is made by the system's linker, and code for a machine other than this one "
        "by the optional package llvmlite; bundles with bf16, fp8 or integers of 4 bits need ml_dtypes. "
        "The help line says how to get what is missing. Objects, headers and bundles need no linker. "
        "What a tool that fails has said is quoted.",
        context=("tool",),
    ),
    in_python(
        "E6504: not supported in artefacts",
        "What a program does can be compiled here and now, but not be taken elsewhere: calls of C "
        "functions of this process, for one. The message says what it is.",
        context=("what",),
        bad=_EIGENVALUES + "with tempfile.TemporaryDirectory() as folder:\n"
        "    mind_mlir.package(lowered.module, Path(folder, 'values'))\n",
        good=_EIGENVALUES + "lowered.compile()\n",
    ),
    in_python(
        "E6505: a file of weights that is damaged, or none",
        "Weights are read from safetensors, from the index of several such files, from GGUF and from "
        "numpy's .npz and .npy. A file that is cut short, says of a tensor that it lies outside of the file "
        "or over another one, has a name twice, or is of another format is not used at all.",
        context=("path", "reason"),
        bad=_WEIGHTS + "    path.write_bytes(path.read_bytes()[:-1])\n    mind_mlir.load_weights(path)\n",
        good=_WEIGHTS + "    mind_mlir.load_weights(path)\n",
    ),
    in_python(
        "E6506: weights of a type that is not read",
        "A file of weights is well-formed, but has tensors of a type that there is no array of here. GGUF "
        "has many layouts of quantised numbers: Q8_0 and Q4_0 are kept as they lie, others become f32 with "
        "load_weights(path, dequantize=True).",
        context=("path", "reason"),
        bad=_NUMBERS.format("ml_dtypes.bfloat16"),
        good=_NUMBERS.format("np.float32"),
    ),
    in_python(
        "E6507: a checkpoint that is damaged, or none",
        "A checkpoint is a directory with a manifest, and files of weights, whose digests the manifest has. "
        "Nothing is used of one that was changed, cut short or is of another version, nor of a directory "
        "without any.",
        context=("path", "reason"),
        bad=_CHECKPOINT
        + "    Path(folder, 'step-1', 'manifest.json').write_bytes(b'{}')\n"
        + _LOAD.format("3"),
        good=_CHECKPOINT + _LOAD.format("3"),
    ),
    in_python(
        "E6508: a checkpoint of another tree",
        "What is loaded has the names, shapes and dtypes of the tree that it has to be like.",
        context=("path", "reason"),
        bad=_CHECKPOINT + _LOAD.format("4"),
        good=_CHECKPOINT + _LOAD.format("3"),
    ),
)
