"""Many recordings, each with several configurations: on this machine or on a cluster."""
