"""What a batch leaves beside its runs: `rows.csv` with all figures, `index.html`, and a table for the terminal."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmaxslam_fbp import __version__
from cmaxslam_fbp.batch.batch import Batch, Cell
from cmaxslam_fbp.experiments.tables import csv_text
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.report.batch_page import ERROR, SPEED, PageCell, batch_page
from cmaxslam_fbp.report.page import REPORT

if TYPE_CHECKING:
    from rich.table import Table

ROWS, PAGE = "rows.csv", "index.html"
_REFRESH_EVERY_S, _SHARE = 30.0, 300.0


def write_rows(batch: Batch) -> Path:
    """Write `rows.csv`: one line per recording and configuration, with every figure, setting, version and digest."""
    return write_file(batch.out / ROWS, csv_text([record(cell) for cell in batch.cells]), make_folder=True)


class Refresher:
    """Writes rows and page while the batch goes on, now and then: a three-hundredth of the time at most."""

    def __init__(self) -> None:
        self._due_s = time.monotonic() + _REFRESH_EVERY_S

    def __call__(self, batch: Batch) -> None:
        """Write them if it is time."""
        began_s = time.monotonic()
        if began_s >= self._due_s:
            write_rows(batch)
            write_page(batch)
            now_s = time.monotonic()
            self._due_s = now_s + max(_REFRESH_EVERY_S, _SHARE * (now_s - began_s))


def write_page(batch: Batch) -> Path:
    """Write `index.html`."""
    page = batch_page([_page_cell(cell) for cell in batch.cells], __version__)
    return write_file(batch.out / PAGE, page, make_folder=True)


def record(cell: Cell) -> dict[str, Any]:
    """Return all that is known of a cell by names of columns; dots stand between the parts of a name."""
    values = dict(cell.values or {})
    values.pop("files", None)
    settings = cell.settings or {"config": cell.arm.config.model_dump(mode="json")}
    nested = {name: values.pop(name, None) or {} for name in ("run", "metrics")}
    return {
        "recording": cell.item.name,
        "configuration": cell.arm.name,
        "state": cell.state,
        "error": cell.error,
        "key": cell.key,
        **dict(flattened(values)),
        **dict(flattened(nested)),
        **dict(flattened({**settings, "seed": cell.seed})),
    }


def flattened(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield names and plain values of what mappings in mappings hold; a list is its JSON text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", json.dumps(value) if isinstance(value, list) else value


def figures(cell: Cell) -> dict[str, float]:
    """Return the figures of a cell's run and errors, by their columns."""
    found = flattened({name: (cell.values or {}).get(name) or {} for name in ("metrics", "run")})
    return {name: float(value) for name, value in found if isinstance(value, (int, float)) and value is not True}


def _page_cell(cell: Cell) -> PageCell:
    folder = "" if cell.values is None else str(cell.values["folder"])
    report = f"{folder}/{REPORT}" if folder else ""
    seed = "" if cell.seed is None else f"seed {cell.seed}"
    picture = f"{folder}/thumbnail.png" if folder else ""
    return PageCell(cell.item.name, cell.arm.name, seed, cell.state, cell.error, report, picture, figures(cell))


def summary_table(batch: Batch) -> Table:
    """Return a table of recordings by configurations: absolute error (best fit, RMS) and real-time factor."""
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    table.add_column("")
    for arm in batch.arms:
        table.add_column(escape(arm.name), justify="right", overflow="fold")
    for item in batch.items:
        texts = [_words([cell for cell in batch.cells if cell.item is item and cell.arm is arm]) for arm in batch.arms]
        table.add_row(escape(item.name), *texts)
    return table


def _words(cells: Sequence[Cell]) -> str:
    """Return the mean error and speed of a recording with a configuration."""
    done = [figures(cell) for cell in cells if cell.state == "done"]
    if not done:
        return "failed" if any(cell.state == "failed" for cell in cells) else "not done"
    errors = [one[ERROR] for one in done if ERROR in one]
    speeds = [one[SPEED] for one in done if SPEED in one]
    words = [f"{sum(errors) / len(errors):.3f} deg"] if errors else []
    return ", ".join([*words, *([f"{sum(speeds) / len(speeds):.2f} x"] if speeds else [])])
