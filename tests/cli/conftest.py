import subprocess
import sys

import pytest


@pytest.fixture
def run(tmp_path):
    """Run the program as a user does, in an empty folder."""

    def call(*arguments, code=0, cwd=tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "cmaxslam_fbp", *map(str, arguments)],
            capture_output=True,
            text=True,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return call
