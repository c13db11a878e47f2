"""DSEC's flow, from files that are made in its layout."""

import cv2
import numpy as np
import pytest

pytest.importorskip("h5py")
pytest.importorskip("hdf5plugin")

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io.dsec_flow import find_flow_sequences, read_flow_picture, rectify
from cmaxslam_fbp.io.hdf5.file import open_hdf5

WIDTH, HEIGHT, OFFSET_US = 64, 48, 51_648_050_000


def write_flow(path, flow, is_valid):
    stored = np.rint(flow * 128 + 2**15).astype(np.uint16)
    cv2.imwrite(str(path), np.dstack([is_valid.astype(np.uint16), stored[..., 1], stored[..., 0]]))


def write_sequence(home, events_folder, shift=0.0, count=3):
    """Write a sequence as DSEC does: times of events count from `t_offset`, those of the flow do not."""
    rng = np.random.default_rng(0)
    (home / "flow" / "forward").mkdir(parents=True)
    flows = []
    lines = ["# from_timestamp_us, to_timestamp_us"]
    for k in range(count):
        flow = rng.integers(-1000, 1000, (HEIGHT, WIDTH, 2)) / 128
        is_valid = rng.random((HEIGHT, WIDTH)) < 0.5
        write_flow(home / "flow" / "forward" / f"{2 * k:06d}.png", flow, is_valid)
        flows.append((flow, is_valid))
        first = OFFSET_US + 100_000 * (k + 1)
        lines.append(f"{first}, {first + 100_000}")
    (home / "flow" / "forward_timestamps.txt").write_text("\n".join(lines) + "\n")
    events_folder.mkdir(parents=True)
    t = np.sort(rng.integers(0, 100_000 * (count + 2), 5000)).astype(np.uint32)
    x, y, p = rng.integers(0, WIDTH, 5000), rng.integers(0, HEIGHT, 5000), rng.integers(0, 2, 5000)
    with open_hdf5(events_folder / "events.h5", "w") as file:
        for name, column in (
            ("x", x.astype(np.uint16)),
            ("y", y.astype(np.uint16)),
            ("t", t),
            ("p", p.astype(np.uint8)),
        ):
            file[f"events/{name}"] = column
        file["ms_to_idx"] = np.searchsorted(t, np.arange(0, t[-1], 1000)).astype(np.uint64)
        file["t_offset"] = np.int64(OFFSET_US)
    columns, rows = np.meshgrid(np.arange(WIDTH), np.arange(HEIGHT))
    with open_hdf5(events_folder / "rectify_map.h5", "w") as file:
        file["rectify_map"] = np.dstack([columns + shift, rows - shift]).astype(np.float32)
    return flows, (t, x, y, p)


@pytest.mark.parametrize("layout", ["events_left", "events/left", "apart"])
def test_flow_and_rectified_events_of_a_stretch(tmp_path, layout):
    home = tmp_path / ("train_optical_flow/thun_00_a" if layout == "apart" else "train/thun_00_a")
    events = tmp_path / "train_events/thun_00_a/events/left" if layout == "apart" else home / layout
    flows, (t, x, y, p) = write_sequence(home, events, shift=2.3)
    (sequence,) = find_flow_sequences(tmp_path)
    assert (sequence.name, len(sequence)) == ("thun_00_a", 3)
    for k, (flow, is_valid) in enumerate(flows):
        read, valid = sequence.flow(k)
        np.testing.assert_array_equal(read, flow.astype(np.float32))
        np.testing.assert_array_equal(valid, is_valid)
    first = 200_000
    during = (t >= first) & (t < first + 100_000)
    inside = during & (x + 2 < WIDTH) & (y - 2 >= 0)
    found = sequence.rectified_events(1)
    np.testing.assert_array_equal(found.t_ns, 1000 * (t[inside].astype(np.int64) + OFFSET_US))
    np.testing.assert_array_equal(found.x, x[inside] + 2)
    np.testing.assert_array_equal(found.y, y[inside] - 2)
    np.testing.assert_array_equal(found.p, p[inside])


def test_samples_of_dsec_have_their_events_and_flow(tmp_path):
    pytest.importorskip("torch")
    from cmaxslam_fbp.experiments.flow.sample_sets import dsec_sets, load_groups, load_samples

    for name in ("thun_00_a", "zurich_city_01_a"):
        write_sequence(tmp_path / "train" / name, tmp_path / "train" / name / "events_left")
    learned, held_out = dsec_sets(tmp_path)
    assert (learned.groups, held_out.groups) == ([{"sequence": "zurich_city_01_a"}], [{"sequence": "thun_00_a"}])
    samples = load_samples(learned.places, tmp_path)
    assert len(samples) == 3
    assert samples[2].shape == (HEIGHT, WIDTH)
    assert 500 < len(samples[2]) < 1500
    assert 0 <= samples[2].t.min() < samples[2].t.max() < 1
    assert [len(group) for group in load_groups(held_out.places, tmp_path)] == [3]


def test_what_is_not_dsec_is_one_line(tmp_path):
    with pytest.raises(RecordingError, match="does not exist"):
        find_flow_sequences(tmp_path / "nowhere")
    with pytest.raises(RecordingError, match="has no flow of DSEC"):
        find_flow_sequences(tmp_path)
    home = tmp_path / "train" / "thun_00_a"
    write_sequence(home, home / "events_left")
    times = home / "flow" / "forward_timestamps.txt"
    good = times.read_text()
    for bad, words in (
        (good + "5, x\n", ":5: expected two times"),
        (good + "7, 5\n", "no stretch"),
        ("", "0 lines for 3"),
    ):
        times.write_text(bad)
        with pytest.raises(RecordingError, match=words):
            find_flow_sequences(tmp_path)
    times.write_text(good)
    (home / "events_left" / "events.h5").rename(home / "events.h5")
    with pytest.raises(RecordingError, match="has flow but no events"):
        find_flow_sequences(tmp_path)
    cv2.imwrite(str(tmp_path / "grey.png"), np.zeros((5, 5), np.uint8))
    with pytest.raises(RecordingError, match="16 bits"):
        read_flow_picture(tmp_path / "grey.png")
    events = Events.from_arrays([0.0], [WIDTH], [0], [1])
    with pytest.raises(RecordingError, match="outside of a rectify_map"):
        rectify(events, np.zeros((HEIGHT, WIDTH, 2)))
