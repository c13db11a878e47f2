"""Progress bars: shown on a terminal, silent elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cmaxslam_fbp.events import Events

    OnEvents = Callable[[Events], None]

NS_PER_S = 1_000_000_000


@contextmanager
def event_progress(description: str, *, quiet: bool, total_s: float | None = None) -> Iterator[OnEvents]:
    """Show how many events have passed and how much time of the recording; against `total_s` where it is known.

    Gives a function to call with each chunk of events.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[passed]}")]
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=quiet or not console.is_terminal
    ) as progress:
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
