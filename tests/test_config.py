import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
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


@pytest.mark.parametrize(
    ("assignment", "bound"),
    [
        ("backend.max_visits=3000000000", "60000"),
        ("backend.passage_s=1e+6", "1"),
        ("frontend.max_speed=1e+308", "1000"),
        ("frontend.max_packet_s=1e+300", "600"),
        ("frontend.still_rate_ev_s=1e+10", "10000000"),
        ("backend.still_rate_ev_s=1e+10", "10000000"),
        ("backend.window_s=1e+6", "60"),
        ("backend.window_s=50", "256 times knot_s"),
        ("backend={window_s: 0.1, stride_s: 0.1, knot_s: 0.1}", "twice knot_s"),
        ("backend.knot_s=1e-6", "0.001"),
        ("backend.knot_s=1e-10", "0.001"),
        ("backend.window_s=1e-10", "0.001"),
        ("backend.stride_s=1e-10", "0.001"),
        ("frontend.interval_s=1e-12", "0.0001"),
        ("frontend.grid_size=[7, 100]", "8"),
        ("recording.sensor_size=[100000, 100]", "4096"),
    ],
)
def test_what_is_out_of_bounds_is_told_with_its_bound(assignment, bound):
    with pytest.raises(ConfigError) as caught:
        load_config([], [assignment])
    for name in assignment.partition("=")[0].split("."):
        assert name in str(caught.value)
    assert bound in str(caught.value)


def test_every_number_has_a_lower_and_an_upper_bound():
    def bounded(schema):
        if schema.get("type") in {"integer", "number"}:
            return {"minimum", "exclusiveMinimum"} & set(schema) and {"maximum", "exclusiveMaximum"} & set(schema)
        inner = [*schema.get("anyOf", []), *schema.get("prefixItems", [])]
        return all(map(bounded, inner))

    for section in Config.model_fields:
        properties = Config.model_fields[section].annotation.model_json_schema()["properties"]
        assert [f"{section}.{key}" for key, schema in properties.items() if not bounded(schema)] == []


@pytest.mark.parametrize(
    "assignments",
    [
        ["backend.knot_s=0.01"],
        ["backend.knot_s=0.1"],
        ["backend.knot_s=5", "backend.window_s=40", "backend.stride_s=20", "frontend.interval_s=2"],
        ["frontend.min_packet_s=5", "frontend.max_packet_s=30", "frontend.max_speed=0.001", "backend.passage_s=1"],
        ["frontend.max_speed=100", "frontend.interval_s=0.001", "frontend.grid_size=[1280, 720]"],
        ["backend.panorama_size=[16384, 8192]", "recording.sensor_size=[1280, 720]"],
        ["frontend.still_rate_ev_s=0", "frontend.max_packet_s=null", "frontend.events_per_packet=1000000"],
    ],
    ids=["fast", "slow", "stars", "star packets", "racing", "megapixels", "no limits"],
)
def test_bounds_leave_what_is_sensible(assignments):
    load_config([], assignments)


LAUGHS = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))


@pytest.mark.parametrize(
    "text",
    [
        "backend: {knot_s: 2024-13-45}",
        "backend: {knot_s: 2024-12-24}",
        "backend: !!python/object/apply:os.system [ls]",
        "backend: !!int many",
        "backend: !!float many",
        "backend: !!bool many",
        "backend: !!timestamp many",
        "backend: !!binary \u00e9",
        "backend: !!omap 3",
        "backend: !!set {a, b}",
        "backend: {knot_s: 0x}",
        "backend: {max_visits: " + "9" * 5000 + "}",
        "backend: {max_visits: 1:99:99}",
        "backend: {knot_s: .nan}",
        "backend: {knot_s: -.inf}",
        "backend: 3",
        "backend: [1, 2]",
        "backend: text",
        "1: 2",
        "{backend: {3: 4}}",
        "{[1]: 2}",
        "{? {a: b} : 2}",
        "backend: {knot_s: {deep: 1}}",
        "[" * 5000,
        "a: {" * 3000,
        LAUGHS,
        "backend: &a {knot_s: *a}",
        "backend: {<<: 3}",
        "backend: {panorama_size: {1, 2}}",
        "frontend: {model: {a: b}}",
        "frontend: {device: 3}",
        "recording: {calibration: 3}",
        "\x00",
        "\ufeff\ufeff: a",
        "a: b: c",
        "--- 1\n--- 2",
        "backend: {score: " + "x" * 100_000 + "}",
    ],
    ids=range(37),
)
def test_a_file_that_is_no_configuration_is_one_line(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config([str(tmp_path / "mine.yaml")])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_depth_takes_no_time(tmp_path):
    """Up to a megabyte of it: the time does not grow with what comes after the depth that is too much."""
    (tmp_path / "mine.yaml").write_text("[" * 1_000_000)
    began = time.process_time()
    with pytest.raises(ConfigError, match="too deeply"):
        load_config([str(tmp_path / "mine.yaml")])
    assert time.process_time() - began < 10


def test_bytes_that_are_no_text_and_files_that_are_too_large_are_refused(tmp_path):
    for content in (b"\xff\xfe\x00", b"# " + b"x" * 2_000_000):
        (tmp_path / "mine.yaml").write_bytes(content)
        with pytest.raises(ConfigError, match=r"mine\.yaml"):
            load_config([str(tmp_path / "mine.yaml")])
    for name in ("x" * 300, "\0", "", ".", "/dev/zero"):
        with pytest.raises(ConfigError):
            load_config([name])


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.dates(), st.binary(max_size=4)
)
KEYS = st.one_of(
    st.sampled_from([key for section in Config.model_fields.values() for key in section.annotation.model_fields]),
    st.sampled_from(list(Config.model_fields)),
    SCALARS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


def loads_or_explains(names, assignments):
    try:
        load_config(names, assignments)
    except ConfigError as error:
        message = str(error)
    else:
        message = ""
    assert len(message) < 300
    assert "\n" not in message


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.dictionaries(KEYS, VALUES, max_size=3))
def test_whatever_a_file_holds_only_a_configuration_or_its_error_comes_out(tmp_path_factory, first, second):
    folder = tmp_path_factory.getbasetemp() / "fuzzed"
    folder.mkdir(exist_ok=True)
    for name, document in (("a.yaml", first), ("b.yaml", second)):
        (folder / name).write_text(yaml.dump(document))
    loads_or_explains([str(folder / "a.yaml"), str(folder / "b.yaml")], [])


@given(KEYS.map(str), KEYS.map(str), st.text(max_size=20) | VALUES.map(lambda value: yaml.dump(value)))
def test_whatever_is_set_only_a_configuration_or_its_error_comes_out(section, key, value):
    loads_or_explains([], [f"{section}.{key}={value}"])
