"""Each effect of a realistic sensor on its own, against what is known in closed form."""

from dataclasses import replace

import numpy as np
import pytest
from event_digest import event_digest

from cmaxslam_fbp.errors import SimulationError
from cmaxslam_fbp.events import Events
from cmaxslam_fbp.geometry.camera import Camera
from cmaxslam_fbp.simulation import SENSORS, SensorSettings, Simulation, SimulationSettings
from cmaxslam_fbp.simulation.circuit_kernels import cross_filtered, draw_normal
from cmaxslam_fbp.simulation.pixels import CircuitPixels, IdealPixels, draw_traits

CLEAN = SensorSettings(0.25, 0.25, 0.0, refractory_s=0.0, noise_rate_hz=0.0, hot_pixels=0)
GREY = np.full((64, 128), 0.5, np.float32)
CAMERA = Camera(64, 48, 60, 60, 32, 24)


class Pixels:
    """Pixels of given settings that see given levels; `bright` is the log intensity 0."""

    def __init__(self, count=1, level=0.0, seed=0, **changes):
        settings = replace(CLEAN, **changes)
        self.circuit = CircuitPixels(draw_traits(settings, count, seed), settings, 0.0, seed)
        self.circuit.begin(np.full(count, level, np.float32))
        self.count = count

    def cross(self, levels, times_us, start_us=0, capacity=1_000_000):
        """Events (stamp, pixel, polarity) of levels (K,), the same for all pixels, at times (K,)."""
        levels = np.tile(np.concatenate([[np.nan], levels]).astype(np.float32), (self.count, 1))
        times = np.concatenate([[0.0], np.asarray(times_us, np.float64)])
        stamps, codes = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        circuit = self.circuit
        self.done, count = cross_filtered(
            levels, times, np.int64(start_us), 0, self.count, circuit._circuit, circuit._thresholds, circuit._state,
            stamps, codes, 0,
        )  # fmt: skip
        return np.column_stack([stamps[:count], codes[:count] // 2, codes[:count] % 2])


def step(size, after_us=20_000, steps=200):
    """Levels of a sudden step at the time 0 and their times."""
    times = np.linspace(0, after_us, steps + 1)[1:]
    times = np.concatenate([[0.01], times])
    return np.full(len(times), size), times


@pytest.mark.parametrize("tau_us", [100.0, 300.0, 2000.0])
def test_the_answer_to_a_step_comes_after_the_time_of_a_low_pass_filter(tau_us):
    # y = 0.9 (1 - exp(-t / tau)) passes 0.25, 0.5 and 0.75.
    events = Pixels(time_constant_s=tau_us * 1e-6, dark_light=1e9).cross(*step(0.9))
    expected = -tau_us * np.log(1 - np.array([0.25, 0.5, 0.75]) / 0.9)
    np.testing.assert_allclose(events[:, 0], expected, atol=0.01 * tau_us + 1.5)
    assert (events[:, 2] == 1).all()


def test_a_slow_ramp_comes_late_by_the_time_constant():
    # After the start-up the output of a ramp is the ramp, tau later.
    events = Pixels(time_constant_s=500e-6, dark_light=1e9).cross([4.0], [40_000])
    np.testing.assert_allclose(events[2:, 0], 2500 * np.arange(3, len(events) + 1) + 500, atol=8)


def test_the_time_constant_grows_as_the_light_falls():
    def first(level, **changes):
        pixels = Pixels(level=level - 0.5, time_constant_s=300e-6, **changes)
        return pixels.cross(*step(level, 60_000, 2000))[0, 0]

    half = -np.log(0.5)
    assert first(0.0, dark_light=0.0) == pytest.approx(300 * half, rel=0.03)
    assert first(np.log(0.1), dark_light=0.0) == pytest.approx(3000 * half, rel=0.03)
    # The dark current bounds it.
    assert first(np.log(1e-6), dark_light=0.1) == pytest.approx(300 * 11 * half, rel=0.03)


def test_without_bandwidth_noise_and_leak_a_circuit_is_an_ideal_comparator():
    clean = replace(CLEAN, contrast_sigma=0.02)  # where ON and OFF are the same, levels return to a threshold exactly
    settings = SimulationSettings("shapes", camera=CAMERA, duration_s=0.3, sensor=clean)
    simulation = Simulation(settings)
    ideal = Events.concatenate(simulation.chunks())
    sensor = simulation.sensor()
    assert isinstance(sensor._pixels, IdealPixels)
    circuit = CircuitPixels(sensor.traits, clean, 0.0, 0)
    circuit.begin(sensor.render(simulation.motion.rotations([0.0])[0]).ravel())
    sensor._pixels = circuit
    simulation.sensor = lambda: sensor
    real = Events.concatenate(simulation.chunks())
    assert len(ideal) > 1000
    assert len(real) == len(ideal)
    order = [np.lexsort((events.t_ns, events.x, events.y)) for events in (ideal, real)]
    np.testing.assert_allclose(real.t_ns[order[1]], ideal.t_ns[order[0]], atol=1000)


def test_shot_noise_moves_the_crossings_of_a_ramp_by_its_part_of_the_slope():
    # One threshold of 0.25 per 1000 us; reference and level are off by 0.02 each.
    events = Pixels(20_000, level_noise=0.02).cross([0.4], [1600])
    first = events[np.unique(events[:, 1], return_index=True)[1], 0]
    assert first.mean() == pytest.approx(1000.5, abs=3)
    assert first.std() == pytest.approx(1000 * np.sqrt(2) * 0.02 / 0.25, rel=0.03)


def test_drawn_numbers_are_nearly_normal():
    state, numbers = np.uint64(1), []
    for _ in range(50_000):
        state, number = draw_normal(np.uint64(state))
        numbers.append(number)
    assert np.mean(numbers) == pytest.approx(0, abs=0.02)
    assert np.std(numbers) == pytest.approx(1, abs=0.02)
    assert np.abs(numbers).max() < 3.5


def still_events(duration_s=2.0, scene=GREY, **changes):
    settings = SimulationSettings(
        scene, CAMERA, duration_s, replace(CLEAN, **changes), peak_speed_deg_s=0.0, seed=changes.get("seed", 0)
    )
    simulation = Simulation(settings)
    return simulation, Events.concatenate(simulation.chunks())


@pytest.mark.parametrize(("share", "rate_hz"), [(0.25, 5.0), (1.0, 20.0)])
def test_background_noise_has_its_rate_and_is_rarer_in_bright_light(share, rate_hz):
    # A grey wall is the brightest light of its scene.
    _, events = still_events(noise_rate_hz=20.0, noise_bright_share=share)
    expected = rate_hz * 2.0 * 64 * 48
    assert len(events) == pytest.approx(expected, abs=5 * np.sqrt(expected))
    assert events.p.mean() == pytest.approx(0.5, abs=0.02)


def test_leak_makes_on_events_at_its_rate_regularly_in_each_pixel():
    _, events = still_events(4.0, leak_rate_hz=2.0)
    assert (events.p == 1).all()
    counts = np.bincount(events.y.astype(int) * 64 + events.x, minlength=64 * 48)
    assert set(np.unique(counts)) <= {7, 8}
    np.testing.assert_allclose(events.t_ns[0] - 1_468_941_032_000_000_000, 500e6, atol=1e4)
    _, spread = still_events(20.0, leak_rate_hz=2.0, leak_spread=0.3)
    counts = np.bincount(spread.y.astype(int) * 64 + spread.x, minlength=64 * 48)
    assert np.log(counts).std() == pytest.approx(0.3, abs=0.02)


def test_leak_rates_follow_the_thresholds():
    simulation, events = still_events(20.0, leak_rate_hz=2.0, contrast_sigma=0.03)
    counts = np.bincount(events.y.astype(int) * 64 + events.x, minlength=64 * 48)
    np.testing.assert_allclose(counts, 20 * 2.0 * 0.25 / simulation.sensor().traits.thresholds_on, atol=1.5)


def test_changes_during_the_refractory_time_are_forgotten():
    # 0.25 per 250 us: an event at 250 us, blind until 750 us with the level at 0.75, the next 250 us later.
    events = Pixels(refractory_s=500e-6, level_noise=1e-12).cross([2.0], [2000])
    np.testing.assert_allclose(events[:, 0], [250, 1000, 1750], atol=1)


def test_a_block_may_be_cut_anywhere():
    settings = {"level_noise": 0.03, "refractory_s": 3e-4, "noise_rate_hz": 50.0, "leak_rate_hz": 3.0}
    whole, cut = (Pixels(50, time_constant_s=4e-4, **settings) for _ in range(2))
    times = np.arange(500, 20_001, 500)
    levels = 0.5 * np.sin(times / 1500)
    expected = whole.cross(levels, times)
    pieces = [cut.cross(levels[:13], times[:13]), cut.cross(levels[13:], times[13:] - times[12], start_us=times[12])]
    pieces[1][:, 0] += times[12]
    joined = np.concatenate(pieces)
    joined = joined[np.lexsort((joined[:, 0], joined[:, 1]))]
    assert len(expected) > 400
    np.testing.assert_allclose(joined, expected, atol=1)


def test_a_pixel_without_room_keeps_its_state():
    levels, times = 0.5 * np.sin(np.arange(500, 20_001, 500) / 1500), np.arange(500, 20_001, 500)
    whole, short = (Pixels(5, time_constant_s=4e-4, noise_rate_hz=50.0, noise_bright_share=0.5) for _ in range(2))
    expected = whole.cross(levels, times)
    first = short.cross(levels, times, capacity=len(expected) // 2)
    done = short.done
    assert 0 < done < 5
    np.testing.assert_array_equal(first, expected[expected[:, 1] < done])
    # Those that are done go on from their end, the others from where they were.
    again = short.cross(levels, times)
    np.testing.assert_array_equal(again[again[:, 1] >= done], expected[expected[:, 1] >= done])


@pytest.mark.parametrize("rate_hz", [1000.0, 20_000.0, 100_000.0])
@pytest.mark.parametrize("sensor", ["ideal", "davis"])
def test_hot_pixels_fire_as_fast_as_they_are_told(sensor, rate_hz):
    settings = replace(SENSORS[sensor], noise_rate_hz=0.0, leak_rate_hz=0.0, hot_pixels=3, hot_pixel_rate_hz=rate_hz)
    settings = replace(settings, refractory_s=1.1e-3)
    simulation = Simulation(SimulationSettings(GREY, CAMERA, 0.5, settings, peak_speed_deg_s=0.0))
    events = Events.concatenate(simulation.chunks())
    counts = np.bincount(events.y.astype(int) * 64 + events.x, minlength=64 * 48)
    assert (np.flatnonzero(counts) == simulation.sensor().traits.hot_pixels).all()
    np.testing.assert_allclose(counts[counts > 0], 0.5 * rate_hz, rtol=5 / np.sqrt(0.5 * rate_hz))


@pytest.mark.parametrize("sensor", ["davis", "dvxplorer"])
def test_real_sensors_are_reproducible_however_they_are_read(sensor):
    settings = SimulationSettings("shapes", CAMERA, 0.3, SENSORS[sensor])
    expected = event_digest(Simulation(settings).chunks())
    assert expected[0] > 1000
    assert event_digest(Simulation(settings).chunks(0.001)) == expected
    assert event_digest(Simulation(replace(settings, seed=1)).chunks()) != expected


def test_polarities_differ_by_their_thresholds():
    settings = SimulationSettings("poster", CAMERA, 0.5, replace(CLEAN, contrast_on=0.2, contrast_off=0.4))
    events = Events.concatenate(Simulation(settings).chunks())
    assert 1.5 < events.p.mean() / (1 - events.p.mean()) < 2.5


@pytest.mark.parametrize(
    "changes", [{"time_constant_s": -1.0}, {"readout_rate_hz": 0.0}, {"noise_bright_share": 2.0}, {"jitter_s": np.inf}]
)
def test_impossible_circuits_are_refused_in_one_line(changes):
    with pytest.raises(SimulationError) as failure:
        SensorSettings(**changes)
    assert "\n" not in str(failure.value)
