"""`cmaxslam-fbp convert`: rewrite a recording in another format."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import (
    Quiet,
    RecordingOptions,
    RecordingOut,
    RecordingPath,
    choice_option,
    takes_recording,
    warn,
)

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
BagCompression = Annotated[
    str, choice_option(("none", "bz2", "lz4"), "Compression of a written bag.", None, "--compression")
]


@takes_recording
def convert(
    path: RecordingPath,
    out: RecordingOut,
    source: RecordingOptions,
    compression: BagCompression = "none",
    overwrite: Overwrite = False,
    pace: Annotated[
        float | None, typer.Option(metavar="FACTOR", help="Of a stream: 1 is as fast as it was recorded.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Rewrite a recording, or a range of it, in another format; to '-' as a stream of packed events.

    `cmaxslam-fbp convert FILE - --pace 1` plays a recording as a camera would, for `cmaxslam-fbp run -`.
    """
    from cmaxslam_fbp.cli.progress import event_progress
    from cmaxslam_fbp.errors import ConfigError
    from cmaxslam_fbp.io.packed_recording import write_packed
    from cmaxslam_fbp.io.writing import write_recording

    recording = source.open(path)
    stream = recording.chunks(source.start, source.duration)
    if str(out) == "-":
        write_packed(stream, recording.sensor_size, recording.camera, sys.stdout.buffer, pace=pace)
        warn(*stream.defects.describe())
        return
    if pace is not None:
        raise ConfigError("--pace is for a stream: give '-' as the output")
    with event_progress("converting", quiet=quiet, total_s=source.duration) as progress:
        written = write_recording(
            recording, stream, out, compression=compression, overwrite=overwrite, progress=progress
        )
    warn(*stream.defects.describe(), *recording.check_reference())
    if written.interrupted:
        typer.echo(f"interrupted: {out} holds the first {written.events:,} events", err=True)
        raise typer.Exit(130)
    if not quiet:
        typer.echo(f"{out}: {written.events:,} events")
