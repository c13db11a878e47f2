import io
import random
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.errors import CalibrationError, RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.text.event_text import format_event_text, read_event_text

CALIB = "199.092 198.829 132.192 110.713 -0.368436 0.150947 -0.000296 -0.000759 0.0\n"


def parse(text):
    return Events.concatenate(piece.events for piece in read_event_text(io.BytesIO(text.encode()), "events.txt"))


@pytest.fixture
def folder(tmp_path):
    def make(events, **files):
        (tmp_path / "events.txt").write_text(events)
        for name, text in {"calib": CALIB, **files}.items():
            if text is not None:
                (tmp_path / f"{name}.txt").write_text(text)
        return tmp_path

    return make


def test_lines_are_parsed_to_the_nanosecond():
    events = parse("0.003811000 96 133 0\n1468941032.229417023 239 179 1\n7 0 65535 1\n.5 1 2 0\n")
    assert events.t_ns.tolist() == [3_811_000, 1_468_941_032_229_417_023, 7_000_000_000, 500_000_000]
    assert events.x.tolist() == [96, 239, 0, 1]
    assert events.y.tolist() == [133, 179, 65535, 2]
    assert events.p.tolist() == [0, 1, 1, 0]


def test_more_decimals_than_nine_are_rounded():
    events = parse("0.0000000014 1 1 1\n0.0000000015 1 1 1\n0.9999999996 1 1 1\n-1.5 1 1 1\n0.00000000149999 1 1 1\n")
    assert events.t_ns.tolist() == [1, 2, 1_000_000_000, -1_500_000_000, 1]


@pytest.mark.parametrize("coding", [("0", "1"), ("-1", "1"), ("-1", "+1")])
def test_both_codings_of_polarity_are_understood(coding):
    off, on = coding
    assert parse(f"0 1 1 {on}\n1 1 1 {off}\n2 1 1 {on}\n").p.tolist() == [1, 0, 1]


def test_separators_comments_empty_lines_and_line_ends():
    events = parse("# t x y p\r\n0.1\t1  2 1\r\n\n  0.2,3,4,0  \n0.3 5 6 1")
    assert events.t_ns.tolist() == [100_000_000, 200_000_000, 300_000_000]
    assert events.x.tolist() == [1, 3, 5]
    assert events.y.tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nan 1 2 0", "time is not a decimal"),
        ("1e3 1 2 0", "time is not a decimal"),
        ("inf 1 2 0", "time is not a decimal"),
        ("- 1 2 0", "time is not a decimal"),
        ("99999999999 1 2 0", "time is not a decimal"),
        ("4700000000 1 2 0", "time is not a decimal"),
        ("0.1 nan 2 0", "x or y is missing"),
        ("0.1 -1 2 0", "x or y is missing"),
        ("0.1 1.5 2 0", "x or y is missing"),
        ("0.1 1 70000 0", "x or y is missing"),
        ("0.1 1", "x or y is missing"),
        ("0.1 1 2", "the polarity is missing"),
        ("0.1 1 2 ", "polarity is missing"),
        ("0.1 1 2 2", "polarity is missing"),
        ("0.1 1 2 nan", "polarity is missing"),
        ("0.1 1 2 1 7", "more or fewer columns"),
        ("0.1 1 2 11", "the polarity"),
    ],
)
def test_a_faulty_line_is_named(line, complaint):
    with pytest.raises(RecordingError, match=rf"^events\.txt, line 3: .*{complaint}") as caught:
        parse(f"0.1 1 2 1\n# comment\n{line}\n0.2 1 2 0\n")
    assert repr(line.strip()) in str(caught.value)


def test_a_faulty_line_far_into_the_file_has_its_number():
    lines = ["0.1 1 2 1"] * 600_000
    lines[543_210] = "0.1 1 2 x"
    with pytest.raises(RecordingError, match=r"line 543211: the polarity"):
        parse("\n".join(lines))


def test_a_binary_file_is_not_event_text():
    with pytest.raises(RecordingError, match=r"events\.txt"):
        list(read_event_text(io.BytesIO(bytes(range(11, 32)) * 1_000_000), "events.txt"))


