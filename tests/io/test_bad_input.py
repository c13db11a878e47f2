"""Bad bytes in every format, made without the code under test: one line that names the file, and little memory."""

import bz2
import io
import os
import struct
import subprocess
import sys
import textwrap
import zipfile

import numpy as np
import pytest

from cmaxslam_fbp.errors import CalibrationError, CmaxSlamError, RecordingError, TrajectoryError
from cmaxslam_fbp.io import open_recording
from cmaxslam_fbp.io.bad_input import largest_plausible_size, one_line_errors
from cmaxslam_fbp.io.trajectory_files import read_trajectory

ARRAY = "dvs_msgs/msg/EventArray"
COLUMNS = {"t_ns": np.arange(3), "x": np.ones(3, int), "y": np.ones(3, int), "p": np.ones(3, int)}


def read_all(path, **options):
    """Read everything that a recording has."""
    recording = open_recording(path, **options)
    recording.topics()
    assert sum(len(events) for events in recording.chunks()) >= 0
    return recording.camera, recording.check_reference()


def line_of(path, **options):
    """Return the error of reading, which must be one short line that names the file."""
    with pytest.raises(CmaxSlamError) as caught:
        read_all(path, **options)
    line = str(caught.value)
    assert "\n" not in line
    assert len(line) < 300
    assert path.name in line
    return line


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def write_zip(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def write_npz(path, compression=zipfile.ZIP_STORED, **raw):
    """Write the columns, the size and raw members."""
    arrays = {**COLUMNS, "width": 240, "height": 180}
    members = {f"{name}.npy": npy(array) for name, array in arrays.items()}
    return write_zip(path, {**members, **{f"{name}.npy": data for name, data in raw.items()}}, compression)


def header(shape, descr="<i8"):
    words = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(words) + 1) + words.encode() + b"\n"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("t_ns", b"not an array"),
        ("t_ns", header("(3,)").replace(b"'shape'", b"'shape")),  # TokenError, SyntaxError
        ("t_ns", header("(" * 300 + ")" * 300)),  # RecursionError, MemoryError
        ("t_ns", header("(1000000000000,)") + bytes(24)),
        ("t_ns", header("(-3,)") + bytes(24)),
        ("t_ns", header("(3,)", "|O") + bytes(24)),
        ("x", header("(3,)", "<M8[ns]") + bytes(24)),
        ("width", npy(np.array([240, 240]))),  # TypeError
        ("width", npy(np.array("wide"))),  # ValueError
        ("width", npy(np.array(np.inf))),  # OverflowError
        ("width", npy(np.array(np.nan))),
        ("width", npy(np.array(-240))),
        ("width", npy(np.array(10**6))),
        ("width", header("(200000000000,)")),
        ("intrinsics", npy(np.array(5.0))),
        ("intrinsics", npy(np.array(["a", "b", "c", "d"]))),
        ("intrinsics", npy(np.array([1.0, 2.0]))),
        ("time_unit", npy(np.array(3))),
    ],
)
def test_faulty_members_of_an_npz(tmp_path, name, data):
    path = write_npz(tmp_path / "a.npz", **{name: data})
    if name == "time_unit":  # counts for `t` only
        members = {f"{key}.npy": npy(value) for key, value in {**COLUMNS, "width": 240, "height": 180}.items()}
        members["t.npy"] = members.pop("t_ns.npy")
        write_zip(path, {**members, "time_unit.npy": data})
    line_of(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
@pytest.mark.parametrize("name", ["a.npz", "a.zip"])
def test_every_byte_of_a_small_archive_may_be_wrong(tmp_path, name, compression):
    """zlib.error, LZMAError, OSError, BadZipFile, RuntimeError (encrypted), NotImplementedError (method), and more."""
    path = tmp_path / name
    if name == "a.npz":
        write_npz(path, compression)
    else:
        calibration = "199 198 132 110 0 0 0 0 0\n"
        write_zip(path, {"events.txt": "0.1 1 2 1\n0.2 3 4 0\n" * 20, "calib.txt": calibration}, compression)
    good = path.read_bytes()
    read_all(path)
    random = np.random.default_rng(0)
    for place in random.choice(len(good), 100):
        damaged = bytearray(good)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        try:
            read_all(path)
        except CmaxSlamError as error:
            assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "kind", [{"ros": 1}, {"ros": 1, "compression": "lz4"}, {"ros": 2, "storage": "mcap"}, {"ros": 2}]
)
def test_bits_of_a_bag_may_be_wrong(tmp_path, kind, write_bag, make_events, event_message, camera_info_message):
    """MemoryError and OverflowError (lengths), StopIteration (counts without messages), struct.error, and more."""
    ros = kind["ros"]
    topics = {
        "/dvs/events": (ARRAY, [event_message(make_events(5), ros=ros)]),
        "/dvs/camera_info": ("sensor_msgs/msg/CameraInfo", [camera_info_message(ros=ros)]),
    }
    path = write_bag(tmp_path / ("a.bag" if ros == 1 else "a"), topics, **kind)
    if ros == 2:
        path = next(file for file in path.iterdir() if file.suffix != ".yaml")
    good = path.read_bytes()
    read_all(path)
    random = np.random.default_rng(1)
    for _ in range(80):
        damaged = bytearray(good)
        place = int(random.integers(len(good) - 8))
        damaged[place : place + 8] = random.bytes(8)
        path.write_bytes(damaged)
        try:
            read_all(path)
        except CmaxSlamError as error:
            assert "\n" not in str(error)  # noqa: PT017


