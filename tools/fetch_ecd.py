"""Download sequences of the Event Camera Dataset (Mueggler et al., IJRR 2017); a download that was cut is resumed.

python tools/fetch_ecd.py --out ecd                        # the four rotation sequences, as bags
python tools/fetch_ecd.py shapes_rotation --text --out ecd # one of them, as text in a .zip
"""

from __future__ import annotations

import argparse
import http.client
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from cmaxslam_fbp.errors import CmaxSlamError, OutputError

BASE = "https://download.ifi.uzh.ch/rpg/web/datasets/davis/"
ROTATIONS = ("shapes_rotation", "poster_rotation", "boxes_rotation", "dynamic_rotation")
SEQUENCES = (
    *ROTATIONS,
    *("shapes_translation", "poster_translation", "boxes_translation", "dynamic_translation"),
    *("shapes_6dof", "poster_6dof", "boxes_6dof", "dynamic_6dof", "hdr_poster", "hdr_boxes"),
    *("calibration", "office_zigzag", "office_spiral", "urban", "outdoors_walking", "outdoors_running"),
    *("slider_close", "slider_far", "slider_hdr_close", "slider_hdr_far", "slider_depth"),
    *("simulation_3planes", "simulation_3walls"),
)
_CHUNK_BYTES = 1 << 18
_TIMEOUT_S = 30.0
_BAG_START, _ZIP_START = b"#ROSBAG V2.0\n", b"PK\x03\x04"
_PARTIAL_CONTENT, _RANGE_NOT_SATISFIABLE, _SERVER_ERRORS = 206, 416, 500

Progress = Callable[[int, int | None], None]  # bytes that are there, bytes in all where that is known


class _CutError(Exception):
    """A download that ended too early, or could not begin, and may go better next time."""


class _Response(Protocol):
    status: int
    headers: http.client.HTTPMessage

    def read(self, amount: int) -> bytes: ...


def fetch(url: str, path: Path, *, tries: int = 5, pause_s: float = 3.0, progress: Progress | None = None) -> bool:
    """Download a file; return False where it was there already.

    Until it is complete it lies in `NAME.part`, from which the next try, or the next run, goes on. It takes the place
    of a file only when it is whole and begins as its kind does.
    """
    report = progress or (lambda done, total: None)
    part = path.with_name(path.name + ".part")
    if path.exists() and path.stat().st_size == _size_there(url, tries, pause_s):
        return False

    def once() -> None:
        total = _transfer(url, part, report)
        _check_size(url, part, total)
        _check_kind(url, part, path)

    _with_retries(url, once, tries, pause_s)
    part.replace(path)
    return True


def _size_there(url: str, tries: int, pause_s: float) -> int | None:
    """Return the size that the server tells, or None where it does not."""
    size: int | None = None

    def once() -> None:
        nonlocal size
        with _open(urllib.request.Request(url, method="HEAD")) as response:
            size = _length(response)

    _with_retries(url, once, tries, pause_s)
    return size


def _with_retries(url: str, once: Callable[[], None], tries: int, pause_s: float) -> None:
    for left in reversed(range(tries)):
        try:
            return once()
        except _CutError as error:
            if not left:
                raise OutputError(f"{url} cannot be downloaded: {error}; run it again to resume") from None
            time.sleep(pause_s)


