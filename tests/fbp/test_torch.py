import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from cmaxslam_fbp.errors import BinningError
from cmaxslam_fbp.fbp import Binning

torch = pytest.importorskip("torch")

CASES = [
    ((23,), "rect", "linear", None),
    ((11, 14), "rect", "linear", None),
    ((11, 14), "linear", None, None),
    ((11, 14), "linear", "cubic", None),
    ((11, 14), "gauss", "lanczos", None),
    ((11, 14), "rect", None, "sigmoid"),
    ((6, 5, 7), "linear", "linear", None),
    ((3, 4, 3, 4), "rect", "linear", None),
]


@pytest.fixture(autouse=True)
def one_thread():
    """Small tensors gain nothing from a second thread, and wait for it where the machine is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=CASES, ids=str)
def case(request, cloud):
    """A tensor binning, its oracle, and inputs as arrays and as tensors."""
    shape, kernel, reconstruction, surrogate = request.param
    tensors, oracle = (
        Binning(shape, kernel, reconstruction, surrogate=surrogate, backend=backend)
        for backend in ("torch", "reference")
    )
    arrays = cloud(shape)
    names = ("points", "weights", "points_dot", "weights_dot", "frame_bar")
    return tensors, oracle, [getattr(arrays, n) for n in names], [torch.from_numpy(getattr(arrays, n)) for n in names]


def close(tensor, array, tolerance=1e-11):
    np.testing.assert_allclose(tensor.detach().numpy(), array, atol=tolerance, rtol=tolerance)
    assert np.abs(array).max() > 1e-3


def test_operations_agree_with_the_reference(case):
    ours, oracle, (x, w, x_dot, w_dot, h_bar), (tx, tw, tx_dot, tw_dot, th_bar) = case
    close(ours(tx, tw), oracle(x, w))
    close(ours(tx), oracle(x))
    close(ours.jvp(tx, tw, tx_dot, tw_dot), oracle.jvp(x, w, x_dot, w_dot))
    close(ours.jvp(tx, tw, None, tw_dot), oracle.jvp(x, w, None, w_dot))
    for tensor, array in zip(ours.vjp(tx, tw, th_bar), oracle.vjp(x, w, h_bar), strict=True):
        close(tensor, array)
    close(ours.hvp(tx, tw, th_bar, tx_dot), oracle.hvp(x, w, h_bar, x_dot), 1e-9)
    close(ours.curvatures(tx, tw, th_bar), oracle.curvatures(x, w, h_bar), 1e-9)
    assert ours.count_ignored(tx) == 2


def test_autograd_gives_the_synthesized_derivative_and_its_derivative(case):
    ours, oracle, (x, w, x_dot, _, h_bar), (tx, tw, tx_dot, _, th_bar) = case
    tx, tw = tx.clone().requires_grad_(), tw.clone().requires_grad_()
    points_bar, weights_bar = torch.autograd.grad((ours(tx, tw) * th_bar).sum(), (tx, tw), create_graph=True)
    for tensor, array in zip((points_bar, weights_bar), oracle.vjp(x, w, h_bar), strict=True):
        close(tensor, array)
    products = torch.autograd.grad((points_bar * tx_dot).sum(), (tx, tw), retain_graph=True)
    close(products[0], oracle.hvp(x, w, h_bar, x_dot), 1e-9)
    # The mixed derivative is the same from either side: of points_bar along the weights, ...
    ones = oracle.vjp(x, np.ones_like(w), h_bar)[0]
    close(products[1], (ones * x_dot).sum(1))
    # ... and of weights_bar along the points.
    (mixed,) = torch.autograd.grad(weights_bar.sum(), tx)
    close(mixed, ones)


def test_double_backward_through_a_score_is_the_gauss_newton_and_the_curvature_term(case):
    """For f = sum(h^2) / 2 the Hessian-vector product is J^T J v + hvp(h, v)."""
    ours, oracle, (x, w, x_dot, _, _), (tx, tw, tx_dot, _, _) = case
    tx = tx.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(ours(tx, tw).square().sum() / 2, tx, create_graph=True)
    (product,) = torch.autograd.grad((gradient * tx_dot).sum(), tx)
    expected = oracle.vjp(x, w, oracle.jvp(x, w, x_dot))[0] + oracle.hvp(x, w, oracle(x, w), x_dot)
    close(product, expected, 1e-9)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # from inside Torch
def test_function_transforms_give_the_same(case):
    ours, oracle, (x, w, x_dot, w_dot, h_bar), (tx, tw, tx_dot, tw_dot, th_bar) = case
    frame, frame_dot = torch.func.jvp(ours, (tx, tw), (tx_dot, tw_dot))
    close(frame, oracle(x, w))
    close(frame_dot, oracle.jvp(x, w, x_dot, w_dot))

    def score(points):
        return (ours(points, tw) * th_bar).sum()

    _, product = torch.func.jvp(torch.func.grad(score), (tx,), (tx_dot,))
    close(product, oracle.hvp(x, w, h_bar, x_dot), 1e-9)


def test_batches_are_binned_as_if_one_by_one(case):
    ours, _, _, (tx, tw, _, _, th_bar) = case
    batch, weights = torch.stack([tx, tx + 0.3, tx * 0.9]), torch.stack([tw, 2 * tw, -tw])
    frames = torch.stack([ours(x, w) for x, w in zip(batch, weights, strict=True)])
    torch.testing.assert_close(ours(batch, weights), frames, atol=1e-13, rtol=1e-13)
    torch.testing.assert_close(torch.func.vmap(ours)(batch, weights), frames, atol=1e-13, rtol=1e-13)
    shared = torch.stack([ours(x, tw) for x in batch])
    torch.testing.assert_close(ours(batch, tw), shared, atol=1e-13, rtol=1e-13)
    mapped = torch.func.vmap(ours, in_dims=(0, None))(batch, tw)
    torch.testing.assert_close(mapped, shared, atol=1e-13, rtol=1e-13)
    gradient = torch.func.grad(lambda points: (ours(points, tw) * th_bar).sum())
    each = torch.stack([gradient(x) for x in batch])
    torch.testing.assert_close(torch.func.vmap(gradient)(batch), each, atol=1e-13, rtol=1e-13)


OFFSETS = [0, 70, 70, 71, 200]  # one sample is empty, and one has a single point


def split(tensor):
    return [tensor[first:last] for first, last in pairwise(OFFSETS)]


def test_samples_of_unequal_length_are_binned_as_if_one_by_one(case):
    """The frames, their gradients, and the gradients of these: with offsets, and filled up with weights of zero."""
    ours, _, _, (tx, tw, tx_dot, _, th_bar) = case
    tx, tw = tx.clone().requires_grad_(), tw.clone().requires_grad_()
    longest = max(len(sample) for sample in split(tx))

    def fill(tensor):
        rest = [(longest - len(part), *tensor.shape[1:]) for part in split(tensor)]
        parts = [torch.cat([part, part.new_zeros(size)]) for part, size in zip(split(tensor), rest, strict=True)]
        return torch.stack(parts)

    single = torch.stack([ours(x, w) for x, w in zip(split(tx), split(tw), strict=True)])
    tilt = torch.arange(1.0, len(OFFSETS), dtype=tx.dtype).reshape(-1, *[1] * th_bar.ndim)

    def derivatives(frames):
        loss = (frames * th_bar * tilt).sum() + frames.square().sum() / 2
        first = torch.autograd.grad(loss, (tx, tw), create_graph=True)
        second = torch.autograd.grad((first[0] * tx_dot).sum() + first[1].sum(), (tx, tw), retain_graph=True)
        return *first, *second

    expected = derivatives(single)
    for frames in (ours(tx, tw, offsets=OFFSETS), ours(fill(tx), fill(tw))):
        torch.testing.assert_close(frames, single, atol=1e-13, rtol=1e-13)
        for ours_, alone in zip(derivatives(frames), expected, strict=True):
            torch.testing.assert_close(ours_, alone, atol=1e-11, rtol=1e-11)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # from inside Torch
def test_samples_by_offsets_can_be_mapped_and_pushed_forward(case):
    ours, _, _, (tx, tw, tx_dot, tw_dot, _) = case
    whole = torch.func.vmap(lambda x: ours(x, tw, offsets=torch.tensor(OFFSETS)))(torch.stack([tx, tx + 0.3]))
    torch.testing.assert_close(whole[1], ours(tx + 0.3, tw, offsets=OFFSETS), atol=1e-13, rtol=1e-13)
    _, pushed = torch.func.jvp(lambda x, w: ours(x, w, offsets=torch.tensor(OFFSETS)), (tx, tw), (tx_dot, tw_dot))
    alone = [ours.jvp(*parts) for parts in zip(*map(split, (tx, tw, tx_dot, tw_dot)), strict=True)]
    torch.testing.assert_close(pushed, torch.stack(alone), atol=1e-11, rtol=1e-11)


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize(("kernel", "reconstruction"), [("rect", "linear"), ("linear", None)])
def test_a_loss_is_compiled_to_one_graph_for_any_number_of_events(kernel, reconstruction):
    """Its value and gradients are those of autograd, by flow and by weights, with offsets and in batches."""
    ours, generator = Binning((11, 14), kernel, reconstruction, backend="torch"), torch.Generator().manual_seed(0)

    def loss(events, flow, weights, offsets):
        samples = ours(events - 0.3 * flow, weights, offsets=offsets)
        return samples.square().mean(dim=(1, 2)).log().sum() + ours((events + flow)[None], weights).square().sum()

    from torch._dynamo.testing import CompileCounterWithBackend

    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(loss, backend=counter, fullgraph=True)
    for count in (50, 60, 70, 110):
        events, flow, weights = (10 * torch.rand(size, generator=generator) for size in ((count, 2), (count, 2), count))
        offsets, results = torch.tensor([0, 20, count]), []
        for function in (loss, compiled):
            leaves = flow.clone().requires_grad_(), weights.clone().requires_grad_()
            value = function(events, *leaves, offsets)
            results.append((value.detach(), *torch.autograd.grad(value, leaves)))
        torch.testing.assert_close(*results)
        assert min(gradient.abs().max() for gradient in results[0][1:]) > 1e-3
    assert counter.frame_count == 2  # one for the first number of events, one for all others


@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_every_operation_can_be_compiled(case):
    ours, _, _, (x, w, x_dot, w_dot, h_bar) = case

    def all_operations(x, w):
        frame_dot = ours.jvp(x, w, x_dot, w_dot)
        return frame_dot, *ours.vjp(x, w, h_bar), ours.hvp(x, w, h_bar, x_dot), ours.curvatures(x, w, h_bar)

    torch._dynamo.reset()
    compiled = torch.compile(all_operations, backend="aot_eager", fullgraph=True)(x, w)
    torch.testing.assert_close(compiled, all_operations(x, w))


@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("order", [(0, 0), (1, 0)])
def test_nodes_of_a_graph_keep_what_the_compiler_expects_and_differentiate_twice(order, cloud):
    from cmaxslam_fbp.fbp import torch_operations

    ours, arrays = Binning((11, 14), backend="torch"), cloud((11, 14), count=20)
    x = torch.from_numpy(arrays.points).requires_grad_()
    values, frame = torch.from_numpy(arrays.weights)[:, None].requires_grad_(), torch.from_numpy(arrays.frame_bar)
    backend = ours._backend
    for node, function, other in (
        (torch_operations.scatter_node, torch_operations.Scatter, values),
        (torch_operations.gather_node, torch_operations.Gather, frame.requires_grad_()),
    ):
        torch.library.opcheck(node, (x, other, None, backend._name, list(order), False))
        as_node = node(x, other, None, backend._name, list(order), False)
        alone = function.apply(x, other, None, backend._frames, (order,), False)
        torch.testing.assert_close(twice(as_node, x, other), twice(alone, x, other))


def twice(result, *leaves):
    first = torch.autograd.grad(result.square().sum(), leaves, create_graph=True)
    return *first, *torch.autograd.grad(sum(part.square().sum() for part in first), leaves)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float16", 0.03), ("bfloat16", 0.25)])
def test_every_floating_type_is_kept(dtype, tolerance, cloud):
    c = cloud((11, 14), count=60)
    points = torch.from_numpy(c.points).to(getattr(torch, dtype))
    frame_bar = torch.from_numpy(c.frame_bar).to(points)
    ours, oracle = (Binning((11, 14), "linear", backend=b) for b in ("torch", "reference"))
    seen = points.double().numpy()  # what is left of the points in that precision
    points_bar, _ = ours.vjp(points, None, frame_bar)
    assert points_bar.dtype == points.dtype
    np.testing.assert_allclose(points_bar.double(), oracle.vjp(seen, None, frame_bar.double())[0], atol=tolerance)


def test_frame_has_the_same_bits_as_that_of_the_compiled_backend(cloud):
    c = cloud((11, 14), np.float32)
    frame = Binning((11, 14), backend="torch")(torch.from_numpy(c.points), torch.from_numpy(c.weights))
    np.testing.assert_array_equal(frame.numpy(), Binning((11, 14))(c.points, c.weights))


def test_temporaries_do_not_grow_with_the_number_of_points_times_the_support():
    """Chunks: the largest tensor that is made has the size of the points, whatever the kernel."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        size = 0

        def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, tuple | list) else [result]:
                if isinstance(tensor, torch.Tensor):
                    Largest.size = max(Largest.size, tensor.numel())
            return result

    points = torch.rand((100_000, 2), dtype=torch.float32, requires_grad=True)
    binning = Binning((11, 14), "gauss", "cubic", backend="torch")
    with Largest():
        binning.vjp(points.detach(), None, torch.ones(11, 14))
        binning(10 * points, offsets=[0, 3, 99_000, 100_000]).square().sum().backward()
    assert Largest.size <= points.numel()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda b: b(torch.zeros(3, 3)), r"\(\.\.\., N, 2\)"),
        (lambda b: b(torch.zeros(3, 2, dtype=torch.long)), "floating"),
        (lambda b: b(np.zeros((3, 2))), "tensors"),
        (lambda b: b(torch.zeros(3, 2), torch.zeros(2)), "weights"),
        (lambda b: b(torch.zeros(3, 2), out=torch.zeros(6, 7)), "out"),
        (lambda b: b.vjp(torch.zeros(3, 2), None, torch.zeros(4, 4)), "frame_bar"),
        (lambda b: b(torch.zeros(3, 2), offsets=[0, 2]), "offsets"),
        (lambda b: b(torch.zeros(3, 2), offsets=[0, 2, 1, 3]), "offsets"),
        (lambda b: b(torch.zeros(3, 2), offsets=[0.0, 3.0]), "offsets"),
        (lambda b: b(torch.zeros(1, 3, 2), offsets=[0, 3]), "offsets"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(call, words):
    with pytest.raises(BinningError, match=words):
        call(Binning((6, 7), backend="torch"))


def test_no_operation_mixes_devices_or_copies_to_the_host(case):
    """On the meta device either raises."""
    ours, _, _, arguments = case
    x, w, x_dot, w_dot, h_bar = (tensor.to("meta") for tensor in arguments)
    x, w = x.requires_grad_(), w.requires_grad_()
    for result in (
        ours(x, w),
        ours(x, w, offsets=torch.tensor(OFFSETS, device="meta")),
        ours(x, w, offsets=OFFSETS),
        ours.jvp(x, w, x_dot, w_dot),
        *ours.vjp(x, w, h_bar),
        ours.hvp(x, w, h_bar, x_dot),
        ours.curvatures(x, w, h_bar),
    ):
        assert result.device.type == "meta"
        for gradient, like in zip(torch.autograd.grad(result.sum(), (x, w), allow_unused=True), (x, w), strict=True):
            assert gradient is None or (gradient.device.type, gradient.shape) == ("meta", like.shape)
    with pytest.raises((RuntimeError, NotImplementedError)):
        ours.count_ignored(x)  # a number for people: it has to come to the host


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # from inside Torch
def test_derivatives_of_derivatives_stay_on_the_device():
    ours = Binning((11, 14), backend="torch")
    x, w = torch.zeros((50, 2), device="meta", requires_grad=True), torch.zeros(50, device="meta", requires_grad=True)
    first = torch.autograd.grad(ours(x, w).square().sum(), (x, w), create_graph=True)
    second = torch.autograd.grad(sum(part.square().sum() for part in first), (x, w), create_graph=True)
    third = torch.autograd.grad(sum(part.square().sum() for part in second), (x, w))
    frame, frame_dot = torch.func.jvp(torch.func.vmap(ours), (x[None], w[None]), (x[None], w[None]))
    for tensor in (*first, *second, *third, frame, frame_dot):
        assert tensor.device.type == "meta"


def test_cotangents_from_the_host_are_brought_to_the_device_of_the_points():
    points = torch.zeros(3, 2, device="meta")
    assert Binning((6, 7), backend="torch").vjp(points, None, torch.ones(6, 7))[0].device.type == "meta"


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_without_torch_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['torch'] = None; from cmaxslam_fbp.fbp import Binning\n"
        "from cmaxslam_fbp.errors import MissingExtraError\n"
        "try: Binning((6, 7), backend='torch')\n"
        "except MissingExtraError as error: print(error)"
    )
    assert "pip install 'cmaxslam-fbp[torch]'" in run_python(code)


def test_tensor_backend_does_not_load_numba():
    code = (
        "import sys, torch; from cmaxslam_fbp.fbp import Binning; "
        "Binning((5, 5), backend='torch')(torch.ones(3, 2)); print('numba' in sys.modules)"
    )
    assert run_python(code) == "False\n"
