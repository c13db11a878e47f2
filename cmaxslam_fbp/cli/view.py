"""`cmaxslam-fbp view`: a run in a window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import RunPath, read_run, seconds_option


def view(
    path: RunPath,
    screenshot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a picture (.png) and open no window; needs no display.")
    ] = None,
    at: Annotated[float | None, seconds_option("Time of the camera, from the first event.")] = None,
    rerun: Annotated[
        bool,
        typer.Option("--rerun", help="Open what `run --rerun` wrote in the Rerun viewer: RUN_DIR or the .rrd file."),
    ] = False,
) -> None:
    """Show the map as a sphere, the camera and its path in an Open3D window.

    Drag to turn; the arrow keys move the time, space plays.
    """
    if rerun:
        _open_rerun(path)
        return
    import numpy as np

    from cmaxslam_fbp.report.map_picture import draw_graticule, draw_map
    from cmaxslam_fbp.viewer.open3d_window import save_screenshot, show
    from cmaxslam_fbp.viewer.scene import Scene

    files = read_run(path)
    picture = np.repeat(draw_graticule(draw_map(files.panorama))[..., None], 3, axis=2)
    scene = Scene(picture, files.trajectory, files.field_of_view())
    if screenshot is None:
        show(scene, 0.0 if at is None else at / files.duration_s)
    else:
        save_screenshot(scene, screenshot, 0.5 if at is None else at / files.duration_s)
        typer.echo(screenshot)


def _open_rerun(path: Path) -> None:
    """Open a Rerun recording, or the one in a run folder."""
    from cmaxslam_fbp.errors import OutputError
    from cmaxslam_fbp.viewer.rerun_log import open_viewer

    found = [path] if path.is_file() else sorted(path.glob("*.rrd"))
    if not found:
        raise OutputError(f"{path} has no .rrd file; give the one that 'cmaxslam-fbp run --rerun FILE.rrd' wrote")
    open_viewer(found[0])
