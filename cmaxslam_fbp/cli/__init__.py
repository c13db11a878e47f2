"""The command line: `cmaxslam-fbp COMMAND`. Parsing only; what the commands need is imported when they run."""

from __future__ import annotations

import os
import sys

from cmaxslam_fbp.cli.app import app
from cmaxslam_fbp.errors import CmaxSlamError


def main() -> None:
    """Run the program. A known error is one line and exit code 1; `--debug`, anywhere, shows its traceback."""
    # The matrices here are small: threads of the linear algebra library would only get in the way of our own.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(args=arguments, prog_name="cmaxslam-fbp")
    except CmaxSlamError as error:
        if debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nothing is left to say
        sys.exit(1)
    except KeyboardInterrupt:
        if debug:
            raise
        print("interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
