"""`cmaxslam-fbp doctor`: whether everything that the program needs is there and works, and how fast this machine is."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cmaxslam_fbp.cli.options import Json

if TYPE_CHECKING:
    from cmaxslam_fbp.io import Recording

_LIBRARIES = {"numpy": "numpy", "numba": "numba", "scipy": "scipy", "opencv": "cv2", "rosbags": "rosbags"}
_EXTRAS = {  # distributions, and the extra that installs each
    "h5py": "formats",
    "hdf5plugin": "formats",
    "torch": "torch",
    "open3d": "viewer",
    "rerun-sdk": "rerun",
    "distributed": "cluster",
}
_SELF_TEST_S = 0.5
_LARGEST_ERROR_DEG = 2.0


@dataclass(frozen=True)
class Check:
    """One line of the examination."""

    name: str
    value: str
    status: Literal["ok", "note", "broken"] = "ok"


def doctor(
    self_test: Annotated[
        bool, typer.Option("--self-test/--no-self-test", help="Run a small simulated recording, about ten seconds.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Check the installation: libraries, caches, devices, and a small run with its speed. Exit code 1: broken."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    parts: list[Callable[[], Iterator[Check]]] = [_versions, _extras, _compiler, _devices]
    if self_test:
        parts.append(_self_test)
    checks = [check for part in parts for check in _guarded(part)]
    healthy = all(check.status != "broken" for check in checks)
    if as_json:
        typer.echo(json.dumps({"healthy": healthy, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="bold")
        table.add_column(overflow="fold")
        table.add_column()
        colors = {"ok": "green", "note": "yellow", "broken": "red"}
        for check in checks:
            table.add_row(check.name, escape(check.value), f"[{colors[check.status]}]{check.status}[/]")
        Console().print(table, highlight=False)
    if not healthy:
        raise typer.Exit(1)


def _guarded(part: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    """Yield the checks of a part; whatever goes wrong in it is a broken check."""
    try:
        yield from part()
    except Exception as error:  # a broken installation can fail in any way: it is told, not raised
        words = " ".join(str(error).split()) or type(error).__name__
        yield Check(part.__name__.strip("_").replace("_", " "), words, "broken")


def _versions() -> Iterator[Check]:
    from importlib import import_module
    from importlib.metadata import version

    from cmaxslam_fbp import __version__

    yield Check("cmaxslam-fbp", __version__)
    yield Check("python", f"{sys.version.split()[0]} ({sys.executable})")
    for name, module in _LIBRARIES.items():
        try:
            found = getattr(import_module(module), "__version__", None) or version(module)
        except ImportError as error:
            yield Check(name, f"cannot be loaded: {error}", "broken")
        else:
            yield Check(name, found)


def _extras() -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, version

    for name, extra in _EXTRAS.items():
        try:
            yield Check(name, version(name))
        except PackageNotFoundError:
            yield Check(name, f"not installed; optional: pip install 'cmaxslam-fbp[{extra}]'")


def _compiler() -> Iterator[Check]:
    import numba

    from cmaxslam_fbp.compiling import cache_folder

    threads = numba.get_num_threads()  # also starts them: only then is the layer known
    yield Check("numba threads", f"{threads}, layer {vars(numba)['threading_layer']()}")
    folder = cache_folder()
    if folder is None:
        advice = "none can be written: kernels are compiled in every process; set NUMBA_CACHE_DIR"
        yield Check("numba cache", advice, "note")
        return
    writable = os.access(folder if folder.is_dir() else folder.parent, os.W_OK)
    words = "" if writable else ", cannot be written: set NUMBA_CACHE_DIR"
    yield Check("numba cache", f"{folder}{words}", "ok" if writable else "note")


def _devices() -> Iterator[Check]:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return
    from cmaxslam_fbp.fbp.torch_module import torch

    devices = ["cpu"] + [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("mps")
    yield Check("torch devices", ", ".join(devices))


def _self_test() -> Iterator[Check]:
    """Simulate half a second of the shapes scene and run it, twice: the first time may compile."""
    import tempfile
    from pathlib import Path

    from cmaxslam_fbp.io import open_recording
    from cmaxslam_fbp.io.writing import write_recording
    from cmaxslam_fbp.pipeline import Slam
    from cmaxslam_fbp.simulation import Simulation, SimulationSettings

    simulation = Simulation(SimulationSettings(scene="shapes", duration_s=_SELF_TEST_S))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shapes.npz"
        simulating_s, written = _timed(lambda: write_recording(simulation, simulation.chunks(), path))
        recording = open_recording(path)
        yield Check("simulation", f"{written.events:,} events in {simulating_s:.1f} s, compiling included")
        first_s, _ = _timed(lambda: Slam().run(recording))
        second_s, result = _timed(lambda: Slam().run(recording))
        counting_s = _counting_time_s(recording)
    rate = result.events / second_s / 1e6
    yield Check("self-test", f"{second_s:.2f} s, {rate:.2f} Mev/s; first {first_s:.2f} s, compiling included")
    words = f"np.bincount of the same events {1e3 * counting_s:.2f} ms; ratio {second_s / counting_s:.0f}"
    yield Check("calibration", words)
    error_deg = None if result.evaluation is None else result.evaluation.absolute_best_fit_rms_deg
    good = error_deg is not None and error_deg < _LARGEST_ERROR_DEG and not result.lost_windows
    words = "no evaluation" if error_deg is None else f"{error_deg:.2f} deg RMS, {result.lost_windows} windows lost"
    yield Check("accuracy", words, "ok" if good else "broken")


def _counting_time_s(recording: Recording) -> float:
    """Return the time to count the events of each pixel, the best of a few: the least that any method does."""
    import numpy as np

    width, height = recording.sensor_size
    pixels = np.concatenate([events.y.astype(np.intp) * width + events.x for events in recording.chunks()])
    return min(_timed(lambda: np.bincount(pixels, minlength=width * height))[0] for _ in range(5))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result
