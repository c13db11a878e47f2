"""Where rows are computed is said once and clearly; Dask is needed only where several are computed at a time."""

import subprocess
import sys

import pytest

from cmaxslam_fbp.errors import ConfigError, MissingExtraError
from cmaxslam_fbp.rows.running import PoolSettings, open_pool, slurm_options


def test_one_job_is_this_process_with_and_without_dask(monkeypatch):
    with open_pool(PoolSettings(jobs=1)) as pool:
        assert pool is None
    monkeypatch.setattr("cmaxslam_fbp.rows.running.find_spec", lambda name: None)
    for settings in (PoolSettings(jobs=1), PoolSettings()):
        with open_pool(settings) as pool:
            assert pool is None


def test_two_jobs_without_dask_are_one_line_that_names_the_extra(monkeypatch, run):
    monkeypatch.setattr("cmaxslam_fbp.rows.running.find_spec", lambda name: None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'cmaxslam-fbp\[cluster\]', or give --jobs 1"),
        open_pool(PoolSettings(jobs=2)),
    ):
        pass
    done = run("reproduce", "bias", "--quick", "--jobs", "2", code=1)
    assert "cmaxslam-fbp[cluster]" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"jobs": 0}, "--jobs must be 1 or more, not 0"),
        ({"jobs": 2, "scheduler": "tcp://here:8786"}, "give one of --jobs, --scheduler and --slurm"),
        ({"scheduler": "tcp://here:8786", "memory": "4GB"}, "--memory is for workers on this machine"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        PoolSettings(**settings)


def test_a_task_of_slurm_has_a_process_and_two_cores(tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("queue: cpu\nmemory: 32GB\njobs: 64\ntasks_per_job: 8\n")
    options, jobs = slurm_options(file)
    assert jobs == 64
    assert options == {"cores": 8, "processes": 8, "job_cpu": 16, "queue": "cpu", "memory": "32GB"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- 1", "has no options for SLURM"),
        ("queue: cpu", "memory is missing"),
        ("memory: 4GB\njobs: many", "jobs must be a whole number"),
    ],
)
def test_options_of_slurm_that_cannot_be_are_one_line(tmp_path, text, words):
    (tmp_path / "options.yaml").write_text(text)
    with pytest.raises(ConfigError, match=words):
        slurm_options(tmp_path / "options.yaml")


def test_other_commands_do_not_import_dask():
    code = "import sys, cmaxslam_fbp.cli.app, cmaxslam_fbp.experiments.studies, cmaxslam_fbp.batch.batch;"
    code += "assert not {'dask', 'distributed', 'tornado'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
