"""A row is computed once for its settings: it is known again, and anything that changes the result makes it new."""

import json
from dataclasses import replace

import pytest

from cmaxslam_fbp.rows import row as rows
from cmaxslam_fbp.rows.row import Row
from cmaxslam_fbp.rows.running import run_rows

CALLS = []


def double(settings, out):
    CALLS.append(settings["number"])
    return {"double": 2 * settings["number"]}


def write_something(settings, out):
    CALLS.append("file")
    (out / "something.txt").write_text("something")
    return {"files": ["something.txt"]}


def stop(settings, out):
    raise KeyboardInterrupt


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def test_a_row_is_not_computed_twice(tmp_path):
    numbers = [Row(str(k), double, {"number": k}) for k in (1, 2, 1)]
    assert [values["double"] for values in run_rows(numbers, tmp_path)] == [2, 4, 2]
    assert CALLS == [1, 2]
    assert [values["double"] for values in run_rows(numbers, tmp_path)] == [2, 4, 2]
    assert CALLS == [1, 2]


def test_a_changed_setting_or_source_is_another_row(monkeypatch):
    row = Row("row", double, {"number": 1, "packets": 20})
    assert row.key != Row("row", double, {"number": 1, "packets": 21}).key
    assert row.key != Row("row", stop, {"number": 1, "packets": 20}).key
    assert row.key == Row("other name", double, {"packets": 20, "number": 1}).key
    before = row.key
    monkeypatch.setattr(rows, "source_digest", lambda file: "edited")
    assert replace(row).key != before


def test_where_things_lie_does_not_make_another_row():
    here, there = (Row("row", double, {"number": 1}, {"recording": place}) for place in ("a.bag", "b.bag"))
    assert here.key == there.key


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", '{"values": 3}', "\x00\x01"])
def test_a_damaged_result_is_computed_again(tmp_path, damage):
    row = Row("row", double, {"number": 4})
    run_rows([row], tmp_path)
    row.path(tmp_path).write_text(damage)
    assert run_rows([row], tmp_path)[0]["double"] == 8
    assert CALLS == [4, 4]
    assert json.loads(row.path(tmp_path).read_text())["values"]["double"] == 8


def test_a_row_whose_file_is_gone_is_computed_again(tmp_path):
    row = Row("row", write_something)
    run_rows([row], tmp_path)
    run_rows([row], tmp_path)
    assert CALLS == ["file"]
    (tmp_path / "something.txt").unlink()
    run_rows([row], tmp_path)
    assert CALLS == ["file", "file"]


def test_what_was_finished_before_an_interrupt_is_kept(tmp_path):
    first, last = Row("first", double, {"number": 1}), Row("last", double, {"number": 2})
    with pytest.raises(KeyboardInterrupt):
        run_rows([first, Row("stop", stop), last], tmp_path)
    run_rows([first, last], tmp_path)
    assert CALLS == [1, 2]


def test_progress_counts_rows_that_were_known(tmp_path):
    told = []
    numbers = [Row(str(k), double, {"number": k}) for k in (1, 2)]
    run_rows(numbers[:1], tmp_path)
    run_rows(numbers, tmp_path, on_row=lambda name, done, total: told.append((name, done, total)))
    assert told == [("2", 1, 2), ("2", 1, 2), ("2", 2, 2)]
