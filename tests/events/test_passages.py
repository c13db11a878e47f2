from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmaxslam_fbp.events import Events, SensorSize
from cmaxslam_fbp.events.passages import edge_passages, passages_for

SIZE = SensorSize(3, 2)


def events_of(rows):
    t, x, y, p = np.array(rows, np.int64).reshape(-1, 4).T
    return Events(t.copy(), x.astype(np.uint16), y.astype(np.uint16), p.astype(np.uint8))


def rows_of(events):
    return list(zip(events.t_ns.tolist(), events.x.tolist(), events.y.tolist(), events.p.tolist(), strict=True))


def passages_of(rows, longest_ns, cuts=()):
    bounds = [0, *sorted(cuts), len(rows)]
    chunks = [events_of(rows[a:b]) for a, b in pairwise(bounds)]
    return rows_of(Events.concatenate([Events.empty(), *edge_passages(chunks, SIZE, longest_ns)]))


def runs_of(rows, longest_ns):
    """The times of each run, one pixel after the other."""
    runs = []
    for pixel in sorted({row[1:3] for row in rows}):
        run = []
        for t, x, y, p in rows:
            if (x, y) != pixel:
                continue
            if run and (p != run[0][1] or t - run[0][0] > longest_ns or len(run) == 8):
                runs.append((pixel, run))
                run = []
            run.append((t, p))
        runs.append((pixel, run))
    return runs


def middle_of(times):
    """The time of the level halfway between the one before the first crossing and the last crossing."""
    if len(times) == 1:
        return times[0]
    return int(np.floor(np.interp(len(times) / 2, np.arange(1, len(times) + 1), times)))


@given(
    rows=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 2), st.integers(0, 1), st.integers(0, 1)), max_size=80),
    longest=st.integers(1, 40),
    unit_ns=st.sampled_from([1, 25_000_000]),  # in nanoseconds, or over ten seconds: stamps of 32 bits last for four
    cuts=st.lists(st.integers(0, 80), max_size=4),
)
def test_finds_what_a_loop_over_each_pixel_finds_however_the_stream_is_cut(rows, longest, unit_ns, cuts):
    longest_ns = longest * unit_ns
    rows = sorted(((t * unit_ns, *pixel) for t, *pixel in rows), key=lambda row: row[0])
    wanted = [(*rows[0][:3], 1), (*rows[-1][:3], 1)] if rows else []
    seen = set()
    for pixel, run in runs_of(rows, longest_ns):
        wanted.append((middle_of([t for t, _ in run]), *pixel, len(run) if pixel in seen else 1))
        seen.add(pixel)
    found = passages_of(rows, longest_ns, [min(cut, len(rows)) for cut in cuts])
    assert sorted(found) == sorted(wanted)
    assert [row[0] for row in found] == sorted(row[0] for row in found)


@pytest.mark.parametrize(
    ("times", "middle"),
    [([10], 10), ([10, 14], 10), ([10, 14, 30], 12), ([10, 14, 30, 31], 14), ([10, 14, 30, 40, 41], 22)],
)
def test_a_run_of_n_events_is_put_at_the_time_of_the_one_at_n_halves(times, middle):
    rows = [(0, 1, 0, 0), *[(t, 1, 0, 1) for t in times], (90, 2, 1, 0)]
    assert passages_of(rows, 50)[1:-1] == [(0, 1, 0, 1), (middle, 1, 0, len(times)), (90, 2, 1, 1)]


def test_the_first_run_of_a_pixel_counts_as_a_single_event_since_its_level_is_not_known():
    rows = [(1, 0, 0, 1), (2, 0, 0, 1), (3, 0, 0, 1), (7, 0, 0, 0), (9, 0, 0, 0), (20, 1, 0, 1), (21, 1, 0, 1)]
    assert passages_of(rows, 50)[1:-1] == [(1, 0, 0, 1), (7, 0, 0, 2), (20, 1, 0, 1)]


def crossings(levels, threshold):
    """Stamps and polarities of the events of a pixel that sees these levels, one per nanosecond."""
    reference, rows = levels[0], []
    for t, level in enumerate(levels):
        while abs(level - reference) >= threshold:
            rises = level > reference
            reference += threshold if rises else -threshold
            rows.append((t, 0, 0, int(rises)))
    return rows


