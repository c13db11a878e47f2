"""The configuration: frozen sections with every default in this one place, YAML files over them, `--set` over those."""

from __future__ import annotations

import difflib
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from cmaxslam_fbp import choices
from cmaxslam_fbp.errors import ChoiceError, ConfigError
from cmaxslam_fbp.plain_yaml import load_yaml


@dataclass(frozen=True)
class OneOf:
    """Takes the names of a registry, and some besides."""

    registry: choices.Choices
    besides: tuple[str, ...] = ()

    def __call__(self, name: str) -> str:
        """Return the name if it is one of them."""
        return name if name in self.besides else self.registry.check(name)


KernelName = Annotated[str, AfterValidator(OneOf(choices.KERNELS))]
ReconstructionName = Annotated[str, AfterValidator(OneOf(choices.RECONSTRUCTIONS, ("none",)))]
SurrogateName = Annotated[str, AfterValidator(OneOf(choices.SURROGATES))]
ScoreName = Annotated[str, AfterValidator(OneOf(choices.SCORES))]
SolverName = Annotated[str, AfterValidator(OneOf(choices.SOLVERS))]
ModelName = Annotated[str, AfterValidator(OneOf(choices.MODELS))]
ComputeName = Literal["numba", "torch"]
SensorSide = Annotated[int, Field(ge=1, le=4096)]
MapWidth = Annotated[int, Field(ge=64, le=16384)]
MapHeight = Annotated[int, Field(ge=32, le=8192)]
GridSide = Annotated[int, Field(ge=8, le=4096)]

_MOST_KNOTS = 256  # of one window: its adjustment solves for three unknowns per knot at once
_LARGEST_FILE_BYTES = 1 << 20


class Section(BaseModel):
    """A part of the configuration: it cannot be changed, and knows all its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class RecordingConfig(Section):
    """What a recording cannot tell by itself."""

    events_topic: str | None = None
    """Topic of the events, where a bag has several."""
    events_dataset: str | None = None
    """Data set of the events, where an HDF5 file has several: its name, or the end of it, as in left."""
    poses_topic: str | None = None
    """Topic of the reference poses, where a bag has several."""
    imu_topic: str | None = None
    """Topic of the IMU, where a bag has several."""
    calibration: Path | None = None
    """Calibration file to use instead of the recording's own."""
    calibration_scale: Annotated[float | None, Field(gt=0.01, lt=100)] = None
    """Pixels of the recording per pixel of its calibration, where that is of another resolution; 1 confirms it."""
    sensor_size: tuple[SensorSide, SensorSide] | None = None
    """Width and height in pixels, where the recording does not tell them."""
    reference: Path | None = None
    """File of reference poses (TUM) to judge by instead of the recording's own; on the same clock."""


