"""What a person should know of a run, one line each."""

from __future__ import annotations

from statistics import median

from cmaxslam_fbp.backend.parallax_evidence import LEAST_PARALLAX_DEG
from cmaxslam_fbp.backend.tracking import BY_CHANCE, Tracking
from cmaxslam_fbp.events import SensorSize
from cmaxslam_fbp.nanoseconds import NS_PER_S
from cmaxslam_fbp.pipeline.result import SlamResult

_MANY_BY_CHANCE = 0.5  # part of the windows that are still despite their events that is worth a warning
_FEW_BY_CHANCE, _NOISY = 3, 0.5  # or so many of them, with this part of the events of windows in the map: noise
_MANY_DROWNED = 0.5  # part of the packets looked at that is worth a warning
_MANY_HOT_PIXELS, _MANY_HOT_EVENTS = 0.002, 0.1  # parts of the sensor, and of the events, that are worth a warning


def warnings_of(result: SlamResult, size: SensorSize) -> list[str]:
    """Return what the result itself gives cause for: hot pixels, noise, gaps, loss, motion that is no rotation."""
    lines: list[str] = []
    count = len(result.windows)
    hot, pixels = result.hot_pixels, size.width * size.height
    if len(hot.pixels) > _MANY_HOT_PIXELS * pixels or hot.events > _MANY_HOT_EVENTS * result.events:
        lines.append(
            f"{len(hot.pixels):,} hot pixels were left out, with {hot.events:,} events beside the "
            f"{result.events:,} that are used; events.hot_pixel_factor=null keeps them"
        )
    word, reason = result.trust
    parallax_deg = result.parallax_deg or 0.0
    if result.hand_held is None and parallax_deg >= LEAST_PARALLAX_DEG:
        lines.append(f"this recording has parallax of about {parallax_deg:.1f} degrees; --hand-held would model it")
    if word is Tracking.NOT_A_ROTATION:
        hint = "; if a hand moved the camera while it turned, --hand-held models that"
        lines.append(f"this recording is not a rotation ({reason}){hint if result.parallax_deg is None else ''}")
    elif other := sum(window.tracking is Tracking.NOT_A_ROTATION for window in result.windows):
        lines.append(
            f"in {other} of {count} windows no rotation explains the image's motion: windows.csv tells which; "
            "the orientation there is not to be trusted"
        )
    by_chance = [window.events for window in result.windows if window.reason == BY_CHANCE]
    in_map = [window.events for window in result.windows if window.tracking.is_in_map]
    is_noisy = len(by_chance) >= _FEW_BY_CHANCE and in_map and median(by_chance) > _NOISY * median(in_map)
    if is_noisy or len(by_chance) > _MANY_BY_CHANCE * count:
        lines.append(
            f"in {len(by_chance)} of {count} windows {BY_CHANCE}: the camera counts as still there; if it moves, its "
            "events drown in noise"
        )
    if result.drowned > _MANY_DROWNED:
        lines.append(
            f"in {result.drowned:.0%} of the packets looked at, the events in most parts of the image are noise: the "
            "orientation may err, and whether a rotation explains the motion cannot be told there"
        )
    if result.gaps_ns:
        longest_s = max(end - start for start, end in result.gaps_ns) / NS_PER_S
        lines.append(
            f"{len(result.gaps_ns)} gap(s) without events, the longest of {longest_s:.1f} s, the first at "
            f"{(result.gaps_ns[0][0] - result.start_ns) / NS_PER_S:.2f} s: there the trajectory has no poses"
        )
    if result.lost_windows:
        first = next(window for window in result.windows if window.tracking is Tracking.LOST)
        lines.append(
            f"tracking was lost in {result.lost_windows} of {count} windows, first at "
            f"{(first.start_ns - result.start_ns) / NS_PER_S:.2f} s; there the trajectory is the frontend's"
        )
    found = [window for window in result.windows if window.tracking is Tracking.FOUND_AGAIN]
    if found:
        times = ", ".join(f"{(window.start_ns - result.start_ns) / NS_PER_S:.2f}" for window in found[:5])
        more = f" and {len(found) - 5} times more" if len(found) > 5 else ""
        lines.append(f"found again in the map at {times} s{more}: there the trajectory jumps")
    return lines
