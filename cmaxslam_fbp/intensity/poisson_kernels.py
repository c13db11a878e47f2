"""Compiled product of an image with a matrix between neighbouring pixels."""

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