@given(
    st.lists(
        st.tuples(st.integers(-(10**18), 4 * 10**18), st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 1))
    )
)
def test_formatting_and_parsing_are_inverse(rows):
    kinds = (np.int64, np.uint16, np.uint16, np.uint8)
    columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    events = Events(*(np.array(column, kind) for column, kind in zip(columns, kinds, strict=True)))
    text = format_event_text(events).decode()
    assert text == "".join(
        f"{'-' if t < 0 else ''}{abs(t) // 10**9}.{abs(t) % 10**9:09d} {x} {y} {p}\n" for t, x, y, p in rows
    )
    parsed = parse(text)
    for name in ("t_ns", "x", "y", "p"):
        np.testing.assert_array_equal(getattr(parsed, name), getattr(events, name))


def test_a_folder_gives_events_calibration_poses_and_imu(folder):
    path = folder(
        "0.1 1 2 1\n0.2 3 4 0\n",
        groundtruth="0.0 1 2 3 0 0 0 1\n0.3 4 5 6 0 0 1 0\n",
        imu="0.0 1 2 3 4 5 6\n0.1 7 8 9 10 11 12\n",
    )
    recording = open_recording(path)
    assert len(Events.concatenate(recording.chunks())) == 2
    assert recording.sensor_size == (240, 180)
    assert recording.require_camera().distortion == (-0.368436, 0.150947, -0.000296, -0.000759, 0.0)
    assert recording.ground_truth.quaternions_xyzw[1].tolist() == [0, 0, 1, 0]
    assert recording.ground_truth.positions_m[1].tolist() == [4, 5, 6]
    assert recording.gyroscope.omega_rad_s[0].tolist() == [4, 5, 6]
    assert recording.imu.linear_acceleration_m_s2[1].tolist() == [7, 8, 9]


@pytest.mark.parametrize("prefix", ["", "shapes_rotation/"])
def test_a_zip_gives_the_same_as_a_folder(folder, tmp_path, prefix):
    path = folder("0.1 1 2 1\n0.2 3 4 0\n", groundtruth="0.0 1 2 3 0 0 0 1\n0.3 4 5 6 0 0 1 0\n")
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in ("events.txt", "calib.txt", "groundtruth.txt"):
            archive.write(path / file, prefix + file)
    zipped, plain = open_recording(tmp_path / "a.zip"), open_recording(path)
    assert Events.concatenate(zipped.chunks()).t_ns.tolist() == [100_000_000, 200_000_000]
    assert zipped.camera == plain.camera
    assert zipped.ground_truth.t_ns.tolist() == plain.ground_truth.t_ns.tolist()


