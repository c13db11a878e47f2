"""What there is of a run, written into its folder while the run goes on."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO, TypeVar

from cmaxslam_fbp.config import Config
from cmaxslam_fbp.io import Recording
from cmaxslam_fbp.io.atomic_files import in_the_making
from cmaxslam_fbp.pipeline.output import OUTPUTS, RUN, TABLES, Run, RunState, TextTable, write_outputs
from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.step import Step

_TABLES_EVERY_S = 4.0  # and the end of a window: within five seconds
_MAP_EVERY_S = 30.0
_LARGEST_SHARE = 0.02  # of the run's time that writing the map may take
_BLOCK = 1 << 20
_T = TypeVar("_T")


class RunSaver:
    """Writes the files of a run: some of them after its windows, when it is time, and all at its end.

    Parameters
    ----------
    folder : of the run
    config, recording, command : what the run is of
    find_origin : tells where the recording lies and its SHA-256, where they are known; else the recording tells them
    """

    def __init__(
        self,
        folder: Path,
        config: Config,
        recording: Recording,
        command: list[str],
        find_origin: Callable[[], tuple[str, str | None]] | None = None,
    ) -> None:
        self.folder, self._config, self._recording, self._command = folder, config, recording, command
        self._tables = [GrowingFile(folder / name, table) for name, table in TABLES.items()]
        self._step: Step | None = None
        self._tables_due = self._map_due = 0.0
        self._origin = _in_background(find_origin or recording.origin)  # a large file takes seconds to digest

    def on_step(self, step: Step) -> None:
        """Write the files that it is time for."""
        began = time.monotonic()
        is_first, self._step = self._step is None, step
        if step.settled_ns is None:
            for table in self._tables:
                table.unsettle()
        if began < self._tables_due:
            return
        run = self._run(step.result(), RunState.RUNNING)
        for table in self._tables:
            table.write(run.result, step.settled_ns)
        self._tables_due = began + _TABLES_EVERY_S
        if is_first:
            write_outputs(run, ["config.yaml"])
        if began >= self._map_due:
            map_began = time.monotonic()
            write_outputs(run, ["panorama.npy", "panorama.png"])
            # What is slow to write is written less often.
            self._map_due = began + max(_MAP_EVERY_S, (time.monotonic() - map_began) / _LARGEST_SHARE)
        write_outputs(run, [RUN])

    def finish(self, result: SlamResult, reason: str) -> list[str]:
        """Write all files of a run that has come to its end, or was stopped; return what could not be made."""
        state = RunState.INTERRUPTED if result.interrupted else RunState.FINISHED
        return self._write_all(self._run(result, state, reason if result.interrupted else ""))

    def break_off(self, state: RunState, reason: str) -> SlamResult | None:
        """Write all files of a run that ended without a result; return what there was, or None where nothing was."""
        if self._step is None:
            return None
        result = self._step.result()
        self._write_all(self._run(result, state, reason))
        return result

    def _write_all(self, run: Run) -> list[str]:
        for table in self._tables:
            table.write(run.result, None if self._step is None else self._step.settled_ns)
        return write_outputs(run, [name for name in OUTPUTS if name not in TABLES])

    def _run(self, result: SlamResult, state: RunState, reason: str = "") -> Run:
        return Run(
            self.folder, result, self._config, self._recording, self._command, state, reason, self._origin.result
        )


def _in_background(work: Callable[[], _T]) -> Future[_T]:
    """Return what a function will have returned; nobody waits for it at the end of the program."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class GrowingFile:
    """A table that is whole at any moment, and whose settled lines are made only once."""

    def __init__(self, path: Path, table: TextTable) -> None:
        self._path, self._table = path, table
        self._kept_bytes = 0  # of the lines that have settled
        self._since_ns: int | None = None  # time of the first line that has not

    def unsettle(self) -> None:
        """Lines that have settled may have changed after all: all are made anew with the next writing."""
        self._kept_bytes, self._since_ns = 0, None

    def write(self, result: SlamResult, settled_ns: int | None) -> None:
        """Write the file anew; lines before `settled_ns` will not change, and none have where it is not None."""
        if settled_ns is None:
            self.unsettle()
        times, lines = self._table.lines(result, self._since_ns)
        # The last two lines stay open: a trajectory has at least two poses.
        count = 0 if settled_ns is None else max(min(bisect_left(times, settled_ns), len(times) - 2), 0)
        with in_the_making(self._path) as temporary, temporary.open("wb") as file:
            if self._kept_bytes:
                _copy(self._path, self._kept_bytes, file)
            else:
                file.write(f"{self._table.first_line(result)}\n".encode())
            file.writelines(f"{line}\n".encode() for line in lines[:count])
            if count:
                self._kept_bytes, self._since_ns = file.tell(), times[count]
            file.writelines(f"{line}\n".encode() for line in lines[count:])


def _copy(path: Path, count: int, target: BinaryIO) -> None:
    """Append the first bytes of a file to another."""
    with path.open("rb") as source:
        while count and (block := source.read(min(count, _BLOCK))):
            target.write(block)
            count -= len(block)