@pytest.mark.parametrize("direction", [1, -1])
def test_a_flank_is_found_at_the_same_place_whichever_way_it_moves(direction):
    """A pixel under a wave whose rising flank is at phase 0: it fires ON there one way and OFF the other way."""
    phases = direction * np.linspace(-10, 60, 40_000)
    passages, firsts = [], []
    for amplitude in np.linspace(0.5, 1.5, 41):
        rows = crossings(amplitude * np.sin(phases), 0.3)
        flank = int(direction > 0)
        runs = [run for _, run in runs_of(rows, 10**6) if run[0][1] == flank and len(run) > 1]
        stamps = {(middle_of([t for t, _ in run]), 0, 0, len(run)) for run in runs[2:-2]}
        passages += [phases[row[0]] for row in passages_of(rows, 10**6) if row in stamps]
        firsts += [phases[run[0][0]] for run in runs[2:-2]]
    wrapped = (np.array(passages) + np.pi) % (2 * np.pi) - np.pi
    assert len(wrapped) > 250
    assert abs(wrapped.mean()) < 0.03
    early = (np.array(firsts) + np.pi) % (2 * np.pi) - np.pi
    assert -direction * early.mean() > 0.2  # the first events alone lead


def test_a_long_run_counts_as_several():
    rows = [(t, 0, 0, 1) for t in range(20)]
    assert [row[0] for row in passages_of(rows, 1000)] == [0, 3, 11, 17, 19]


def test_a_stream_without_events_has_no_passages():
    assert passages_of([], 10) == []
    assert passages_of([(5, 0, 0, 0)], 10) == [(5, 0, 0, 1)] * 3


def test_stamps_of_any_size():
    start_ns = 1_468_941_032_000_000_000
    rows = [(start_ns + t, 1, 1, 0) for t in (0, 3, 7)]
    assert [row[0] - start_ns for row in passages_of(rows, 10)] == [0, 1, 7]


def test_pauses_of_any_length():
    hour_ns = 3_600_000_000_000
    size = SensorSize(1280, 720)
    rows = [(k * hour_ns + t, 1, 1, 0) for k in (0, 3, 30) for t in (5, 8)]
    for chunks in ([events_of(rows)], [events_of(rows[k : k + 1]) for k in range(len(rows))]):
        found = Events.concatenate(list(edge_passages(chunks, size, 10)))
        assert found.t_ns.tolist() == [5, 5, 3 * hour_ns + 5, 30 * hour_ns + 5, 30 * hour_ns + 8]