class EventsConfig(Section):
    """Which events of the stream are used, by all stages alike."""

    subsample: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Keep every n-th event of the stream."""
    time_lapse: Annotated[float, Field(ge=1, le=1000)] = 64.0
    """Where the image moves slowly, time passes faster on the clock of the run, at most so many times; 1 for never."""
    least_neighbours: Annotated[int, Field(ge=0, le=18)] = 2
    """Where time lapses eightfold or more, drop events with fewer pixels about them that fired alike; 0 keeps all."""
    hot_pixel_factor: Annotated[float | None, Field(gt=1, le=1e6)] = 5.0
    """Drop pixels, alone or few together, that fire this many times as often as all around them; null keeps all."""


class FrontendConfig(Section):
    """The velocity of one packet of events."""

    model: ModelName = "rotation"
    """Motion: rotation to first order (the paper), exact rotation, or translation of the normalised plane."""
    grid: Literal["normalised", "sensor"] = "normalised"
    """Bins of the normalised plane (the paper), or pixels of the sensor without distortion (CMax-SLAM)."""
    grid_size: tuple[GridSide, GridSide] = (200, 150)
    """Columns and rows of the normalised grid."""
    grid_step: Annotated[float, Field(ge=1e-5, le=1)] = 0.01
    """Width of a bin of the normalised grid, at unit depth."""
    polarity: Literal["ignored", "signed"] = "ignored"
    """Weight of an event: 1, or its sign."""
    kernel: KernelName = "rect"
    """Binning kernel."""
    reconstruction: ReconstructionName = "linear"
    """Reconstruction kernel of the gradients; none for plain ones (rect: finite differences of the score)."""
    surrogate: SurrogateName | None = None
    """Heuristic gradient to compare with, instead of a reconstruction."""
    score: ScoreName = "variance"
    """What is maximised."""
    blur_sigma_px: Annotated[float, Field(ge=0, le=20)] = 0.0
    """Gaussian blur of the image before the score, in bins; 0 for none."""
    solver: SolverName = "newton"
    """Optimiser."""
    difference_step: Annotated[float, Field(ge=1e-6, le=10)] = 0.05
    """Half step of finite differences in rad/s or m/s, where rect has no reconstruction."""
    packets: Literal["count", "rate"] = "rate"
    """Packets one after the other, by their number of events; or around the times of a fixed rate."""
    events_per_packet: Annotated[int, Field(ge=1, le=10_000_000)] = 20_000
    """Number of events of a packet."""
    interval_s: Annotated[float, Field(ge=1e-4, le=60)] = 0.01
    """Time between packets at a fixed rate; packets that last ten times as long count as still."""
    min_packet_s: Annotated[float, Field(ge=0, le=60)] = 0.01
    """At a fixed rate, packets cover at least this time, with every n-th event where they are too many; 0 for none."""
    max_packet_s: Annotated[float | None, Field(ge=1e-4, le=600)] = 0.03
    """At a fixed rate, packets are cut to this time, in which the velocity hardly changes, or up to three times as long
    where the image moves slowly; null for no limit."""
    min_packet_events: Annotated[int, Field(ge=1, le=10_000_000)] = 3000
    """At a fixed rate, packets are not cut to fewer events than these."""
    still_rate_ev_s: Annotated[float, Field(ge=0, le=1e7)] = 10_000.0
    """Below this rate of events the camera counts as still."""
    min_evidence: Annotated[float, Field(ge=0, le=1e6)] = 9.0
    """Standard deviations by which events must agree more than by chance; else the camera counts as still. 0: any."""
    max_speed: Annotated[float, Field(ge=1e-6, le=1000)] = 30.0
    """Largest speed that is plausible, in rad/s or m/s."""
    recovery: bool = True
    """Search on coarser grids at the start, and where a packet looks stuck."""
    compute: ComputeName = "numba"
    """Compiled loops on the CPU, or tensors on a device."""
    device: str = "cpu"
    """Device of the tensors: cpu, cuda, cuda:1, ..."""


class BackendConfig(Section):
    """The bundle adjustment over the panorama."""

    window_s: Annotated[float, Field(ge=1e-3, le=60)] = 0.2
    """Length of the sliding window: a multiple of the time between knots."""
    stride_s: Annotated[float, Field(ge=1e-3, le=60)] = 0.1
    """By how much the window moves: a multiple of the time between knots."""
    knot_s: Annotated[float, Field(ge=1e-3, le=60)] = 0.02
    """Time between the knots of the trajectory."""
    spline: Literal["linear", "cubic"] = "cubic"
    """Kind of the trajectory."""
    panorama_size: Literal["auto"] | tuple[MapWidth, MapHeight] = "auto"
    """Width and height of the map; auto is about as fine as the middle of the sensor, with 512 to 4096 columns."""
    kernel: KernelName = "rect"
    """Binning kernel."""
    reconstruction: ReconstructionName = "linear"
    """Reconstruction kernel of the gradients; none for plain ones."""
    score: ScoreName = "variance"
    """What is maximised."""
    blur_sigma_px: Annotated[float, Field(ge=0, le=20)] = 0.0
    """Gaussian blur of the panorama before the score; with the rect kernel the reconstruction smooths enough."""
    solver: SolverName = "quasi_newton"
    """Optimiser; CMax-SLAM's fletcher_reeves does not get far on cubic splines."""
    tolerance_deg: Annotated[float, Field(ge=1e-9, le=10)] = 0.01
    """The quasi-Newton method has converged where its next step turns no control rotation by more."""
    max_step_deg: Annotated[float, Field(ge=1e-6, le=180)] = 2.0
    """No control rotation is turned by more in one step."""
    max_evaluations: Annotated[int, Field(ge=2, le=100_000)] = 30
    """Evaluations of score and gradient per window."""
    prior_events: Annotated[float, Field(ge=0, le=1e9)] = 300.0
    """Weight of the frontend's motion between control rotations, as a number of events that speak for it."""
    passage_s: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Take one event per passage of an edge, in the middle of those that it causes within this time, or up to four
    times as long where the image moves slowly; 0 takes all."""
    passage_events: Annotated[int, Field(ge=1, le=255)] = 2
    """Passages with fewer events are left out: a single event is late, and may be noise."""
    enough_passages_s: Annotated[float, Field(ge=0, le=1e9)] = 50_000.0
    """But not in windows where fewer passages per second would be left."""
    most_passages_s: Annotated[float, Field(ge=1000, le=1e9)] = 500_000.0
    """Of more passages per second one of two, four, ... is taken, which is as accurate."""
    map_weight: Literal["region", "whole"] = "region"
    """Where the densities of window and map are compared to weigh the map: on the window's region, or everywhere."""
    max_visits: Annotated[int, Field(ge=1, le=60_000)] = 200
    """Pixels that were in the field of view more often (looked up every 0.05 s) are not updated any more."""
    still_rate_ev_s: Annotated[float, Field(ge=0, le=1e7)] = 10_000.0
    """Below this rate of passages (of events, where all are taken) the camera counts as still: no optimisation."""
    bootstrap_s: Annotated[float, Field(ge=0, le=600)] = 1.0
    """After this time the beginning is adjusted once more, against the map that there is by then. 0 for never."""
    lost_correlation: Annotated[float, Field(ge=0, lt=1)] = 0.5
    """Tracking counts as lost where the match of window and map falls below this part of its usual value. 0: never, and
    no window is tried again for a poor match."""
    lost_step_deg: Annotated[float, Field(ge=1e-3, le=180)] = 15.0
    """Tracking counts as lost where a window turns by more against the frontend's prediction."""
    relocalisation: bool = True
    """Look for lost windows in the whole map."""
    max_refinements: Annotated[int, Field(ge=1, le=1000)] = 4
    """Passes over the whole recording with --refine, at most."""
    translation: Literal["none", "sphere", "scene", "auto"] = "none"
    """What a hand-held camera's parallax is explained by: nothing, a scene that is equally far everywhere, or one with
    distances of its own in each direction. With auto that is done at the end of a run, if there is parallax."""
    scene_distance_m: Annotated[float | None, Field(gt=0, le=1e6)] = None
    """Mean distance of the scene, where it is known: positions are then in metres, else in mean scene distances."""
    compute: ComputeName = "numba"
    """Compiled loops on the CPU, or tensors on a device."""
    device: str = "cpu"
    """Device of the tensors: cpu, cuda, cuda:1, ..."""

    @model_validator(mode="after")
    def _fit_together(self) -> BackendConfig:
        for name, length_s in (("window_s", self.window_s), ("stride_s", self.stride_s)):
            if abs(length_s / self.knot_s - round(length_s / self.knot_s)) > 1e-6 or length_s < self.knot_s:
                raise ValueError(f"{name} must be a multiple of knot_s, {self.knot_s} s")
        if self.window_s < 1.999 * self.knot_s:  # of a single segment nothing is free where both its ends are held
            raise ValueError(f"window_s must be at least twice knot_s, {self.knot_s} s")
        if self.stride_s > self.window_s:
            raise ValueError("stride_s must not be larger than window_s")
        if self.window_s > _MOST_KNOTS * self.knot_s:
            raise ValueError(f"window_s must be at most {_MOST_KNOTS} times knot_s, {self.knot_s} s")
        if self.kernel == "rect" and self.reconstruction == "none":
            raise ValueError("the rect kernel has no plain derivative: choose a reconstruction")
        return self


