"""Repeat the paper's studies: the same as `cmaxslam-fbp reproduce`, whose --help lists all options.

python tools/reproduce_paper.py all --out reproduction
python tools/reproduce_paper.py slam --ecd ecd --jobs 2
"""

from __future__ import annotations

import argparse
import sys

from cmaxslam_fbp.cli import main

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        usage="reproduce_paper.py STUDY [--ecd DIR] [--dsec DIR] [--data DIR] [--out DIR] [--quick] [--jobs N] "
        "[--packets N]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _, arguments = parser.parse_known_args()
    sys.argv[1:] = ["reproduce", *arguments]
    main()
