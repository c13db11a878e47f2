"""Give damaged files to every reader: recordings, calibrations, trajectories, run folders, configurations.

A case is a small good sample with a few random mutations, given to the command that reads it, in a child process with
limits of time and memory. The command may succeed, or say one short line. A finding is anything else: an exception that
is not a `CmaxSlamError`, a hang, memory beyond the limit, a warning of more than 300 characters, or one of a library.
Findings are counted by signature, which is what happened and where in the package, and the smallest case of each is
kept. The same seed gives the same cases. Needs Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import importlib.util
import io
import json
import multiprocessing
import os
import random
import re
import resource
import runpy
import shlex
import shutil
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np
import typer
import yaml
from scipy.io import savemat

import cmaxslam_fbp
from cmaxslam_fbp import Camera, Events, Recording
from cmaxslam_fbp.cli.app import app
from cmaxslam_fbp.config import Config, dump_config
from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.geometry.camera import davis240c
from cmaxslam_fbp.io.calibration import format_ecd_calibration, format_ros_yaml
from cmaxslam_fbp.io.writing import write_recording
from cmaxslam_fbp.report.map_picture import encode_png
from cmaxslam_fbp.trajectory import RotationTrajectory
from cmaxslam_fbp.trajectory.imu_samples import ImuSamples

PACKAGE = Path(cmaxslam_fbp.__file__).parent
TESTS = Path(__file__).parents[1] / "tests"
MADE_RUN, ORACLES = TESTS / "report" / "made_run.py", TESTS / "oracles"
HDF5_LAYOUTS = TESTS / "io" / "hdf5_layouts.py"

LONGEST_LINE = 300
GUESSED = "warning: the columns were taken as"  # what is said of a good table without names
MEMORY_MB = 256  # that a case may take, and three times its size: of a bomb may be made a file that is really so large
FAST_DISK = Path("/dev/shm")  # where there is one: a case writes and removes its files
ADDRESS_SPACE = 3 << 30  # the most that a child can have at all, its libraries included
CASES_PER_CHILD = 1000  # what leaks a little does not add up


@app.command(hidden=True)
def read_stream(path: Path) -> None:
    """Read a file as `run -` reads the standard input."""
    from cmaxslam_fbp.io.live.recording import LiveRecording

    with path.open("rb") as file:
        recording = LiveRecording(file.fileno())
        recording.require_camera()
        try:
            for _ in recording.chunks():
                pass
        finally:
            if recording.live is not None:
                recording.live.stop()
                recording.live.join()


Files = dict[str, bytes]
Mutation = Callable[[random.Random, bytes], bytes]
Finding = tuple[str, str]  # the signature, and the message


@dataclass(frozen=True)
class Sample:
    """Files by their names in the case's folder, and the commands that read them; `{case}` stands for the folder."""

    files: Files
    commands: tuple[str, ...]


