import json
import re
import runpy
from pathlib import Path

import cv2
import numpy as np
import pytest

from cmaxslam_fbp.errors import OutputError
from cmaxslam_fbp.report.page import write_report
from cmaxslam_fbp.report.page_charts import make_charts
from cmaxslam_fbp.report.run_files import RunFiles

BROWSER = runpy.run_path(str(Path(__file__).with_name("browser.py")))
needs_browser = pytest.mark.skipif(BROWSER["PROGRAM"] is None, reason="no Chromium or Chrome")
open_page = BROWSER["open_page"]


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)[1])


def test_the_page_holds_what_the_run_has(make_run):
    page = write_report(make_run(lost=[3], warnings=["something <odd>"]))
    text = page.read_text()
    assert "sweep &lt;1&gt;" in text  # the recording's name, as text
    assert "something &lt;odd&gt;" in text
    assert "Tracking lost in 1 of 19 windows" in text
    assert "cmaxslam-fbp run &#x27;my file.bag&#x27; -o there" in text
    assert "{{" not in text.split("<script")[0]
    data = data_of(page)
    assert [chart["id"] for chart in data["charts"]] == [
        "orientation",
        "velocity",
        "error",
        "deviation",
        "contrast",
        "match",
        "rate",
    ]
    np.testing.assert_allclose(data["lost"], [[0.3, 0.5]])
    assert len(data["fieldOfView"]) == 48
    yaw = next(s for s in data["charts"][0]["series"] if s["name"] == "yaw" and s["style"] == "estimate")
    np.testing.assert_allclose(yaw["v"][-1], np.degrees(0.6 * np.sin(2.0)), atol=1e-2)
    match = data["charts"][5]["series"][0]["v"]
    assert match[0] is None
    np.testing.assert_allclose(match[1], 0.51)


