"""A batch: every recording with every configuration, each run once, as far as they are not known from earlier."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cmaxslam_fbp.batch.arms import Arm
from cmaxslam_fbp.batch.manifest import FILES, Item, input_row, plain
from cmaxslam_fbp.batch.run_task import run
from cmaxslam_fbp.batch.time_left import TimeLeft
from cmaxslam_fbp.errors import CmaxSlamError, short_line
from cmaxslam_fbp.io.digest import digest
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.rows.running import Pool, outcomes

_BYTES_PER_S = 2e7  # of a recording, where only its size is known


@dataclass
class Cell:
    """A recording with a configuration: the key of its row when the recording is known, then its result or its error.

    `is_new` tells that the result was computed now.
    """

    item: Item
    arm: Arm
    seed: int | None = None
    key: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)  # of its row
    values: Values | None = None
    error: str = ""
    is_new: bool = False

    @property
    def label(self) -> str:
        """The configuration, and the seed of a repeated run."""
        return self.arm.name if self.seed is None else f"{self.arm.name}, seed {self.seed}"

    @property
    def name(self) -> str:
        """Recording and configuration, for people."""
        return f"{self.item.name}, {self.label}"

    @property
    def state(self) -> str:
        """`done`, `failed`, or `waiting`."""
        return "done" if self.values is not None else "failed" if self.error else "waiting"


@dataclass(frozen=True)
class Running:
    """Work that goes on: its name, the folder of its run (empty for a reading), and when it began."""

    name: str
    folder: str
    began_s: float


@dataclass
class Batch:
    """All runs of a batch.

    Attributes
    ----------
    items, arms : recordings and configurations
    out : folder of the results
    seeds : of repeated runs; none for each once
    refine : whether runs are refined at their end, or how
    """

    items: Sequence[Item]
    arms: Sequence[Arm]
    out: Path
    seeds: Sequence[int] = ()
    refine: bool | str = False
    cells: list[Cell] = field(init=False)
    waiting: deque[Row] = field(init=False, default_factory=deque)
    running: dict[str, Running] = field(init=False, default_factory=dict)  # by the key of the row
    latest: list[Cell] = field(init=False, default_factory=list)  # those that the last piece of work has settled

    def __post_init__(self) -> None:
        self.cells = [
            Cell(item, arm, seed) for item in self.items for arm in self.arms for seed in self._seeds_of(item)
        ]
        self._of_item: dict[str, list[Cell]] = {}
        for cell in self.cells:
            self._of_item.setdefault(cell.item.name, []).append(cell)
        self._inputs: dict[str, list[Item]] = {}  # by the key of the row that reads them
        self._of_key: dict[str, list[Cell]] = {}
        self._sizes: dict[str, float] = {}  # of recordings, by name
        self._time_left = TimeLeft()

    def _seeds_of(self, item: Item) -> Sequence[int | None]:
        return self.seeds if self.seeds and item.path is not None else (None,)

    def plan(self) -> None:
        """Find out what is done, and what is to be done: the readings of recordings first."""
        for item in self.items:
            try:
                row = input_row(item)
            except CmaxSlamError as error:
                self._fail(self._of_item[item.name], error)
                continue
            self._sizes[item.name] = sum(size for _, size, _ in row.settings.get("stamps", ()))
            known = row.known(self.out)
            if known is not None:
                self.waiting.extend(self._plan_runs(item, known))
            elif row.key in self._inputs:
                self._inputs[row.key].append(item)
            else:
                self._inputs[row.key] = [item]
                self.waiting.append(row)

    def run(self, pool: Pool | None = None, on_change: Callable[[Batch], None] = lambda batch: None) -> None:
        """Do all that is to be done; what fails costs its own cells only.

        `on_change` is called with the batch when a piece of work starts or ends.
        """
        on_change(self)

        def start(row: Row) -> None:
            self.running[row.key] = Running(row.name, str(row.places.get("folder", "")), time.monotonic())
            self.latest = []
            on_change(self)

        with closing(outcomes(self.waiting, self.out, pool, start)) as finished:
            for row, outcome in finished:
                began_s = self.running.pop(row.key).began_s
                if row.key in self._inputs:
                    for item in self._inputs[row.key]:
                        self._input_done(item, outcome)
                else:
                    self._run_done(row, outcome, time.monotonic() - began_s)
                on_change(self)

    def _input_done(self, item: Item, outcome: Values | Exception) -> None:
        if isinstance(outcome, Exception):
            self._fail(self._of_item[item.name], outcome)
        else:
            self.waiting.extendleft(reversed(self._plan_runs(item, outcome)))  # while the file is still in memory

    def _run_done(self, row: Row, outcome: Values | Exception, seconds: float) -> None:
        cells = self._of_key[row.key]
        if isinstance(outcome, Exception):
            self._fail(cells, outcome)
            return
        self._time_left.finished(self._size(cells[0]), seconds)
        for cell in cells:
            cell.values, cell.is_new = outcome, True
        self.latest = cells

    def _plan_runs(self, item: Item, values: Values) -> list[Row]:
        """Make the rows of a recording whose content is known; return those that are not done."""
        self._sizes[item.name] = values["bytes"]
        missing = []
        for cell in self._of_item[item.name]:
            try:
                row = self._row(cell, values)
            except (CmaxSlamError, OSError) as error:
                self._fail([cell], error)
                continue
            cell.key, cell.settings, cell.values = row.key, row.settings, row.known(self.out)
            if cell.key not in self._of_key and cell.values is None:
                missing.append(row)
            self._of_key.setdefault(cell.key, []).append(cell)
        return missing

    def _row(self, cell: Cell, source: Values) -> Row:
        """Return the row of a cell; files beside the recording are known by their content."""
        item, arm = cell.item, cell.arm
        options = arm.config.recording.model_dump(mode="json") | dict(item.options)
        options |= {name: str(Path(options[name]).resolve()) for name in FILES if options[name]}
        digests = {name: digest(Path(options[name])) for name in FILES if options[name]}
        settings: dict[str, Any] = {
            "input_sha256": source["sha256"],
            "start_s": item.start_s,
            "duration_s": item.duration_s,
            "refine": self.refine,
            "seed": cell.seed,
            "config": arm.config.model_dump(mode="json") | {"recording": options | digests},
        }
        row = Row(cell.name, run, settings)
        folder = f"runs/{plain(item.name)}/{plain(cell.label)}-{row.key[:8]}"
        command = ["cmaxslam-fbp", "run", source["path"], *arm.options, *_range(item), *_refine_option(self.refine)]
        command += [word for name, value in item.options.items() for word in ("--set", f"recording.{name}={value}")]
        places = {"input": source["path"], "options": options, "folder": folder, "command": command}
        return replace(row, places=places)

    def _fail(self, cells: Sequence[Cell], error: Exception) -> None:
        known = isinstance(error, CmaxSlamError)
        for cell in cells:
            words = str(error).removeprefix(f"{cell.name}: ") if known else f"{type(error).__name__}: {error}"
            cell.error = short_line(words)
        self.latest = list(cells)

    def _size(self, cell: Cell) -> float:
        """Return what the time of a run is about proportional to: its length where that is known, else its bytes."""
        length_s = cell.item.duration_s or cell.item.simulate.get("duration_s")
        return length_s or self._sizes.get(cell.item.name, 0.0) / _BYTES_PER_S

    def in_state(self, state: str) -> list[Cell]:
        """Return the cells that are `done`, `failed` or `waiting`."""
        return [cell for cell in self.cells if cell.state == state]

    def left_s(self) -> float | None:
        """Return about how many seconds are left; None where nothing is known yet."""
        now, cells = time.monotonic(), self.in_state("waiting")
        runs = [cell for cell in cells if cell.key in self.running]
        return self._time_left.left_s(
            [self._size(cell) for cell in cells if cell.key not in self.running],
            [(self._size(cell), now - self.running[cell.key].began_s) for cell in runs],
        )


def _range(item: Item) -> Iterator[str]:
    """Yield the options of `run` for a range of a recording."""
    for name, value in (("--start", item.start_s), ("--duration", item.duration_s)):
        if value is not None:
            yield from (name, f"{value:g}")


def _refine_option(refine: bool | str) -> list[str]:
    """Return what asks `run` for a refinement."""
    if not refine:
        return []
    return ["--refine"] if refine is True else ["--refine", refine]
