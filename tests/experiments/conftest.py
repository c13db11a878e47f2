"""One folder for all quick studies: sequences are simulated once, and rows that two studies share are computed once."""

import pytest
from typer.testing import CliRunner

from cmaxslam_fbp.cli.app import app


@pytest.fixture(scope="session")
def quick_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="session")
def quick_study(quick_folder):
    """Run a quick study as a user does, on simulated data; return its folder."""

    def run(name):
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv("CMAXSLAM_FBP_DATA", raising=False)
            arguments = ["reproduce", name, "--quick", "--out", str(quick_folder)]
            done = CliRunner().invoke(app, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return quick_folder / name

    return run


@pytest.fixture(scope="session")
def quick_bench(quick_folder):
    """What a quick study works with."""
    from cmaxslam_fbp.experiments.settings import StudySettings
    from cmaxslam_fbp.experiments.workbench import Workbench

    return Workbench(StudySettings(quick_folder, quick=True))
