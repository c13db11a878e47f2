"""Options that several commands share."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, update_wrapper
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer
from typer.core import TyperCommand

from cmaxslam_fbp.choices import REFINEMENTS

if TYPE_CHECKING:
    from cmaxslam_fbp.config import Config
    from cmaxslam_fbp.io import Recording
    from cmaxslam_fbp.report.run_files import RunFiles

_INPUT = "Input"
_input_option = partial(typer.Option, rich_help_panel=_INPUT)

RunPath = Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Folder of a run: what cmaxslam-fbp run wrote.")]
RecordingPath = Annotated[Path, typer.Argument(metavar="PATH", help="The recording: {readable}.")]
RecordingOut = Annotated[
    Path, typer.Argument(metavar="OUT", help="The recording to write, in the format of its ending: {writable}.")
]
ConfigNames = Annotated[
    list[str] | None,
    typer.Option("--config", "-c", metavar="NAME_OR_FILE", help="Preset or YAML file; may be repeated."),
]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change one value; may be repeated.")
]
EventsTopic = Annotated[str | None, _input_option(help="Topic of the events, where a bag has several.")]
EventsDataset = Annotated[
    str | None,
    _input_option(help="Data set of the events, where an HDF5 file has several, e.g. left."),
]
PosesTopic = Annotated[str | None, _input_option(help="Topic of the reference poses, where a bag has several.")]
Calibration = Annotated[
    Path | None,
    _input_option("--calib", help="Calibration file instead of the recording's own."),
]
CalibrationScale = Annotated[
    float | None,
    _input_option(
        "--calib-scale",
        metavar="FACTOR",
        help="Pixels of the recording per pixel of its calibration, where that is of another resolution.",
    ),
]
_LONGEST_S = 1e9  # thirty years, as nanoseconds far from what 64 bits hold


def seconds_option(words: str, *flags: str, panel: str | None = None) -> Any:
    """Return an option whose value is a time in seconds, finite and no longer than any recording."""

    def parse(text: str | float) -> float:
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not abs(seconds) <= _LONGEST_S:
            raise typer.BadParameter(f"{text!r} is not a number of seconds up to {_LONGEST_S:g}")
        return seconds

    return typer.Option(*flags, parser=parse, metavar="SECONDS", help=words, rich_help_panel=panel)


Start = Annotated[float | None, seconds_option("Start after the first event.", "--start", panel=_INPUT)]
Duration = Annotated[float | None, seconds_option("Length from the start.", "--duration", panel=_INPUT)]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="A Dask cluster to work on: tcp://HOST:PORT, or its file."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, only results and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


class FormatsCommand(TyperCommand):
    """A command whose help names the formats: they are imported only when it is shown."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, with the formats that can be read and written."""
        from cmaxslam_fbp.io.opening import readable_formats
        from cmaxslam_fbp.io.writing import writable_endings

        for parameter in self.params:
            words = getattr(parameter, "help", None) or ""
            words = words.replace("{readable}", readable_formats()).replace("{writable}", writable_endings())
            parameter.help = words  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


class RefiningCommand(FormatsCommand):
    """A command whose `--refine` may stand alone, or before the kind of refinement: Typer has no such options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, `--refine` as `--refine contrast` where no kind follows: a recording may."""
        given = list(args)
        for place in range(len(args) - 1, -1, -1):
            if args[place] == "--refine" and args[place + 1 : place + 2] not in [[kind] for kind in REFINEMENTS]:
                given.insert(place + 1, REFINEMENTS[0])
        return list(super().parse_args(ctx, given))


def choice_option(names: Sequence[str], words: str, panel: str | None, *flags: str) -> Any:
    """Return an option whose value is one of some names; its help lists them."""

    def parse(text: str) -> str:
        if text not in names:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(names)}")
        return text

    return typer.Option(*flags, parser=parse, metavar=f"[{'|'.join(names)}]", help=words, rich_help_panel=panel)


