"""Compiled product of an image with a matrix between neighbouring pixels, and tridiagonal systems side by side."""

# mypy: ignore-errors

from cmaxslam_fbp.compiling import CONTRACTED, compiled


@compiled(fastmath=CONTRACTED)
def multiply(centre, right, below, below_right, below_left, image, out):
    """Write the product (rows, columns) of a `Stencil` with an image; columns form a circle."""
    rows, columns = image.shape
    for i in range(rows):
        for j in range(columns):
            k, h = j + 1 if j + 1 < columns else 0, j - 1 if j > 0 else columns - 1
            value = centre[i, j] * image[i, j] + right[i, j] * image[i, k] + right[i, h] * image[i, h]
            if i + 1 < rows:
                value += below[i, j] * image[i + 1, j]
                value += below_right[i, j] * image[i + 1, k] + below_left[i, j] * image[i + 1, h]
            if i > 0:
                value += below[i - 1, j] * image[i - 1, j]
                value += below_right[i - 1, h] * image[i - 1, h] + below_left[i - 1, k] * image[i - 1, k]
            out[i, j] = value


@compiled(fastmath=CONTRACTED)
def factorise(pivots, down, factors):
    """Factorise, for each column, the matrix with the diagonal `pivots` (rows, columns) and `-down` beside it.

    `A = L D L^T`: `D` overwrites `pivots`, what lies below the diagonal of `L` is written to `factors`.
    """
    for i in range(len(down)):
        for j in range(pivots.shape[1]):
            factors[i, j] = -down[i] / pivots[i, j]
            pivots[i + 1, j] += factors[i, j] * down[i]


@compiled(fastmath=CONTRACTED)
def solve(pivots, factors, image):
    """Overwrite each column of an image (rows, columns) with the solution of its system, by its factors."""
    rows, columns = image.shape
    for i in range(1, rows):
        for j in range(columns):
            image[i, j] -= factors[i - 1, j] * image[i - 1, j]
    for j in range(columns):
        image[rows - 1, j] /= pivots[rows - 1, j]
    for i in range(rows - 2, -1, -1):
        for j in range(columns):
            image[i, j] = image[i, j] / pivots[i, j] - factors[i, j] * image[i + 1, j]
