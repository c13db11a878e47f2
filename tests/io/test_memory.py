"""Recordings are streamed: a bag larger than the limit is read within it."""

import subprocess
import sys
import textwrap

import numpy as np

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