class IntensityConfig(Section):
    """The brightness of the scene, at the end of a run."""

    enabled: bool = True
    """Make it, of at most eight million events that are kept for it."""
    scale: Annotated[int, Field(ge=1, le=4)] = 1
    """Its pixels per pixel of the map, in each direction; 2 is finer than the sensor of most recordings."""


class Config(Section):
    """The whole configuration."""

    recording: RecordingConfig = RecordingConfig()
    events: EventsConfig = EventsConfig()
    frontend: FrontendConfig = FrontendConfig()
    backend: BackendConfig = BackendConfig()
    intensity: IntensityConfig = IntensityConfig()


def presets_folder() -> Path:
    """Return the folder of the presets: inside an installed package, or beside it in a source tree."""
    inside = Path(__file__).parent / "configs"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "configs"


def preset_names() -> list[str]:
    """Return the names of the presets, e.g. `ecd/boxes_rotation`."""
    folder = presets_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def load_config(
    names: Sequence[str] = (), assignments: Sequence[str] = (), flags: Mapping[str, Any] | None = None
) -> Config:
    """Resolve a configuration: defaults, then presets or files in order, then `section.key=value`, then flags.

    Parameters
    ----------
    names : preset names or paths of YAML files, the later over the earlier
    assignments : texts `section.key=value`, the value in YAML notation
    flags : values of command-line flags by `section.key`; None stands for a flag that was not given
    """
    values: dict[str, Any] = {}
    for name in names:
        _merge(values, _read(name))
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {assignment!r} is not of the form section.key=value")
        _assign(values, key.strip(), load_yaml(text, f"--set {assignment}", ConfigError))
    for key, value in (flags or {}).items():
        if value is not None:
            _assign(values, key, value)
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, names)) from None


