"""The compiled event sensor: levels of a pixel over a block of renderings, their crossings, and the ordering.

A block is a stretch of time with `K` renderings. Pixels are independent of each other, so the outer loop runs over
pixels and the inner one over renderings: a pixel's state stays in registers and its path through the scene in
cache. No reassociation of sums is allowed (no `fastmath`), so that the events are the same bits everywhere.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import math

import numpy as np
from numba import njit

LONG_AGO_US = -(10**15)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11, _ONE = (np.uint64(n) for n in (30, 27, 31, 11, 1))
_F0, _F1 = np.float32(0), np.float32(1)


@njit(cache=True, nogil=True, error_model="numpy")
def next_random(state):
    """Return the next state of a splitmix64 generator and its 64 random bits."""
    state = state + _GOLDEN
    z = state
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return state, z ^ (z >> _S31)


@njit(cache=True, nogil=True, error_model="numpy")
def noise_gap_us(bits, rate_hz):
    """Return the exponential waiting time in microseconds that 64 random bits stand for; infinite at rate 0."""
    if rate_hz <= 0.0:
        return math.inf
    uniform = float((bits >> _S11) + _ONE) * 2.0**-53
    return -math.log(uniform) / rate_hz * 1e6


@njit(cache=True, nogil=True, error_model="numpy")
def cube_face(x, y, z):
    """Return the index of the cube face that a direction points to: +z -z +x -x +y -y."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if az >= ax and az >= ay:
        return 0 if z >= _F0 else 1
    if ax >= ay:
        return 2 if x >= _F0 else 3
    return 4 if y >= _F0 else 5


@njit(cache=True, nogil=True, error_model="numpy")
def sample_path(texels, offset, size, focal, matrix, bx, by, bz, address, right, below, levels):
    """Bilinear samples of one square texture along the path of a bearing: `levels[1:]` from `matrix` (9, K).

    The direction of rendering k is `matrix[:, k] (bx, by, bz)`; it meets the texture at
    `focal (x, y) / z + (size - 1) / 2`. `address`, `right` and `below` are scratch (K,).
    """
    count = matrix.shape[1]
    centre = np.float32(0.5) * np.float32(size - 1)
    limit = np.float32(size) - np.float32(1.01)
    for k in range(count):
        x = matrix[0, k] * bx + matrix[1, k] * by + matrix[2, k] * bz
        y = matrix[3, k] * bx + matrix[4, k] * by + matrix[5, k] * bz
        z = matrix[6, k] * bx + matrix[7, k] * by + matrix[8, k] * bz
        scale = focal / z
        column = min(max(x * scale + centre, _F0), limit)
        row = min(max(y * scale + centre, _F0), limit)
        i, j = np.int32(column), np.int32(row)
        address[k] = np.int32(j * np.int32(size) + i)
        right[k] = column - np.float32(i)
        below[k] = row - np.float32(j)
    for k in range(count):
        a = offset + address[k]
        upper = texels[a] + right[k] * (texels[a + 1] - texels[a])
        lower = texels[a + size] + right[k] * (texels[a + size + 1] - texels[a + size])
        levels[k + 1] = upper + below[k] * (lower - upper)


@njit(cache=True, nogil=True, error_model="numpy")
def cover_path(texels, opacity, size, focal, matrix, bx, by, bz, levels):
    """Lay a foreground texture over `levels[1:]`: `(1 - opacity) background + opacity foreground`, in log intensity."""
    centre = np.float32(0.5) * np.float32(size - 1)
    limit = np.float32(size) - np.float32(1.01)
    for k in range(matrix.shape[1]):
        z = matrix[6, k] * bx + matrix[7, k] * by + matrix[8, k] * bz
        if z <= np.float32(0.1):
            continue
        x = matrix[0, k] * bx + matrix[1, k] * by + matrix[2, k] * bz
        y = matrix[3, k] * bx + matrix[4, k] * by + matrix[5, k] * bz
        scale = focal / z
        column, row = x * scale + centre, y * scale + centre
        if not (column >= _F0 and row >= _F0 and column <= limit and row <= limit):
            continue
        i, j = int(column), int(row)
        u, v = column - np.float32(i), row - np.float32(j)
        a = j * size + i
        upper = opacity[a] + u * (opacity[a + 1] - opacity[a])
        lower = opacity[a + size] + u * (opacity[a + size + 1] - opacity[a + size])
        alpha = upper + v * (lower - upper)
        upper = texels[a] + u * (texels[a + 1] - texels[a])
        lower = texels[a + size] + u * (texels[a + size + 1] - texels[a + size])
        levels[k + 1] += alpha * (upper + v * (lower - upper) - levels[k + 1])


