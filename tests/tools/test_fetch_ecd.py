"""Downloads from a server on this machine that cuts, refuses ranges or lies about sizes."""

import importlib.util
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "fetch_ecd.py"
CONTENT = b"#ROSBAG V2.0\n" + np.random.default_rng(0).bytes(300_000 - 13)
ZIP = b"PK\x03\x04" + CONTENT[4:]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("fetch_ecd", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Server(ThreadingHTTPServer):
    """Serves `CONTENT` under any name that ends in .bag, `ZIP` under one in .zip, as badly as it is told to."""

    daemon_threads = False
    has_ranges = True
    cuts = 0  # how many answers end in the middle
    failures = 0  # how many answers are 503
    claimed_size = len(CONTENT)  # in Content-Range
    tells_size = True
    page = None  # sent in place of every file

    def handle_error(self, request, client_address):
        """Say nothing when a client has gone."""


class Handler(BaseHTTPRequestHandler):
    @property
    def content(self):
        return self.server.page or (ZIP if self.path.endswith(".zip") else CONTENT)

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.server.requests.append(("HEAD", self.path, None))
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()

    def do_GET(self):
        asked = self.headers.get("Range")
        self.server.requests.append(("GET", self.path, asked))
        if self.server.failures:
            self.server.failures -= 1
            self.send_error(503)
            return
        if not self.path.endswith((".bag", ".zip")):
            self.send_error(404)
            return
        start = 0
        if asked and self.server.has_ranges:
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            if start >= len(self.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(self.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{self.server.claimed_size}")
        else:
            self.send_response(200)
        body = self.content[start:]
        if self.server.tells_size:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cuts:
            self.server.cuts -= 1
            body = body[: len(body) // 2]
        self.wfile.write(body)


@pytest.fixture
def server():
    server = Server(("127.0.0.1", 0), Handler)
    server.requests = []
    server.base = f"http://127.0.0.1:{server.server_port}/davis/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetch(tool, server, tmp_path):
    def call(*arguments):
        return tool.main([*arguments, "--out", str(tmp_path), "--base", server.base, "--pause", "0"])

    return call


def ranges(server):
    return [asked for method, _, asked in server.requests if method == "GET"]


def test_a_cut_download_is_resumed_where_it_ended(server, fetch, tmp_path):
    server.cuts = 1
    assert fetch("shapes_rotation") == 0
    assert (tmp_path / "shapes_rotation.bag").read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=150000-"]
    assert [path.name for path in tmp_path.iterdir()] == ["shapes_rotation.bag"]


def test_the_part_of_an_earlier_run_is_resumed(server, fetch, tmp_path):
    (tmp_path / "boxes_rotation.bag.part").write_bytes(CONTENT[:1000])
    assert fetch("boxes_rotation") == 0
    assert (tmp_path / "boxes_rotation.bag").read_bytes() == CONTENT
    assert ranges(server) == ["bytes=1000-"]


def test_a_part_that_is_complete_is_renamed(fetch, tmp_path):
    (tmp_path / "boxes_rotation.bag.part").write_bytes(CONTENT)
    assert fetch("boxes_rotation") == 0
    assert (tmp_path / "boxes_rotation.bag").read_bytes() == CONTENT


def test_a_server_without_ranges_starts_again(server, fetch, tmp_path):
    server.has_ranges, server.cuts = False, 1
    assert fetch("shapes_rotation") == 0
    assert (tmp_path / "shapes_rotation.bag").read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=150000-"]


def test_a_busy_server_is_asked_again(server, fetch, tmp_path):
    server.failures = 2
    assert fetch("shapes_rotation") == 0
    assert (tmp_path / "shapes_rotation.bag").read_bytes() == CONTENT


def test_a_download_that_is_always_cut_is_an_error_and_its_part_stays(server, fetch, tmp_path, capsys):
    server.cuts = 10
    assert fetch("shapes_rotation", "--tries", "2") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "225000 of 300000 bytes" in error
    assert [path.name for path in tmp_path.iterdir()] == ["shapes_rotation.bag.part"]


def test_a_size_that_does_not_match_is_an_error_and_leaves_nothing(server, fetch, tmp_path, capsys):
    server.claimed_size = len(CONTENT) - 7
    (tmp_path / "shapes_rotation.bag.part").write_bytes(CONTENT[:1000])
    assert fetch("shapes_rotation") == 1
    assert "299993 bytes but 300000 arrived" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_part_longer_than_the_file_is_an_error_and_leaves_nothing(fetch, tmp_path, capsys):
    (tmp_path / "shapes_rotation.bag.part").write_bytes(CONTENT + b"more")
    assert fetch("shapes_rotation") == 1
    assert "run it again" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_complete_files_are_skipped_and_others_of_that_name_replaced(server, fetch, tmp_path, capsys):
    (tmp_path / "shapes_rotation.bag").write_bytes(CONTENT)
    (tmp_path / "boxes_rotation.bag").write_bytes(CONTENT[:10])
    assert fetch("shapes_rotation", "boxes_rotation") == 0
    assert "shapes_rotation.bag is there already" in capsys.readouterr().out
    assert (tmp_path / "boxes_rotation.bag").read_bytes() == CONTENT
    assert [path for method, path, _ in server.requests if method == "GET"] == ["/davis/boxes_rotation.bag"]


@pytest.mark.parametrize("options", [("shapes_rotation",), ("shapes_rotation", "--text")])
@pytest.mark.parametrize("page", [b"<html>login</html>\n\n", b"\x00" * 400_000])
def test_a_page_in_place_of_a_file_replaces_nothing(server, fetch, tmp_path, capsys, options, page):
    path = tmp_path / ("shapes_rotation.zip" if "--text" in options else "shapes_rotation.bag")
    path.write_bytes(b"a good file")
    server.page = page
    assert fetch(*options) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "is left as it was" in error
    assert [(item.name, item.read_bytes()) for item in tmp_path.iterdir()] == [(path.name, b"a good file")]


def test_a_download_of_unknown_size_replaces_nothing(server, fetch, tmp_path, capsys):
    server.tells_size, server.cuts = False, 1
    (tmp_path / "shapes_rotation.bag").write_bytes(b"a good file")
    assert fetch("shapes_rotation") == 1
    assert "does not tell its size" in capsys.readouterr().err
    assert (tmp_path / "shapes_rotation.bag").read_bytes() == b"a good file"
    assert fetch("shapes_rotation") == 0  # what is missing is asked for as a range, which tells the size
    assert (tmp_path / "shapes_rotation.bag").read_bytes() == CONTENT


def test_the_rotation_sequences_are_the_default_and_text_is_a_zip(server, fetch, tmp_path):
    assert fetch("--text") == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"{scene}_rotation.zip" for scene in ("boxes", "dynamic", "poster", "shapes")]


def test_unknown_sequences_are_refused_with_the_list(server, fetch, capsys):
    assert fetch("shapes_rotatoin") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "shapes_rotatoin" in error
    assert "dynamic_rotation" in error
    assert server.requests == []


def test_what_the_server_does_not_have_is_an_error_at_once(tool, server, tmp_path, capsys):
    with pytest.raises(tool.OutputError, match="404"):
        tool.fetch(server.base + "nothing", tmp_path / "nothing", pause_s=60)


def test_a_server_that_is_not_there_is_an_error_in_one_line(tool, tmp_path, capsys):
    address = "http://127.0.0.1:9/"
    assert (
        tool.main(["shapes_rotation", "--out", str(tmp_path), "--base", address, "--tries", "2", "--pause", "0"]) == 1
    )
    assert capsys.readouterr().err.count("\n") == 1


def test_an_address_that_is_none_is_an_error_in_one_line(tool, tmp_path, capsys):
    assert tool.main(["shapes_rotation", "--out", str(tmp_path), "--base", "nowhere"]) == 1
    assert capsys.readouterr().err.startswith("error: ")
