"""Tables of events in the order and the unit of whoever wrote them."""

import numpy as np
import pytest

from cmaxslam_fbp.errors import RecordingError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.io import open_recording


def lines(events, order="txyp", separator=",", unit_ns=1000, polarity=str, decimals=None):
    columns = {
        "t": [f"{t / unit_ns:.{decimals}f}" if decimals else str(t // unit_ns) for t in events.t_ns.tolist()],
        "x": map(str, events.x.tolist()),
        "y": map(str, events.y.tolist()),
        "p": map(polarity, events.p.tolist()),
        "-": ["7.5"] * len(events),
    }
    rows = zip(*(list(columns[letter]) if letter == "-" else columns[letter] for letter in order), strict=True)
    return "".join(separator.join(row) + "\n" for row in rows)


@pytest.fixture
def read(tmp_path):
    def open_text(text, name="a.csv", **options):
        (tmp_path / name).write_bytes(text.encode())
        stream = open_recording(tmp_path / name, **({"sensor_size": (240, 180)} | options)).chunks()
        return Events.concatenate(stream), stream.defects.describe()

    return open_text


@pytest.fixture
def events(make_events):
    return make_events(2000, start_ns=5_000_000_000)


@pytest.mark.parametrize(
    ("header", "layout"),
    [
        ("t_us,x,y,p", {}),
        ("timestamp [us];x;y;polarity", {"separator": ";"}),
        ("# x y p t_ns", {"order": "xypt", "separator": " ", "unit_ns": 1}),
        ("x\ty\tpol\ttime_ms", {"order": "xypt", "separator": "\t", "unit_ns": 1_000_000, "decimals": 6}),
        ("t_s,id,x,y,on", {"order": "t-xyp", "unit_ns": 10**9, "decimals": 6}),
        ('"t_us", "x", "y", "p"', {"separator": ", ", "polarity": lambda p: ["False", "True"][p]}),
        ("t_us,y,x,p", {"order": "tyxp", "polarity": lambda p: ["-1", "1"][p]}),
        ("t_us,x,y,p", {"polarity": lambda p: f"{p}.0"}),
    ],
)
def test_a_first_line_tells_the_columns(read, events, header, layout, assert_same_events):
    found, notes = read(f"{header}\n{lines(events, **layout)}")
    assert_same_events(found, events)
    assert notes == []


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ({}, "t,x,y,p, times in us"),
        ({"order": "xypt"}, "x,y,p,t, times in us"),
        ({"order": "xytp", "separator": " "}, "x,y,t,p, times in us"),
        ({"order": "txyp", "unit_ns": 10**9, "decimals": 6, "separator": " "}, "t,x,y,p, times in s"),
        ({"order": "pxyt", "unit_ns": 1}, "p,x,y,t, times in ns"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.txt"])
def test_columns_without_names_are_guessed_and_said(read, events, layout, said, name, assert_same_events):
    found, notes = read(lines(events, **layout), name)
    assert_same_events(found, events)
    assert notes == [f"the columns were taken as {said}"]


def test_a_name_without_unit_is_guessed_and_said(read, events, assert_same_events):
    found, notes = read("t,x,y,p\n" + lines(events, unit_ns=1))
    assert_same_events(found, events)
    assert notes == ["the columns were taken as t,x,y,p, times in ns"]


def test_unix_stamps_keep_their_nanoseconds(read):
    found, _ = read("t_s,x,y,p\n1468941032.229417023,1,2,1\n1468941032.229417024,3,4,0\n")
    assert found.t_ns.tolist() == [1468941032229417023, 1468941032229417024]


def test_blank_lines_comments_and_returns_are_passed_over(read):
    found, _ = read("t_us,x,y,p\r\n\r\n# a word\r\n5,1,2,1\r\n6,3,4,0")
    assert (found.t_ns.tolist(), found.x.tolist(), found.p.tolist()) == ([5000, 6000], [1, 3], [1, 0])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "is empty|no line with an event"),
        ("t_us,x,y,p\n", "no line with an event"),
        ("t_us,x,y,p\n1,2,3,1\n2,3,4\n", "different numbers of columns"),
        ("t_us,x,y,p\n" + "1,2,3,1\n" * 60_000 + "2,3,4\n", r"line 60002: the polarity is missing"),
        ("t_us,x,y\n1,2,3\n", "no column, or several, for p"),
        ("t_us,x,x,y,p\n1,2,3,4,1\n", "no column, or several, for x"),
        ("1,2,3,1,9\n", "has 5 columns without names"),
        ("1,a,3,1\n", "'a' is not a number"),
        ("t_us,x,y,p\n1,a,3,1\n", "line 2: x or y"),
        ("t_us,x,y,p\n1,2,3,5\n", "line 2: the polarity"),
        ("t_us,x,y,p\n9000000,2,3,1\n5000000,2,3,1\n", "time jumps back by 4.000 s at event 1 of the lines 2 to 3"),
        ("t_us,x,y,p\n99999999999999999,2,3,1\n", "line 2: the time"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_place(read, text, complaint):
    with pytest.raises(RecordingError, match=complaint) as caught:
        read(text)
    assert "a.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_size_is_asked_for(read):
    with pytest.raises(RecordingError, match="--sensor-size"):
        read("t_us,x,y,p\n1,2,3,1\n", sensor_size=None)


def test_the_unit_is_asked_for_where_none_is_plausible(read):
    rows = np.arange(2000)
    with pytest.raises(RecordingError, match=r"does not tell the unit of its times; name the columns .* t_us,x,y,p"):
        read("".join(f"{5_000_001 * i},1,2,1\n" for i in rows))
