"""The studies by name, and how to run them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cmaxslam_fbp.choices import Choices
from cmaxslam_fbp.errors import MissingExtraError, OutputError
from cmaxslam_fbp.experiments.settings import StudyError, StudySettings
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.rows.running import OnRow, open_pool

# Functions of a workbench that return what was written; what a study needs is imported when it runs.
STUDIES = Choices(
    "study",
    {
        "bias": "cmaxslam_fbp.experiments.bias:run_bias",
        "reconstruction": "cmaxslam_fbp.experiments.velocities:run_reconstruction",
        "surrogates": "cmaxslam_fbp.experiments.velocities:run_surrogates",
        "angular": "cmaxslam_fbp.experiments.velocities:run_angular",
        "linear": "cmaxslam_fbp.experiments.velocities:run_linear",
        "cost": "cmaxslam_fbp.experiments.cost:run_cost",
        "slam": "cmaxslam_fbp.experiments.slam:run_slam",
        "ecrot": "cmaxslam_fbp.experiments.ecrot:run_ecrot",
        "flow": "cmaxslam_fbp.experiments.flow.study:run_flow",
    },
)
NAMES = STUDIES.names()
ALL = "all"
SUMMARY = "README.md"


def reproduce(
    name: str,
    settings: StudySettings,
    on_row: OnRow | None = None,
    on_left_out: Callable[[str], None] = lambda words: None,
) -> list[Path]:
    """Run a study, or all of them; return the files that were written, the summary last.

    Rows that an earlier run into the same folder finished are not computed again. Of all studies, one that needs a
    library that is not installed is left out, and `on_left_out` gets a line about it.
    """
    if name not in (*NAMES, ALL):
        raise StudyError(f"there is no study '{name}'; choose one of {', '.join(NAMES)}, {ALL}")
    try:
        settings.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the folder {settings.out} cannot be written: {error.strerror or error}") from error
    with open_pool(settings.pool) as pool:
        bench = Workbench(settings, on_row, pool)
        written: list[Path] = []
        for one in NAMES if name == ALL else (name,):
            try:
                written += STUDIES[one](bench)
            except MissingExtraError as error:
                if name != ALL:
                    raise
                on_left_out(f"{one} is left out: {error}")
    return [*written, bench.write(SUMMARY, _summary(settings))]


def _summary(settings: StudySettings) -> str:
    """Return a page with links to all studies that are in the folder."""
    lines = ["# The paper's studies", ""]
    if settings.quick:
        lines += ["Quick runs: they show that it all works, and no more.", ""]
    for name in NAMES:
        table = settings.out / name / f"{name}.md"
        if not table.exists():
            continue
        title = table.read_text().splitlines()[0].lstrip("# ")
        files = [f"[table]({name}/{name}.md)", f"[CSV]({name}/{name}.csv)"]
        files += [f"[{path.stem}]({name}/{path.name})" for path in sorted((settings.out / name).glob("*.png"))]
        lines.append(f"- {title}: {', '.join(files)}")
    return "\n".join(lines) + "\n"
