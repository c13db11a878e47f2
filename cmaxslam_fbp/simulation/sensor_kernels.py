"""The compiled event sensor: levels of a pixel over a block of renderings, their crossings, and the ordering.

A block is a stretch of time with `K` renderings. Pixels are independent of each other, so the outer loop runs over
pixels and the inner one over renderings: a pixel's state stays in registers and its path through the scene in
cache. No reassociation of sums is allowed (no `fastmath`), so that the events are the same bits everywhere.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import math

import numpy as np

from cmaxslam_fbp.compiling import compiled

LONG_AGO_US = -(10**15)

LANES = 16  # renderings that are computed at once

TILE = 128  # pixels whose levels stay in the cache between the stages

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11, _ONE = (np.uint64(n) for n in (30, 27, 31, 11, 1))
_F0, _F1 = np.float32(0), np.float32(1)
_HARDLY = np.float32(1e-6)  # inverse distance: what is farther than a thousand kilometres is not hit


@compiled
def next_random(state):
    """Return the next state of a splitmix64 generator and its 64 random bits."""
    state = state + _GOLDEN
    z = state
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return state, z ^ (z >> _S31)


@compiled
def noise_gap_us(bits, rate_hz):
    """Return the exponential waiting time in microseconds that 64 random bits stand for; infinite at rate 0."""
    if rate_hz <= 0.0:
        return math.inf
    uniform = float((bits >> _S11) + _ONE) * 2.0**-53
    return -math.log(uniform) / rate_hz * 1e6


@compiled
def cube_face(x, y, z):
    """Return the index of the cube face that a direction points to: +z -z +x -x +y -y."""
    ax, ay, az = abs(x), abs(y), abs(z)
    if az >= ax and az >= ay:
        return 0 if z >= _F0 else 1
    if ax >= ay:
        return 2 if x >= _F0 else 3
    return 4 if y >= _F0 else 5


@compiled
def sample_scene(
    texels, size, focal, calm, bearings, first, count, face_matrices, middle, address, right, below, levels
):
    """Fill `levels[:count, 1:]` with bilinear samples along the paths of `count` pixels over the K renderings.

    `face_matrices` (6, 9, K) take a bearing to the axes of each cube face; it meets the face's texels at
    `focal (x, y) / z + (size - 1) / 2`. The direction at the `middle` (9,) rendering chooses the face.
    Where `calm` (6 size^2, or none) says that the scene is constant around, 16 renderings are filled at once.
    `address`, `right` and `below` are scratch (K,).
    """
    steps = face_matrices.shape[2]
    centre = np.float32(0.5) * np.float32(size - 1)
    limit = np.float32(size) - np.float32(1.01)
    stride = np.int32(size)
    next_row = np.uint64(size)
    skips = len(calm) > 0
    for n in range(count):
        bx, by, bz = bearings[first + n, 0], bearings[first + n, 1], bearings[first + n, 2]
        face = cube_face(
            middle[0] * bx + middle[1] * by + middle[2] * bz,
            middle[3] * bx + middle[4] * by + middle[5] * bz,
            middle[6] * bx + middle[7] * by + middle[8] * bz,
        )
        for k in range(steps):
            x = face_matrices[face, 0, k] * bx + face_matrices[face, 1, k] * by + face_matrices[face, 2, k] * bz
            y = face_matrices[face, 3, k] * bx + face_matrices[face, 4, k] * by + face_matrices[face, 5, k] * bz
            z = face_matrices[face, 6, k] * bx + face_matrices[face, 7, k] * by + face_matrices[face, 8, k] * bz
            scale = focal / z
            column = min(max(x * scale + centre, _F0), limit)
            row = min(max(y * scale + centre, _F0), limit)
            i, j = np.int32(column), np.int32(row)
            address[k] = np.uint32(j * stride + i)
            right[k] = column - np.float32(i)
            below[k] = row - np.float32(j)
        offset = np.uint64(face * size * size)
        whole = steps - steps % LANES if skips else 0
        for start in range(0, whole, LANES):
            a = offset + np.uint64(address[start + LANES // 2])
            if calm[a]:
                for k in range(start, start + LANES):
                    levels[n, k + 1] = texels[a]
            else:
                for k in range(start, start + LANES):
                    a = offset + np.uint64(address[k])
                    c = a + next_row
                    upper = texels[a] + right[k] * (texels[a + _ONE] - texels[a])
                    lower = texels[c] + right[k] * (texels[c + _ONE] - texels[c])
                    levels[n, k + 1] = upper + below[k] * (lower - upper)
        for k in range(whole, steps):
            a = offset + np.uint64(address[k])
            c = a + next_row
            upper = texels[a] + right[k] * (texels[a + _ONE] - texels[a])
            lower = texels[c] + right[k] * (texels[c + _ONE] - texels[c])
            levels[n, k + 1] = upper + below[k] * (lower - upper)


@compiled
def sample_room(texels, size, bearings, first, count, matrices, extents, levels):
    """Fill `levels[:count, 1:]` with what `count` pixels see over the K renderings.

    `matrices` (F, 9, K) take a bearing to `(x, y, z)` of each rectangle: the inverse distance `z` of its plane along
    the ray, and the texel `(x, y) / z`, counted from the texture's middle. `extents` (F, 5) are the rectangle's first
    and last column and row there, and the width over which its border fades. The rectangles come from back to front:
    a later one covers the earlier ones.
    """
    steps = matrices.shape[2]
    centre = np.float32(0.5) * np.float32(size - 1)
    limit = np.float32(size) - np.float32(1.01)
    for n in range(count):
        bx, by, bz = bearings[first + n, 0], bearings[first + n, 1], bearings[first + n, 2]
        for k in range(1, steps + 1):
            levels[n, k] = _F0
        for f in range(len(matrices)):
            left, right, top, bottom, soft = extents[f]
            base = f * size * size
            for k in range(steps):
                z = matrices[f, 6, k] * bx + matrices[f, 7, k] * by + matrices[f, 8, k] * bz
                if z <= _HARDLY:
                    continue
                distance = _F1 / z
                u = distance * (matrices[f, 0, k] * bx + matrices[f, 1, k] * by + matrices[f, 2, k] * bz)
                if u < left or u > right:
                    continue
                v = distance * (matrices[f, 3, k] * bx + matrices[f, 4, k] * by + matrices[f, 5, k] * bz)
                if v < top or v > bottom:
                    continue
                column, row = min(max(u + centre, _F0), limit), min(max(v + centre, _F0), limit)
                i, j = int(column), int(row)
                along, down = column - np.float32(i), row - np.float32(j)
                a = base + j * size + i
                c = a + size
                upper = texels[a] + along * (texels[a + 1] - texels[a])
                lower = texels[c] + along * (texels[c + 1] - texels[c])
                level = upper + down * (lower - upper)
                if soft > _F0:
                    border = min(min(u - left, right - u), min(v - top, bottom - v))
                    cover = min(border / soft, _F1)
                    level = levels[n, k + 1] + cover * (level - levels[n, k + 1])
                levels[n, k + 1] = level


@compiled
def cover_scene(texels, opacity, size, focal, bearings, first, count, matrices, cosine, levels):
    """Lay a foreground over `levels[:count, 1:]`: `(1 - opacity) scene + opacity foreground`, in log intensity.

    `matrices` (9, K) take a bearing to the axes of the foreground's texture. Pixels whose bearing has a smaller
    `cosine` to it at the middle rendering miss it.
    """
    steps = matrices.shape[1]
    centre = np.float32(0.5) * np.float32(size - 1)
    limit = np.float32(size) - np.float32(1.01)
    m = steps // 2
    for n in range(count):
        bx, by, bz = bearings[first + n, 0], bearings[first + n, 1], bearings[first + n, 2]
        if matrices[6, m] * bx + matrices[7, m] * by + matrices[8, m] * bz < cosine:
            continue
        for k in range(steps):
            z = matrices[6, k] * bx + matrices[7, k] * by + matrices[8, k] * bz
            if z <= np.float32(0.1):
                continue
            x = matrices[0, k] * bx + matrices[1, k] * by + matrices[2, k] * bz
            y = matrices[3, k] * bx + matrices[4, k] * by + matrices[5, k] * bz
            scale = focal / z
            column, row = x * scale + centre, y * scale + centre
            if not (column >= _F0 and row >= _F0 and column <= limit and row <= limit):
                continue
            i, j = int(column), int(row)
            u, v = column - np.float32(i), row - np.float32(j)
            a = j * size + i
            c = a + size
            upper = opacity[a] + u * (opacity[a + 1] - opacity[a])
            lower = opacity[c] + u * (opacity[c + 1] - opacity[c])
            alpha = upper + v * (lower - upper)
            upper = texels[a] + u * (texels[a + 1] - texels[a])
            lower = texels[c] + u * (texels[c + 1] - texels[c])
            levels[n, k + 1] += alpha * (upper + v * (lower - upper) - levels[n, k + 1])


@compiled
def cross_levels(
    levels, times_us, start_us, first, pixels, on, off, rates_hz, refractories_us,
    reference, previous, last_us, noise_us, random, out_us, out_code, count,
):  # fmt: skip
    """Turn levels into events; return the number of pixels done and the new event count.

    `levels[n, k]` (N, K + 1) is the log intensity of pixel `first + n` at `times_us[k]` after the block's start,
    linear in between; `levels[:, 0]` is not read, for the state has it. An event is due whenever the level reaches
    the reference plus the ON or minus the OFF threshold; the reference then moves by exactly that threshold. An
    event within the refractory time of the last one is lost. Stamps are the first whole microsecond at or after
    the crossing: they lie in `(start, end]`. Where the output is full, the pixel that found no room keeps its state.
    """
    steps = len(times_us) - 1
    length_us = np.int64(times_us[steps])
    capacity = len(out_us)
    for n in range(pixels):
        pixel = first + n
        base, threshold_on, threshold_off = reference[pixel], on[pixel], off[pixel]
        low, high = base - threshold_off, base + threshold_on
        refractory_us = refractories_us[pixel]
        next_noise = noise_us[pixel] - start_us
        active = 0
        for k in range(1, steps + 1):
            active += (levels[n, k] >= high) | (levels[n, k] <= low)
        if active == 0 and next_noise > times_us[steps]:
            previous[pixel] = levels[n, steps]
            continue
        last = last_us[pixel] - start_us
        state = random[pixel]
        before = previous[pixel]
        done = count
        for k in range(1, steps + 1):
            level = levels[n, k]
            if low < level < high and next_noise > times_us[k]:
                before = level
                continue
            while True:
                rising = level >= high
                crossing = rising or level <= low
                stamp = np.int64(0)
                until = times_us[k]
                threshold = high if rising else low
                if crossing:
                    fraction = np.float64(threshold - before) / np.float64(level - before)
                    stamp = np.int64(math.ceil(times_us[k - 1] + fraction * (times_us[k] - times_us[k - 1])))
                    stamp = min(max(stamp, np.int64(1)), length_us)
                    until = np.float64(stamp)
                while next_noise <= until:
                    state, bits = next_random(state)
                    noise_stamp = max(np.int64(math.ceil(next_noise)), np.int64(1))
                    if noise_stamp - last >= refractory_us:
                        if count == capacity:
                            return n, done
                        out_us[count] = noise_stamp
                        out_code[count] = 2 * pixel + np.int64(bits & _ONE)
                        count += 1
                        last = noise_stamp
                    next_noise += noise_gap_us(bits, rates_hz[pixel])
                if not crossing:
                    break
                if stamp - last >= refractory_us:
                    if count == capacity:
                        return n, done
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
    return pixels, count


@compiled
def light_scene(covers, dark, flickers, lit, first, count, levels):
    """Change `levels[:count, 1:]` by the light: `flickers` (K,) where pixels are `lit` (N,), then `covers` (K,).

    A lens that is covered by c sees `(1 - c) level + c dark`. Both lists may be empty.
    """
    for n in range(count):
        if len(flickers) > 0 and lit[first + n]:
            for k in range(len(flickers)):
                levels[n, k + 1] += flickers[k]
        for k in range(len(covers)):
            levels[n, k + 1] += covers[k] * (dark - levels[n, k + 1])


@compiled
def fill_levels(scene, front, light, first, count, scratch, levels):
    """Fill `levels[:count, 1:]` with what pixels `first...` see at the K renderings of a block.

    `scene`, `front` and `light` are the first arguments of `sample_scene`, `cover_scene` and `light_scene`.
    """
    texels, size, focal, calm, bearings, face_matrices, middle, extents = scene
    address, right, below = scratch
    if len(extents) > 0:
        sample_room(texels, size, bearings, first, count, face_matrices, extents, levels)
    else:
        sample_scene(
            texels, size, focal, calm, bearings, first, count, face_matrices, middle, address, right, below, levels
        )
    front_texels, front_opacity, front_size, front_focal, front_matrices, front_cosine = front
    if len(front_texels) > 0:
        cover_scene(
            front_texels, front_opacity, front_size, front_focal, bearings, first, count,
            front_matrices, front_cosine, levels,
        )  # fmt: skip
    covers, dark, flickers, lit = light
    if len(covers) > 0 or len(flickers) > 0:
        light_scene(covers, dark, flickers, lit, first, count, levels)


@compiled
def advance_pixels(scene, front, light, times_us, start_us, thresholds, state, out_us, out_code, first, count):
    """Run pixels `first...` through one block; return the first pixel not done and the number of events so far.

    `thresholds` and `state` are the arrays per pixel of `cross_levels`: constant ones, and those that it changes.
    Pixels go in tiles, whose levels stay in the cache between the stages.
    """
    on, off, rates_hz, refractories_us = thresholds
    reference, previous, last_us, noise_us, random = state
    steps = len(times_us) - 1
    levels = np.empty((TILE, steps + 1), np.float32)
    scratch = np.empty(steps, np.uint32), np.empty(steps, np.float32), np.empty(steps, np.float32)
    while first < len(reference):
        pixels = min(TILE, len(reference) - first)
        fill_levels(scene, front, light, first, pixels, scratch, levels)
        done, count = cross_levels(
            levels, times_us, start_us, first, pixels, on, off, rates_hz, refractories_us,
            reference, previous, last_us, noise_us, random, out_us, out_code, count,
        )  # fmt: skip
        first += done
        if done < pixels:
            break
    return first, count


@compiled
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


@compiled
def render_levels(scene, front, light, levels):
    """Fill `levels[:, 1:]` (N, K + 1) with what the pixels see at K renderings."""
    steps = levels.shape[1] - 1
    scratch = np.empty(steps, np.uint32), np.empty(steps, np.float32), np.empty(steps, np.float32)
    fill_levels(scene, front, light, 0, len(levels), scratch, levels)


@compiled
def first_noise(rates_hz, random, noise_us):
    """Draw the first noise event of every pixel, in microseconds since the start."""
    for pixel in range(len(rates_hz)):
        random[pixel], bits = next_random(random[pixel])
        noise_us[pixel] = noise_gap_us(bits, rates_hz[pixel])
