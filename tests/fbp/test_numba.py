import os
import subprocess
import sys
import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cmaxslam_fbp.fbp import Binning

PLANE = (11, 14)
# Every kernel, reconstruction, surrogate and dimension at least once: all combinations would only compile longer.
CASES = [
    (PLANE, "rect", "linear", None),
    (PLANE, "rect", "cubic", None),
    (PLANE, "rect", "lanczos", None),
    (PLANE, "linear", None, None),
    (PLANE, "linear", "linear", None),
    (PLANE, "gauss", "linear", None),
    (PLANE, "gauss", "lanczos", None),
    (PLANE, "rect", None, "ste"),
    (PLANE, "rect", None, "sigmoid"),
    ((23,), "rect", "linear", None),
    ((23,), "linear", "cubic", None),
    ((6, 5, 7), "rect", "linear", None),
    ((6, 5, 7), "linear", "linear", None),
]
TOLERANCE = {np.float32: {"rtol": 1e-5, "atol": 2e-5}, np.float64: {"rtol": 1e-11, "atol": 1e-11}}


def both(shape, kernel, reconstruction, surrogate):
    return (
        Binning(shape, kernel, reconstruction, surrogate=surrogate, backend=backend)
        for backend in ("numba", "reference")
    )


SINGLE = [CASES[0], CASES[4], CASES[5]]


@pytest.mark.parametrize(
    ("case", "dtype"), [*((c, np.float64) for c in CASES), *((c, np.float32) for c in SINGLE)], ids=str
)
def test_all_operations_agree_with_the_reference(case, dtype, cloud):
    c = cloud(case[0], dtype)
    ours, oracle = both(*case)
    results = [
        (
            b(c.points, c.weights),
            b.jvp(c.points, c.weights, c.points_dot, c.weights_dot),
            *b.vjp(c.points, c.weights, c.frame_bar),
        )
        for b in (ours, oracle)
    ]
    for result, expected in zip(*results, strict=True):
        assert result.dtype == dtype
        np.testing.assert_allclose(result, expected, **TOLERANCE[dtype])
    curvature = {"rtol": 1e-5, "atol": 2e-3} if dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}
    hvp = [b.hvp(c.points, c.weights, c.frame_bar, c.points_dot) for b in (ours, oracle)]
    np.testing.assert_allclose(*hvp, **curvature)
    curvatures = [b.curvatures(c.points, c.weights, c.frame_bar) for b in (ours, oracle)]
    np.testing.assert_allclose(*curvatures, **curvature)
    assert all(np.abs(r).max() > 0.01 for r in results[0])


