"""Recordings are streamed: what is larger than the limit is read, or refused, within it."""

import json
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest

from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.io.writing import write_recording

MILLIONS = 45  # 585 MB in the bag


def test_reading_a_bag_of_585_mb_takes_less_than_500_mb_of_memory(tmp_path):
    n = 1_000_000
    column = np.arange(n) % 180

    def chunks():
        for i in range(MILLIONS):
            t_ns = 1_468_941_032_000_000_000 + (i * n + np.arange(n)) * 200  # 5 Mev/s
            yield Events(t_ns, column.astype(np.uint16), column.astype(np.uint16), (column % 2).astype(np.uint8))

    write_recording(Recording.from_events([], sensor_size=(240, 180)), chunks(), tmp_path / "long.bag")
    program = textwrap.dedent(
        f"""
        from cmaxslam_fbp.io import open_recording
        from cmaxslam_fbp.pipeline.memory import peak_memory_mb
        recording = open_recording({str(tmp_path / "long.bag")!r})
        count = sum(len(events) for events in recording.chunks())
        print(count, round(peak_memory_mb()))
        """
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    (tmp_path / "long.bag").unlink()
    count, peak_mb = map(int, done.stdout.split())
    assert count == MILLIONS * n
    assert peak_mb < 500


def grown_mb(path, part):
    """Return by how much a child's memory has grown at most while it read a part of a recording, and what it says."""
    program = textwrap.dedent(
        f"""
        import json
        from cmaxslam_fbp.errors import CmaxSlamError
        from cmaxslam_fbp.io import open_recording
        from cmaxslam_fbp.pipeline.output import peak_memory_mb
        read = {{
            "events.txt": lambda recording: next(iter(recording.chunks())),
            "calib.txt": lambda recording: recording.camera,
            "calib.yaml": lambda recording: recording.camera,
            "groundtruth.txt": lambda recording: recording.ground_truth,
            "imu.txt": lambda recording: recording.imu,
        }}[{part!r}]
        try:
            read(open_recording({str(path.parent / "small")!r}))  # imports, and what is compiled
            before = peak_memory_mb()
            recording = open_recording({str(path)!r})
            found = read(recording)
            words = " ".join(recording.check_reference())
        except CmaxSlamError as error:
            found, words = None, str(error)
        count = len(found) if hasattr(found, "__len__") else int(found is not None)
        print(json.dumps([peak_memory_mb() - before, count, words]))
        """
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def text_recording(folder, **texts):
    folder.mkdir()
    for name, text in {"events": "0.1 1 2 1\n", "calib": "200 200 120 90 0 0 0 0 0\n", **texts}.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("name", ["events.txt", "calib.txt", "calib.yaml", "groundtruth.txt", "imu.txt"])
def test_a_text_of_150_mb_without_a_line_is_refused_before_it_takes_memory(tmp_path, kind, name):
    text_recording(tmp_path / "small")
    path = text_recording(tmp_path / "large")
    with (path / name).open("wb") as file:
        file.truncate(150 << 20)
    if kind == "zip":
        with zipfile.ZipFile(tmp_path / "large.zip", "w", zipfile.ZIP_STORED) as archive:  # it really holds so much
            for file in path.iterdir():
                archive.write(file, file.name)
        path = tmp_path / "large.zip"
    grown, count, words = grown_mb(path, name)
    (path if kind == "zip" else path / name).unlink()
    assert count == 0
    assert name in words
    assert "longer than" in words or "more than a megabyte" in words
    assert len(words) < 300
    assert grown < 30


def test_samples_take_hardly_more_memory_than_their_text(tmp_path):
    text_recording(tmp_path / "small", imu="0.0 0 0 0 0 0 0\n")
    row = "0.1234567 9.8101234 0.1234567 -0.0123456 0.1234567 1.2345678"
    path = text_recording(tmp_path / "long", imu="".join(f"{i}.000000000 {row}\n" for i in range(300_000)))
    grown, count, words = grown_mb(path, "imu.txt")
    assert (count, words) == (300_000, "")
    assert grown < 1.5 * (path / "imu.txt").stat().st_size / (1 << 20)
