"""`cmaxslam-fbp simulate`: make a recording of a rotating or translating event camera."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from cmaxslam_fbp.cli.convert import BagCompression, Overwrite
from cmaxslam_fbp.cli.options import Quiet, RecordingOut, choice_option, seconds_option
from cmaxslam_fbp.errors import SimulationError

_MOTION, _SENSOR = "Motion", "Sensor"
_motion_option, _sensor_option = (partial(typer.Option, rich_help_panel=panel) for panel in (_MOTION, _SENSOR))
_MOTIONS = ("rotation", "translation")
_CAMERAS = ("davis240c", "dvxplorer", "evk4", "genx320")


def simulate(
    out: RecordingOut,
    scene: Annotated[
        str, typer.Option(help="shapes, boxes, poster, stars, or an image (equirectangular for a rotation).")
    ] = "boxes",
    camera: Annotated[str, choice_option(_CAMERAS, "Sensor and lens.", None)] = "davis240c",
    duration: Annotated[float | None, seconds_option("Length of the recording.")] = None,
    seed: Annotated[int | None, typer.Option(help="Draws scene, motion and noise.")] = None,
    foreground: Annotated[bool, typer.Option("--foreground", help="A moving object in front of the scene.")] = False,
    motion: Annotated[
        str, choice_option(_MOTIONS, "Turn inside a panorama, or translate in front of a plane.", _MOTION)
    ] = "rotation",
    depth: Annotated[
        float | None, _motion_option(metavar="M", help="Distance of the plane, in a translation; 1 m.")
    ] = None,
    trajectory: Annotated[
        Path | None, _motion_option(help="TUM file or groundtruth.txt to follow (smoothed); its positions in a room.")
    ] = None,
    room: Annotated[
        str | None,
        choice_option(
            ("box", "wall", "clutter"),
            "Turn and move inside a room that shows the scene: a box, one wall, or a box with boards in it.",
            _MOTION,
        ),
    ] = None,
    scene_distance: Annotated[
        float | None, _motion_option(metavar="M", help="Distance of the room's front wall; 1 m.")
    ] = None,
    lever: Annotated[
        float | None, _motion_option(metavar="M", help="In a room, the random hand turns about a wrist so far behind.")
    ] = None,
    start: Annotated[float, seconds_option("Where in the trajectory to begin.", panel=_MOTION)] = 0.0,
    peak_speed: Annotated[
        float | None,
        _motion_option(
            metavar="SPEED", help="Of a random hand-held motion: deg/s in a rotation, m/s in a translation."
        ),
    ] = None,
    extent: Annotated[
        float | None,
        _motion_option(help="Its bound: degrees of yaw in a rotation, metres to the side in a translation."),
    ] = None,
    sensor: Annotated[
        str,
        choice_option(
            ("ideal", "davis", "dvxplorer"),
            "Pixels and read-out: ideal, or with the lag, noise, leak and jitter of a real one.",
            _SENSOR,
        ),
    ] = "ideal",
    contrast: Annotated[float | None, _sensor_option(help="Mean threshold, in log intensity.")] = None,
    contrast_sigma: Annotated[float | None, _sensor_option(help="Its spread over the pixels.")] = None,
    refractory: Annotated[float | None, seconds_option("Blind time of a pixel after an event.", panel=_SENSOR)] = None,
    noise_rate: Annotated[float | None, _sensor_option(metavar="HZ", help="Background events per pixel.")] = None,
    hot_pixels: Annotated[int | None, _sensor_option(help="Number of hot pixels.")] = None,
    hot_rate: Annotated[float | None, _sensor_option(metavar="HZ", help="Events of each hot pixel.")] = None,
    flicker: Annotated[
        float | None, _sensor_option(metavar="HZ", help="A light that flickers on a quarter of the image.")
    ] = None,
    cover: Annotated[float | None, seconds_option("When the lens is covered for a second.", panel=_SENSOR)] = None,
    cover_turn: Annotated[
        float | None, _sensor_option(metavar="DEG", help="How far the camera turns meanwhile, to the right.")
    ] = None,
    compression: BagCompression = "none",
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Make a recording of a camera that turns inside a panorama, translates before a plane, or does both in a room.

    It has the topics of an ECD bag: events, camera_info, imu and exact poses. The same options give the same bits.
    """
    from cmaxslam_fbp.cli.progress import event_progress
    from cmaxslam_fbp.geometry import camera as cameras
    from cmaxslam_fbp.io.writing import write_recording
    from cmaxslam_fbp.simulation import (
        SENSORS,
        CoverSettings,
        FlickerSettings,
        ForegroundSettings,
        PlanarSettings,
        PlanarSimulation,
        RoomSettings,
        RoomSimulation,
        Simulation,
        SimulationSettings,
    )

    if cover_turn is not None and cover is None:
        raise SimulationError("--cover-turn needs the time at which the lens is covered; give --cover too")
    pixels = replace(
        SENSORS[sensor],
        **_given(
            contrast_on=contrast,
            contrast_off=contrast,
            contrast_sigma=contrast_sigma,
            refractory_s=refractory,
            noise_rate_hz=noise_rate,
            hot_pixels=hot_pixels,
            hot_pixel_rate_hz=hot_rate,
        ),
    )
    common: dict[str, Any] = {
        "scene": scene,
        "camera": getattr(cameras, camera)(),
        "sensor": pixels,
        "foreground": ForegroundSettings() if foreground else None,
        "flicker": None if flicker is None else FlickerSettings(rate_hz=flicker),
        "cover": None if cover is None else CoverSettings(**_given(start_s=cover, turn_deg=cover_turn)),
        **_given(duration_s=duration, seed=seed),
    }
    simulation: Simulation | PlanarSimulation | RoomSimulation
    place = _given(room=room, scene_distance_m=scene_distance, lever_m=lever)
    if motion == "translation":
        _refuse(motion, trajectory=trajectory, start=start or None, room=room, lever=lever)
        _refuse(motion, **{"scene-distance": scene_distance})
        planar = _given(depth_m=depth, peak_speed_m_s=peak_speed, extent_m=extent)
        simulation = PlanarSimulation(PlanarSettings(**common, **planar))
    else:
        _refuse(motion, depth=depth)
        turning = _given(
            trajectory=None if trajectory is None else _read_trajectory(trajectory, start, duration),
            peak_speed_deg_s=peak_speed,
            extent_deg=extent,
        )
        if trajectory is not None and lever is not None:
            raise SimulationError("--lever is of a random hand, --trajectory has its own positions; leave one out")
        if place:
            simulation = RoomSimulation(RoomSettings(**common, **turning, **place))
        else:
            simulation = Simulation(SimulationSettings(**common, **turning))
    if not quiet:
        typer.echo(f"scene {scene}, {simulation.duration_s:g} s, {simulation.sensor_size} pixels", err=True)
    _ = simulation.texture, simulation.blocks  # a faulty scene or path is an error before the file is opened
    with event_progress("simulating", quiet=quiet, total_s=simulation.duration_s) as progress:
        written = write_recording(
            simulation,
            simulation.chunks(),
            out,
            compression=compression,
            overwrite=overwrite,
            progress=progress,
        )
    if written.interrupted:
        typer.echo(f"interrupted: {out} holds the first {written.events:,} events", err=True)
        raise typer.Exit(130)
    if not quiet:
        rate = written.events / simulation.duration_s / 1e6
        typer.echo(f"{out}: {written.events:,} events, {rate:.3f} Mev/s")


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: the defaults of the others are the simulator's."""
    return {name: value for name, value in options.items() if value is not None}


def _refuse(motion: str, **options: Any) -> None:
    """Refuse options that the motion has no use for."""
    for name in _given(**options):
        other = next(one for one in _MOTIONS if one != motion)
        raise SimulationError(f"--{name} is of no use to a {motion}; leave it out, or give --motion {other}")


def _read_trajectory(path: Path, start_s: float, duration_s: float | None) -> Any:
    """Read a trajectory from `start_s` after its first pose on, with room for the duration."""
    from cmaxslam_fbp.io.trajectory_files import read_trajectory

    trajectory = read_trajectory(path)
    first_ns = trajectory.start_ns + round(start_s * 1e9)
    if start_s == 0 and duration_s is None:
        return trajectory
    last_ns = trajectory.end_ns + 1 if duration_s is None else first_ns + round((duration_s + 0.1) * 1e9)
    return trajectory.between(first_ns, last_ns)
