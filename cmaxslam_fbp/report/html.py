"""The parts that pages are made of: a template of the package, tables, pictures, data for a script."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from importlib.resources import files as resource_files
from typing import Any


def fill_template(name: str, values: Mapping[str, str]) -> str:
    """Return a page: the head of all, and a template of the package, with each `{{key}}` replaced by its value."""
    values = {"style": read_resource("style.css"), **values}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], read_resource("head.html") + read_resource(name))


def read_resource(name: str) -> str:
    """Return a text file of the pages."""
    return resource_files("cmaxslam_fbp.report").joinpath("page_parts", name).read_text(encoding="utf-8")


def data_uri(image: bytes) -> str:
    """Return a PNG as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"


def as_script_json(values: Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    return json.dumps(values, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def html_tiles(figures: Iterable[tuple[str, str, str]]) -> str:
    """Return tiles of label, figure and remark."""
    return "".join(
        f'<div class="tile"><dt>{escape(label)}</dt><dd>{escape(figure)}</dd><p>{escape(remark)}</p></div>'
        for label, figure, remark in figures
    )


def html_table(rows: Iterable[tuple[str, ...]]) -> str:
    """Return rows of label and texts as an HTML table."""
    lines = []
    for label, *texts in rows:
        cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
        lines.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
    return "<table>" + "".join(lines) + "</table>"


def html_card(title: str, remark: str, body: str) -> str:
    """Return a section with a heading and a remark, both plain text, and a body in HTML."""
    remark = f"<p>{escape(remark)}</p>" if remark else ""
    return f'<section class="card"><header><h2>{escape(title)}</h2>{remark}</header>{body}</section>'
