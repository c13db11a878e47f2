"""What a study learns from and is judged by: simulated recordings, or the sequences of DSEC that are on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np

from cmaxslam_fbp.experiments.flow.samples import FlowSample, make_sample, unpack_samples
from cmaxslam_fbp.experiments.flow.simulated_samples import recording_rows
from cmaxslam_fbp.experiments.settings import StudyError
from cmaxslam_fbp.experiments.workbench import Workbench
from cmaxslam_fbp.io.dsec_flow import DsecFlowSequence, find_flow_sequences

# Seeds of the recordings; settings were chosen on others (100 to 108, judged on 500 to 502).
LEARNED_SEED, HELD_OUT_SEED = 1000, 2000
_HELD_OUT_PER_SEQUENCE = 20  # of DSEC


@dataclass(frozen=True)
class SampleSet:
    """Samples as a row knows them: what they are, and where they lie.

    Attributes
    ----------
    described : dict
        All that determines the samples.
    places : dict
        Where they are found.
    groups : list of dict
        What each recording is like, for tables: of as many samples each as `described` tells.
    provenance : str
        One line on what they are.
    """

    described: Mapping[str, Any]
    places: Mapping[str, Any]
    provenance: str
    groups: list[dict[str, Any]] = field(default_factory=list)


def simulated_sets(bench: Workbench) -> tuple[SampleSet, SampleSet]:
    """Return what to learn from and what to be judged by, simulated where it is missing."""
    learned, held_out, each = (3, 2, 8) if bench.settings.quick else (36, 18, 12)
    return (
        _simulated(bench, LEARNED_SEED, learned, each),
        _simulated(bench, HELD_OUT_SEED, held_out, each if bench.settings.quick else 8),
    )


def _simulated(bench: Workbench, first_seed: int, count: int, each: int) -> SampleSet:
    results = bench.run(recording_rows(first_seed, count, each))
    flow_px = float(np.mean([values["mean_flow_px"] for values in results]))
    events = sum(values["events"] for values in results) / count / each
    words = (
        f"simulated: {count * each} stretches of 40 ms of {count} recordings (rotations, planes, moving discs before "
        f"poster, boxes and shapes; sensors ideal or like a DAVIS, in turn; seeds {first_seed} to "
        f"{first_seed + count - 1}), {events:,.0f} events each, mean flow {flow_px:.1f} px"
    )
    groups = [{name: values[name] for name in ("motion", "scene", "sensor", "seed")} for values in results]
    return SampleSet(
        {"kind": "simulated", "identities": [values["identity"] for values in results]},
        {"files": [values["path"] for values in results]},
        words,
        groups,
    )


def dsec_sets(folder: Path) -> tuple[SampleSet, SampleSet]:
    """Return DSEC's sequences with flow: every fifth, at least one, is held out."""
    sequences = find_flow_sequences(folder)
    if len(sequences) < 2:
        raise StudyError(f"{folder} has one sequence with flow; two are needed, one to learn from and one to judge by")
    held_out = sequences[::5] if len(sequences) > 5 else sequences[:1]
    learned = [one for one in sequences if one not in held_out]
    return _dsec(learned, folder), _dsec(held_out, folder)


def _dsec(sequences: list[DsecFlowSequence], folder: Path) -> SampleSet:
    stamps = [[one.name, len(one), one.events.stat().st_size, one.events.stat().st_mtime_ns] for one in sequences]
    words = f"DSEC: {sum(map(len, sequences))} flows of {', '.join(one.name for one in sequences)}"
    return SampleSet(
        {"kind": "dsec", "stamps": stamps},
        {"dsec": str(folder.resolve()), "names": [one.name for one in sequences]},
        words,
        [{"sequence": one.name} for one in sequences],
    )


class DsecSamples(Sequence[FlowSample]):
    """The samples of sequences of DSEC, read when they are asked for: together they do not fit into memory."""

    def __init__(self, sequences: Sequence[DsecFlowSequence]) -> None:
        self._where = [(one, number) for one in sequences for number in range(len(one))]

    def __len__(self) -> int:
        return len(self._where)

    @overload
    def __getitem__(self, index: int) -> FlowSample: ...
    @overload
    def __getitem__(self, index: slice) -> list[FlowSample]: ...
    def __getitem__(self, index: int | slice) -> FlowSample | list[FlowSample]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        sequence, number = self._where[index]
        flow, is_valid = sequence.flow(number)
        return make_sample(sequence.rectified_events(number), *sequence.stretches_ns[number], flow, is_valid)


def load_samples(places: Mapping[str, Any], out: Path) -> Sequence[FlowSample]:
    """Return the samples that lie at the places of a set."""
    if "files" in places:
        files = [np.load(out / name, allow_pickle=False) for name in places["files"]]
        return [sample for file in files for sample in unpack_samples(dict(file))]
    return DsecSamples([one for one in find_flow_sequences(Path(places["dsec"])) if one.name in places["names"]])


def load_groups(places: Mapping[str, Any], out: Path) -> list[list[FlowSample]]:
    """Return the samples to be judged by, of each recording; of a sequence of DSEC some that are spread over it."""
    if "files" in places:
        return [list(load_samples({"files": [name]}, out)) for name in places["files"]]
    groups = []
    for name in places["names"]:
        samples = load_samples({**places, "names": [name]}, out)
        groups.append(list(samples[:: max(1, len(samples) // _HELD_OUT_PER_SEQUENCE)]))
    return groups
