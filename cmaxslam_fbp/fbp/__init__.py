"""Functional backpropagation through the binning of events."""

from cmaxslam_fbp.fbp.binning import Binning

__all__ = ["Binning"]