@njit(cache=True, nogil=True, error_model="numpy")
def cross_levels(
    levels, times_us, start_us, pixel, on, off, rates_hz, refractory_us,
    reference, previous, last_us, noise_us, random, out_us, out_code, count,
):  # fmt: skip
    """Turn the levels of one pixel into events, and return the new event count, or -1 where the output is full.

    `levels[k]` (K + 1,) is the log intensity at `times_us[k]` after the block's start, linear in between;
    `levels[0]` is taken from the state. An event is due whenever the level reaches the reference plus the ON or
    minus the OFF threshold; the reference then moves by exactly that threshold. An event within the refractory
    time of the last one is lost. Stamps are the first whole microsecond at or after the crossing: they lie in
    `(start, end]`. The state arrays of the pixel change only if all its events found room.
    """
    steps = len(times_us) - 1
    base, threshold_on, threshold_off = reference[pixel], on[pixel], off[pixel]
    low, high = base - threshold_off, base + threshold_on
    next_noise = noise_us[pixel] - start_us
    length_us = np.int64(times_us[steps])
    active = 0
    for k in range(1, steps + 1):
        active += (levels[k] >= high) | (levels[k] <= low)
    if active == 0 and next_noise > times_us[steps]:
        previous[pixel] = levels[steps]
        return count
    capacity = len(out_us)
    last = last_us[pixel] - start_us
    state = random[pixel]
    before = previous[pixel]
    for k in range(1, steps + 1):
        level = levels[k]
        if low < level < high and next_noise > times_us[k]:
            before = level
            continue
        while True:
            rising = level >= high
            crossing = rising or level <= low
            if crossing:
                threshold = high if rising else low
                fraction = np.float64(threshold - before) / np.float64(level - before)
                stamp = np.int64(math.ceil(times_us[k - 1] + fraction * (times_us[k] - times_us[k - 1])))
                stamp = min(max(stamp, np.int64(1)), length_us)
                until = np.float64(stamp)
            else:
                until = times_us[k]
            while next_noise <= until:
                state, bits = next_random(state)
                noise_stamp = max(np.int64(math.ceil(next_noise)), np.int64(1))
                if noise_stamp - last >= refractory_us:
                    if count == capacity:
                        return -1
                    out_us[count] = noise_stamp
                    out_code[count] = 2 * pixel + np.int64(bits & _ONE)
                    count += 1
                    last = noise_stamp
                next_noise += noise_gap_us(bits, rates_hz[pixel])
            if not crossing:
                break
            if stamp - last >= refractory_us:
                if count == capacity:
                    return -1
                out_us[count] = stamp
                out_code[count] = 2 * pixel + (1 if rising else 0)
                count += 1
                last = stamp
            base = threshold
            low, high = base - threshold_off, base + threshold_on
        before = level
    reference[pixel] = base
    previous[pixel] = before
    last_us[pixel] = last + start_us
    noise_us[pixel] = next_noise + start_us
    random[pixel] = state
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def advance_pixels(
    texels, size, focal, bearings, face_matrices, middle,
    front_texels, front_opacity, front_size, front_focal, front_matrices, front_cosine,
    times_us, start_us, on, off, rates_hz, refractory_us,
    reference, previous, last_us, noise_us, random, out_us, out_code, first, count,
):  # fmt: skip
    """Run pixels `first...` through one block; return the first pixel not done and the number of events so far.

    `face_matrices` (6, 9, K) take a bearing to the axes of each cube face at each rendering, `middle` (9,) is
    the rotation of the middle rendering, which chooses the face. `front_matrices` (9, K) do the same for the
    foreground texture (K = 0: none); pixels whose middle bearing has a cosine below `front_cosine` miss it.
    """
    steps = len(times_us) - 1
    levels = np.empty(steps + 1, np.float32)
    address = np.empty(steps, np.int32)
    right = np.empty(steps, np.float32)
    below = np.empty(steps, np.float32)
    has_front = front_matrices.shape[1] == steps and len(front_texels) > 0
    for pixel in range(first, len(bearings)):
        bx, by, bz = bearings[pixel, 0], bearings[pixel, 1], bearings[pixel, 2]
        face = cube_face(
            middle[0] * bx + middle[1] * by + middle[2] * bz,
            middle[3] * bx + middle[4] * by + middle[5] * bz,
            middle[6] * bx + middle[7] * by + middle[8] * bz,
        )
        levels[0] = previous[pixel]
        sample_path(
            texels, face * size * size, size, focal, face_matrices[face], bx, by, bz, address, right, below, levels
        )
        if has_front:
            k = steps // 2
            cosine = front_matrices[6, k] * bx + front_matrices[7, k] * by + front_matrices[8, k] * bz
            if cosine > front_cosine:
                cover_path(front_texels, front_opacity, front_size, front_focal, front_matrices, bx, by, bz, levels)
        done = cross_levels(
            levels, times_us, start_us, pixel, on, off, rates_hz, refractory_us,
            reference, previous, last_us, noise_us, random, out_us, out_code, count,
        )  # fmt: skip
        if done < 0:
            return pixel, count
        count = done
    return len(bearings), count


