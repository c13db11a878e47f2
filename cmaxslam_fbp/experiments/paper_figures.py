"""The paper's own figures, as they stand in its tables: on the ECD, with JAX on a laptop with an RTX 4090.

None stands for the paper's "n/a": the optimisation had "early stops due to abnormal function values".
"""

from __future__ import annotations

from dataclasses import dataclass

SCENES = ("boxes", "dynamic", "poster", "shapes")
SCORES = ("Var", "LL")


@dataclass(frozen=True)
class PaperCell:
    """Error (deg/s or m/s, RMS) and time per packet in ms."""

    error: float | None
    ms: float | None


Table = dict[tuple[str, str, str], PaperCell]  # by score, method, scene

_ANGULAR = """
Var Rect          44.61 22.42 16.03 23.38 47.09 22.60 44.47 32.34
Var FuncRect_1    12.44  6.50  6.67  7.44 14.26  6.55 15.89 10.26
Var FuncRect_2    10.91  3.00  6.11  4.24 12.83  3.30 23.94  9.96
Var Linear        10.21  6.38  5.63  6.60 12.58  6.36 15.82  9.18
Var FuncLinear_1   9.82  5.26  5.53  5.82 12.16  5.39 15.75  9.06
Var FuncLinear_2   9.66  2.61  5.50  4.77 12.01  3.19 14.93 13.07
Var Gauss_1       10.93  7.14  6.59  8.38 12.51  7.41 14.29 11.13
Var Gauss_2        9.61  5.01  6.22  8.36 10.80  5.49 15.79 33.87
Var FuncGauss_1   10.27  6.91  6.22  7.98 11.91  7.22 13.81 11.45
Var FuncGauss_2    9.95  2.46  5.98  5.59 11.59  3.26 13.85 14.78
LL  Rect          17.47 21.02  8.58 21.50 17.45 20.00 18.62 27.73
LL  FuncRect_1    10.14  8.07  5.88  9.57 12.42  8.17 14.26 15.18
LL  FuncRect_2    10.95  4.31  8.48  8.73 13.80  5.67   n/a   n/a
LL  Linear         9.04  7.29  5.33  8.93 11.53  7.98 13.36 13.30
LL  FuncLinear_1   8.77  6.74  5.21  7.97 11.30  6.71 13.74 13.72
LL  FuncLinear_2   8.70  3.29  5.21  7.35 11.22  4.05 14.62 34.21
LL  Gauss_1        8.99  8.68  5.64 10.28 10.97  8.80 13.46 15.89
LL  Gauss_2        7.93  5.95  5.36 12.10  9.97  6.85 14.54 57.10
LL  FuncGauss_1    8.89  8.64  5.49 10.17 10.91  8.59 13.37 16.75
LL  FuncGauss_2    8.64  3.80  5.35  9.51 10.74  5.30 13.41 29.52
"""

_LINEAR = """
Var Rect          0.924   n/a 0.447   n/a 0.326 19.45 0.913   n/a
Var FuncRect_1    0.875   n/a 0.209  7.93 0.304  6.45 0.739   n/a
Var FuncRect_2    0.679  3.40 0.208  5.18 0.304  3.55 0.257 10.73
Var Linear        0.680  6.28 0.208  6.75 0.304  6.22 0.250  8.33
Var FuncLinear_1  0.683  5.63 0.208  6.78 0.303  5.64 0.249  8.16
Var FuncLinear_2  0.683  3.48 0.208  6.77 0.303  3.71 0.250 12.73
Var Gauss_1       1.069   n/a 0.209  8.14 0.803   n/a 0.796   n/a
Var Gauss_2       0.689  5.26 0.209  8.67 0.305  5.44 0.249 24.64
Var FuncGauss_1   0.688  6.84 0.209  8.81 0.304  7.02 0.248 11.45
Var FuncGauss_2   0.689  3.85 0.209  8.38 0.305  4.22 0.249 15.35
LL  Rect          0.763 18.34 0.217 20.05 0.308 18.00 0.258 25.84
LL  FuncRect_1    0.681  7.97 0.432   n/a 0.303  8.10 0.673   n/a
LL  FuncRect_2    0.683  6.00 0.218 12.12 0.304  6.28 0.663   n/a
LL  Linear        0.684  7.91 0.215 10.11 0.304  7.89 0.706   n/a
LL  FuncLinear_1  0.685  6.96 0.215  9.61 0.304  7.13 0.257 14.01
LL  FuncLinear_2  0.685  6.00 0.216 11.47 0.304  5.30 0.256 28.93
LL  Gauss_1       1.108   n/a 0.450   n/a 0.304  8.76 0.861   n/a
LL  Gauss_2       0.689  7.65 0.217 15.62 0.305  7.99 0.257 50.15
LL  FuncGauss_1   0.688  8.59 0.218 12.34 0.710   n/a 0.795   n/a
LL  FuncGauss_2   0.689  6.72 0.218 15.39 0.305  7.24 0.257 31.05
"""

# In these two, the columns of a scene are Var and LL.
_RECONSTRUCTION = """
Cubic    12.47  7.37 10.17  9.17  6.70  8.56 5.88 10.78 14.39 7.61 12.48  9.54 16.47 11.31 13.82 18.07
Lanczos  12.46  8.84 10.10 10.12  6.72 10.36 5.86 12.37 14.15 9.01 12.45 10.66 17.93 14.83 14.25 21.12
Linear   12.44  6.50 10.14  8.07  6.67  7.44 5.88  9.57 14.26 6.55 12.42  8.17 15.89 10.26 14.26 15.18
"""
_SURROGATES = """
STE      36.29  7.18 14.32  8.88 10.92  8.45 9.00 10.36 29.00 7.38 16.22  8.91 96.89 13.07 55.83 17.35
Sigmoid  13.94  7.55 10.17  8.49  7.12  8.74 5.88  9.84 15.60 7.70 12.51  8.68 18.76 11.41 14.23 15.44
FBP      12.44  6.50 10.14  8.07  6.67  7.44 5.88  9.57 14.26 6.55 12.42  8.17 15.89 10.26 14.26 15.18
"""