def test_a_length_beyond_the_end_of_an_mcap_takes_no_memory(tmp_path, write_bag, make_events, event_message):
    folder = write_bag(
        tmp_path / "a", {"/dvs/events": (ARRAY, [event_message(make_events(5), ros=2)])}, ros=2, storage="mcap"
    )
    path = next(folder.glob("*.mcap"))
    data = bytearray(path.read_bytes())
    data[9:17] = struct.pack("<Q", 2_000_000_000)  # of the first record
    path.write_bytes(data)
    assert "a record claims 2,000,000,000 bytes, more than the file has" in line_of(path)


def test_metadata_that_is_nested_without_end_is_one_line(tmp_path, write_bag, make_events, event_message):
    path = write_bag(tmp_path / "a", {"/dvs/events": (ARRAY, [event_message(make_events(5), ros=2)])}, ros=2)
    (path / "metadata.yaml").write_text("a: " + "[" * 20_000)
    with pytest.raises(RecordingError, match="it is nested too deeply"):
        open_recording(path)


def test_metadata_of_a_ros_2_bag_with_other_types(tmp_path, write_bag, make_events, event_message):
    path = write_bag(tmp_path / "a", {"/dvs/events": (ARRAY, [event_message(make_events(5), ros=2)])}, ros=2)
    good = (path / "metadata.yaml").read_text()
    assert "message_count: 1\n" in good
    for changed in (
        good.replace("message_count: 1\n", "message_count: 2020-01-02\n"),
        good.replace("name: /dvs/events", "name: [1, 2]"),
        good.replace("type: dvs", "type: &a dvs").replace("/dvs/events", "&a 5"),  # anchors that are used twice
        "[" * 5000,
    ):
        assert changed != good
        (path / "metadata.yaml").write_text(changed)
        line_of(path)


def peak_memory_mb(program, *arguments):
    """Return what a program prints, and how much memory it had taken by then, in a process of its own."""
    ending = "\nimport resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program) + ending, *map(str, arguments)],
        check=True,
        capture_output=True,
        text=True,
    )
    *printed, memory = done.stdout.splitlines()
    return "\n".join(printed), int(memory)


READ = """
import sys
from pathlib import Path
from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.io import open_recording
try:
    recording = open_recording(Path(sys.argv[1]))
    print(sum(len(events) for events in recording.chunks()))
    print(recording.check_reference())
except CmaxSlamError as error:
    print(error)
"""


