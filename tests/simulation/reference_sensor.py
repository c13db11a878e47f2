"""The event sensor again, slowly and plainly: rendering by rendering, pixel by pixel, in NumPy and Python integers."""

import math

import numpy as np

from cmaxslam_fbp.simulation.cube_map import FACES

_MASK = 2**64 - 1


def _next(state):
    state = (state + 0x9E3779B97F4A7C15) & _MASK
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return state, z ^ (z >> 31)


def _gap_us(bits, rate_hz):
    return math.inf if rate_hz == 0 else -math.log(float((bits >> 11) + 1) * 2.0**-53) / rate_hz * 1e6


def _turn(matrix, bearings):
    m, (bx, by, bz) = matrix.astype(np.float32), bearings.T
    return [m[row, 0] * bx + m[row, 1] * by + m[row, 2] * bz for row in range(3)]


def _bilinear(texture, column, row):
    i, j = column.astype(np.int32), row.astype(np.int32)
    u, v = column - i.astype(np.float32), row - j.astype(np.float32)
    upper = texture[j, i] + u * (texture[j, i + 1] - texture[j, i])
    lower = texture[j + 1, i] + u * (texture[j + 1, i + 1] - texture[j + 1, i])
    return upper + v * (lower - upper)


def _panorama_levels(cube, bearings, rotation, middle):
    x, y, z = _turn(middle, bearings)
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    face = np.where(y >= 0, 4, 5)
    face = np.where((ax >= ay), np.where(x >= 0, 2, 3), face)
    face = np.where((az >= ax) & (az >= ay), np.where(z >= 0, 0, 1), face)
    levels = np.empty(len(bearings), np.float32)
    half, limit = np.float32((cube.size - 1) / 2), np.float32(cube.size) - np.float32(1.01)
    for n in range(6):
        x, y, z = _turn(FACES[n] @ rotation, bearings)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            scale = np.float32(cube.focal) / z
            column = np.clip(np.nan_to_num(x * scale + half), np.float32(0), limit)
            row = np.clip(np.nan_to_num(y * scale + half), np.float32(0), limit)
        levels = np.where(face == n, _bilinear(cube.texels[n], column, row), levels)
    return levels


def plane_levels(plane, points, rotation, position):
    """Levels (N,) that the points (N, 2) of the normalised plane see: rays that are cut with the plane, in float64."""
    rays = np.column_stack([points, np.ones(len(points))]) @ rotation.T
    lengths = (plane.depth_m - position[2]) / rays[:, 2]
    column, row = (plane.focal * (position + lengths[:, None] * rays) / plane.depth_m + (plane.size - 1) / 2)[:, :2].T
    i, j = np.floor(column).astype(int), np.floor(row).astype(int)
    u, v, texels = column - i, row - j, plane.texels[0].astype(np.float64)
    upper = (1 - u) * texels[j, i] + u * texels[j, i + 1]
    lower = (1 - u) * texels[j + 1, i] + u * texels[j + 1, i + 1]
    return ((1 - v) * upper + v * lower).astype(np.float32)


def render(simulation, rotation, middle, object_rotation=None, position=None):
    """Levels (N,) at one rendering of a block whose middle rendering has the rotation `middle`."""
    front = simulation.foreground
    bearings = simulation.camera.bearings().reshape(-1, 3).astype(np.float32)
    if position is None:
        levels = _panorama_levels(simulation.scene_map, bearings, rotation, middle)
    else:
        points = simulation.camera.undistorted_pixels().reshape(-1, 2)
        levels = plane_levels(simulation.scene_map, points, rotation, position)
    if front is not None:
        x, y, z = _turn(object_rotation.T @ rotation, bearings)
        size = len(front.levels)
        half, limit = np.float32((size - 1) / 2), np.float32(size) - np.float32(1.01)
        ahead = z > np.float32(0.1)
        scale = np.float32(front.focal) / np.where(ahead, z, np.float32(1))
        column, row = x * scale + half, y * scale + half
        hit = ahead & (column >= 0) & (row >= 0) & (column <= limit) & (row <= limit)
        column, row = np.where(hit, column, np.float32(0)), np.where(hit, row, np.float32(0))
        alpha = _bilinear(front.opacity, column, row)
        levels = np.where(hit, levels + alpha * (_bilinear(front.levels, column, row) - levels), levels)
    return levels


def reference_events(simulation):
    """All events of a simulation as rows (t_ns, y, x, p), in order."""
    sensor = simulation.sensor()  # for its drawn thresholds and seeds only
    on, off, rates = sensor.traits.thresholds_on, sensor.traits.thresholds_off, sensor.traits.noise_rates_hz
    count, width = len(on), simulation.camera.width
    refractory_us = round(simulation.settings.sensor.refractory_s * 1e6)
    state = [int(s) for s in sensor.traits.random_states]
    noise = [float(t) for t in sensor.traits.noise_times_us]
    start = simulation.motion.rotations([0.0])[0]
    front = simulation.foreground
    front_start = None if front is None else front.motion.rotations([0.0])[0]
    path = simulation.translation
    level = render(simulation, start, start, front_start, None if path is None else path.positions([0.0])[0])
    reference, last = level.copy(), [-(10**15)] * count
    rows = []
    for block in simulation.blocks:
        times_us = block.times_us
        times_s = (block.start_us + times_us[1:]) * 1e-6
        rotations = simulation.motion.rotations(times_s)
        fronts = [None] * block.steps if front is None else front.motion.rotations(times_s)
        positions = [None] * block.steps if path is None else path.positions(times_s)
        middle = rotations[block.steps // 2]
        for n in range(count):
            noise[n] -= block.start_us
            last[n] -= block.start_us
        for k in range(1, block.steps + 1):
            after = render(simulation, rotations[k - 1], middle, fronts[k - 1], positions[k - 1])
            for n in range(count):
                due = []
                while True:
                    high, low = reference[n] + on[n], reference[n] - off[n]
                    if not (after[n] >= high or after[n] <= low):
                        break
                    reference[n] = high if after[n] >= high else low
                    fraction = float(reference[n] - level[n]) / float(after[n] - level[n])
                    crossing = times_us[k - 1] + fraction * (times_us[k] - times_us[k - 1])
                    due.append((min(max(math.ceil(crossing), 1), block.length_us), 1, int(reference[n] == high)))
                while noise[n] <= max([times_us[k], *(float(d[0]) for d in due)]):
                    state[n], bits = _next(state[n])
                    due.append((max(math.ceil(noise[n]), 1), 0, bits & 1))
                    noise[n] += _gap_us(bits, rates[n])
                for stamp, _, polarity in sorted(due, key=lambda d: d[:2]):
                    if stamp - last[n] >= refractory_us:
                        last[n] = stamp
                        row = (block.start_us + stamp) * 1000 + simulation.start_ns
                        rows.append((row, n // width, n % width, polarity))
            level = after
        for n in range(count):
            noise[n] += block.start_us
            last[n] += block.start_us
    return sorted(rows, key=lambda row: row[:3])
