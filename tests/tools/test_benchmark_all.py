"""All benchmarks in one go, with stand-ins in their places that tell how they were called."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
NAMES = sorted(path.stem.removeprefix("benchmark_") for path in TOOLS.glob("benchmark_*.py"))
WITH_A_RECORDING = "batch"
TELLING = "import sys\nprint('called with', sys.argv[1:])\n"
FAILING = "import sys\nprint('half a table')\nprint('no such thing', file=sys.stderr)\nsys.exit(3)\n"


def run_all(folder, scripts, *options):
    """Run the script with these stand-ins, by name; return its exit code, its page, and what it said."""
    (folder / "scripts").mkdir()
    for name, text in scripts.items():
        (folder / "scripts" / f"benchmark_{name}.py").write_text(text)
    environment = {"PYTHON": sys.executable, "BENCHMARKS": "scripts", "PYTHONPATH": str(TOOLS.parent)}
    done = subprocess.run(
        ["sh", TOOLS / "benchmark_all.sh", *options],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    pages = list(folder.rglob("index.md"))
    return done.returncode, pages[0].read_text() if pages else "", done.stdout + done.stderr


def test_a_failing_benchmark_is_marked_and_stops_no_other(tmp_path):
    code, page, said = run_all(tmp_path, {"a": TELLING, "b": FAILING, "c": TELLING}, "my figures")
    assert code == 1
    assert "my figures/index.md" in said
    assert re.search(r"np\.bincount of 20,000 events: [\d.]+ us\.\n", page.partition("\n## ")[0])
    assert re.findall(r"^## (.*)$", page, re.M) == ["a: done", "b: **FAILED**", "c: done"]
    assert "Exit code 3 after" in page
    assert "    half a table\n    no such thing\n" in page
    assert page.count("    called with []\n") == 2
    assert (tmp_path / "my figures" / "b.txt").read_text() == "half a table\nno such thing\n"


def test_without_a_folder_it_is_named_after_the_day(tmp_path):
    code, page, said = run_all(tmp_path, {"a": TELLING}, "--quick")
    assert code == 0
    assert re.search(r"^benchmarks/\d{4}-\d\d-\d\d/index\.md$", said, re.M)
    assert "    called with ['--quick']\n" in page


@pytest.mark.parametrize("form", [[], ["--quick"]])
def test_every_benchmark_is_called_with_options_that_it_has(tmp_path, form):
    scripts = {name: TELLING for name in NAMES if name != WITH_A_RECORDING}
    code, page, _ = run_all(tmp_path, scripts, *form, "figures with a space")
    assert code == 0
    called = re.findall(r"^## (\w+): done$.*?^    called with \[(.*?)\]$", page, re.M | re.S)
    assert [name for name, _ in called] == list(scripts)
    for name, words in called:
        options = re.findall(r"--[\w-]+", words)
        source = (TOOLS / f"benchmark_{name}.py").read_text()
        assert all(f'"{option}"' in source for option in options), name
        assert options or not form, f"{name} has no quick form"
        assert "figures with a space" in words or "--folder" not in source


def test_the_benchmark_of_batches_has_a_recording(tmp_path):
    telling = "import sys\nfrom pathlib import Path\nprint(Path(sys.argv[1]).stat().st_size > 1e6, sys.argv[2:])\n"
    code, page, _ = run_all(tmp_path, {WITH_A_RECORDING: telling}, "--quick", "figures")
    assert code == 0
    assert "    True ['--runs', '1', '--rows', '30']\n" in page


def test_an_unknown_option_is_told(tmp_path):
    code, page, said = run_all(tmp_path, {"a": TELLING}, "--fast")
    assert (code, page) == (2, "")
    assert "usage: " in said
