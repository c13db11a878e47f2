"""The compiled pixel circuit of a realistic sensor: photoreceptor, comparator with noise, reset and leak.

As in `sensor_kernels`, pixels are independent, and levels are piecewise linear between the renderings of a block.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
from __future__ import annotations

import math

import numpy as np

from cmaxslam_fbp.compiling import compiled
from cmaxslam_fbp.simulation.sensor_kernels import TILE, fill_levels, next_random, noise_gap_us

AWAKE = math.inf  # stands for the end of a reset that is not under way

_SETTLED = 1e-4  # log intensity that a photoreceptor may still have to go
_PIECES_PER_CONSTANT = 4.0  # straight pieces that stand for the exponential within one time constant
_MAX_PIECES = 64

_MASK16 = np.uint64(0xFFFF)
_S16, _S32, _S48, _S11 = (np.uint64(n) for n in (16, 32, 48, 11))


@compiled
def draw_normal(state):
    """Return the generator's next state and a nearly normal number: the sum of four uniform ones, within 3.5."""
    state, bits = next_random(state)
    total = (bits & _MASK16) + ((bits >> _S16) & _MASK16) + ((bits >> _S32) & _MASK16) + (bits >> _S48)
    return state, (float(total) / 65536.0 - 2.0 + 2.0 / 65536.0) * math.sqrt(3.0)


@compiled
def draw_thresholds(state, on, off, noise, smallest):
    """Return the next state and thresholds for one comparison, whose reference and level have a noise of their own."""
    if noise == 0.0:
        return state, on, off
    state, reference = draw_normal(state)
    state, above = draw_normal(state)
    state, below = draw_normal(state)
    return state, max(on + noise * (reference + above), smallest), max(off + noise * (below - reference), smallest)


@compiled
def cross_filtered(levels, times_us, start_us, first, pixels, circuit, thresholds, state, out_us, out_code, count):
    """Turn levels into events of a pixel circuit; return the number of pixels done and the new event count.

    `levels` and stamps are those of `cross_levels`. The photoreceptor follows a level that rises by `s` per microsecond
    as `y' = (x - y) / tau`: over one step, with tau of the step's middle,

        y(t) = x(0) + s t - s tau + (y(0) - x(0) + s tau) exp(-t / tau).

    An event is due when `y` leaves the reference by the threshold of that comparison; noise events come in between. The
    pixel is then held in reset, and wakes after the refractory time with the reference at the level of that moment.
    The reference sinks by the leak.
    """
    bright, tau_bright_us, dark_light, noise, smallest = circuit
    on, off, rates_hz, dampings, refractories_us, leaks = thresholds
    reference, previous, filtered, due_on, due_off, wakes_us, noise_us, random = state
    steps = len(times_us) - 1
    length_us = times_us[steps]
    capacity = len(out_us)
    for n in range(pixels):
        pixel = first + n
        before, y, base, leak = float(previous[pixel]), filtered[pixel], reference[pixel], leaks[pixel]
        high, low = due_on[pixel], due_off[pixel]
        next_noise, wake = noise_us[pixel] - start_us, wakes_us[pixel] - start_us
        moves = 0
        for k in range(1, steps + 1):
            moves += levels[n, k] != previous[pixel]
        if (
            moves == 0
            and abs(y - before) < _SETTLED
            and wake == AWAKE
            and next_noise > length_us
            and y - base + leak * length_us < high
        ):
            reference[pixel] = base - leak * length_us
            continue
        generator = random[pixel]
        done = count
        for k in range(1, steps + 1):
            level = float(levels[n, k])
            began, duration = times_us[k - 1], times_us[k] - times_us[k - 1]
            slope = (level - before) / duration
            middle = math.exp(0.5 * (before + level) - bright)
            tau = tau_bright_us * (1.0 + dark_light) / (middle + dark_light)
            lag, pieces, decay = slope * tau, 1, 0.0
            transient = y - before + lag
            if tau > 0.0:
                if abs(transient) > _SETTLED:
                    pieces = min(math.ceil(_PIECES_PER_CONSTANT * duration / tau), _MAX_PIECES)
                decay = math.exp(-duration / (pieces * tau))
            start = began
            for piece in range(1, pieces + 1):
                end = began + duration * piece / pieces
                transient *= decay
                y_end = before + slope * (end - began) - lag + transient
                rate = (y_end - y) / (end - start)
                t = start
                while True:
                    if wake < AWAKE:
                        if wake > end:
                            break
                        t = max(wake, t)
                        base = y + rate * (t - start) + leak * t
                        generator, high, low = draw_thresholds(generator, on[pixel], off[pixel], noise, smallest)
                        wake = AWAKE
                        while next_noise < t:
                            generator, bits = next_random(generator)
                            next_noise += noise_gap_us(bits, rates_hz[pixel])
                    change_end = y_end - base + leak * end
                    rises, falls = change_end >= high, change_end <= -low
                    if not (rises or falls or next_noise <= end):
                        break
                    polarity = np.int64(1 if rises else 0 if falls else -1)
                    due = end
                    if polarity >= 0:
                        change = y + rate * (t - start) - base + leak * t
                        threshold = high if rises else -low
                        due = t + (threshold - change) / (change_end - change) * (end - t)
                    if next_noise <= due:
                        due = max(next_noise, t)
                        generator, bits = next_random(generator)
                        next_noise += noise_gap_us(bits, rates_hz[pixel])
                        generator, chance = next_random(generator)
                        if float(chance >> _S11) * 2.0**-53 < dampings[pixel] * middle:
                            continue
                        polarity = np.int64(bits & np.uint64(1))
                    if polarity < 0:
                        break
                    if count == capacity:
                        return n, done
                    out_us[count] = min(max(np.int64(math.ceil(due)), np.int64(1)), np.int64(length_us))
                    out_code[count] = 2 * pixel + polarity
                    count += 1
                    t = due
                    wake = due + refractories_us[pixel]
                y, start = y_end, end
            before = level
        reference[pixel] = base - leak * length_us
        previous[pixel] = before
        filtered[pixel] = y
        due_on[pixel], due_off[pixel] = high, low
        wakes_us[pixel] = wake + start_us
        noise_us[pixel] = next_noise + start_us
        random[pixel] = generator
    return pixels, count


@compiled
def advance_circuits(
    scene, front, light, times_us, start_us, circuit, thresholds, state, out_us, out_code, first, count
):
    """Run pixels `first...` through one block; return the first pixel not done and the number of events so far."""
    steps = len(times_us) - 1
    total = len(state[0])
    levels = np.empty((TILE, steps + 1), np.float32)
    scratch = np.empty(steps, np.uint32), np.empty(steps, np.float32), np.empty(steps, np.float32)
    while first < total:
        pixels = min(TILE, total - first)
        fill_levels(scene, front, light, first, pixels, scratch, levels)
        done, count = cross_filtered(
            levels, times_us, start_us, first, pixels, circuit, thresholds, state, out_us, out_code, count
        )
        first += done
        if done < pixels:
            break
    return first, count
