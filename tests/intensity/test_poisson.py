import numpy as np
import pytest
from scipy.fft import dct, idct
from scipy.linalg import solveh_banded
from scipy.sparse.linalg import LinearOperator, cg

from cmaxslam_fbp.intensity.poisson import FastPoisson, Stencil, good_columns, smoothness, solve_poisson

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


@pytest.mark.parametrize(("rows", "columns"), [(9, 12), (8, 14), (30, 2), (2, 2), (64, 126)])
def test_the_fast_solution_is_that_of_scipy(rows, columns):
    across, down = smoothness(np.cos(np.linspace(-1.2, 1.2, rows)), 0.3)
    rhs = np.random.default_rng(6).normal(size=(rows, columns))
    waves = dct(rhs, axis=1)
    band = np.zeros((2, rows))
    band[1, :-1] = -down
    solved = np.empty_like(waves)
    for k in range(columns):
        band[0] = across * (2 - 2 * np.cos(np.pi * k / columns)) + 1e-6
        band[0, :-1] += down
        band[0, 1:] += down
        solved[:, k] = solveh_banded(band, waves[:, k], lower=True)
    expected = idct(solved, axis=1)
    found = FastPoisson(across, down, columns)(rhs)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max())


def test_good_numbers_of_columns_are_even_and_fit():
    for least in range(1, 200):
        good = good_columns(least, 1024)
        assert good % 2 == 0
        assert least <= good <= 1.2 * least + 2
    assert good_columns(1021, 1024) == 1024
    assert good_columns(1024, 1024) == 1024


def test_conjugate_gradients_are_those_of_scipy():
    rows, columns = 20, 30
    stencil = Stencil(random_elements(rows, columns))
    across, down = smoothness(np.ones(rows), 3.0)
    stencil.add_ties(across, down, wraps=True)
    fast, rhs = FastPoisson(across, down, columns), np.random.default_rng(7).normal(size=(rows, columns))
    rhs -= rhs.mean()
    size = rows * columns, rows * columns
    for steps in (3, 8):
        expected, _ = cg(
            LinearOperator(size, lambda x: (stencil @ x.reshape(rows, columns)).ravel(), dtype=np.float64),
            rhs.ravel(),
            rtol=1e-9,
            maxiter=steps,
            M=LinearOperator(size, lambda x: fast(x.reshape(rows, columns)).ravel(), dtype=np.float64),
        )
        found = solve_poisson(stencil, rhs, fast, 1e-9, steps)
        np.testing.assert_allclose(found.ravel(), expected, atol=1e-10 * np.abs(expected).max())


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
