"""Repeat the paper's studies: the same as `cmaxslam-fbp reproduce`, for a source tree without the command.

python tools/reproduce_paper.py all --out reproduction
python tools/reproduce_paper.py slam --ecd ecd --jobs 2
"""

from __future__ import annotations

import sys

from cmaxslam_fbp.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "reproduce")
    main()
