"""The picture of a report's top: ``python docs/figures/report_picture.py``; needs Chromium.

Browsers draw letters differently, so the picture is not compared by a test.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import veridical as vd

PICTURE = Path(__file__).parents[1] / "learn" / "report.png"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking")


def main() -> None:
    """Build the report of the shipped ensemble, and take a picture of its first screen."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        vd.build_report(vd.load_demo(), title="The shipped ensemble", out=page)
        options = ("--window-size=1100,1000", f"--screenshot={PICTURE}", f"--user-data-dir={folder}/profile")
        subprocess.run(["chromium", *FLAGS, *options, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