def test_a_bag_whose_chunk_unpacks_to_256_mb_is_refused(tmp_path, monkeypatch, write_bag, event_message, make_events):
    message = {"/dvs/events": (ARRAY, [event_message(make_events(5))])}
    small = peak_memory_mb(READ, write_bag(tmp_path / "good.bag", message))[1]
    bomb = bz2.compress(bytes(1 << 28))
    monkeypatch.setattr("rosbags.rosbag1.writer.bz2_compress", lambda data, level: bomb)
    path = write_bag(tmp_path / "bomb.bag", message, compression="bz2")
    assert path.stat().st_size < 10_000
    line, memory = peak_memory_mb(READ, path)
    assert f"a compressed chunk of {len(bomb)} bytes holds more than 16,777,216: no real recording does" in line
    assert memory < small + 100


@pytest.mark.parametrize("name", ["imu_t_ns", "time_unit"])
def test_a_member_of_an_npz_that_unpacks_to_256_mb_is_refused(tmp_path, name):
    small = peak_memory_mb(READ, write_npz(tmp_path / "good.npz"))[1]
    path = tmp_path / "bomb.npz"
    empty = npy(np.zeros((0, 3)))
    write_npz(path, imu_angular_velocity_rad_s=empty, imu_linear_acceleration_m_s2=empty)
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    if name == "time_unit":
        members["t.npy"] = members.pop("t_ns.npy")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            if member != f"{name}.npy":
                archive.writestr(member, data)
        with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
            file.write(header(f"({1 << 25},)"))
            for _ in range(1 << 8):
                file.write(bytes(1 << 20))
    line, memory = peak_memory_mb(READ, path)
    assert f"{name}.npy claims to unpack" in line
    assert memory < small + 100


def test_events_of_one_stamp_without_end_are_refused(monkeypatch, make_events):
    from cmaxslam_fbp.events.ordering import Defects, Piece, restore_order

    monkeypatch.setattr("cmaxslam_fbp.events.ordering._MOST_EVENTS_HELD", 10_000)
    events = make_events(3000, duration_ns=1000)
    with pytest.raises(RecordingError, match="more than 10,000 events within a second at piece 3: no sensor"):
        list(restore_order((Piece(events, f"piece {i}") for i in range(100)), Defects()))


def test_real_recordings_stay_far_below_the_bound():
    assert largest_plausible_size(1_000_000) == 200_000_000
    assert largest_plausible_size(100) == 16 << 20


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_a_device_is_refused_at_once(tmp_path, make):
    path = tmp_path / "pipe.txt"
    make(path)
    assert "is a device or a pipe" in line_of(path)
    assert f"or 'cmaxslam-fbp run - < {path}'" in line_of(path)
    with pytest.raises(TrajectoryError, match=r"pipe\.txt: cannot be read \(not a file\)"):
        read_trajectory(path)
    good = write_npz(tmp_path / "a.npz")
    with pytest.raises(CalibrationError, match=r"pipe\.txt cannot be read: it is not a file"):
        _ = open_recording(good, calibration=path).camera


def test_a_pipe_in_a_ros_2_bag_is_refused_at_once(tmp_path, write_bag, make_events, event_message):
    path = write_bag(tmp_path / "a", {"/dvs/events": (ARRAY, [event_message(make_events(5), ros=2)])}, ros=2)
    file = next(path.glob("*.db3"))
    file.unlink()
    os.mkfifo(file)
    assert "a.db3 in it is a device or a pipe" in line_of(path)


@pytest.mark.parametrize("kind", ["a.npz", "a.zip"])
def test_a_file_that_vanishes_while_it_is_read(tmp_path, kind):
    path = tmp_path / kind
    if kind == "a.npz":
        write_npz(path)
    else:
        write_zip(path, {"events.txt": "0.1 1 2 1\n"})
    recording = open_recording(path)
    path.unlink()
    with pytest.raises(RecordingError, match=r"a\.\w+ cannot be read: No such file or directory"):
        list(recording.chunks())
    assert recording.origin() == (str(path), "unknown: No such file or directory")


def test_an_error_of_a_library_is_kept_for_debugging():
    words = "a file cannot be read: KeyError; mend it"
    with pytest.raises(RecordingError, match=words) as caught, one_line_errors("a file", "mend it"):
        raise KeyError
    assert isinstance(caught.value.__cause__, KeyError)
    words = "a file cannot be read: it claims to hold more than fits the memory; mend it"
    with pytest.raises(RecordingError, match=words), one_line_errors("a file", "mend it"):
        raise MemoryError
