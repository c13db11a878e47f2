"""From a recording to trajectory and map: the one place where frontend and backend meet."""

from cmaxslam_fbp.pipeline.result import SlamResult
from cmaxslam_fbp.pipeline.slam import Slam

__all__ = ["Slam", "SlamResult"]
