"""The methods of the paper's tables as settings of the frontend."""

from __future__ import annotations

from typing import Any

from cmaxslam_fbp.config import FrontendConfig

EVENTS_PER_PACKET = 20_000
SCORE_NAMES = {"Var": "variance", "LL": "negative_binomial"}

# "1" is L-BFGS-B, "2" trust-ncg; "Func" has gradients by functional backpropagation. "Rect" has finite differences.
VELOCITY_METHODS: dict[str, dict[str, str]] = {
    "Rect": {"kernel": "rect", "reconstruction": "none", "solver": "lbfgsb"},
    "FuncRect 1": {"kernel": "rect", "solver": "lbfgsb"},
    "FuncRect 2": {"kernel": "rect", "solver": "trust_ncg"},
    "Linear": {"kernel": "linear", "reconstruction": "none", "solver": "lbfgsb"},
    "FuncLinear 1": {"kernel": "linear", "solver": "lbfgsb"},
    "FuncLinear 2": {"kernel": "linear", "solver": "trust_ncg"},
    "Gauss 1": {"kernel": "gauss", "reconstruction": "none", "solver": "lbfgsb"},
    "Gauss 2": {"kernel": "gauss", "reconstruction": "none", "solver": "trust_ncg"},
    "FuncGauss 1": {"kernel": "gauss", "solver": "lbfgsb"},
    "FuncGauss 2": {"kernel": "gauss", "solver": "trust_ncg"},
}
RECONSTRUCTION_METHODS: dict[str, dict[str, str]] = {
    "Cubic": {"kernel": "rect", "reconstruction": "cubic", "solver": "lbfgsb"},
    "Lanczos": {"kernel": "rect", "reconstruction": "lanczos", "solver": "lbfgsb"},
    "Linear": {"kernel": "rect", "solver": "lbfgsb"},
}
SURROGATE_METHODS: dict[str, dict[str, str]] = {
    "STE": {"kernel": "rect", "surrogate": "ste", "solver": "lbfgsb"},
    "Sigmoid": {"kernel": "rect", "surrogate": "sigmoid", "solver": "lbfgsb"},
    "FBP": {"kernel": "rect", "solver": "lbfgsb"},
}
OURS = "FuncRect, Newton (ours)"
OUR_METHOD = {"kernel": "rect", "solver": "newton"}


def frontend_config(method: dict[str, str], score: str, model: str) -> FrontendConfig:
    """Return the settings of a method, a score ("Var", "LL") and a motion model, on the paper's grid and packets."""
    chosen: dict[str, Any] = {
        "packets": "count",
        "events_per_packet": EVENTS_PER_PACKET,
        "recovery": False,
        "min_evidence": 0.0,
        "model": model,
        "score": SCORE_NAMES[score],
        **method,
    }
    return FrontendConfig(**chosen)