OutputStyle = Annotated[
    str,
    choice_option(
        ("tum", "kitti", "euroc"),
        "Format of the trajectory: a file of this one is written beside the TUM file.",
        "Output",
        "--output-format",
    ),
]

Refine = Annotated[
    str | None,
    choice_option(
        REFINEMENTS,
        "Then adjust everything against the whole map, against drift; with photometric also to the events' polarities.",
        None,
        "--refine",
    ),
]

# The flag is --backend, the key of the configuration is `compute`.
Compute = Annotated[
    str | None, choice_option(("numba", "torch"), "Compiled loops on the CPU, or tensors.", "Torch", "--backend")
]
Device = Annotated[
    str | None, typer.Option("--device", help="Device of the tensors: cpu, cuda, ...", rich_help_panel="Torch")
]


def parse_size(text: str) -> str:
    """Return a text that is a width and a height, or say how to write one."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}x[1-9][0-9]{0,8}", text):
        raise typer.BadParameter(f"{text!r} is not of the form WIDTHxHEIGHT, e.g. 640x480")
    return text


SensorSizeText = Annotated[
    str | None,
    _input_option(
        "--sensor-size",
        metavar="WIDTHxHEIGHT",
        parser=parse_size,
        help="Size of the sensor, where the recording does not tell it.",
    ),
]


def warn(*lines: str) -> None:
    """Print warnings."""
    for line in lines:
        typer.echo(f"warning: {line}", err=True)


def read_run(path: Path) -> RunFiles:
    """Read the folder of a run, with a warning for each file that is damaged and left out."""
    from cmaxslam_fbp.report.run_files import RunFiles

    files = RunFiles.read(path)
    warn(*files.faults)
    return files


@dataclass(frozen=True)
class RecordingOptions:
    """The configuration, what the user says about a recording, and the range of it that is read."""

    config: ConfigNames = None
    assignments: Assignments = None
    events_topic: EventsTopic = None
    events_dataset: EventsDataset = None
    poses_topic: PosesTopic = None
    calibration: Calibration = None
    calibration_scale: CalibrationScale = None
    sensor_size: SensorSizeText = None
    start: Start = None
    duration: Duration = None

    def configure(self, flags: Mapping[str, Any] | None = None) -> Config:
        """Return the configuration with what these options say, and other ones by the keys that they set."""
        from cmaxslam_fbp.config import RecordingConfig, load_config

        own = {f"recording.{name}": value for name, value in vars(self).items() if name in RecordingConfig.model_fields}
        if self.sensor_size is not None:
            own["recording.sensor_size"] = tuple(map(int, self.sensor_size.split("x")))
        return load_config(self.config or (), self.assignments or (), {**own, **(flags or {})})

    def open(self, path: Path) -> Recording:
        """Open a recording with what the configuration and these options say about it."""
        return open_configured(path, self.configure())


class takes_recording:  # noqa: N801 (a decorator)
    """Give a command the options of a recording, each on its own, in the place of its argument `source`."""

    def __init__(self, command: Callable[..., None]) -> None:
        update_wrapper(self, command)
        self._command = command

    def __call__(self, **arguments: Any) -> None:
        """Call the command."""
        given = {field.name: arguments.pop(field.name) for field in fields(RecordingOptions)}
        self._command(source=RecordingOptions(**given), **arguments)

    @property
    def __signature__(self) -> Signature:
        """What Typer sees, when it is asked for: a program may add choices before."""
        hints = get_type_hints(self._command, include_extras=True)
        parameters: list[Parameter] = []
        for parameter in signature(self._command).parameters.values():
            if parameter.name == "source":
                hints |= get_type_hints(RecordingOptions, include_extras=True)
                parameters += signature(RecordingOptions).parameters.values()
            else:
                parameters.append(parameter)
        return Signature([parameter.replace(annotation=hints[parameter.name]) for parameter in parameters])


def open_configured(path: Path, config: Config) -> Recording:
    """Open a recording with what the configuration says about it."""
    from cmaxslam_fbp.io import open_recording

    return open_recording(path, **config.recording.model_dump())
