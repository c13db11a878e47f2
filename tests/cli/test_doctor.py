import json
import re
from importlib.metadata import requires

from cmaxslam_fbp.cli import doctor


def test_a_working_installation_is_healthy_and_tells_its_speed(run_alone):
    found = json.loads(run_alone("doctor", "--json").stdout)
    assert found["healthy"]
    values = {check["name"]: check["value"] for check in found["checks"]}
    for name in ("python", "numpy", "numba", "scipy", "opencv", "rosbags", "torch", "open3d", "numba cache"):
        assert values[name]
    assert "Mev/s" in values["self-test"]
    assert "np.bincount" in values["calibration"]
    assert float(values["accuracy"].split()[0]) < 2


def test_broken_libraries_are_named_and_exit_with_1(run_alone, tmp_path):
    for module in ("rosbags", "cv2"):
        (tmp_path / f"{module}.py").write_text("raise ImportError('libGL.so.1: no such file')\n")
    done = run_alone("doctor", "--no-self-test", code=1)
    lines = [line for line in done.stdout.splitlines() if "broken" in line]
    assert [line.split()[0] for line in lines] == ["opencv", "rosbags"]
    assert all("libGL.so.1" in line for line in lines)
    assert "Traceback" not in done.stderr


def test_what_is_optional_has_the_name_under_which_its_extra_installs_it():
    """The module `rerun` is in `rerun-sdk`: by another name an installed library would be called missing."""
    installs = {re.match(r"[\w-]+", line)[0]: line for line in requires("cmaxslam-fbp")}
    for name, extra in doctor._EXTRAS.items():
        assert re.search(f"extra == ['\"]{extra}['\"]", installs[name])
