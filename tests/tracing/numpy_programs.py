"""Usual programs of numpy, which take the module that they call: numpy, or `mind_mlir.numpy`."""

from __future__ import annotations

from typing import Any


def k_means(xp: Any, points: Any, centers: Any) -> Any:
    for _ in range(3):
        distances = ((points[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)
        labels = distances.argmin(axis=1)
        chosen = labels[:, None] == xp.arange(len(centers))
        counts = chosen.sum(axis=0)
        centers = chosen.T @ points / xp.maximum(counts, 1)[:, None]
    return centers, labels, counts


def principal_component(xp: Any, points: Any) -> Any:
    centered = points - points.mean(axis=0)
    covariance = centered.T @ centered / (len(points) - 1)
    vector = xp.ones(points.shape[1]) / xp.sqrt(points.shape[1])
    for _ in range(5):
        vector = covariance @ vector
        vector = vector / xp.sqrt((vector**2).sum())
    return vector, vector @ covariance @ vector, covariance @ xp.eye(points.shape[1])


def logistic_regression(xp: Any, points: Any, labels: Any) -> Any:
    weights = xp.zeros(points.shape[1])
    for _ in range(5):
        odds = 1 / (1 + xp.exp(-(points @ weights)))
        weights = weights - 0.1 * (points.T @ (odds - labels)) / len(labels)
    predicted = points @ weights > 0
    accuracy = (predicted == labels).mean()
    loss = -(labels * xp.log(odds) + (1 - labels) * xp.log(1 - odds)).mean()
    return weights, accuracy, loss, (predicted & (labels == 1)).sum() / xp.maximum(predicted.sum(), 1)


def bodies(xp: Any, places: Any, speeds: Any, masses: Any) -> Any:
    for _ in range(2):
        apart = places[None, :, :] - places[:, None, :]
        squares = (apart**2).sum(axis=-1) + xp.eye(len(places))
        others = 1 - xp.eye(len(places))
        pull = (apart * (masses[None, :] * others * squares**-1.5)[:, :, None]).sum(axis=1)
        speeds = speeds + 0.01 * pull
        places = places + 0.01 * speeds
    return places, speeds, 0.5 * (masses * (speeds**2).sum(axis=1)).sum()


def life(xp: Any, board: Any) -> Any:
    for _ in range(3):
        turns = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        count = sum(xp.roll(xp.roll(board, i, axis=0), j, axis=1) for i, j in turns)
        board = ((count == 3) | ((board == 1) & (count == 2))).astype(xp.uint8)
    return board, board.sum(), xp.where(board > 0, 255, 0), board * 0.5


def histogram(xp: Any, values: Any) -> Any:
    low, high = values.min(), values.max()
    places = ((values - low) / (high - low) * 8).astype(xp.int64).clip(0, 7)
    counts = (places[:, None] == xp.arange(8)).sum(axis=0)
    return counts, counts / counts.sum(), xp.cumsum(counts), low + (high - low) * xp.arange(9) / 8


def moving_average(xp: Any, values: Any) -> Any:
    sums = xp.concatenate([xp.zeros(1), xp.cumsum(values)])
    window = xp.full(3, 1 / 3)
    smooth = sum(window[k] * values[k : len(values) - 2 + k] for k in range(3))
    return (
        (sums[3:] - sums[:-3]) / 3,
        smooth,
        values[::-2] - values.mean(),
        xp.stack([values, xp.arange(len(values))]),
    )


def sudoku(xp: Any, grid: Any) -> Any:
    digits = xp.arange(1, 10)
    found = grid[:, :, None] == digits
    boxes = found.reshape(3, 3, 3, 3, 9).transpose(0, 2, 1, 3, 4).reshape(3, 3, 9, 9).any(axis=2)
    rows, columns = found.any(axis=1), found.any(axis=0)
    places = xp.arange(9)
    taken = rows[:, None] | columns[None] | boxes[places[:, None] // 3, places[None] // 3]
    free = ~taken & (grid == 0)[:, :, None]
    diagonal = grid[places, 8 - places]
    return free.sum(axis=2), (free * digits).max(axis=2), diagonal, xp.where(free.sum(axis=2) == 1, 1.5, grid)


def convolution(xp: Any, image: Any) -> Any:
    kernel = xp.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    height, width = image.shape
    blurred = sum(
        kernel[i, j] * image[i : height - 2 + i, j : width - 2 + j] for i in range(3) for j in range(3)
    )
    edges = image[:, 2:].astype(xp.int16) - image[:, :-2]
    return blurred, edges, abs(edges) > 2 * abs(edges).mean(), (image / 255) ** 2.2, image.mean(axis=0)


def edit_distance(xp: Any, scan: Any, one: Any, two: Any) -> Any:
    """Return Levenshtein's distance: of each row, what comes from above, then what comes from the left."""
    places = xp.arange(len(two) + 1)

    def row(above: Any, letter: Any) -> Any:
        replaced = above[:-1] + (two != letter)
        best = xp.concatenate([above[:1] + 1, xp.minimum(above[1:] + 1, replaced)])
        left = best[:, None] + xp.where(places[:, None] <= places, places - places[:, None], 1000)
        found = left.min(axis=0)
        return found, found[-1]

    last, distances = scan(row, places, one)
    return last[-1], distances / xp.maximum(places[-1], 1)


def softmax_regression(xp: Any, points: Any, labels: Any) -> Any:
    classes = 3
    weights = xp.zeros((points.shape[1], classes))
    wanted = xp.eye(classes)[labels]
    for _ in range(4):
        scores = points @ weights
        scores = scores - scores.max(axis=1, keepdims=True)
        chances = xp.exp(scores) / xp.exp(scores).sum(axis=1, keepdims=True)
        weights = weights - points.T @ (chances - wanted) / len(labels)
    loss = -xp.log(chances[xp.arange(len(labels)), labels]).mean()
    return weights, loss, (chances.argmax(axis=1) == labels).mean()


def escape_times(xp: Any, size: int) -> Any:
    x, y = xp.linspace(-2, 1, size)[None, :], xp.linspace(-1, 1, size)[:, None]
    real, imaginary, times = xp.zeros((size, size)), xp.zeros((size, size)), xp.zeros((size, size))
    for _ in range(5):
        inside = real**2 + imaginary**2 <= 4
        times = times + inside
        again = xp.where(inside, real**2 - imaginary**2 + x, real)
        real, imaginary = again, xp.where(inside, 2 * real * imaginary + y, imaginary)
    return times, times.std(), (times == 5).sum()


def page_rank(xp: Any, links: Any) -> Any:
    out = links.sum(axis=1)
    moves = xp.where(out[:, None] > 0, links / xp.maximum(out, 1)[:, None], 1 / len(links))
    rank = xp.full(len(links), 1 / len(links))
    for _ in range(5):
        rank = 0.15 / len(links) + 0.85 * (rank @ moves)
    order = xp.argsort(-rank)
    return rank, order, rank[order][:3], links[order][:, order]
