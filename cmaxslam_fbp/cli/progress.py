"""Progress bars: shown on a terminal, silent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from cmaxslam_fbp.nanoseconds import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress, ProgressColumn, TaskID

    from cmaxslam_fbp.batch.batch import Batch
    from cmaxslam_fbp.events import Events
    from cmaxslam_fbp.pipeline.step import Step
    from cmaxslam_fbp.rows.running import OnRow

    OnEvents = Callable[[Events], None]
    OnStep = Callable[[Step], None]

_STARTING = "starting: the first run compiles the kernels"


@contextmanager
def _progress(*columns: str | ProgressColumn, quiet: bool) -> Iterator[Progress]:
    """Show columns, texts with the fields of a task among them, beside a spinner and the time."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TimeElapsedColumn

    console = Console(stderr=True)
    hidden = quiet or not console.is_terminal
    shown = SpinnerColumn(), *columns, TimeElapsedColumn()
    with Progress(*shown, console=console, transient=True, disable=hidden) as progress:
        yield progress


@contextmanager
def event_progress(description: str, *, quiet: bool, total_s: float | None = None) -> Iterator[OnEvents]:
    """Show how many events have passed and how much time of the recording; against `total_s` where it is known.

    Gives a function to call with each chunk of events.
    """
    from rich.progress import BarColumn

    with _progress("{task.description}", BarColumn(), "{task.fields[passed]}", quiet=quiet) as progress:
        task = progress.add_task(description, total=total_s, passed="")
        count = 0
        first_ns: int | None = None

        def advance(events: Events) -> None:
            nonlocal count, first_ns
            if not len(events):
                return
            count += len(events)
            if first_ns is None:
                first_ns = int(events.t_ns[0])
            elapsed_s = (int(events.t_ns[-1]) - first_ns) / NS_PER_S
            progress.update(
                task, completed=elapsed_s if total_s else None, passed=f"{count / 1e6:.1f} Mev, {elapsed_s:.1f} s"
            )

        yield advance


@contextmanager
def stage_progress(*, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show what is being done, in words; gives a function to call with them."""
    with _progress("{task.description}", quiet=quiet) as progress:
        task = progress.add_task(_STARTING)
        yield lambda words: progress.update(task, description=words)


@contextmanager
def slam_progress(*, quiet: bool, total_s: float | None = None) -> Iterator[OnStep]:
    """Show where in the recording a run is, its real-time factor, the camera's speed and the contrast."""
    import time

    from rich.progress import BarColumn

    with _progress("{task.description}", BarColumn(), "{task.fields[words]}", quiet=quiet) as progress:
        task = progress.add_task(_STARTING, total=total_s, words="")
        stage = ""
        began = time.perf_counter()

        def advance(step: Step) -> None:
            nonlocal stage, began
            if step.stage != stage:
                stage, began = step.stage, time.perf_counter()
            factor = step.recording_s / max(time.perf_counter() - began, 1e-9)
            words = f"{step.recording_s:.1f} s, {factor:.2f} of real time"
            if step.window is not None:
                words += (
                    f", {step.speed_deg_s:.0f} deg/s, contrast {step.window.score:.3g}, {step.window.tracking.value}"
                )
            progress.update(task, description=stage, completed=step.recording_s if total_s else None, words=words)

        yield advance


@contextmanager
def row_progress(study: str, *, quiet: bool) -> Iterator[OnRow]:
    """Show how many rows of a study are done, and which one is being computed."""
    from rich.progress import BarColumn, MofNCompleteColumn

    columns = ("{task.fields[study]}", BarColumn(), MofNCompleteColumn(), "{task.description}")
    with _progress(*columns, quiet=quiet) as progress:
        task = progress.add_task("", total=None, study=study)

        def advance(name: str, done: int, total: int) -> None:
            progress.update(task, description=name, completed=done, total=total)

        yield advance


@contextmanager
def batch_progress(*, quiet: bool) -> Iterator[Callable[[Batch], None]]:
    """Show how far a batch is and how long it will take, and each run that goes on; elsewhere a line per finished run.

    Gives a function to call with the batch when something in it has changed.
    """
    import time

    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.text import Text

    class RunColumn(TextColumn):
        """Where in its recording a run is, as its own folder tells; looked up every two seconds."""

        max_refresh = 2.0

        def render(self, task: Any) -> Text:
            return Text(task.fields["words"] or _run_words(task.fields["folder"]))

    told: set[int] = set()
    began = time.monotonic()
    name = TextColumn("{task.description}", markup=False)
    with _progress(name, BarColumn(bar_width=24), MofNCompleteColumn(), RunColumn(""), quiet=quiet) as progress:
        total = progress.add_task("all", words="", folder="")
        bars: dict[str, TaskID] = {}

        def advance(batch: Batch) -> None:
            settled = len(batch.cells) - len(batch.in_state("waiting"))
            left = duration_words(batch.left_s())
            progress.update(total, completed=settled, total=len(batch.cells), words=left)
            for key in [key for key in bars if key not in batch.running]:
                progress.remove_task(bars.pop(key))
            for key, work in batch.running.items():
                if key not in bars:
                    folder = str(batch.out / work.folder) if work.folder else ""
                    bars[key] = progress.add_task(work.name, total=None, words="", folder=folder)
            if not quiet and progress.disable:
                for cell in batch.latest:
                    if id(cell) not in told:
                        told.add(id(cell))
                        words = cell.error or f"done, {(cell.values or {}).get('seconds', 0):.1f} s"
                        line = f"{settled}/{len(batch.cells)} {cell.name}: {words}"
                        typer.echo(f"[{time.monotonic() - began:6.0f} s] {line}{left and '; ' + left}", err=True)

        yield advance


def duration_words(seconds: float | None) -> str:
    """Return about how long something will still take; nothing where it is not known."""
    if seconds is None:
        return ""
    minutes = seconds / 60
    if minutes < 1:
        return f"about {seconds:.0f} s left"
    return f"about {minutes:.0f} min left" if minutes < 90 else f"about {minutes / 60:.1f} h left"


def _run_words(folder: str) -> str:
    """Return where in its recording a run is, by the file that it keeps of itself."""
    import json
    from pathlib import Path

    try:
        run = json.loads((Path(folder) / "run.json").read_text())
        return f"{run['duration_s']:.1f} s, {run['real_time_factor']:.2f} of real time"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
