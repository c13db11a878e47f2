"""`cmaxslam-fbp convert`: rewrite a recording in another format."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from cmaxslam_fbp.cli.options import (
    Assignments,
    ConfigNames,
    Quiet,
    RecordingOptions,
    RecordingOut,
    RecordingPath,
    takes_recording,
)


class Compression(str, Enum):
    """Compression of a bag's chunks."""

    none = "none"
    bz2 = "bz2"
    lz4 = "lz4"


Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
BagCompression = Annotated[Compression, typer.Option("--compression", help="Compression of a written bag.")]


@takes_recording
def convert(
    path: RecordingPath,
    out: RecordingOut,
    source: RecordingOptions,
    config: ConfigNames = None,
    assignments: Assignments = None,
    compression: BagCompression = Compression.none,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Rewrite a recording, or a range of it, in another format."""
    from cmaxslam_fbp.cli.progress import event_progress
    from cmaxslam_fbp.io.writing import write_recording

    recording = source.open(path, config, assignments)
    stream = recording.chunks(source.start, source.duration)
    with event_progress("converting", quiet=quiet, total_s=source.duration) as progress:
        written = write_recording(
            recording, stream, out, compression=compression.value, overwrite=overwrite, progress=progress
        )
    for line in (*stream.defects.describe(), *recording.check_reference()):
        typer.echo(f"warning: {line}", err=True)
    if written.interrupted:
        typer.echo(f"interrupted: {out} holds the first {written.events:,} events", err=True)
        raise typer.Exit(130)
    if not quiet:
        typer.echo(f"{out}: {written.events:,} events")
