"""What a study works with: its settings, its folder, and a way to compute rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cmaxslam_fbp.experiments.packet_sets import packet_row
from cmaxslam_fbp.experiments.sequences import StudySequence, as_sequence, sequence_rows
from cmaxslam_fbp.experiments.settings import StudySettings
from cmaxslam_fbp.io.atomic_files import write_file
from cmaxslam_fbp.rows.row import Row, Values
from cmaxslam_fbp.rows.running import OnRow, Pool, run_rows


@dataclass(frozen=True)
class Workbench:
    """Settings, progress and workers of a study."""

    settings: StudySettings
    on_row: OnRow | None = None
    pool: Pool | None = None

    def run(self, rows: Sequence[Row], *, one_at_a_time: bool = False) -> list[Values]:
        """Return the results of rows, computed or known."""
        pool = None if one_at_a_time else self.pool
        return run_rows(rows, self.settings.out, pool=pool, on_row=self.on_row)

    def sequences(self, names: Iterable[str]) -> list[StudySequence]:
        """Return the sequences of these names: found, or made where they are missing."""
        names = list(names)
        results = self.run(sequence_rows(names, self.settings))
        return [as_sequence(name, values) for name, values in zip(names, results, strict=True)]

    def packets(self, sequences: Sequence[StudySequence], model: str) -> list[Values]:
        """Return the packets of the sequences, as rows of velocities need them."""
        settings = self.settings
        rows = [packet_row(one, model, settings.velocity_packets, settings.block_packets) for one in sequences]
        return self.run(rows)

    def write(self, name: str, data: str | bytes) -> Path:
        """Write a file below the study's folder."""
        return write_file(self.settings.out / name, data, make_folder=True)