COST_EVENTS = (20_000, 50_000, 100_000)
# Microseconds for 20,000, 50,000 and 100,000 events, float32.
COST_CPU_US: dict[str, tuple[float, float, float]] = {
    "Rect": (37.1, 69.9, 110),
    "FuncRect jvp": (635, 893, 1440),
    "Gauss": (536, 820, 1380),
    "Gauss jvp": (638, 946, 1600),
    "FuncGauss jvp": (1090, 2130, 5890),
    "Linear": (473, 551, 774),
    "Linear jvp": (440, 543, 772),
    "FuncLinear jvp": (736, 1190, 2120),
}
COST_GPU_US: dict[str, tuple[float, float, float]] = {
    "Rect": (31.1, 29.6, 29.7),
    "FuncRect jvp": (42.3, 62.4, 78.8),
    "Gauss": (44.9, 61.7, 75.6),
    "Gauss jvp": (40.6, 62.3, 77.7),
    "FuncGauss jvp": (83.5, 114, 158),
    "Linear": (26.8, 37.1, 55.6),
    "Linear jvp": (28.1, 37.3, 51.5),
    "FuncLinear jvp": (66.8, 83.1, 117),
}
COST_CPU_NAME, COST_GPU_NAME = "R9-7945HX", "4090-laptop"

# Abs in deg and Rel in deg/s, over the first 30 s: the paper's two, and two from CMax-SLAM's own (None: it fails).
SLAM: dict[str, dict[str, tuple[float, float] | None]] = {
    "CMax-SLAM": {"shapes": (4.95, 6.71), "poster": (5.65, 6.36), "boxes": (5.42, 6.75), "dynamic": (3.38, 3.59)},
    "FBP": {"shapes": (4.84, 6.76), "poster": (5.27, 6.29), "boxes": (5.23, 6.60), "dynamic": (3.11, 3.61)},
    "RTPT": {"shapes": (3.22, 3.17), "poster": (8.14, 9.42), "boxes": (2.97, 2.38), "dynamic": (1.87, 1.99)},
    "CMax-GAE": {"shapes": (3.96, 2.78), "poster": (4.01, 3.61), "boxes": None, "dynamic": (4.84, 1.76)},
}
SLAM_ABS_REDUCTION_PERCENT = 5.1

# CMax-SLAM's paper, ECRot's synthetic sequences: Abs in deg and Rel in deg/s.
ECROT: dict[str, dict[str, tuple[float, float] | None]] = {
    "CMax-SLAM": {
        "playroom": (0.763, 0.593),
        "bicycle": (0.327, 0.414),
        "city": (0.509, 0.721),
        "street": (0.470, 0.584),
        "town": (0.553, 0.554),
        "bay": (0.617, 0.475),
    },
    "EKF-SMT, refined by its backend": {
        "playroom": (0.250, 0.257),
        "bicycle": (0.434, 0.289),
        "city": (0.299, 0.321),
        "street": (0.331, 0.334),
        "town": (0.954, 0.507),
        "bay": (0.476, 0.353),
    },
}

# DSEC, mean of all test sequences: end-point error in px, angular error in deg, percentage of errors above 3 px.
FLOW: dict[str, tuple[float, float, float]] = {"MPC": (2.81, 8.96, 14.5), "FBP": (2.54, 8.33, 13.3)}
# The end-point errors of the sequences, without and with FBP.
FLOW_SEQUENCES: dict[str, tuple[float, float]] = {
    "interlaken_00_b": (3.33, 3.26),
    "interlaken_01_a": (2.42, 2.36),
    "thun_01_a": (1.48, 1.42),
    "thun_01_b": (1.47, 1.45),
    "zurich_city_12_a": (5.98, 4.71),
    "zurich_city_14_c": (1.97, 1.90),
    "zurich_city_15_a": (1.54, 1.50),
}

# "10.3 % reduction in RMS error and a 1.66 x acceleration"; linear: "a marginal 3.9 % increase", "1.48 x faster".
HEADLINES: dict[str, tuple[float, float]] = {"angular": (10.3, 1.66), "linear": (-3.9, 1.48)}


def _number(word: str) -> float | None:
    return None if word == "n/a" else float(word)


def _by_method(text: str) -> Table:
    """Read lines of score, method, and error and time of the four scenes."""
    table: Table = {}
    for line in text.strip().splitlines():
        score, method, *words = line.split()
        for k, scene in enumerate(SCENES):
            cell = PaperCell(_number(words[2 * k]), _number(words[2 * k + 1]))
            table[score, method.replace("_", " "), scene] = cell
    return table


def _by_score(text: str) -> Table:
    """Read lines of method, and for the four scenes error and time of Var and of LL."""
    table: Table = {}
    for line in text.strip().splitlines():
        method, *words = line.split()
        for k, scene in enumerate(SCENES):
            for n, score in enumerate(SCORES):
                place = 4 * k + 2 * n
                table[score, method, scene] = PaperCell(_number(words[place]), _number(words[place + 1]))
    return table


ANGULAR = _by_method(_ANGULAR)
LINEAR = _by_method(_LINEAR)
RECONSTRUCTION = _by_score(_RECONSTRUCTION)
SURROGATES = _by_score(_SURROGATES)
