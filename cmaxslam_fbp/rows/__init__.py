"""Rows: work that is done once and whose result is kept, computed here or on a cluster."""
