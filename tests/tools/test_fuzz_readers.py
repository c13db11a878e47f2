"""The campaign of damaged files: it sees every kind of fault, and finds none in the package."""

import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools" / "fuzz_readers.py"

# A program with one command that goes wrong in the way that its argument names, in place of the real one.
PLANTED = """
import ctypes, os, sys, time, warnings
import numpy as np, typer
sys.path.insert(0, {folder!r})
import fuzz_readers
from cmaxslam_fbp.errors import RecordingError

planted = typer.Typer()

@planted.command()
def read(path: str, fault: str):
    faults = {{
        "none": lambda: None,
        "known": lambda: fail(RecordingError("one line")),
        "unknown": lambda: np.zeros(3).reshape(2),
        "long": lambda: os.write(2, b"warning: " + b"x" * 301),
        "hang": lambda: time.sleep(60),
        "memory": lambda: np.ones(8_000_000),
        "claim": lambda: bytearray(8 << 30),
        "warning": lambda: warnings.warn("of a library", RuntimeWarning),
        "print": lambda: os.write(2, b"from C"),
        "own": lambda: os.write(2, b"warning: one line"),
        "crash": lambda: ctypes.string_at(0),
    }}
    faults[fault]()

def fail(error):
    raise error

faults = "none known unknown long hang memory claim warning print own crash".split()
fuzz_readers.app = planted
fuzz_readers.MEMORY_MB = 32
fuzz_readers.make_samples = lambda folder: {{
    "planted": fuzz_readers.Sample({{"a.txt": b"1"}}, tuple(f"{{{{case}}}}/a.txt {{fault}}" for fault in faults))
}}
fuzz_readers.warm_up = lambda samples: None
sys.exit(fuzz_readers.main())
"""


def campaign(*arguments):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert not done.stderr, done.stderr
    return done


def test_every_kind_of_fault_is_seen_and_its_smallest_case_kept(tmp_path):
    program = PLANTED.format(folder=str(SCRIPT.parent))
    done = campaign("-c", program, "--cases", 60, "--limit", 2, "--out", tmp_path / "out")
    assert done.returncode == 1
    counts = {row[2]: int(row[1]) for row in re.finditer(r"^ *(\d+)  (.+?)  ", done.stdout, re.M)}
    assert set(counts) == {
        "ValueError at elsewhere",
        "long warning, planted",
        "hang at elsewhere",
        "memory, planted",
        "MemoryError at elsewhere",
        "RuntimeWarning at elsewhere",
        "printed by a library, planted",
        "ended with -11 at elsewhere",
    }
    assert 30 < sum(counts.values()) < 60  # eight of the eleven are faults
    assert done.stdout == (tmp_path / "out" / "table.txt").read_text()
    kept = tmp_path / "out" / "hang_at_elsewhere"
    assert (kept / "command.txt").read_text().endswith("a.txt hang\n")
    assert len(list(kept.rglob("a.txt"))) == 1


def test_the_same_seed_gives_the_same_cases_and_another_one_others(tmp_path):
    program = (
        f"import sys, pathlib; sys.path.insert(0, {str(SCRIPT.parent)!r}); import fuzz_readers as tool\n"
        f"samples = tool.make_samples(pathlib.Path({str(tmp_path)!r}))\n"
        "first, again, other = ([tool.make_case(samples, seed, n) for n in range(50)] for seed in (1, 1, 2))\n"
        "print(first == again, first == other)"
    )
    assert campaign("-c", program).stdout == "True False\n"


def test_two_thousand_damaged_files_give_one_line_each():
    done = campaign(SCRIPT, "--cases", 2000, "--seed", 12)
    assert done.returncode == 0, done.stdout