def _transfer(url: str, part: Path, report: Progress) -> int | None:
    """Append what is missing to the part; return the size of the whole, where the server tells it."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with _open(request) as response:
            resumed = response.status == _PARTIAL_CONTENT
            start, total = _content_range(response) if resumed else (0, _length(response))
            if resumed and start != done:
                raise OutputError(f"{url} was asked for bytes from {done} and sent those from {start}")
            done = done if resumed else 0
            with part.open("ab" if resumed else "wb") as file:
                while chunk := response.read(_CHUNK_BYTES):
                    file.write(chunk)
                    done += len(chunk)
                    report(done, total)
    except urllib.error.HTTPError as error:
        if error.code != _RANGE_NOT_SATISFIABLE:
            raise
        # Nothing is left to send: the part is complete, or it is of another file.
        total = _content_range(error)[1]
        if total is None:
            part.unlink()
            raise _CutError(f"the server refuses to resume after {done} bytes") from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _CutError(_words(error)) from None
    if total is not None and done < total:
        raise _CutError(f"the connection ended after {done} of {total} bytes")
    return total


@contextmanager
def _open(request: urllib.request.Request) -> Iterator[_Response]:
    try:
        response = urllib.request.urlopen(request, timeout=_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            if error.code >= _SERVER_ERRORS:
                raise _CutError(f"{error.code} {error.reason}") from None
            if error.code == _RANGE_NOT_SATISFIABLE:
                raise
            raise OutputError(f"{request.full_url} cannot be downloaded: {error.code} {error.reason}") from None
    except (http.client.HTTPException, OSError) as error:  # URLError is an OSError
        raise _CutError(_words(error)) from None
    with response:
        yield response


def _words(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error or type(error).__name__)


def _length(response: _Response) -> int | None:
    text = response.headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _content_range(response: _Response | urllib.error.HTTPError) -> tuple[int | None, int | None]:
    """Return first byte and size of the whole, from `bytes 5-9/10`, `bytes 5-9/*` or `bytes */10`."""
    match = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", response.headers.get("Content-Range", "").strip())
    if match is None:
        return None, None
    start, total = match.groups()
    return None if start is None else int(start), None if total == "*" else int(total)


def _check_size(url: str, part: Path, total: int | None) -> None:
    size = part.stat().st_size
    if total is None:
        raise OutputError(f"{url} does not tell its size: whether all of it arrived in {part} cannot be known")
    if size != total:
        part.unlink()
        raise OutputError(f"{url} has {total} bytes but {size} arrived: they were thrown away, run it again")


def _check_kind(url: str, part: Path, path: Path) -> None:
    """Require that what arrived begins as a bag or a zip does: a server may answer with a page that explains itself."""
    with part.open("rb") as file:
        start = file.read(len(_BAG_START))
    if start.startswith(_ZIP_START) if path.suffix == ".zip" else start == _BAG_START:
        return
    part.unlink()
    raise OutputError(f"{url} answered with something else than a {path.suffix} file; {path} is left as it was")


@contextmanager
def _bar(name: str) -> Iterator[Progress]:
    """Show a progress bar on a terminal, nothing elsewhere."""
    from rich import progress as rich_progress
    from rich.console import Console

    console = Console(stderr=True)
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sequence", nargs="*", help=f"default: {' '.join(ROTATIONS)}")
    parser.add_argument("--text", action="store_true", help="the .zip with text files instead of the .bag")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="default: the current folder")
    parser.add_argument("--base", default=BASE, metavar="URL", help=f"default: {BASE}")
    parser.add_argument("--tries", type=int, default=5, metavar="N", help="per file; default: 5")
    parser.add_argument("--pause", type=float, default=3.0, metavar="S", help="between tries; default: 3")
    options = parser.parse_args(arguments)
    try:
        unknown = [name for name in options.sequence if name not in SEQUENCES]
        if unknown:
            raise OutputError(f"there is no sequence {', '.join(unknown)}; choose from {', '.join(SEQUENCES)}")
        options.out.mkdir(parents=True, exist_ok=True)
        for sequence in options.sequence or ROTATIONS:
            name = sequence + (".zip" if options.text else ".bag")
            url, path = options.base.rstrip("/") + "/" + name, options.out / name
            with _bar(name) as progress:
                is_new = fetch(url, path, tries=max(options.tries, 1), pause_s=options.pause, progress=progress)
            print(path if is_new else f"{path} is there already")
    except (CmaxSlamError, OSError, ValueError) as error:  # ValueError: an address that is none
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted; run it again to resume", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
