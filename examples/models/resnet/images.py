"""Images: read from files of PPM or numpy, or drawn; and brought into the form that networks take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from examples.models.resnet.network import ModelError

#: Height and width that networks take, and the part of the image that they see.
SIZE, _SEEN = 224, 224 / 256
#: Mean and deviation of the three colours in ImageNet.
_MEAN = np.array([0.485, 0.456, 0.406], np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], np.float32)


def drawn(size: int = 256) -> Any:
    """Return a picture, ui8[size, size, 3]: an orange disc on a sky that is lighter below."""
    rows, columns = np.mgrid[:size, :size] / size
    sky = np.stack([80 + 100 * rows, 130 + 80 * rows, 220 + 0 * rows], axis=-1)
    disc = (rows - 0.5) ** 2 + (columns - 0.5) ** 2 < 0.09
    return np.where(disc[..., None], [240, 150, 30], sky).astype(np.uint8)


def read_image(path: str) -> Any:
    """Return the picture in a file, ui8[height, width, 3].

    Raises:
        ModelError: It is neither a binary PPM file nor an array of numpy of that type.
    """
    data = Path(path).read_bytes()
    if data.startswith(b"\x93NUMPY"):
        image = np.load(path, allow_pickle=False)
        if image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8 and image.size:
            return image
        raise ModelError(
            f"{path} has {image.dtype}{list(image.shape)}, and images are uint8[height, width, 3]"
        )
    return _of_ppm(data, path)


def _of_ppm(data: bytes, path: str) -> Any:
    words: list[bytes] = []
    place = 0
    while len(words) < 4 and place < len(data):
        if data[place : place + 1] == b"#":
            place = data.find(b"\n", place) + 1 or len(data)
        elif data[place : place + 1].isspace():
            place += 1
        else:
            start = place
            while place < len(data) and not data[place : place + 1].isspace():
                place += 1
            words.append(data[start:place])
    if words[:1] != [b"P6"] or len(words) < 4 or not all(word.isdigit() for word in words[1:]):
        raise ModelError(f"{path} is neither a PPM file (P6) nor one of numpy: convert it first")
    width, height, greatest = map(int, words[1:])
    body = data[place + 1 :]
    if greatest != 255 or not width * height or len(body) < width * height * 3:
        raise ModelError(f"{path} is cut short, empty, or has other elements than bytes")
    return np.frombuffer(body, np.uint8, width * height * 3).reshape(height, width, 3)


def prepared(image: Any) -> Any:
    """Return the middle of a picture as networks take it, f32[1, 3, SIZE, SIZE]."""
    height, width, _ = image.shape
    side = min(height, width) * _SEEN
    rows, columns = (
        np.clip((extent - side) / 2 + (np.arange(SIZE) + 0.5) * side / SIZE - 0.5, 0, extent - 1)
        for extent in (height, width)
    )
    pixels = _between(_between(image.astype(np.float32), rows, 0), columns, 1) / 255
    return np.ascontiguousarray(((pixels - _MEAN) / _DEVIATION).transpose(2, 0, 1)[None], np.float32)


def _between(image: Any, places: Any, axis: int) -> Any:
    """Return rows or columns of ``image`` at places between them, linearly."""
    first = np.floor(places).astype(int)
    second = np.minimum(first + 1, image.shape[axis] - 1)
    share = (places - first).reshape([-1 if each == axis else 1 for each in range(3)])
    return image.take(first, axis) * (1 - share) + image.take(second, axis) * share