def test_a_zip_with_two_recordings_lists_them_and_mixes_nothing(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("boxes", "data/shapes"):
            archive.writestr(f"{name}/events.txt", "0.1 1 2 1\n")
    with pytest.raises(
        RecordingError, match=r"a\.zip has 2 recordings, in the folders boxes/, data/shapes/: unpack it"
    ):
        open_recording(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("boxes/events.txt", "0.1 1 2 1\n")
        archive.writestr("calib.txt", CALIB)  # of something else
    assert open_recording(tmp_path / "b.zip").camera is None


def test_a_cut_zip_is_one_line(folder, tmp_path):
    path = folder("0.1 1 2 1\n" * 1000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path / "events.txt", "events.txt")
    data = (tmp_path / "a.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(data[: len(data) // 2])
    with pytest.raises(RecordingError, match=r"a\.zip cannot be read: .*; it may be cut"):
        open_recording(tmp_path / "a.zip")


def test_a_damaged_zip_member_is_one_line(folder, tmp_path):
    path = folder("0.1 1 2 1\n" * 1000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_STORED) as archive:
        archive.write(path / "events.txt", "events.txt")
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[200] = ord("3")  # the text stays valid, its checksum does not
    (tmp_path / "a.zip").write_bytes(data)
    with pytest.raises(RecordingError, match=r"a\.zip cannot be read: Bad CRC-32"):
        list(open_recording(tmp_path / "a.zip").chunks())


def test_a_zip_without_events_is_one_line(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(RecordingError, match=r"has no events\.txt"):
        open_recording(tmp_path / "a.zip")


def test_events_beyond_the_ecd_sensor_ask_for_its_size(folder):
    path = folder("0.1 1 2 1\n0.2 500 4 0\n")
    with pytest.raises(RecordingError, match=r"events reach pixel \(500, 4\), beyond the 240 x 180 .* --sensor-size"):
        list(open_recording(path).chunks())
    assert len(Events.concatenate(open_recording(path, sensor_size=(640, 480)).chunks())) == 2


def test_missing_wrong_and_given_calibrations(folder, tmp_path):
    path = folder("0.1 1 2 1\n", calib=None)
    assert open_recording(path).camera is None
    with pytest.raises(CalibrationError, match="no calibration"):
        open_recording(path).require_camera()
    (tmp_path / "mine.txt").write_text("100 101 102 103\n")
    assert open_recording(path, calibration=tmp_path / "mine.txt").require_camera().fy == 101
    (tmp_path / "calib.txt").write_text("199 x\n")
    with pytest.raises(CalibrationError, match=r"calib\.txt is not an ECD calibration"):
        open_recording(path).require_camera()


def test_faulty_reference_files_are_named_and_left_out(folder):
    path = folder("0.1 1 2 1\n", groundtruth="0 0 0 0 0 0 0 1\n1 0 0 0 0 0 0 nan\n", imu="0.1 1 2 3 4 5\n")
    recording = open_recording(path)
    poses, imu = recording.check_reference()
    assert "groundtruth.txt, line 2: 'nan' is not a finite number" in poses
    assert "imu.txt, line 1: 6 columns instead of 7" in imu
    assert recording.ground_truth is recording.imu is recording.gyroscope is None
    (line,) = open_recording(folder("0.1 1 2 1\n", groundtruth=f"0 0 0 0 0 0 0 {'9' * 999}\n")).check_reference()[:1]
    assert len(line) < 300


def test_no_events_at_all(folder):
    with pytest.raises(RecordingError, match="has no events"):
        list(open_recording(folder("# nothing\n\n")).chunks())


def test_the_real_sequence_is_read_exactly(real_data):
    recording = open_recording(real_data / "slider_depth.zip")
    events = Events.concatenate(recording.chunks())
    assert len(events) == 1_078_541
    assert events.t_ns[0] == 3_811_000
    assert (int(events.x.max()), int(events.y.max())) == (239, 179)
    with zipfile.ZipFile(real_data / "slider_depth.zip") as archive:
        assert format_event_text(events) == archive.read("events.txt")


def test_lines_that_are_parsed_at_once_and_one_by_one_agree():
    """A blank before a line changes nothing but the way that it is parsed."""
    from cmaxslam_fbp.io.text import event_text_kernels as kernels

    def parse(text, decimals):
        room = len(text)
        columns = [np.zeros(room, kind) for kind in (np.int64, np.uint16, np.uint16, np.uint8)]
        padded = text + bytes(8)
        words = np.ndarray(len(text) + 1, np.uint64, padded, strides=(1,))
        characters = np.frombuffer(padded, np.uint8)
        count, lines, status = kernels.parse_events(characters, words, len(text), np.arange(4), decimals, *columns)
        return count, lines, status, [column[:count].tolist() for column in columns]

    draw = random.Random(5)
    statuses = set()
    for _ in range(3000):
        whole = draw.choice(["0", "7", "12345678", "1468941032", "4600000000", "99999999999", "", "-3"])
        decimals = draw.choice([0, 3, 9])
        point = draw.choice(["", ".", *(f".{draw.randrange(10**n):0{n}d}" for n in (1, 5, 6, 8, 9, 10))])
        pixels = [draw.choice(["0", "9", "42", "239", "1279", "65535", "65536", "99999", "1.0", "x"]) for _ in "xy"]
        separator = draw.choice([" ", ",", "\t", "  ", ";"])
        line = separator.join([whole + point, *pixels, draw.choice(["0", "1", "-1", "2", "true", ""])]) + "\n"
        characters = list(line)
        if draw.random() < 0.2:
            characters[draw.randrange(len(line) - 1)] = draw.choice("0 ,.x-\r")
        good = f"5{separator}6{separator}7{separator}1\n"
        lines = [good, "".join(characters), good]
        at_once = parse("".join(lines).encode(), decimals)
        assert at_once == parse("".join(f" {line}" for line in lines).encode(), decimals), lines
        statuses.add(at_once[2])
    assert statuses == set(range(5))
