"""One method on packets: what counts as abnormal, and that processes change no figure but times."""

import shutil

import numpy as np
import pytest

from cmaxslam_fbp.experiments.methods import OUR_METHOD, SURROGATE_METHODS, VELOCITY_METHODS, frontend_config
from cmaxslam_fbp.experiments.packet_sets import blocks_of, packet_row, read_packets
from cmaxslam_fbp.experiments.velocity_tables import cell
from cmaxslam_fbp.experiments.velocity_trial import OurEstimator, PacketOptimiser, velocity_row
from cmaxslam_fbp.rows.running import PoolSettings, open_pool, run_rows


@pytest.fixture(scope="module")
def boxes(quick_bench):
    sequence, *_ = quick_bench.sequences(["boxes_rotation"])
    (values,) = quick_bench.packets([sequence], "rotation")
    return sequence, values, read_packets(quick_bench.settings.out / values["path"])


def test_a_packet_starts_from_the_result_before(boxes):
    *_, found = boxes
    run = PacketOptimiser(found.camera, frontend_config(VELOCITY_METHODS["FuncLinear 1"], "Var", "rotation"))
    start, numbers = next(blocks_of(found))
    run.begin(start)
    first = run(found.packets[numbers[0]])
    assert not first.is_abnormal
    np.testing.assert_allclose(first.velocity, found.references[numbers[0]], atol=np.radians(15))
    again = run(found.packets[numbers[0]])  # from where it has just been
    assert again.evaluations < first.evaluations
    np.testing.assert_allclose(again.velocity, first.velocity, atol=np.radians(2))


def test_events_that_have_left_the_image_are_abnormal_and_count_as_zero(boxes):
    *_, found = boxes
    run = PacketOptimiser(found.camera, frontend_config(VELOCITY_METHODS["FuncRect 1"], "LL", "rotation"))
    run.begin(np.array([0.0, 500.0, 0.0]))
    outcome = run(found.packets[0])
    assert outcome.is_abnormal
    np.testing.assert_array_equal(outcome.velocity, np.zeros(3))


def test_our_estimator_needs_no_start(boxes):
    *_, found = boxes
    run = OurEstimator(found.camera, frontend_config(OUR_METHOD, "Var", "rotation"))
    run.begin(np.array([0.0, 500.0, 0.0]))
    outcome = run(found.packets[0])
    np.testing.assert_allclose(outcome.velocity, found.references[0], atol=np.radians(15))


@pytest.fixture(scope="module")
def claims(quick_bench, boxes):
    """Some methods on 30 packets of boxes."""
    sequence, *_ = boxes
    (values,) = quick_bench.run([packet_row(sequence, "rotation", 30, 10)])
    methods = {**VELOCITY_METHODS, **SURROGATE_METHODS, "ours": OUR_METHOD}
    names = ("Rect", "FBP", "ours", "Linear", "FuncLinear 1")
    rows = [velocity_row(sequence, values, methods[name], "Var", "rotation") for name in names]
    return dict(zip(names, quick_bench.run(rows), strict=True))


def test_fbp_makes_rect_binning_usable(claims):
    """The row "Rect" of the paper has finite differences of a staircase."""
    assert claims["FBP"]["rms_per_axis"] < 0.7 * claims["Rect"]["rms_per_axis"]
    assert 4 * claims["FBP"]["evaluations"] < claims["Rect"]["evaluations"]


def test_our_optimiser_needs_far_fewer_evaluations(claims):
    assert 3 * claims["ours"]["evaluations"] < claims["FBP"]["evaluations"]
    assert claims["ours"]["rms_per_axis"] < claims["FBP"]["rms_per_axis"]


def test_no_packet_of_the_variance_ends_abnormally(claims):
    assert all(values["abnormal"] == 0 for values in claims.values())


@pytest.mark.parametrize(
    ("abnormal", "has_time", "has_error"), [(0, True, True), (1, True, True), (2, False, True), (3, False, False)]
)
def test_abnormal_packets_take_away_the_time_and_many_the_error(abnormal, has_time, has_error):
    figures = cell({"packets": 10, "abnormal": abnormal, "rms_per_axis": 2.0, "mean_ms": 7.0})
    assert figures.ms == (7.0 if has_time else None)
    assert figures.error == (2.0 if has_error else None)


def test_two_workers_give_the_same_errors_as_one(quick_bench, boxes, tmp_path):
    pytest.importorskip("distributed")
    sequence, values, _ = boxes
    rows = [velocity_row(sequence, values, SURROGATE_METHODS[name], "Var", "rotation") for name in ("STE", "FBP")]
    (tmp_path / "sequences").mkdir()
    shutil.copy(quick_bench.settings.out / values["path"], tmp_path / values["path"])
    alone = run_rows(rows, quick_bench.settings.out)
    with open_pool(PoolSettings(jobs=2)) as pool:
        together = run_rows(rows, tmp_path, pool=pool)
    assert [result["jobs"] for result in together] == [2, 2]
    for one, other in zip(alone, together, strict=True):
        assert one["rms_per_axis"] == other["rms_per_axis"]
        assert one["evaluations"] == other["evaluations"]
        assert one["statuses"] == other["statuses"]