def dump_config(config: Config) -> str:
    """Return a configuration as YAML, complete, with what each key means and may be in comments above it."""
    import yaml

    lines: list[str] = []
    for name, values in config.model_dump(mode="json").items():
        section = type(getattr(config, name))
        lines += [*_comment(section.__doc__), f"{name}:"]
        for key, field in section.model_fields.items():
            names = list(_names_to_choose(field.annotation, *field.metadata))
            one_of = f" One of: {', '.join(names)}{', null' * (field.default is None)}." if names else ""
            written = yaml.safe_dump(values[key], default_flow_style=True, width=float("inf")).removesuffix("\n...\n")
            lines += [*_comment(f"{field.description}{one_of}", "  "), f"  {key}: {written.rstrip()}"]
        lines.append("")
    return "\n".join(lines)


def _comment(text: str | None, indent: str = "") -> list[str]:
    """Return a text as lines of a YAML comment."""
    mark = f"{indent}# "
    return textwrap.wrap(" ".join((text or "").split()), 120, initial_indent=mark, subsequent_indent=mark)


def _names_to_choose(*kinds: Any) -> Iterator[str]:
    """Yield the names that a field can have, by its type and what comes with it; none where it has no names."""
    for kind in kinds:
        if get_origin(kind) is Literal:
            yield from get_args(kind)
        elif isinstance(kind, AfterValidator) and isinstance(kind.func, OneOf):
            yield from (*kind.func.registry.names(), *kind.func.besides)
        else:
            yield from _names_to_choose(*get_args(kind))


def _read(name: str) -> dict[str, Any]:
    """Read a preset or a file."""
    preset = presets_folder() / f"{name}.yaml"
    path = preset if name in preset_names() else Path(name)
    if not os.path.isfile(path):
        close = difflib.get_close_matches(name, preset_names(), n=1)
        hint = f"did you mean {close[0]}?" if close else f"the presets are {', '.join(preset_names())}"
        raise ConfigError(f"{name} is neither a preset nor a file; {hint}")
    document = read_yaml(path)
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a configuration: expected sections with keys")
    return document


def read_yaml(path: Path) -> Any:
    """Return what a small YAML file holds."""
    try:
        if path.stat().st_size > _LARGEST_FILE_BYTES:
            raise ConfigError(f"{path} is too large for a configuration; give a YAML file")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the configuration {path} cannot be read: {error}") from None
    return load_yaml(text, str(path), ConfigError)


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Put values over others, section by section."""
    for key, value in values.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _assign(values: dict[str, Any], key: str, value: Any) -> None:
    """Set `section.key`."""
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{key}: {section} is a value, not a section")
    values[last] = value


def _explain(error: ValidationError, names: Sequence[str]) -> str:
    """Say in one line what is wrong with the first faulty key, by its full name."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"]]
    key = ".".join(place)
    source = f" (in {', '.join(names)})" if names else ""
    if isinstance(problem := first.get("ctx", {}).get("error"), ChoiceError):
        return f"{key}: {problem}{source}"
    if first["type"] == "value_error":
        return f"{key}: {problem}{source}"
    if first["type"] != "extra_forbidden":
        return f"{key}: {first['msg']}, not {first['input']!r}{source}"
    known = _keys_beside(place)
    close = difflib.get_close_matches(place[-1], known, n=1)
    hint = f"did you mean {'.'.join([*place[:-1], close[0]])}?" if close else f"there are {', '.join(known)}"
    return f"unknown key {key}{source}; {hint}"


def _keys_beside(place: Sequence[str]) -> list[str]:
    """Return the keys that the section of a key has."""
    section: type[BaseModel] = Config
    for part in place[:-1]:
        inner = section.model_fields[part].annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        section = inner
    return list(section.model_fields)