def make_samples(folder: Path) -> dict[str, Sample]:
    """Return a good sample of each kind; the folder, where the commands are run, gets what they need besides."""
    recording, fisheye = _recording(davis240c()), _recording(Camera(320, 240, 200, 200, 160, 120, (), "equidistant"))
    recording.convert(folder / "good.npz")
    samples = {"npz": _recording_sample(folder / "good.npz")}
    recording.convert(folder / "a.packed")
    samples["packed"] = _recording_sample(folder / "a.packed")
    samples["stream"] = Sample(_read(folder / "a.packed"), ("read-stream {case}/a.packed",))
    for compression in ("none", "bz2", "lz4"):
        write_recording(recording, recording.chunks(), folder / "a.bag", compression=compression, overwrite=True)
        samples[f"ros1 {compression}"] = _recording_sample(folder / "a.bag")
    for storage in ("sqlite3", "mcap"):
        bag = _to_ros2(folder / "a.bag", folder / storage, storage)
        samples[f"ros2 {storage}"] = _recording_sample(bag)
        samples[f"ros2 {storage} file"] = _recording_sample(next(p for p in bag.iterdir() if p.suffix != ".yaml"))
    for name, source in (("text", recording), ("fisheye", fisheye)):
        for ending in ("", ".zip"):
            source.convert(folder / f"{name}{ending}")
            samples[f"{name}{ending}"] = _recording_sample(folder / f"{name}{ending}")
    columns = {"x": np.arange(50), "y": np.arange(50), "p": np.arange(50) % 2 == 0, "width": 64, "height": 64}
    np.savez_compressed(folder / "float.npz", **columns, t=np.arange(50) * 1e-4)
    np.savez_compressed(folder / "integer.npz", **columns, t=np.arange(50) * 100, time_unit=np.array("us"))
    for name in ("float.npz", "integer.npz"):
        samples[name] = _recording_sample(folder / name)
    samples |= _camera_samples(folder, recording)
    savemat(folder / "a.mat", {"ts": np.arange(50) * 100, "pol": columns["p"], **columns, "time_unit": "us"})
    samples["matlab"] = _recording_sample(folder / "a.mat")
    samples["evimo"] = _recording_sample(_to_evimo(recording, folder / "evimo"))
    if importlib.util.find_spec("h5py") and importlib.util.find_spec("hdf5plugin"):
        recording.convert(folder / "dsec.h5")
        samples["hdf5"] = _recording_sample(folder / "dsec.h5")
        layouts = runpy.run_path(str(HDF5_LAYOUTS))["LAYOUTS"]
        for name, options in (
            ("m3ed", " --events-dataset left"),
            ("mvsec", " --events-dataset left"),
            ("prophesee", ""),
        ):
            (folder / name).mkdir()
            layouts[name](recording, folder / name)
            file = next(file for file in (folder / name).iterdir() if "gt" not in file.name)
            samples[name] = _recording_sample(folder / name, inside=file.name, options=options)

    opencv = format_ros_yaml(davis240c()).replace("camera_matrix:", "camera_matrix: !!opencv-matrix")
    lens = {"camera_model": "pinhole", "intrinsics": [200, 200, 120, 90], "distortion_model": "radtan"}
    kalibr = {"cam0": {**lens, "distortion_coeffs": [0.1, 0.0, 0.0, 0.0], "resolution": [240, 180]}}
    omni = {"cam0": {**kalibr["cam0"], "camera_model": "omni", "intrinsics": [1.1, 420, 420, 120, 90]}}
    dsec = {"intrinsics": {"cam0": {**kalibr["cam0"], "camera_matrix": [200, 200, 120, 90]}}}
    eye = {"camera_type": "kb4", "intrinsics": {"fx": 200, "fy": 200, "cx": 120, "cy": 90}}
    eye["intrinsics"] |= {f"k{i}": 0.01 for i in range(1, 5)}  # type: ignore[operator]
    basalt = {"value0": {"intrinsics": [eye], "resolution": [[240, 180]]}}
    for name, text in {
        "calib.txt": format_ecd_calibration(davis240c()),
        "ros.yaml": format_ros_yaml(davis240c()),
        "opencv.yaml": f"%YAML:1.0\n---\n{opencv}",
        "kalibr.yaml": yaml.safe_dump(kalibr),
        "omni.yaml": yaml.safe_dump(omni),
        "cam_to_cam.yaml": yaml.safe_dump(dsec),
        "basalt.json": json.dumps(basalt),
    }.items():
        samples[name] = Sample({name: text.encode()}, (f"info good.npz --quiet --calib {{case}}/{name}",))
    samples["config"] = Sample({"own.yaml": dump_config(Config()).encode()}, ("config show {case}/own.yaml",))

    run = runpy.run_path(str(MADE_RUN))["make_run"](folder / "good_run", size=(64, 32))
    data = json.loads((run / "report_data.json").read_text())
    figures = ("t_s", "duration_s", "events", "speed_deg_s", "contrast_before", "contrast_after")
    (run / "report_data.json").write_text(json.dumps({**data, "packet": dict.fromkeys(figures, 1)}))
    for name in ("packet_before.png", "packet_after.png"):
        (run / name).write_bytes(encode_png(np.zeros((8, 8), np.uint8)))
    poses = b"\n".join((run / "trajectory.txt").read_bytes().split(b"\n")[:60])
    samples["tum"] = Sample({"poses.txt": poses}, ("evaluate {case}/poses.txt good_run/trajectory.txt",))
    samples["report"] = Sample(_read(run), ("report {case}",))
    tables, plots = ("compare {case} good_run", "compare {case} good_run --json"), "--out plots --overwrite"
    samples["compare"] = Sample(_read(run), (*tables * 10, f"{tables[0]} {plots}"))  # plots take most of a second
    return samples


