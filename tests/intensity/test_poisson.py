import numpy as np
import pytest

from cmaxslam_fbp.intensity.poisson import FastPoisson, Stencil, smoothness, solve_poisson

TRIANGLE = np.array([[0, 1, 2, 3], [1, 4, 5, 6], [2, 5, 7, 8], [3, 6, 8, 9]])


def random_elements(rows, columns, seed=0):
    """Return positive cells that leave a constant free, as sums of squares of differences are."""
    g = np.random.default_rng(seed).normal(size=(rows - 1, columns, 6, 4))
    g -= g.mean(axis=-1, keepdims=True)
    full = np.einsum("ijnk,ijnl->ijkl", g, g)
    upper = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3), (2, 2), (2, 3), (3, 3)]
    return np.stack([full[..., k, m] for k, m in upper], axis=-1)


def dense(elements):
    rows, columns = elements.shape[0] + 1, elements.shape[1]
    matrix = np.zeros((rows * columns,) * 2)
    for i in range(rows - 1):
        for j in range(columns):
            right = (j + 1) % columns
            corners = [i * columns + j, i * columns + right, (i + 1) * columns + j, (i + 1) * columns + right]
            matrix[np.ix_(corners, corners)] += elements[i, j][TRIANGLE]
    return matrix


def ties(across, down, columns, wraps):
    """Return the dense matrix of squared differences of neighbours."""
    rows = len(across)
    matrix = np.zeros((rows * columns,) * 2)
    pairs = [(i, j, i, (j + 1) % columns, across[i]) for i in range(rows) for j in range(columns - (not wraps))]
    pairs += [(i, j, i + 1, j, down[i]) for i in range(rows - 1) for j in range(columns)]
    for i, j, k, m, weight in pairs:
        a, b = i * columns + j, k * columns + m
        matrix[[a, b], [a, b]] += weight
        matrix[[a, b], [b, a]] -= weight
    return matrix


@pytest.mark.parametrize("wraps", [True, False])
def test_a_stencil_is_the_matrix_of_its_cells(wraps):
    elements, random = random_elements(6, 7), np.random.default_rng(1)
    across, down = random.uniform(0.5, 2, 6), random.uniform(0.5, 2, 5)
    stencil = Stencil(elements)
    stencil.add_ties(across, down, wraps=wraps)
    image = random.normal(size=(6, 7))
    expected = (dense(elements) + ties(across, down, 7, wraps)) @ image.ravel()
    np.testing.assert_allclose((stencil @ image).ravel(), expected, rtol=1e-12)


def test_vectors_of_cells_are_gathered_at_their_corners():
    elements, vectors = random_elements(5, 6), np.random.default_rng(2).normal(size=(4, 6, 4))
    image = np.random.default_rng(3).normal(size=(5, 6))
    right = np.roll(image, -1, axis=1)
    corners = np.stack([image[:-1], right[:-1], image[1:], right[1:]], axis=-1)
    assert (Stencil(elements).gather(vectors) * image).sum() == pytest.approx((vectors * corners).sum())


def test_the_fast_solution_is_that_of_the_dense_matrix():
    across, down = smoothness(np.cos(np.linspace(-1.2, 1.2, 9)), 0.3)
    rhs = np.random.default_rng(4).normal(size=(9, 12))
    rhs -= rhs.mean()
    solution = FastPoisson(across, down, 12)(rhs)
    np.testing.assert_allclose(ties(across, down, 12, wraps=False) @ solution.ravel(), rhs.ravel(), atol=1e-4)


def test_smoothness_is_the_same_in_all_directions_of_the_sphere():
    """A ramp of one direction of space has the same energy wherever the equator is laid."""
    width, height = 256, 128
    longitude, latitude = (np.arange(width) - 128) / 40.74, (np.arange(height) - 64) / 40.74
    level = np.cos(latitude)[:, None]
    across, down = smoothness(np.cos(latitude), 1.0)

    def energy(image):
        beside, below = np.roll(image, -1, axis=1) - image, np.diff(image, axis=0)
        return float((across[:, None] * beside**2).sum() + (down[:, None] * below**2).sum())

    upward, ahead = np.repeat(np.sin(latitude)[:, None], width, axis=1), level * np.cos(longitude)
    assert energy(upward) == pytest.approx(energy(ahead), rel=0.02)
    assert energy(upward) == pytest.approx(8 * np.pi / 3, rel=0.02)


def test_conjugate_gradients_find_the_map_of_noiseless_equations():
    rows, columns = 40, 64
    elements = random_elements(rows, columns)
    stencil = Stencil(elements)
    truth = np.random.default_rng(5).normal(size=(rows, columns))
    truth -= truth.mean()
    across, down = smoothness(np.ones(rows), 3.0)
    found = solve_poisson(stencil, stencil @ truth, FastPoisson(across, down, columns), 1e-10, 500)
    np.testing.assert_allclose(found - found.mean(), truth, atol=1e-6)
