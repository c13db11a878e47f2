"""HDF5 files: events, and what data sets keep beside them."""
