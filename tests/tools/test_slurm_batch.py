"""The script for SLURM, where `srun` starts its command on this machine."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cmaxslam_fbp.io import open_recording

ROOT = Path(__file__).parent.parent.parent
SRUN = """#!/bin/bash
while [ "$1" != dask ]; do shift; done
exec "$@"
"""


def test_the_script_runs_a_batch_in_its_allocation_and_cleans_up(tmp_path, simulated_bag):
    pytest.importorskip("distributed")
    open_recording(simulated_bag).convert(tmp_path / "short.npz", duration_s=0.4)
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text(SRUN)
    srun.chmod(srun.stat().st_mode | stat.S_IXUSR)
    path = os.pathsep.join([str(srun.parent), str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {"SLURM_CPUS_PER_TASK": "2", "SLURM_MEM_PER_NODE": "2048", "SLURM_JOB_ID": "17"}
    done = subprocess.run(
        [ROOT / "tools" / "slurm_batch.sh", "short.npz", "--out", "results"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PATH": path, **variables},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 runs done, 0 known from earlier, 0 failed" in done.stdout
    assert (tmp_path / "results" / "index.html").is_file()
    assert not list(tmp_path.glob("scheduler-*.json"))