def test_the_page_loads_nothing(make_run):
    text = write_report(make_run()).read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!data:)""", text)
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_the_page_is_small_for_a_large_map_and_a_long_run(make_run):
    folder = make_run(size=(512, 256))
    noise = np.random.default_rng(0).poisson(3, (2048, 4096)).astype(np.float32)
    np.save(folder / "panorama.npy", noise)
    page = write_report(folder)
    assert page.stat().st_size < 3_000_000
    data = data_of(page)
    assert all(len(series["t"]) <= 2000 for chart in data["charts"] for series in chart["series"])


def test_without_reference_or_extra_files_the_page_shows_the_rest(make_run):
    folder = make_run(reference=False, extra=False)
    for name in ("angular_velocity.csv", "windows.csv", "trajectory_deviation.csv"):
        (folder / name).unlink()
    page = write_report(folder)
    assert "no reference poses" in page.read_text()
    assert [chart["id"] for chart in data_of(page)["charts"]] == ["orientation"]


@pytest.mark.parametrize("broken", ["missing", "empty", "bad json"])
def test_what_is_not_a_run_is_one_line(tmp_path, make_run, broken):
    folder = tmp_path / "missing"
    if broken == "empty":
        folder.mkdir()
    elif broken == "bad json":
        folder = make_run()
        (folder / "run.json").write_text("{")
    with pytest.raises(OutputError, match=re.escape(str(folder))) as caught:
        write_report(folder)
    assert "\n" not in str(caught.value)


@needs_browser
def test_the_sphere_is_drawn_and_the_console_is_silent(make_run, tmp_path):
    page = write_report(make_run(lost=[3]))
    document, said, _ = open_page(page, tmp_path, part="#t=0.5&count")
    assert said == []
    assert int(re.search(r'data-inked-pixels="(\d+)"', document)[1]) > 1000
    assert document.count('<svg class="chart"') == 7
    assert "1.00 s" in document


@needs_browser
def test_the_slider_moves_the_field_of_view_and_the_theme_is_dark_where_wished(make_run, tmp_path):
    page = write_report(make_run())
    shots = {}
    for name, part, dark in (("start", "#t=0", False), ("later", "#t=0.7", False), ("dark", "#t=0", True)):
        folder = tmp_path / name
        folder.mkdir()
        _, said, shot = open_page(page, folder, part=part, dark=dark)
        assert said == []
        shots[name] = cv2.imread(str(shot)).astype(int)[230:680]  # sphere and map
    orange = {name: (shot[..., 2] - shot[..., 0] > 150) for name, shot in shots.items()}
    for name in ("start", "later"):
        assert orange[name].sum() > 1000
    columns = [np.flatnonzero(orange[name][:, :600].any(axis=0)).mean() for name in ("start", "later")]
    assert columns[1] > columns[0] + 40  # the camera has turned to the right
    assert shots["start"].mean() > 200 > 60 > shots["dark"].mean()


@needs_browser
def test_dragging_and_arrow_keys_look_around(make_run, tmp_path):
    page = write_report(make_run())
    drag = """
    const canvas = document.getElementById("sphere-map"), point = (x) => ({pointerId: 1, clientX: x, clientY: 400});
    canvas.setPointerCapture = () => {};
    for (const [kind, x] of [["pointerdown", 200], ["pointermove", 300], ["pointerup", 300]])
      canvas.dispatchEvent(new PointerEvent(kind, point(x)));"""
    press = """
    for (let i = 0; i < 3; i++)
      document.getElementById("sphere").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));"""
    columns = []
    for number, act in enumerate((drag, press)):
        changed = tmp_path / f"{number}.html"
        script = f"setTimeout(() => {{ {act} }}, 1000);</script>\n</body>"
        changed.write_text(page.read_text().replace("</script>\n</body>", script))
        (tmp_path / str(number)).mkdir()
        _, said, shot = open_page(changed, tmp_path / str(number))
        assert said == []
        sphere = cv2.imread(str(shot)).astype(int)[230:640, 30:600]
        columns.append(np.flatnonzero((sphere[..., 2] - sphere[..., 0] > 150).any(axis=0)).mean())
    # The scene follows the hand by 100 pixels to the right; the eye turns to the right by three times 30.
    assert columns[0] - columns[1] == pytest.approx(190, abs=50)


@needs_browser
def test_a_phone_needs_no_scrolling_sideways(make_run, tmp_path):
    page = write_report(make_run())
    measure = "setTimeout(() => { document.title = document.documentElement.scrollWidth; }, 1500);"
    page.write_text(page.read_text().replace("</script>\n</body>", f"{measure}</script>\n</body>"))
    document, said, _ = open_page(page, tmp_path, size=(500, 900))
    assert said == []
    assert '<svg class="chart"' in document
    assert int(re.search(r"<title>(\d+)</title>", document)[1]) == 500


@pytest.mark.parametrize(
    ("tracking", "lost", "level", "words"),
    [
        ("tracked", 0, "good", "Tracked throughout"),
        ("found again", 0, "fair", "Lost for a while, and found again"),
        ("still", 0, "fair", "Still: no evidence of a motion"),
        ("not a rotation", 0, "bad", "Not a rotation"),
        ("lost", 12, "bad", "Tracking lost in 12 of 19 windows"),
    ],
)
def test_the_page_says_whether_the_run_can_be_trusted_and_why(make_run, tracking, lost, level, words):
    path = make_run(lost=range(lost))
    run = json.loads((path / "run.json").read_text())
    run |= {"tracking": tracking, "tracking_reason": "a reason <in words>", "unexplained_motion": 0.123}
    (path / "run.json").write_text(json.dumps(run))
    page = write_report(path).read_text()
    assert f'<span class="badge {level}">{words}</span>' in page
    assert f"{tracking}: a reason &lt;in words&gt;" in page
    assert "12.3 %" in page


def test_curves_have_a_band_of_two_standard_deviations_with_breaks_where_tracking_is_lost(make_run):
    charts = {chart["id"]: chart for chart in make_charts(RunFiles.read(make_run(lost=(8, 9, 10))))}
    bands = [series for series in charts["orientation"]["series"] if series["style"] == "band"]
    assert [band["name"] for band in bands] == [series["name"] for series in charts["orientation"]["series"][-3:]]
    for axis, sigma in ((1, 0.02), (2, 0.04)):  # pitch about x, roll about z
        widths = [w - v for v, w in zip(bands[axis]["v"], bands[axis]["w"], strict=True) if v is not None]
        assert widths == pytest.approx([4 * sigma] * 16, abs=1e-3)
        assert bands[axis]["v"].index(None) == 8
    assert [series["v"][0] for series in charts["deviation"]["series"]] == [0.03, 0.02, 0.04]
    expected = charts["error"]["series"][1]
    assert expected["v"][0] == pytest.approx(np.sqrt(0.03**2 + 0.02**2 + 0.04**2), rel=1e-3)