def test_runs_go_on_through_chunks_that_are_longer_than_stamps_can_tell():
    """Stamps of 32 bits last for four seconds."""
    second_ns = 10**9
    rows = [(k * second_ns // 2 + t, 0, 0, k % 2) for k in range(30) for t in (0, 10, 20)]
    wanted = passages_of(rows, second_ns // 4, range(len(rows)))
    assert passages_of(rows, second_ns // 4) == wanted
    assert [row[3] for row in wanted[2:-1]] == [3] * 29


def test_many_passages_in_one_piece_are_in_order():
    random = np.random.default_rng(0)
    t_ns = np.sort(random.integers(0, 10**9, 200_000))
    x, y, p = (random.integers(0, n, len(t_ns)) for n in (240, 180, 2))
    events = Events(t_ns, x.astype(np.uint16), y.astype(np.uint16), p.astype(np.uint8))
    whole = Events.concatenate(list(edge_passages([events], SensorSize(240, 180), 10**8)))
    pieces = edge_passages([events[k : k + 777] for k in range(0, len(events), 777)], SensorSize(240, 180), 10**8)
    assert (np.diff(whole.t_ns) >= 0).all()
    assert rows_of(whole) == rows_of(Events.concatenate(list(pieces)))


def test_weak_passages_are_left_out_where_there_are_enough_strong_ones():
    passages = events_of([(t, 0, 0, n) for t, n in enumerate((1, 2, 1, 3, 2, 1))])
    assert passages_for(passages, 2, 3).t_ns.tolist() == [1, 3, 4]
    assert passages_for(passages, 3, 1).t_ns.tolist() == [3]
    assert passages_for(passages, 2, 4) is passages


def test_of_too_many_passages_some_are_taken_spread_over_time_and_sensor_and_the_same_by_all():
    random = np.random.default_rng(1)
    count = 40_000
    t_ns = np.sort(random.integers(0, 10**6, count)) * 1000
    x, y, n = (random.integers(low, high, count) for low, high in ((0, 240), (0, 180), (1, 5)))
    passages = Events(t_ns, x.astype(np.uint16), y.astype(np.uint16), n.astype(np.uint8))
    strong, half, quarter = (set(rows_of(passages_for(passages, 2, 0, most))) for most in (30_001, 20_000, 8000))
    assert len(strong) == np.count_nonzero(n >= 2)
    assert quarter < half < strong
    assert len(quarter) == pytest.approx(len(strong) / 4, rel=0.03)
    part = passages[5000:25_000]
    assert set(rows_of(passages_for(part, 2, 0, 4000))) == quarter & set(rows_of(part))
    for column, size in ((0, 10**9), (1, 240), (2, 180)):
        shares = np.histogram([row[column] for row in quarter], 10, (0, size))[0] / (len(quarter) / 10)
        np.testing.assert_allclose(shares, 1, atol=0.15)
    assert len(passages_for(passages, 2, 40_000, 20_000)) == pytest.approx(count / 2, rel=0.03)  # too few strong ones


def test_where_there_are_too_many_passages_some_pixels_are_looked_at_and_theirs_are_the_same():
    """Each pixel turns bright and dark again, three events each time: 500,000 passages a second, and later a tenth."""
    size, period_ns, longest_ns = SensorSize(100, 50), 10_000_000, 5_000_000
    pixels = np.arange(5000)
    blocks = []
    for k, part in enumerate([pixels] * 30 + [pixels[::10]] * 60):
        offsets = np.repeat([0, 100, 200], len(part)) * 1000
        t_ns = k * period_ns + offsets + np.tile(part * 1000, 3)
        order = np.argsort(t_ns, kind="stable")
        y, x = np.divmod(np.tile(part, 3)[order], 100)
        blocks.append(Events(t_ns[order], *(a.astype(np.uint16) for a in (x, y)), np.full(len(t_ns), k % 2, np.uint8)))
    every = Events.concatenate(list(edge_passages(blocks, size, longest_ns)))
    some = Events.concatenate(list(edge_passages(blocks, size, longest_ns, 100_000)))

    def rates_s(passages, start_ns, end_ns):
        part = passages.between(start_ns, end_ns)
        return np.count_nonzero(part.p > 1) / (end_ns - start_ns) * 1e9

    busy, quiet = (150_000_000, 250_000_000), (800_000_000, 890_000_000)
    assert rates_s(every, *busy) > 450_000
    assert 50_000 <= rates_s(some, *busy) <= 200_000
    assert rates_s(some, *quiet) == pytest.approx(rates_s(every, *quiet), rel=0.02)  # all pixels again
    strong = {row for row in rows_of(some) if row[3] > 1}
    assert strong < set(rows_of(every))
    stream = Events.concatenate(blocks)
    for length in (777, 40_000, len(stream)):
        cut = [stream[k : k + length] for k in range(0, len(stream), length)]
        assert rows_of(Events.concatenate(list(edge_passages(cut, size, longest_ns, 100_000)))) == rows_of(some)


def test_a_run_lasts_as_long_as_its_time_allows() -> None:
    times = np.array([0, 10, 20, 100, 180, 260, 400, 480, 560], np.int64) * 1_000_000
    ones = np.ones(len(times), np.uint16)
    p = np.array([0, 1, 1, 0, 0, 0, 1, 1, 1], np.uint8)
    events = Events(times, ones, ones, p)

    def longest_ns(t_ns: int) -> int:
        return 200_000_000 if 100_000_000 <= t_ns < 300_000_000 else 50_000_000

    for chunks in ([events], [events[k : k + 1] for k in range(len(events))]):
        found = Events.concatenate(list(edge_passages(chunks, SIZE, longest_ns)))
        assert found.p[1:-1].tolist() == [1, 2, 3, 1, 1, 1]  # between the stream's first and last event
        assert found.t_ns[3] == 140_000_000
