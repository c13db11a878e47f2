"""Samples of dots that all move with one flow: what a flow must make sharp."""

import numpy as np

from cmaxslam_fbp.experiments.flow.samples import FlowSample


def moving_dots(flow_px, size=48, dots=150, each=40, seed=0):
    """Return a sample of dots that are each seen `each` times on their way; half of them brighter, half darker."""
    rng = np.random.default_rng(seed)
    t = np.tile(np.linspace(0, 1, each, dtype=np.float32), dots)
    places = np.rint(np.repeat(rng.uniform(0, size, (dots, 2)), each, axis=0) + t[:, None] * np.asarray(flow_px))
    p = np.repeat(rng.integers(0, 2, dots), each).astype(bool)
    inside = ((places >= 0) & (places < size)).all(axis=1)
    order = np.flatnonzero(inside)[np.argsort(t[inside], kind="stable")]
    x, y = places[order].T.astype(np.int16)
    flow = np.broadcast_to(np.asarray(flow_px, np.float32)[:, None, None], (2, size, size)).copy()
    return FlowSample(t[order], x, y, p[order], flow, np.ones((size, size), bool))
