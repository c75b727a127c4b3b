"""``python -m examples.models.resnet``: says what is in an image, and how long it takes to say."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import mind_mlir
from examples.models.resnet.images import SIZE, drawn, prepared, read_image
from examples.models.resnet.network import SIZES, ModelError, check_weights, logits, random_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TORCH = "torchvision:"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m examples.models.resnet", description=__doc__)
    parser.add_argument(
        "model",
        help=f"random weights: {', '.join(SIZES)}; a file of weights under torchvision's names (safetensors, "
        f".npz); a model of ONNX; or {_TORCH}NAME, such as {_TORCH}resnet18",
    )
    parser.add_argument(
        "image", nargs="?", help="a file of PPM, or of numpy, ui8[height, width, 3]; or one is drawn"
    )
    parser.add_argument("--labels", help="a file with the name of a class on each line")
    parser.add_argument("--most", type=int, default=5, help="how many classes are shown")
    parser.add_argument("--by-reference", action="store_true", help="read the weights at each call")
    parser.add_argument("--calls", type=int, default=10, help="how many calls are timed")
    parser.add_argument("--threads", type=int, help="how many threads there are")
    return parser


def load_model(model: str, *, frozen: bool = True) -> Callable[[Any], Any]:
    """Return a function from an image f32[1, 3, SIZE, SIZE] to the logits of its classes.

    Args:
        model: As on the command line.
        frozen: Whether weights become constants of the code, laid out once.

    Raises:
        ModelError: There is no such model.
    """
    if model.startswith(_TORCH):
        models: Any = import_module("torchvision.models")
        torch: Any = import_module("torch")
        if model.removeprefix(_TORCH) not in models.list_models():
            raise ModelError(f"torchvision has no model {model.removeprefix(_TORCH)!r}")
        module = models.get_model(model.removeprefix(_TORCH), weights=None).eval()
        run: Any = mind_mlir.from_torch(module, frozen=frozen)
        return lambda image: run(torch.from_numpy(image)).numpy()
    if model.endswith(".onnx"):
        return mind_mlir.from_onnx(model, frozen=frozen)
    params = random_weights(model) if model in SIZES else dict(mind_mlir.load_weights(model))
    check_weights(params)
    compiled = mind_mlir.jit(logits)
    if not frozen:
        return lambda image: compiled(params, image)
    module = compiled.lower(params, np.zeros((1, 3, SIZE, SIZE), np.float32)).module
    weights = {f"params[{name!r}]": array for name, array in params.items() if not name.endswith("tracked")}
    constant: Any = mind_mlir.compile(module, constants=weights)
    return lambda image: constant(image)[0]


def shares_of(found: Any) -> Any:
    """Return logits as shares of one."""
    powers = np.exp(found - found.max())
    return powers / powers.sum()


def _show(model: str, options: argparse.Namespace) -> None:
    labels = Path(options.labels).read_text("utf-8").splitlines() if options.labels else []
    image = prepared(read_image(options.image) if options.image else drawn())
    run = load_model(model, frozen=not options.by_reference)
    start = time.perf_counter()
    shares = shares_of(np.asarray(run(image), np.float32).reshape(-1))
    compiled = time.perf_counter() - start
    for place in np.argsort(-shares, kind="stable")[: options.most].tolist():
        name = labels[place] if place < len(labels) else f"class {place}"
        print(f"{shares[place]:6.1%}  {name}")
    times = []
    for _ in range(max(1, options.calls)):
        start = time.perf_counter()
        run(image)
        times.append(time.perf_counter() - start)
    best, median = min(times) * 1e3, np.median(times) * 1e3
    _tell(f"[ready in {compiled:.1f} s; {best:.1f} ms an image, {median:.1f} in the median]")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.threads is not None:
            mind_mlir.set_num_threads(options.threads)
        _show(options.model, options)
    except (ModelError, mind_mlir.MindError, ValueError) as error:
        _tell(f"error: {error}")
        return 1
    except ImportError as error:
        _tell(f"error: {error.name} is not installed")
        return 1
    except OSError as error:
        _tell(f"error: {error.filename or ''}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
