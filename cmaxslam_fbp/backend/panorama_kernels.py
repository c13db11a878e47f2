"""Compiled loops over the pixels of the panorama."""

# mypy: ignore-errors

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def count_visits(directions, planes, visits):
    """Add one to every pixel whose direction lies on the positive side of all planes through the camera's centre.

    `directions` (3, P) float32 are those of the pixels, `planes` (M, 3) float32 the inward normals in the world frame,
    `visits` (P,) counts.
    """
    x, y, z = directions[0], directions[1], directions[2]
    for i in range(len(visits)):
        inside = True
        for m in range(len(planes)):
            inside &= planes[m, 0] * x[i] + planes[m, 1] * y[i] + planes[m, 2] * z[i] > 0
        visits[i] += 1 if inside else 0
