"""The command line: `cmaxslam-fbp COMMAND`. Parsing only; what the commands need is imported when they run."""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
import threading
from contextlib import suppress

from cmaxslam_fbp.cli.app import app
from cmaxslam_fbp.errors import CmaxSlamError, short_line


def program() -> None:
    """Run the program as a process of its own.

    All that it has opened is closed by then, and the process ends as it is: to take modules and compiled code apart
    one by one takes longer than to start.
    """
    code = 0
    try:
        main()
    except SystemExit as ending:
        if not isinstance(ending.code, int | None):
            raise  # there is something to say
        code = ending.code or 0
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.exit(code)  # as usual: somebody is at work
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # its reader has gone
            stream.flush()
    os._exit(code)


def main() -> None:
    """Run the program. An error is one line and exit code 1; `--debug`, anywhere, shows its traceback."""
    # The matrices here are small: threads of the linear algebra library would only get in the way of our own.
    for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    gc.set_threshold(20_000, 50)  # imports make many objects that stay: to look for garbage among them takes a while
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # names of files are bytes: they go out as they came in
    try:
        app(args=arguments, prog_name="cmaxslam-fbp")
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nothing is left to say
        sys.exit(1)
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            raise
        print(_last_words(error), file=sys.stderr)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)


def _last_words(error: BaseException) -> str:
    """Return the line that an error ends the program with."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, CmaxSlamError):
        return f"error: {error}"
    if isinstance(error, MemoryError):
        return (
            "error: out of memory; close other programs, or take less at a time: --duration, a smaller "
            f"backend.panorama_size ({short_line(str(error) or 'no details')})"
        )
    if isinstance(error, OSError) and error.strerror:
        place = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"error: {short_line(f'{place}{error.strerror}; check the path, the rights and the disk')}"
    words = short_line(f"{type(error).__name__}: {error}")
    return f"error: {words[:180]}; this is unforeseen: please report it, with what --debug shows"


__all__ = ["main", "program"]