def _recording(camera: Camera) -> Recording:
    """Return 30 ms of events with poses and inertial samples."""
    draw = np.random.default_rng(0)
    start_ns = 1_468_941_032_229_417_000
    t_ns = start_ns + np.sort(draw.integers(0, 30_000, 60)) * 1000
    x, y, p = (draw.integers(0, end, 60) for end in (camera.width, camera.height, 2))
    slow_ns = start_ns + np.arange(6) * 6_000_000
    imu = ImuSamples(slow_ns, draw.normal(size=(6, 3)), draw.normal(size=(6, 3)))
    poses = RotationTrajectory(slow_ns, np.tile([0.0, 0.0, 0.6, 0.8], (6, 1)), draw.normal(size=(6, 3)))
    return Recording.from_events(Events.from_arrays(t_ns, x, y, p), camera=camera, ground_truth=poses, imu=imu)


def _camera_samples(folder: Path, recording: Recording) -> dict[str, Sample]:
    """Return samples of the formats that cameras record, of words that are made one by one."""
    sys.path.insert(0, str(ORACLES))
    import event_words  # type: ignore[import-not-found]

    draw = np.random.default_rng(1)
    rows = event_words.neighbours(draw, 60, width=128, height=128)
    samples, sized = {}, " --sensor-size 240x180"

    def add(name: str, data: bytes, options: str = "") -> None:
        (folder / name).write_bytes(data)
        samples[name] = _recording_sample(folder / name, options=options)

    recording.convert(folder / "a.aedat4")
    samples["aedat4"] = _recording_sample(folder / "a.aedat4")
    raw = "% evt {}\n% format {}\n% geometry 240x180\n% end\n"
    add("evt3.raw", raw.format("3.0", "EVT3;height=180;width=240").encode() + event_words.evt3(rows, vectors=True))
    add("evt2.raw", raw.format("2.0", "EVT2").encode() + event_words.evt2(rows))
    add("evt21.raw", raw.format("2.1", "EVT21;endianness=legacy").encode() + event_words.evt21(rows, legacy=True))
    add("unsaid.raw", b"% evt 2.1\n% geometry 240x180\n" + event_words.evt21(rows))
    places = b"".join(struct.pack("<II", t, x | y << 14 | p << 28) for t, x, y, p in rows)
    add("a.dat", b"% Version 2\n% Height 180\n% Width 240\n\x0c\x08" + places)
    steps = b"".join(struct.pack("<BHH", p, x, y) + b"\xff" for _, x, y, p in rows)
    add("a.es", b"Event Stream\x02\x00\x00\x01" + struct.pack("<HH", 240, 180) + steps)
    imu = [(1 << 31 | code << 28 | code << 12 | 3 << 10, 30_000) for code in range(7)]
    words = [((179 - y) << 22 | (239 - x) << 12 | p << 11, t) for t, x, y, p in rows] + imu
    header = b'#!AER-DAT2.0\r\n# AEChip: a.DAVIS240C\r\n# <entry key="ImuGyroScale" value="X500"/>\r\n'
    add("two.aedat", header + b"".join(struct.pack(">II", *word) for word in words))
    packet = struct.pack("<HHIIIIII", 1, 1, 8, 4, 0, len(rows), len(rows), len(rows)) + event_words.libcaer(rows)
    sample = struct.pack("<HHIIIIII", 3, 1, 36, 4, 0, 1, 1, 1) + struct.pack("<Ii7f", 1, 9, *range(7))
    add("three.aedat", b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DAVIS240C\r\n#!END-HEADER\r\n" + packet + sample)
    table = "".join(f"{t},{x},{y},{p}\n" for t, x, y, p in rows).encode()
    add("a.csv", b"t_us,x,y,p\n" + table, sized)
    add("bare.txt", table.replace(b",", b" "), sized)
    for encoding in ("evt3", "libcaer", "libcaer_cmp", "mono"):
        encode = getattr(event_words, encoding)
        packets = [encode(rows[first : first + 20]) for first in range(0, len(rows), 20)]
        bag = _packet_bag(folder / f"{encoding}.bag", encoding, packets)
        samples[f"packets {encoding}"] = _recording_sample(bag)
        samples[f"packets {encoding} ros2"] = _recording_sample(_to_ros2(bag, folder / f"{encoding}_ros2", "mcap"))
    return samples


def _packet_bag(path: Path, encoding: str, packets: list[bytes]) -> Path:
    """Write a bag with event packets of one encoding."""
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    kind, store = "event_camera_msgs/msg/EventPacket", get_typestore(Stores.ROS1_NOETIC)
    fields = "uint32 height\nuint32 width\nuint64 seq\nuint64 time_base\nstring encoding\nbool is_bigendian"
    store.register(get_types_from_msg(f"std_msgs/Header header\n{fields}\nuint8[] events\n", kind))
    header = store.types["std_msgs/msg/Header"](0, store.types["builtin_interfaces/msg/Time"](9, 9), "cam")
    with Writer(path) as writer:
        connection = writer.add_connection("/cam/events", kind, typestore=store)
        for number, data in enumerate(packets):
            parts = (header, 180, 240, number, 0, encoding, False, np.frombuffer(data, np.uint8))
            writer.write(connection, number, store.serialize_ros1(store.types[kind](*parts), kind))
    return path


def _to_ros2(bag: Path, folder: Path, storage: str) -> Path:
    from rosbags.convert.converter import convert
    from rosbags.typesys import Stores, get_typestore

    with contextlib.redirect_stdout(None):
        convert([bag], folder, storage, 8, None, "file", None, get_typestore(Stores.ROS2_HUMBLE), (), (), (), ())
    return folder


def _to_evimo(recording: Recording, folder: Path) -> Path:
    folder.mkdir()
    events = Events.concatenate(recording.chunks())
    np.save(folder / "dataset_events_t.npy", ((events.t_ns - events.t_ns[0]) / 1e9).astype(np.float32))
    np.save(folder / "dataset_events_xy.npy", np.column_stack([events.x, events.y]))
    np.save(folder / "dataset_events_p.npy", events.p)
    pose = {"t": {"x": 0.0, "y": 0.0, "z": 0.0}, "q": {"w": 1.0, "x": 0.0, "y": 0.0, "z": 0.0}}
    meta = {"meta": {"res_x": 240, "res_y": 180}}
    meta["full_trajectory"] = [{"ts": 0.01 * i, "cam": {"pos": pose}} for i in range(3)]  # type: ignore[assignment]
    np.savez(folder / "dataset_info.npz", K=davis240c().matrix, D=np.zeros(4), meta=np.array(meta, object))
    return folder


def _recording_sample(path: Path, inside: str = "", options: str = "") -> Sample:
    """Return the sample of a file or folder, or of one file `inside` a folder whose others belong to it."""
    place = "{case}" if path.is_dir() and not inside else f"{{case}}/{inside or path.name}"
    info, convert = f"info {place} --quiet{options}", f"convert {place} --quiet --overwrite{options}"
    ranges = (f"{info} --start {{number}}", f"{info} --duration {{number}}")
    return Sample(_read(path), (*(info, f"{info} --json") * 6, *ranges, f"{convert} a.bag", f"{convert} a.npz"))


def _read(path: Path) -> Files:
    files = [path] if path.is_file() else sorted(path.iterdir())
    return {file.name: file.read_bytes() for file in files}


def _write(files: Files, folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


# ----------------------------------------------------------------------------------------------------------- mutations

NUMBERS = [
    *("0", "-1", "1", "255", "65536", "4294967295", "9223372036854775807", "-9223372036854775809"),
    *("1e-12", "1e18", "1e300", "1e999990", "nan", "-inf"),
]
WORDS = [
    *(*NUMBERS, "9" * 5000, "0x10", "1_0", "1.0.0", "\u0661", "null", "true", "~", "2001-01-01", "2001-13-99", "+.inf"),
    *("[]", "{}", "[" * 2000, "!!set", "!!python/object:os.system", "&a [*a]", "*b", "[/x]", "<b>", "x" * 2000, "é"),
    *("", "\0", "'", '"', "#", ",", ":", "\n", "\r", "\ufeff"),
]
VALUES: list[Any] = [
    *(None, True, 0, -1, 1e308, float("nan"), float("inf"), 2**63, 10**400, "", "x", "[/x]", "nan", "é" * 400),
    *([], [[]], {}, {"x": 1}, [None], [1, 2], ["a"], [[1, 2], [3]]),
]
LENGTHS = (0, 1, -1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 1 << 28, 1 << 40, (1 << 63) - 1, 1 << 63)
TYPES = ("<f8", "<f2", "<u8", "<i8", "|i1", "|b1", "<c16", "<U3", "|S4", "<M8[ns]", "|V8")
SHAPES: tuple[Any, ...] = ((2**40,), (2**62, 4), (-1,), (), (0,), (1,) * 40, ("x",))
COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
FOLDERS = ("[/x]", "[bold]", "a b", "%s {} $HOME", "é", "\udcff", "x" * 200)


def _span(draw: random.Random, data: bytes) -> slice:
    first = draw.randrange(len(data) + 1)
    return slice(first, first + int(draw.expovariate(0.02)) + 1)


def _replace(data: bytes, span: slice, by: bytes) -> bytes:
    return data[: span.start] + by + data[span.stop :]


def flip_bits(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(draw.choice((1, 1, 2, 8))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def truncate(draw: random.Random, data: bytes) -> bytes:
    return data[: draw.choice((0, draw.randrange(len(data) + 1), max(0, len(data) - draw.randrange(1, 40))))]


def splice(draw: random.Random, data: bytes) -> bytes:
    """Put a part of the data or noise in place of another part or between, or leave a part out."""
    piece = draw.choice((data[_span(draw, data)], draw.randbytes(draw.randrange(1, 40))))
    span = _span(draw, data)
    return _replace(data, *draw.choice(((span, piece), (slice(span.start, span.start), piece), (span, b""))))


def change_length(draw: random.Random, data: bytes) -> bytes:
    """Write a number that a size, a count or an offset could have, in one of the ways in which formats store it."""
    size = draw.choice((1, 2, 4, 4, 8))
    number = draw.choice(LENGTHS) % (1 << 8 * size)
    at = draw.randrange(len(data) + 1)
    return _replace(data, slice(at, at + size), number.to_bytes(size, draw.choice(("little", "big"))))


def change_words(draw: random.Random, data: bytes) -> bytes:
    words = list(re.finditer(rb"[^\s,:=\[\]{}\"]+", data))
    for word in sorted(draw.sample(words, min(len(words), draw.choice((1, 1, 3)))), key=lambda word: -word.start()):
        data = _replace(data, slice(*word.span()), draw.choice(WORDS).encode(draw.choice(("utf-8", "utf-8", "utf-16"))))
    return data


def change_lines(draw: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    first, second = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[first : first + draw.randrange(2)] = lines[second : second + draw.randrange(3)]
    return draw.choice((b"\n", b"\n", b"\r\n", b" ")).join(lines)


def change_array(draw: random.Random, data: bytes) -> bytes:
    """Change type, shape or values of a `.npy` file, or what its header claims of them."""
    array = np.load(io.BytesIO(data), allow_pickle=False)
    buffer = io.BytesIO()
    if draw.random() < 0.4:
        claims = {"descr": draw.choice((*TYPES, array.dtype.str, "|O", "<U999999999", "x", [("a", "<i4")]))}
        claims |= {"fortran_order": draw.random() < 0.2, "shape": draw.choice((array.shape, *SHAPES))}
        np.lib.format.write_array_header_1_0(buffer, claims)
        return buffer.getvalue() + array.tobytes()
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        extreme = np.array(draw.choice((float("nan"), float("inf"), -1, 0, 1e300, 2**63 - 1))).astype(array.dtype)
        one_extreme = np.where(np.arange(array.size).reshape(array.shape) == 0, extreme, array)
        values = (array.astype(draw.choice(TYPES)), one_extreme, np.full_like(array, extreme), extreme, np.array("x"))
    shapes = (array[None], array.T, flat[:0], flat[:-1], flat[::-1], np.stack([array, array]))
    np.lib.format.write_array(buffer, draw.choice(values + shapes), allow_pickle=False)
    return buffer.getvalue()


def change_archive(draw: random.Random, data: bytes) -> bytes:
    """Change a member of a zip archive: content, name, number or compression; now and then it unpacks to 300 MB."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    at = draw.randrange(len(members))
    name, content = members[at]
    changed = (name, mutate(draw, name, content))
    members[at : at + 1] = draw.choice(([changed],) * 4 + ([], [changed] * 2, [members[at], (f"b/{name}", content)]))
    bomb = name if draw.random() < 0.01 else None
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED if name == bomb else draw.choice(COMPRESSIONS)
            with archive.open(entry, "w") as file:
                file.write(content)
                for _ in range(300 if name == bomb else 0):
                    file.write(bytes(1 << 20))
    return buffer.getvalue()


def change_tree(draw: random.Random, value: Any) -> Any:
    """Replace a value somewhere in nested lists and mappings, or leave it out."""
    if not isinstance(value, dict | list) or not value or draw.random() < 0.1:
        return draw.choice(VALUES)
    copy: Any = value.copy()
    key = draw.choice(list(copy)) if isinstance(copy, dict) else draw.randrange(len(copy))
    if draw.random() < 0.1:
        del copy[key]
    else:
        copy[key] = change_tree(draw, copy[key])
    return copy


def change_json(draw: random.Random, data: bytes) -> bytes:
    return json.dumps(change_tree(draw, json.loads(data))).encode()


def change_yaml(draw: random.Random, data: bytes) -> bytes:
    return yaml.safe_dump(change_tree(draw, yaml.safe_load(data)), allow_unicode=True).encode()


def nest_yaml(draw: random.Random, data: bytes) -> bytes:
    """Append aliases of aliases that together stand for more than any memory holds."""
    lines = ["x0: &a0 [0, 0]", *(f"x{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12))]
    return data + "\n".join(["", *lines, f"{draw.choice(('camera_matrix', 'cam0', 'backend', 'x'))}: *a11"]).encode()


ANY: tuple[Mutation, ...] = (flip_bits, truncate, splice, change_length)
TEXT: tuple[Mutation, ...] = (change_words, change_words, change_lines)
BY_ENDING: dict[str, tuple[Mutation, ...]] = {
    ".txt": TEXT,
    ".csv": TEXT,
    ".yaml": (*TEXT, change_yaml, change_yaml, nest_yaml),
    ".json": (*TEXT, change_json, change_json),
    ".npy": (change_array,),
    ".npz": (change_archive,),
    ".zip": (change_archive,),
}


def mutate(draw: random.Random, name: str, data: bytes) -> bytes:
    """Return a file's content with one mutation: one for its kind of file, or one for any bytes."""
    own = BY_ENDING.get(Path(name).suffix)
    if own and draw.random() < 0.7:
        # What an earlier mutation has damaged may be nothing for one that knows the format, in any way.
        with contextlib.suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return draw.choice(own)(draw, data)
    return draw.choice(ANY)(draw, data)


@dataclass(frozen=True)
class Case:
    """A mutated sample: which one, its folder's name, its files, and the arguments of the command."""

    kind: str
    folder: str
    files: Files
    arguments: list[str]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))


def make_case(samples: dict[str, Sample], seed: int, number: int) -> Case:
    """Return a case, the same one for the same seed and number."""
    draw = random.Random(f"{seed} {number}")
    kind = draw.choice(list(samples))
    files = dict(samples[kind].files)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        name, other = draw.choice(list(files)), draw.choice(list(files))
        if draw.random() > 0.1 or name == other:
            files[name] = mutate(draw, name, files[name])
        elif draw.random() < 0.5:
            files[name] = files[other]
        else:
            del files[name]
    folder = "case" if draw.random() < 0.98 else draw.choice(FOLDERS)
    command = draw.choice(samples[kind].commands).split()
    return Case(kind, folder, files, [part.format(case=folder, number=draw.choice(NUMBERS)) for part in command])


# --------------------------------------------------------------------------------------------------- children, findings


def place(frames: Sequence[tuple[str, int]]) -> str:
    """Return the innermost place in the package, of files and lines from the outermost to the innermost."""
    inside = [(Path(file), line) for file, line in frames if file.startswith(str(PACKAGE))]
    return f"{inside[-1][0].relative_to(PACKAGE)}:{inside[-1][1]}" if inside else "elsewhere"


def run_case(program: Any, case: Case, printed: io.FileIO) -> list[Finding]:
    """Give a case to the program, whose errors are printed to a file; return what it should not have done."""
    found: list[Finding] = []

    def note(what: str, stack: traceback.StackSummary, message: object) -> None:
        found.append((f"{what} at {place([(frame.filename, frame.lineno or 0) for frame in stack])}", str(message)))

    def note_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        note(category.__name__, traceback.extract_stack(), message)

    _write(case.files, Path(case.folder))
    printed.truncate(0)
    peak = _peak_memory_mb()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for hidden in (DeprecationWarning, PendingDeprecationWarning, ResourceWarning):  # as they are for a user
            warnings.simplefilter("ignore", hidden)
        warnings.showwarning = note_warning
        try:
            program.main(case.arguments, prog_name="cmaxslam-fbp", standalone_mode=False)
        except (CmaxSlamError, typer.BadParameter):
            pass  # one short line, whatever it is told
        except BaseException as error:
            kind = type(error)
            name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            note(name, traceback.extract_tb(error.__traceback__), error)
    if (grown := _peak_memory_mb() - peak) > MEMORY_MB + 3 * case.size / (1 << 20):
        found.append((f"memory, {case.kind}", f"{grown:.0f} MB"))
    sys.stderr.flush()
    for line in Path(printed.name).read_text(errors="replace").splitlines():
        if not line.startswith("warning: "):
            found.append((f"printed by a library, {case.kind}", line))
        elif (
            len(line.removeprefix("warning: ").replace(case.folder, "case")) > LONGEST_LINE
        ):  # the name of the folder is not its fault
            found.append((f"long warning, {case.kind}", line))
    shutil.rmtree(case.folder)
    return found


def _peak_memory_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass
class Child:
    """A process that runs one case after the other in a folder of its own, and the case that it has in hand."""

    process: multiprocessing.process.BaseProcess
    connection: Connection
    folder: Path
    number: int = -1
    served: int = 0

    def last_words(self) -> list[Finding]:
        """Return how it ended in the middle of a case."""
        self.process.join()
        text = (self.folder / "trace").read_text(errors="replace")
        frames = [(file, int(line)) for file, line in re.findall(r'File "(.+)", line (\d+)', text)]
        what = "hang" if text.startswith("Timeout") else f"ended with {self.process.exitcode}"
        return [(f"{what} at {place(frames[::-1])}", text.partition("\n")[0])]

    def stop(self) -> None:
        """End the process, and remove its folder."""
        with contextlib.suppress(OSError):  # it has ended by itself
            self.connection.send(None)
        self.process.join()
        self.connection.close()
        shutil.rmtree(self.folder)


def start_child(samples: dict[str, Sample], seed: int, limit_s: float, good: Path) -> Child:
    """Start a child that gets numbers of cases and answers with findings; `good` is the folder of `make_samples`."""
    here, there = multiprocessing.Pipe()
    folder = shutil.copytree(good, tempfile.mkdtemp(dir=good.parent), dirs_exist_ok=True)

    def work() -> None:
        os.chdir(folder)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        program = typer.main.get_command(app)
        sys.stdout = open(os.devnull, "w", errors="surrogateescape")  # noqa: SIM115, the child's own until it ends
        os.dup2(sys.stdout.fileno(), 1)
        with open("printed", "ab", buffering=0) as printed, open("trace", "w") as trace:
            os.dup2(printed.fileno(), 2)
            faulthandler.enable(trace)
            for number in iter(there.recv, None):
                case = make_case(samples, seed, number)
                faulthandler.dump_traceback_later(limit_s, exit=True, file=trace)
                found = run_case(program, case, printed)
                faulthandler.cancel_dump_traceback_later()
                there.send(found)

    # A fork has all that is imported and compiled here.
    process = multiprocessing.get_context("fork").Process(target=work, daemon=True)
    process.start()
    there.close()
    return Child(process, here, Path(folder))


def run_cases(
    start: Callable[[], Child], cases: int, jobs: int, end_s: float = float("inf")
) -> Iterator[tuple[int, list[Finding]]]:
    """Yield the number of each case with its findings, as they come; none is begun after a time of the clock."""
    numbers = takewhile(lambda _: time.monotonic() < end_s, range(cases))
    busy: dict[Any, Child] = {}

    def give_next(child: Child) -> None:
        child.number = next(numbers, -1)
        if child.number < 0:
            child.stop()
        else:
            child.connection.send(child.number)
            busy[child.connection] = child

    for _ in range(jobs):
        give_next(start())
    while busy:
        for connection in wait(list(busy)):
            child = busy.pop(connection)
            try:
                found = child.connection.recv()
            except (EOFError, OSError):
                found = child.last_words()
            yield child.number, found
            child.served += 1
            if found or child.served == CASES_PER_CHILD:
                child.stop()
                child = start()
            give_next(child)


@dataclass
class Signature:
    """A row of the table: how often it was found, its smallest case, and what was said there."""

    count: int
    case: Case
    message: str


def keep(case: Case, folder: Path) -> None:
    """Write the files of a case, and the command that reads them, to a folder."""
    shutil.rmtree(folder, ignore_errors=True)
    _write(case.files, folder / case.folder)
    command = shlex.join(["cmaxslam-fbp", "--debug", *case.arguments])
    (folder / "command.txt").write_text(f"{command}\n", errors="surrogateescape")


def table(rows: dict[str, Signature]) -> str:
    """Return the findings as text, the most frequent first."""
    lines = [f"{'count':>7}  {'signature':60} {'sample':17} {'bytes':>7}  message"]
    for signature, row in sorted(rows.items(), key=lambda item: -item[1].count):
        words = " ".join(row.message.split())[:100].encode(errors="replace").decode()
        lines.append(f"{row.count:7}  {signature:60} {row.case.kind:17} {row.case.size:7}  {words}")
    return "\n".join(lines)


def warm_up(samples: dict[str, Sample]) -> None:
    """Run every command on the good samples, which must pass without a word; children then have all imports."""
    program = typer.main.get_command(app)
    said = io.StringIO()
    for sample in samples.values():
        _write(sample.files, Path("case"))
        for command in dict.fromkeys(sample.commands):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
                program.main(command.format(case="case", number="0.001").split(), standalone_mode=False)
        shutil.rmtree("case")
    bad = [line for line in said.getvalue().splitlines() if not line.startswith(GUESSED)]
    if bad:
        raise AssertionError(f"the good samples are not good: {bad}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Give damaged files to every reader, and list what goes wrong.")
    parser.add_argument("--cases", type=int, default=2000, help="how many (2000)")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other cases (0)")
    parser.add_argument("--jobs", type=int, default=2, help="children at a time (2)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no more cases after this time")
    parser.add_argument("--limit", type=float, default=20, metavar="S", help="seconds after which a case hangs (20)")
    parser.add_argument("--out", type=Path, help="folder for the table and the smallest case of each signature")
    options = parser.parse_args()
    out = None if options.out is None else options.out.resolve()
    began = time.monotonic()
    rows: dict[str, Signature] = {}
    disk = FAST_DISK if FAST_DISK.is_dir() and os.access(FAST_DISK, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=disk) as temporary, contextlib.ExitStack() as stack:
        good = Path(temporary, "good")
        good.mkdir()
        stack.callback(os.chdir, os.getcwd())
        samples = make_samples(good)
        os.chdir(good)
        warm_up(samples)
        start = functools.partial(start_child, samples, options.seed, options.limit, good)
        done = 0
        for number, findings in run_cases(start, options.cases, options.jobs, began + options.seconds):
            done += 1
            for signature, message in findings:
                case = make_case(samples, options.seed, number)
                row = rows.setdefault(signature, Signature(0, case, message))
                row.count += 1
                if case.size < row.case.size:
                    row.case, row.message = case, message
                if out is not None and row.case is case:
                    keep(case, out / re.sub(r"[^\w.-]+", "_", signature))
    text = f"{done} cases in {time.monotonic() - began:.0f} s, {len(rows)} signatures"
    text = f"{table(rows)}\n{text}" if rows else text
    print(text)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "table.txt").write_text(f"{text}\n")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
