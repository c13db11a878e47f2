"""Tables as Markdown and CSV, with the paper's figures beside ours and with where ours come from."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cmaxslam_fbp import __version__
from cmaxslam_fbp.experiments.machine import describe_machine
from cmaxslam_fbp.rows.row import Values

NOT_AVAILABLE = "n/a"


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts, the first column to the left and all others to the right."""
    lines = [_line(head), _line(["---", *["---:"] * (len(head) - 1)])]
    return "\n".join([*lines, *(_line(row) for row in rows)]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return records as CSV, with all columns that any of them has; None is an empty cell."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with so many decimals, or n/a."""
    return NOT_AVAILABLE if value is None else f"{value:.{digits}f}"


def beside(ours: float | None, paper: float | None, digits: int = 2) -> str:
    """Return our figure and, in brackets, the paper's."""
    return f"{number(ours, digits)} [{number(paper, digits)}]"


def page(title: str, parts: Iterable[str], provenances: Mapping[str, str], results: Sequence[Values]) -> str:
    """Return a section of Markdown: a title, the parts, and at the end which data, version and machine it is from.

    Parameters
    ----------
    title : of the section
    parts : paragraphs and tables
    provenances : what each of the sequences is
    results : of the rows, for what they say of other rows at the same time
    """
    sources = "\n".join(f"- {name}: {words}" for name, words in provenances.items())
    footer = f"Our figures are from cmaxslam_fbp {__version__} on {describe_machine()}."
    jobs = max((values.get("jobs", 1) for values in results), default=1)
    if jobs > 1:
        footer += f" {jobs} rows ran at the same time: times are longer than those of one alone."
    return "\n\n".join([f"### {title}", *(part.strip() for part in parts), f"Data:\n\n{sources}", footer]) + "\n"
