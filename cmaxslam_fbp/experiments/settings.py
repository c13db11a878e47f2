"""What a study is asked for, and how large it is: in full, or quick."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cmaxslam_fbp.errors import CmaxSlamError
from cmaxslam_fbp.rows.running import IN_THIS_PROCESS, PoolSettings

DATA_VARIABLE = "CMAXSLAM_FBP_DATA"


class StudyError(CmaxSlamError):
    """A study that was asked for something that is not there."""


@dataclass(frozen=True)
class StudySettings:
    """What all studies share.

    Attributes
    ----------
    out : Path
        Where results, tables and simulated sequences go.
    ecd : Path, optional
        Folder with sequences of the Event Camera Dataset; without it they are simulated.
    data : Path, optional
        Folder with `shapes_rotation_groundtruth.txt`, `slices/`, and ECRot's bags or `panoramas/bicycle.jpg`; by
        default what CMAXSLAM_FBP_DATA names.
    dsec : Path, optional
        Folder with sequences of DSEC and their flow, for the study of flow; without it they are simulated.
    quick : bool
        A minute instead of the full size: whether it all works, not what comes out.
    pool : PoolSettings
        Where rows are computed: one after the other in this process if nothing else is said.
    packets : int, optional
        Packets per sequence in the studies of velocities, instead of the default; rounded up to whole blocks.
    """

    out: Path
    ecd: Path | None = None
    data: Path | None = None
    quick: bool = False
    pool: PoolSettings = IN_THIS_PROCESS
    packets: int | None = None
    dsec: Path | None = None

    def __post_init__(self) -> None:
        if self.ecd is not None and not self.ecd.is_dir():
            raise StudyError(f"the folder {self.ecd} with the ECD does not exist; see tools/fetch_ecd.py")
        if self.dsec is not None and not self.dsec.is_dir():
            raise StudyError(f"the folder {self.dsec} with DSEC does not exist")
        if self.data is not None and not self.data.is_dir():
            raise StudyError(f"the folder {self.data} with real data does not exist")
        if self.packets is not None and self.packets < 1:
            raise StudyError(f"--packets must be 1 or more, not {self.packets}")

    @property
    def real_data(self) -> Path | None:
        """The folder of real data, if there is one."""
        if self.data is not None:
            return self.data
        named = os.environ.get(DATA_VARIABLE)
        return Path(named) if named and Path(named).is_dir() else None

    def real_file(self, name: str) -> Path | None:
        """Return a file or folder of the real data, if it is there."""
        folder = self.real_data
        return folder / name if folder is not None and (folder / name).exists() else None

    @property
    def velocity_packets(self) -> int:
        """How many packets of each sequence the studies of velocities use."""
        return self.packets or (6 if self.quick else 100)

    @property
    def block_packets(self) -> int:
        """How many of them follow each other."""
        return 3 if self.quick else 10
