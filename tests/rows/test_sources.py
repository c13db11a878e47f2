"""The digest of a study's sources changes with every file that the study uses, and with no other."""

import shutil

import pytest

from cmaxslam_fbp.rows.sources import PACKAGE, source_digest

STUDY = "experiments/slam_runs.py"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy") / PACKAGE.name
    return shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))


def edited_digest(package, study, edited):
    """Return the digest of a study with a line added to a file."""
    source = (package / edited).read_bytes()
    (package / edited).write_bytes(source + b"# edited\n")
    try:
        return source_digest.__wrapped__(package / study, package)
    finally:
        (package / edited).write_bytes(source)


@pytest.mark.parametrize(
    "edited",
    [
        STUDY,
        "pipeline/slam.py",  # imported
        "geometry/equirectangular_kernels.py",  # imported by what is imported
        "contrast/__init__.py",  # the package of what is imported
        "contrast/solvers/newton.py",  # a place in a registry
        "io/decoding_kernels.py",  # imported within a function
    ],
)
def test_an_edited_source_that_the_study_uses_gives_another_digest(package, edited):
    assert edited_digest(package, STUDY, edited) != source_digest(package / STUDY, package)


@pytest.mark.parametrize("edited", ["cli/run.py", "viewer/scene.py", "experiments/cost.py", "report/page.py"])
def test_an_edited_source_that_the_study_does_not_use_changes_nothing(package, edited):
    assert edited_digest(package, STUDY, edited) == source_digest(package / STUDY, package)


def test_the_digest_does_not_depend_on_where_the_package_lies(package):
    assert source_digest(package / STUDY, package) == source_digest(PACKAGE / STUDY)
