import pytest
from moving_dots import moving_dots

torch = pytest.importorskip("torch")

from cmaxslam_fbp.events import Events  # noqa: E402
from cmaxslam_fbp.experiments.flow.real_slices import sample_without_flow, sharpness_gain  # noqa: E402


class Says(torch.nn.Module):
    """A network that says one flow, whatever it sees."""

    def __init__(self, flow_px):
        super().__init__()
        self.flow_px = torch.tensor(flow_px)

    def forward(self, voxels):
        return self.flow_px[None, :, None, None].expand(len(voxels), 2, *voxels.shape[-2:])


def test_the_true_flow_sharpens_and_its_opposite_blurs():
    sample = moving_dots((6, -3))
    assert sharpness_gain(Says((6.0, -3.0)), sample) > 1.5
    assert sharpness_gain(Says((0.0, 0.0)), sample) == 1
    assert sharpness_gain(Says((-6.0, 3.0)), sample) < 0.8


def test_a_sample_of_real_events_is_enlarged_for_the_network():
    events = Events.from_arrays([0, 500, 1000], [0, 5, 9], [0, 5, 6], [1, 0, 1], time_unit="ns")
    sample = sample_without_flow(events, 10, 7)
    assert sample.shape == (8, 16)
    assert sample.t.tolist() == pytest.approx([0, 0.5, 1], abs=1e-2)