@njit(cache=True, nogil=True, error_model="numpy")
def order_events(stamps_us, codes, width, length_us, offset_us, origin_ns, t_ns, x, y, p):
    """Counting sort of a block's events by stamp in `1 ... length_us`; equal stamps stay in pixel order."""
    places = np.zeros(length_us + 2, np.int64)
    for i in range(len(stamps_us)):
        places[stamps_us[i] + 1] += 1
    for stamp in range(length_us + 1):
        places[stamp + 1] += places[stamp]
    for i in range(len(stamps_us)):
        stamp = stamps_us[i]
        place = places[stamp]
        places[stamp] = place + 1
        pixel = codes[i] >> 1
        row = pixel // width
        t_ns[place] = origin_ns + (offset_us + stamp) * 1000
        x[place] = pixel - row * width
        y[place] = row
        p[place] = codes[i] & 1


@njit(cache=True, nogil=True, error_model="numpy")
def render_levels(
    texels, size, focal, bearings, face_matrices, middle,
    front_texels, front_opacity, front_size, front_focal, front_matrices, front_cosine, out,
):  # fmt: skip
    """Fill `out` (N,) with the levels that the bearings (N, 3) see at one rendering."""
    levels = np.empty(2, np.float32)
    address = np.empty(1, np.int32)
    right = np.empty(1, np.float32)
    below = np.empty(1, np.float32)
    for pixel in range(len(bearings)):
        bx, by, bz = bearings[pixel, 0], bearings[pixel, 1], bearings[pixel, 2]
        face = cube_face(
            middle[0] * bx + middle[1] * by + middle[2] * bz,
            middle[3] * bx + middle[4] * by + middle[5] * bz,
            middle[6] * bx + middle[7] * by + middle[8] * bz,
        )
        sample_path(
            texels, face * size * size, size, focal, face_matrices[face], bx, by, bz, address, right, below, levels
        )
        if len(front_texels) > 0:
            cover_path(front_texels, front_opacity, front_size, front_focal, front_matrices, bx, by, bz, levels)
        out[pixel] = levels[1]


@njit(cache=True, nogil=True, error_model="numpy")
def first_noise(rates_hz, random, noise_us):
    """Draw the first noise event of every pixel, in microseconds since the start."""
    for pixel in range(len(rates_hz)):
        random[pixel], bits = next_random(random[pixel])
        noise_us[pixel] = noise_gap_us(bits, rates_hz[pixel])
