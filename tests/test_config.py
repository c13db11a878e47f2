import pytest
import yaml
from pydantic import ValidationError

from cmaxslam_fbp.choices import SCORES
from cmaxslam_fbp.config import Config, dump_config, load_config, preset_names
from cmaxslam_fbp.errors import ConfigError


def test_the_default_preset_is_the_defaults():
    assert load_config(["default"]) == load_config() == Config()


def test_every_preset_loads_and_round_trips(tmp_path):
    assert "default" in preset_names()
    for name in preset_names():
        config = load_config([name])
        (tmp_path / "dumped.yaml").write_text(dump_config(config))
        assert load_config([str(tmp_path / "dumped.yaml")]) == config


def test_precedence_is_default_file_set_flag(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("recording: {events_topic: /file, poses_topic: /file, imu_topic: /file}\n")
    assignments = ["recording.poses_topic=/set", "recording.imu_topic=/set"]
    flags = {"recording.imu_topic": "/flag", "recording.events_topic": None}
    recording = load_config([str(path)], assignments, flags).recording
    assert recording.events_topic == "/file"
    assert recording.poses_topic == "/set"
    assert recording.imu_topic == "/flag"
    assert recording.calibration is None


def test_later_files_come_over_earlier_ones_key_by_key(tmp_path):
    (tmp_path / "a.yaml").write_text("recording: {events_topic: /a, poses_topic: /a}\n")
    (tmp_path / "b.yaml").write_text("recording: {events_topic: /b}\n")
    recording = load_config([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]).recording
    assert (recording.events_topic, recording.poses_topic) == ("/b", "/a")


def test_values_of_set_are_yaml():
    assert load_config([], ["recording.sensor_size=[640, 480]"]).recording.sensor_size == (640, 480)
    assert load_config([], ["recording.events_topic=null"]).recording.events_topic is None


@pytest.mark.parametrize(
    ("assignment", "complaint"),
    [
        ("recording.event_topic=/a", r"unknown key recording\.event_topic; did you mean recording\.events_topic\?"),
        ("recordings.events_topic=/a", r"unknown key recordings; did you mean recording\?"),
        ("recording.zzz=1", r"unknown key recording\.zzz; there are events_topic, "),
        ("recording.sensor_size=[640]", r"recording\.sensor_size"),
        ("recording.events_topic.x=1", r"recording\.events_topic: .*string"),
        ("recording.events_topic", r"not of the form section\.key=value"),
        ("=3", r"not of the form section\.key=value"),
        ("recording.events_topic=[", "not valid YAML"),
    ],
)
def test_faulty_assignments_are_explained_in_one_line(assignment, complaint):
    with pytest.raises(ConfigError, match=complaint) as caught:
        load_config([], [assignment])
    assert "\n" not in str(caught.value)


def test_faulty_files_are_explained(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("recording: {event_topic: /a}\n")
    with pytest.raises(ConfigError, match=r"unknown key recording\.event_topic \(in .*mine\.yaml\)"):
        load_config([str(path)])
    path.write_text("- 1\n")
    with pytest.raises(ConfigError, match="expected sections with keys"):
        load_config([str(path)])
    with pytest.raises(ConfigError, match=r"defalt is neither a preset nor a file; did you mean default\?"):
        load_config(["defalt"])


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Config().recording.events_topic = "/other"


def test_the_dump_names_every_key():
    document = yaml.safe_load(dump_config(Config()))
    assert set(document) == set(Config.model_fields)
    assert document["recording"]["events_topic"] is None


def test_what_is_hard_to_write_in_yaml_is_dumped_and_loaded_alike(tmp_path):
    recording = {
        "events_topic": "yes",
        "poses_topic": "a: b # c",
        "imu_topic": "'\"\n\u00e9 ",
        "sensor_size": [640, 480],
    }
    recording["calibration"] = str(tmp_path / ("a folder with a long name " * 8) / "{calibration}, [the first].yaml")
    config = Config.model_validate({"recording": recording})
    (tmp_path / "dumped.yaml").write_text(dump_config(config))
    assert load_config([str(tmp_path / "dumped.yaml")]) == config


def comment_above(key, section):
    """The comment that stands above a key of a section in the dump, as one text."""
    lines = dump_config(Config()).splitlines()
    end = lines.index(f"{section}:") + 1
    end += next(n for n, line in enumerate(lines[end:]) if line.startswith(f"  {key}: "))
    start = end
    while lines[start - 1].startswith("  # "):
        start -= 1
    return " ".join(line.removeprefix("  # ") for line in lines[start:end])


def test_the_dump_explains_every_key_in_lines_that_fit_a_screen():
    for section, kind in Config.model_fields.items():
        for key, field in kind.annotation.model_fields.items():
            assert field.description, f"{section}.{key} has no sentence that explains it"
            assert comment_above(key, section).startswith(" ".join(field.description.split()))
    assert max(len(line) for line in dump_config(Config()).splitlines()) <= 120
    assert "# The bundle adjustment over the panorama.\nbackend:\n" in dump_config(Config())


def test_the_dump_names_what_can_be_chosen():
    assert comment_above("polarity", "frontend").endswith(" One of: ignored, signed.")
    assert comment_above("reconstruction", "backend").endswith(" One of: linear, cubic, lanczos, none.")
    assert comment_above("surrogate", "frontend").endswith(" One of: ste, sigmoid, null.")
    assert "One of" not in comment_above("window_s", "backend")


def test_the_dump_names_a_choice_that_a_program_has_added():
    SCORES.add("sharpness", object())
    try:
        assert comment_above("score", "frontend").endswith(", sharpness.")
        assert load_config([], ["frontend.score=sharpness"]).frontend.score == "sharpness"
    finally:
        SCORES.remove("sharpness")
