"""A headless browser, where there is one."""

import shutil
import subprocess

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
]


def open_page(page, folder, *, part="", size=(1200, 900), dark=False):
    """Open a page; return its document after its scripts have run, what it said on the console, and a screenshot."""
    shot = folder / "shot.png"
    flags = [f"--user-data-dir={folder / 'profile'}", f"--window-size={size[0]},{size[1]}"]
    flags += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--screenshot={shot}", "--dump-dom"]
    done = subprocess.run(
        [PROGRAM, *_FLAGS, *flags, page.as_uri() + part], capture_output=True, text=True, timeout=60, check=False
    )
    assert shot.is_file(), done.stderr
    # Remarks of the graphics driver about its own speed are not the page's.
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line and "GL Driver Message" not in line]
    return done.stdout, said, shot
