"""The study of ECRot's synthetic sequences: CMax-SLAM and our default, beside the figures that CMax-SLAM publishes."""

from __future__ import annotations

from pathlib import Path

from cmaxslam_fbp.config import Config, load_config
from cmaxslam_fbp.experiments.ecrot_sequences import ALIGN_AT_S, PACKET_EVENTS, find_sequences
from cmaxslam_fbp.experiments.paper_figures import ECROT
from cmaxslam_fbp.experiments.slam import BASELINE, OURS, ours
from cmaxslam_fbp.experiments.slam_runs import Method, run_methods
from cmaxslam_fbp.experiments.slam_tables import METRIC, errors_table, published_table, write_study
from cmaxslam_fbp.experiments.workbench import Workbench

_STAND_IN = (
    "These recordings are not ECRot's, whose motions, contrast thresholds and event rates are not known here: a "
    "published figure beside ours tells the order of magnitude, and no more."
)


def baseline(scene: str) -> Config:
    """Return CMax-SLAM's settings, with its number of events per packet of each scene."""
    events = PACKET_EVENTS.get(scene)
    return load_config(["cmax_slam"], [] if events is None else [f"frontend.events_per_packet={events}"])


METHODS: dict[str, Method] = {BASELINE: baseline, OURS: ours}


def run_ecrot(bench: Workbench) -> list[Path]:
    """Run the study; return what was written."""
    sequences = find_sequences(bench)
    records = run_methods(bench, "ecrot", sequences, METHODS, align_at_s=ALIGN_AT_S)
    is_original = all(one.kind == "ECRot" for one in sequences)
    parts = [METRIC.format(align_at_s=ALIGN_AT_S), errors_table(records)]
    parts.append(published_table(ECROT, records if is_original else ()))
    return write_study(bench, "ecrot", "ECRot", parts if is_original else [*parts, _STAND_IN], records)