def test_no_weights_are_ones(cloud):
    c = cloud(PLANE)
    ones = np.ones(len(c.points))
    for kernel in ("rect", "linear"):
        b = Binning(PLANE, kernel)
        np.testing.assert_array_equal(b(c.points), b(c.points, ones))
        np.testing.assert_array_equal(b.jvp(c.points, None, c.points_dot), b.jvp(c.points, ones, c.points_dot))
        without, with_ones = b.vjp(c.points, None, c.frame_bar), b.vjp(c.points, ones, c.frame_bar)
        np.testing.assert_array_equal(without[0], with_ones[0])
        assert without[1] is None
        np.testing.assert_array_equal(
            b.curvatures(c.points, None, c.frame_bar), b.curvatures(c.points, ones, c.frame_bar)
        )
        asked = b.vjp(c.points, None, c.frame_bar, with_weights=True)[1]
        np.testing.assert_array_equal(asked, with_ones[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rect_counts_as_bincount_does(dtype):
    rng = np.random.default_rng(0)
    points = (rng.random((10_007, 2)) * (40, 30) - 0.5).astype(dtype)
    rows, columns = np.floor(points.astype(np.float64) + 0.5).astype(int).T
    keep = (rows < 40) & (columns < 30)
    expected = np.bincount(rows[keep] * 30 + columns[keep], minlength=1200).reshape(40, 30)
    np.testing.assert_array_equal(Binning((40, 30))(points), expected)


def test_an_edge_belongs_to_the_upper_bin_in_any_precision():
    almost = np.nextafter(np.float32(0.5), np.float32(0))  # adding one half to it would round up
    for dtype in (np.float32, np.float64):
        frame = Binning((4,))(np.array([[-0.5], [0.5], [almost], [1.5], [3.5]], dtype))
        assert frame.tolist() == [2.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize("kernel", ["rect", "linear", "gauss"])
def test_frame_has_the_same_bits_whatever_the_reconstruction(kernel, cloud):
    c = cloud(PLANE, np.float32)
    frames = [Binning(PLANE, kernel, r)(c.points, c.weights).tobytes() for r in ("linear", "cubic", "lanczos")]
    frames.append(Binning(PLANE, kernel, surrogate="sigmoid")(c.points, c.weights).tobytes())
    assert len(set(frames)) == 1


@pytest.mark.parametrize("shape", [PLANE, (23,), (6, 5, 7), (1, 3)], ids=str)
@pytest.mark.parametrize("kernel", ["rect", "linear"])
def test_threads_and_repeats_give_the_same_bits(shape, kernel, cloud):
    c = cloud(shape, count=3001)
    results = []
    for threads in (1, 2, 3, 1):
        b = Binning(shape, kernel, threads=threads)
        arrays = [
            b(c.points, c.weights),
            b.jvp(c.points, c.weights, c.points_dot, c.weights_dot),
            *b.vjp(c.points, c.weights, c.frame_bar),
            b.hvp(c.points, c.weights, c.frame_bar, c.points_dot),
            b.curvatures(c.points, c.weights, c.frame_bar),
        ]
        results.append(b"".join(a.tobytes() for a in arrays))
    assert len(set(results)) == 1


def test_order_of_the_points_does_not_matter(cloud):
    c = cloud(PLANE)
    order = np.random.default_rng(1).permutation(len(c.points))
    for kernel in ("rect", "linear"):
        b = Binning(PLANE, kernel)
        np.testing.assert_allclose(b(c.points[order], c.weights[order]), b(c.points, c.weights), atol=1e-13)
        shuffled = b.vjp(c.points[order], c.weights[order], c.frame_bar)[0]
        np.testing.assert_array_equal(shuffled, b.vjp(c.points, c.weights, c.frame_bar)[0][order])


def test_either_order_of_memory_and_any_stride_is_taken(cloud):
    c = cloud(PLANE)
    b = Binning(PLANE)
    columns, strided = np.asfortranarray(c.points), np.repeat(c.points, 2, 0)[::2]
    for points in (columns, strided):
        np.testing.assert_array_equal(b(points, c.weights), b(c.points, c.weights))
        np.testing.assert_array_equal(
            b.jvp(points, None, np.asfortranarray(c.points_dot)), b.jvp(c.points, None, c.points_dot)
        )
        np.testing.assert_array_equal(b.vjp(points, None, c.frame_bar)[0], b.vjp(c.points, None, c.frame_bar)[0])


def test_results_go_to_the_arrays_that_are_given(cloud):
    c = cloud(PLANE)
    b = Binning(PLANE)
    frame, points_bar, weights_bar = np.full(PLANE, 7.0), np.full_like(c.points, 7), np.full_like(c.weights, 7)
    assert b(c.points, c.weights, out=frame) is frame
    np.testing.assert_array_equal(frame, b(c.points, c.weights))
    assert b.jvp(c.points, c.weights, c.points_dot, out=frame) is frame
    np.testing.assert_array_equal(frame, b.jvp(c.points, c.weights, c.points_dot))
    pair = b.vjp(c.points, c.weights, c.frame_bar, out=(points_bar, weights_bar))
    assert pair[0] is points_bar
    assert pair[1] is weights_bar
    for ours, expected in zip(pair, b.vjp(c.points, c.weights, c.frame_bar), strict=True):
        np.testing.assert_array_equal(ours, expected)
    assert b.hvp(c.points, c.weights, c.frame_bar, c.points_dot, out=points_bar) is points_bar
    curvatures = np.full((len(c.points), 3), 7.0)
    assert b.curvatures(c.points, c.weights, c.frame_bar, out=curvatures) is curvatures
    np.testing.assert_array_equal(curvatures, b.curvatures(c.points, c.weights, c.frame_bar))


def test_nothing_of_the_size_of_the_points_is_allocated():
    rng = np.random.default_rng(0)
    points = rng.random((200_000, 2)) * PLANE
    frame_bar, frame, points_bar = rng.random(PLANE), np.empty(PLANE), np.empty_like(points)
    curvatures = np.empty((len(points), 3))
    b = Binning(PLANE)
    for _ in range(2):  # once to compile
        tracemalloc.start()
        b(points, out=frame)
        b.jvp(points, None, points, out=frame)
        b.vjp(points, None, frame_bar, out=(points_bar, None))
        b.hvp(points, None, frame_bar, points, out=points_bar)
        b.curvatures(points, None, frame_bar, out=curvatures)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 100_000  # bytes, of 3.2 million


def test_integers_and_half_precision_are_converted():
    b = Binning((4, 4))
    assert b(np.array([[1, 2]])).dtype == np.float64
    assert b(np.array([[1, 2]], np.float16)).dtype == np.float32
    assert b(np.zeros((0, 2))).sum() == 0


COORDINATES = st.one_of(
    st.floats(-8, 12),
    st.integers(-6, 20).map(lambda n: n / 2),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    points=hnp.arrays(np.float64, st.tuples(st.integers(0, 40), st.just(2)), elements=COORDINATES),
    shape=st.sampled_from(list(product((1, 2, 5), (1, 3, 9)))),
    kernel=st.sampled_from(["rect", "linear"]),
)
def test_any_points_on_any_small_grid_agree_with_the_reference(points, shape, kernel):
    """Grids smaller than the kernels, points on every kind of edge, and numbers that are none."""
    rng = np.random.default_rng(len(points))
    weights, points_dot, frame_bar = rng.normal(size=len(points)), rng.normal(size=points.shape), rng.normal(size=shape)
    ours, oracle = (Binning(shape, kernel, backend=backend) for backend in ("numba", "reference"))
    assert ours.count_ignored(points) == np.sum(~np.isfinite(points).all(1))
    np.testing.assert_allclose(ours(points, weights), oracle(points, weights), atol=1e-12)
    np.testing.assert_allclose(
        ours.jvp(points, weights, points_dot), oracle.jvp(points, weights, points_dot), atol=1e-12
    )
    for a, b in zip(ours.vjp(points, weights, frame_bar), oracle.vjp(points, weights, frame_bar), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    a, b = (x.hvp(points, weights, frame_bar, points_dot) for x in (ours, oracle))
    np.testing.assert_allclose(a, b, atol=1e-12)


def test_building_blocks_fuse_with_a_loop_of_ones_own(cloud):
    """A warp and a gather in one loop, as in `docs/fbp.md`: the gradient of the points without storing the points."""
    from numba import njit

    from cmaxslam_fbp.fbp.bins_numba import gather, locate
    from cmaxslam_fbp.fbp.kappa import derivative_kernel
    from cmaxslam_fbp.fbp.numba_backend import CompiledKernel

    rng = np.random.default_rng(0)
    times, events = rng.uniform(-1, 1, 300), rng.uniform(4, 8, (300, 2))
    frame_bar = rng.normal(size=PLANE)
    kappa = CompiledKernel(PLANE, derivative_kernel("rect", "linear"), np.float64)
    _, SUPPORT, DEGREE = kappa.constants

    @njit
    def pull_back(events, times, v, frame, table, inner, row):
        total_y, total_x = 0.0, 0.0
        for i in range(len(times)):
            point = (events[i, 0] - times[i] * v[0], events[i, 1] - times[i] * v[1])
            inside, index, u = locate(point, inner, 0, row, SUPPORT)
            if inside:
                y, x = gather(frame, index, 0, row, u, table, SUPPORT, DEGREE, 1)
                total_y, total_x = total_y - times[i] * y, total_x - times[i] * x
        return total_y, total_x

    velocity = np.array([1.5, -0.5])
    bounds = kappa.bounds
    fused = pull_back(events, times, velocity, frame_bar.ravel(), kappa.coefficients, bounds.inner, PLANE[1])
    points_bar, _ = Binning(PLANE).vjp(events - times[:, None] * velocity, None, frame_bar)
    np.testing.assert_allclose(fused, -times @ points_bar, rtol=1e-12)


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True, check=True
    ).stdout


def test_importing_loads_neither_scipy_nor_numba_nor_torch():
    code = "import sys, cmaxslam_fbp.fbp; print([m for m in ('numba', 'torch', 'scipy') if m in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_a_second_process_loads_compiled_code_from_the_cache(tmp_path):
    code = (
        "import numpy as np; from cmaxslam_fbp.fbp import Binning; "
        "Binning((5, 5)).vjp(np.ones((3, 2)), None, np.ones((5, 5)))"
    )
    first, second = (run_python(code, NUMBA_DEBUG_CACHE="1", NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert "data saved" in first
    assert "data loaded" in second
    assert "data saved" not in second
