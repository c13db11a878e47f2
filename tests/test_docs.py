"""What the documentation names exists: commands and their options, files, tools."""

import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from cmaxslam_fbp import __version__

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
TOOL = re.compile(r"\btools/\w+\.py\b")


def code_blocks(page):
    return re.findall(r"^```[^\n]*\n(.*?)^```", page.read_text(), re.S | re.M)


def commands(page):
    lines = [line for block in code_blocks(page) for line in block.splitlines()]
    return [line.partition(" #")[0].strip() for line in lines if line.startswith("cmaxslam-fbp ")]


def split(command):
    """Return the words that name a command (`config show` has two), and its options."""
    words = shlex.split(command)[1:]
    name = words[:2] if words[0] == "config" else words[:1]
    return tuple(name), [word.partition("=")[0] for word in words[len(name) :] if word.startswith("--")]


COMMANDS = [(page.name, command) for page in DOCS for command in commands(page)]
TOOLS = sorted({name for page in PAGES for name in TOOL.findall(page.read_text())})


def ask(*arguments):
    """Run Python with these arguments, on a wide screen without colours."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, *arguments, "--help"], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def answers():
    """What each command and each tool says to --help; two are asked at a time."""
    asked = {name: ("-m", "cmaxslam_fbp", *name) for name in {split(command)[0] for _, command in COMMANDS}}
    asked.update({tool: (tool,) for tool in TOOLS})
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(asked, pool.map(lambda arguments: ask(*arguments), asked.values()), strict=True))


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_every_command_of_the_docs_exists_with_its_options(answers, page, command):
    name, options = split(command)
    code, words, error = answers[name]
    assert code == 0, error
    known = set(re.findall(r"--[\w-]+", words))
    assert set(options) <= known


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_that_is_named_explains_itself(answers, tool):
    assert (ROOT / tool).is_file()
    code, words, error = answers[tool]
    assert code == 0, error
    assert "usage:" in words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page):
    targets = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    local = [target.partition("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_file_that_is_named_exists(page):
    missing = [name for name in re.findall(r"\btests/[\w/]+\.py\b", page.read_text()) if not (ROOT / name).is_file()]
    assert missing == []


def test_the_docs_have_commands_and_tools():
    assert len(COMMANDS) >= 1
    assert len(TOOLS) >= 5


@pytest.mark.parametrize(("page", "command"), [(page, command) for page, command in COMMANDS if "." not in command])
def test_commands_of_the_docs_that_need_no_file_run(run_alone, page, command):
    run_alone(*shlex.split(command)[1:])


def test_citation_and_changelog_are_those_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    version, date = re.search(r"^## \[(.+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text(), re.M).groups()
    assert (citation["cff-version"], citation["version"], str(citation["date-released"])) == ("1.2.0", version, date)
    assert version == __version__
    assert len(citation["references"]) == 2
    assert {"message", "title", "authors"} <= set(citation)
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert all(reference["title"] in readme for reference in citation["references"])
