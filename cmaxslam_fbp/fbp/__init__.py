"""Functional backpropagation through the binning of events."""
