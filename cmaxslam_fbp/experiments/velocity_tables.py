"""A study of velocities as tables and plots: the paper's figures beside ours, with its n/a."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmaxslam_fbp.experiments import paper_figures as paper
from cmaxslam_fbp.experiments.headline import Headline, headline, per_pair
from cmaxslam_fbp.experiments.methods import OURS
from cmaxslam_fbp.experiments.paper_figures import SCENES, SCORES, PaperCell
from cmaxslam_fbp.experiments.sequences import StudySequence
from cmaxslam_fbp.experiments.tables import beside, csv_text, markdown_table, number, page
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.report.study_plots import plot_errors_and_times
from cmaxslam_fbp.rows.row import Values

# The paper's n/a, as a part of the packets that end abnormally: above the first the time is left out (it is not that of
# an optimisation), above the second the error too.
TIME_LIMIT, ERROR_LIMIT = 0.1, 0.2


Key = tuple[str, str, str]  # score, method, scene


@dataclass(frozen=True)
class VelocityStudy:
    """A table of methods, scores and sequences."""

    name: str
    title: str
    names: tuple[str, ...]
    model: str
    unit: str
    digits: int
    methods: Mapping[str, dict[str, str]]
    table: paper.Table


def cell(values: Values) -> PaperCell:
    """Return error and time of a row, with the paper's n/a."""
    lost = values["abnormal"] / values["packets"]
    return PaperCell(
        None if lost > ERROR_LIMIT else values["rms_per_axis"], None if lost > TIME_LIMIT else values["mean_ms"]
    )


def write_velocities(
    study: VelocityStudy,
    bench: Workbench,
    sequences: list[StudySequence],
    packets: list[Values],
    results: dict[Key, Values],
) -> list[Path]:
    """Write CSV, Markdown and plot of a study; return their paths."""
    cells = {key: cell(values) for key, values in results.items()}
    folder = study.name
    kinds = ", ".join(sorted({one.kind for one in sequences}))
    provenances = {
        one.name: f"{one.provenance}; {values['packets']} packets in {values['blocks']} blocks over the first 30 s, "
        f"median {values['median_packet_ms']:.1f} ms, RMS speed "
        + (
            f"{np.degrees(values['rms_reference']):.0f} deg/s"
            if study.unit == "deg/s"
            else f"{values['rms_reference']:.2f} m/s"
        )
        for one, values in zip(sequences, packets, strict=True)
    }
    parts = [
        f"RMS error per axis in {study.unit} and mean time per packet of 20,000 events in ms: ours, and in brackets "
        "the paper's on the ECD with an RTX 4090. n/a: more than a tenth of the packets (for the error: a fifth) ended "
        "abnormally; their number is in the CSV.",
        _table(study, cells),
    ]
    if OURS in study.methods:
        parts += _headlines(study, cells)
    written = [
        bench.write(
            f"{folder}/{folder}.csv", csv_text([_record(study, key, results[key], provenances) for key in results])
        ),
        bench.write(f"{folder}/{folder}.md", page(study.title, parts, provenances, list(results.values()))),
        bench.write(f"{folder}/{folder}.png", _plot(study, cells, kinds)),
    ]
    return written


def _table(study: VelocityStudy, cells: Mapping[Key, PaperCell]) -> str:
    scenes = _scenes(cells)
    head = ["score, method", *(f"{scene} {what}" for scene in scenes for what in (study.unit, "ms"))]
    rows = []
    for score, method in dict.fromkeys((score, method) for score, method, _ in cells):
        row = [f"{score} {method}"]
        for scene in scenes:
            ours, theirs = cells[score, method, scene], study.table.get((score, method, scene))
            if theirs is None:
                row += [number(ours.error, study.digits), number(ours.ms)]
            else:
                row += [beside(ours.error, theirs.error, study.digits), beside(ours.ms, theirs.ms)]
        rows.append(row)
    return markdown_table(head, rows)


def _scenes(cells: Mapping[Key, PaperCell]) -> list[str]:
    present = {scene for _, _, scene in cells}
    return [scene for scene in SCENES if scene in present]


def _headlines(study: VelocityStudy, cells: Mapping[Key, PaperCell]) -> list[str]:
    """Return what functional backpropagation changes, by the paper's rule, over both scores, and for each pair."""
    told = Headline(*paper.HEADLINES[study.name])
    theirs, ours = per_pair(study.table), per_pair(cells)
    rows = [
        _compared("as the paper's text tells", None, told),
        _compared("the paper's rule (LL; Rect, Linear, Gauss 2)", headline(cells), headline(study.table)),
        _compared("the same over both scores", headline(cells, SCORES), headline(study.table, SCORES)),
        *(_compared(name, ours[name], theirs[name]) for name in ours),
    ]
    head = ["FBP against plain gradients", "less error, ours", "paper", "times faster, ours", "paper"]
    words = (
        "What functional backpropagation changes: means over the sequences where both have a figure, then "
        "`1 - Func / plain` of the errors and `plain / Func` of the times, averaged over the pairs. A negative "
        "reduction is an increase."
    )
    return [words, markdown_table(head, rows)]


def _compared(name: str, ours: Headline | None, theirs: Headline) -> list[str]:
    mine = ours or Headline(None, None)
    blank = ours is None
    return [
        name,
        "" if blank else _percent(mine.error_reduction_percent),
        _percent(theirs.error_reduction_percent),
        "" if blank else number(mine.speed_up),
        number(theirs.speed_up),
    ]


def _percent(value: float | None) -> str:
    return number(value, 1) + ("" if value is None else " %")


def _record(study: VelocityStudy, key: Key, values: Values, provenances: Mapping[str, str]) -> dict[str, Any]:
    score, method, scene = key
    name = next(name for name in provenances if name.startswith(scene))
    theirs = study.table.get(key, PaperCell(None, None))
    ours = cell(values)
    figures = {name: value for name, value in values.items() if name not in ("statuses", "jobs")}
    return {
        "study": study.name,
        "sequence": name,
        "score": score,
        "method": method,
        "error": ours.error,
        "ms": ours.ms,
        "paper_error": theirs.error,
        "paper_ms": theirs.ms,
        "unit": study.unit,
        **figures,
        "statuses": " ".join(f"{status}:{count}" for status, count in values["statuses"].items()),
        "jobs": values["jobs"],
        "data": provenances[name],
    }


def _plot(study: VelocityStudy, cells: Mapping[Key, PaperCell], kinds: str) -> bytes:
    """Return the paper's figure of the optimisation: mean error as bars and mean time as a line, for each score."""
    methods = list(dict.fromkeys(method for _, method, _ in cells))
    scenes = _scenes(cells)
    panels = {}
    for score in SCORES:
        errors = {method: [cells[score, method, scene].error for scene in scenes] for method in methods}
        times = {method: [cells[score, method, scene].ms for scene in scenes] for method in methods}
        panels[score] = errors, times
    return plot_errors_and_times(panels, scenes, f"RMS error [{study.unit}]", f"{study.title} ({kinds} sequences)")
