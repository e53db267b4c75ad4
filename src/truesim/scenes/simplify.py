"""Fewer triangles for meshes that were made for manufacturing."""

import numpy as np

from truesim.core.typing import Float, Int

FINEST_GRID, GRID_STEP = 256, 0.9
"""Cells along the longest side in the first attempt, and their least reduction from attempt to attempt."""
COARSEST_GRID = 6
"""Cells along the longest side in the last attempt; fewer make shapes unrecognizable."""


def simplify(
    vertices: Float[np.ndarray, "n 3"], faces: Int[np.ndarray, "m 3"], most: int
) -> tuple[Float[np.ndarray, "k 3"], Int[np.ndarray, "l 3"]]:
    """The mesh with about `most` faces or fewer: vertices in one cell of a grid become one.

    Args:
        vertices: Vertices [m].
        faces: Vertex indices of each triangle.
        most: Number of faces to stay below; coarse grids may exceed it.
    """
    cells: float = FINEST_GRID
    found = vertices, faces
    while len(found[1]) > most and cells >= COARSEST_GRID:
        found = _merge(vertices, faces, float(np.ptp(vertices, axis=0).max()) / cells)
        cells *= min(GRID_STEP, float(np.sqrt(most / max(len(found[1]), 1))))  # faces grow with the square of the cells
    return found


def _merge(vertices: np.ndarray, faces: np.ndarray, cell: float) -> tuple[np.ndarray, np.ndarray]:
    """Replace the vertices of each cell by their mean, and drop triangles that collapse."""
    keys = np.floor((vertices - vertices.min(axis=0)) / cell).astype(np.int64)
    _, inverse, counts = np.unique(keys @ np.array([1, 1 << 20, 1 << 40]), return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    means = np.stack([np.bincount(inverse, vertices[:, k]) for k in range(3)], axis=1) / counts[:, None]
    merged = inverse[faces]
    a, b, c = merged.T
    merged = merged[(a != b) & (b != c) & (c != a)]
    if not len(merged):
        return vertices[:0], faces[:0]
    _, first = np.unique(np.sort(merged, axis=1), axis=0, return_index=True)
    merged = merged[np.sort(first)]
    used, renumbered = np.unique(merged, return_inverse=True)
    return means[used], renumbered.reshape(-1, 3)
