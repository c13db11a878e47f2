import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.report.packet_pictures import draw_packet


@pytest.fixture
def recording(made_trajectory):
    """Fixed points, seen every millisecond from a camera that sweeps over them."""
    camera, trajectory = Camera(120, 90, 100, 100, 59.5, 44.5), made_trajectory(duration_s=1.0, amplitude=2.0)
    points = np.column_stack([*np.random.default_rng(0).uniform(-0.4, 0.4, (2, 40)), np.ones(40)])
    t_ns = np.arange(trajectory.start_ns, trajectory.end_ns, 1_000_000)
    directions = (
        trajectory.rotation_at(t_ns[:, None].repeat(40, 1).ravel()).inv().apply(np.tile(points, (len(t_ns), 1)))
    )
    times, ahead = t_ns.repeat(40), directions[:, 2] > 0.1
    x, y = np.rint(camera.project(directions[ahead])).astype(int).T
    on = (x >= 0) & (x < 120) & (y >= 0) & (y < 90)
    events = Events.from_arrays(times[ahead][on], x[on], y[on], np.ones(on.sum()))
    return Recording.from_events(events, camera=camera)


def test_the_warped_packet_is_sharper(recording, made_trajectory):
    trajectory = made_trajectory(duration_s=1.0, amplitude=2.0)
    before, after, figures = draw_packet(recording, recording.require_camera(), trajectory)
    assert before.shape == after.shape == (90, 120)
    assert figures["contrast_after"] > 2 * figures["contrast_before"]
    assert figures["events"] > 100
    assert figures["speed_deg_s"] == pytest.approx(115, rel=0.3)


def test_the_frontend_s_velocity_nearest_to_the_packet_warps_it(recording, made_trajectory):
    from cmaxslam_fbp.trajectory import AngularVelocities

    trajectory = made_trajectory(duration_s=1.0, amplitude=2.0)
    t_ns = trajectory.t_ns[5:-5]
    right = AngularVelocities(t_ns, trajectory.angular_velocity_at(t_ns))
    wrong = AngularVelocities(t_ns, -right.omega_rad_s)
    camera = recording.require_camera()
    contrasts = [draw_packet(recording, camera, trajectory, v)[2]["contrast_after"] for v in (None, right, wrong)]
    assert contrasts[1] > 0.8 * contrasts[0]
    assert contrasts[2] < 0.6 * contrasts[1]


def test_times_without_events_have_no_picture(recording, made_trajectory):
    late = made_trajectory(duration_s=60.0).between(
        recording.start_ns + 30_000_000_000, recording.start_ns + 50_000_000_000
    )
    assert draw_packet(recording, recording.require_camera(), late) is None
