"""`python -m cmaxslam_fbp` is `cmaxslam-fbp`."""

from cmaxslam_fbp.cli import program

program()
