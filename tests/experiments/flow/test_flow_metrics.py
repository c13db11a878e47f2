import math

import pytest

torch = pytest.importorskip("torch")

from cmaxslam_fbp.experiments.flow.metrics import angular_errors, end_point_errors, flow_errors  # noqa: E402


def test_errors_of_known_flows():
    truth = torch.zeros(1, 2, 1, 3)
    flow = torch.tensor([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]]).T[None, :, None]
    torch.testing.assert_close(end_point_errors(flow, truth)[0, 0], torch.tensor([5.0, 1.0, 0.0]))
    angles = angular_errors(flow, truth)[0, 0].tolist()  # between (u, v, 1) and (0, 0, 1)
    assert angles == pytest.approx([math.degrees(math.atan(5)), 45.0, 0.0], abs=1e-3)
    all_, some = torch.ones(1, 1, 3, dtype=torch.bool), torch.tensor([[[False, True, True]]])
    assert flow_errors(flow, truth, all_).outliers_percent == pytest.approx(100 / 3)
    assert flow_errors(flow, truth, some).epe_px == pytest.approx(0.5)
    assert flow_errors(flow, truth, some).outliers_percent == 0
