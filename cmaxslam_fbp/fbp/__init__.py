"""Functional backpropagation through the binning of events."""

from .binning import Binning

__all__ = ["Binning"]
